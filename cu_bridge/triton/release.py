"""What the installed release of Triton has. Everything here is asked once; other modules go by the answers."""

import importlib.util
from typing import Tuple

import triton

# As (3, 9). For tables whose rows name the releases that have them, and for no conditions in code.
RELEASE: Tuple[int, ...] = tuple(int(part) for part in triton.__version__.split(".")[:2])
# device_print's `hex` gives floating-point numbers as C's %a; before, their bits.
HEXADECIMAL_FLOATS = RELEASE >= (3, 9)
# The module of knobs, and with it languages, tuples and scratch memory.
HAS_KNOBS = importlib.util.find_spec("triton.knobs") is not None
