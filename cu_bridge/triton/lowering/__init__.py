"""From Triton's IR to machine code of the processor that this runs on. See Note [Tiles] in plan.py."""

from .compiler import Compiled, assemble, assembly, compile_module, lower_module, target_key
from .errors import LoweringError

__all__ = ["Compiled", "LoweringError", "assemble", "assembly", "compile_module", "lower_module", "target_key"]
