"""A fixed sample of the sweep over upstream's OpInfo and ModuleInfo; `make conformity` runs all of it.

``CONFORMITY_SAMPLE=1`` takes everything: with ``-k NAME``, all there is about one operator.
"""

from sweep import (  # noqa: F401
    test_error_inputs,
    test_gradients,
    test_inplace,
    test_module,
    test_out,
    test_strides,
    test_values,
)
