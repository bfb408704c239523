"""Instructions of inline PTX that are no row of a table: each module has `translate`, which gives C++ or None."""

from typing import Callable, List, Optional, Tuple

from . import barriers, matrices, memory, numbers
from .operands import Operands

TRANSLATORS: "Tuple[Callable[[Operands, str, List[str]], Optional[str]], ...]" = (
    memory.translate,
    matrices.translate,
    barriers.translate,
    numbers.translate,
)
