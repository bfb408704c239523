"""`python -m mxmaca`."""

import sys

from mxmaca.surroundings import main

sys.exit(main())
