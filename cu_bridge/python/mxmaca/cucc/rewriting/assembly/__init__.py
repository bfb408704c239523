"""Instructions of inline PTX that are no row of a table: each module has `translate`, which gives C++ or None."""

from typing import TYPE_CHECKING, Callable, List, Optional, Tuple

from . import barriers, matrices, memory, numbers

if TYPE_CHECKING:
    from ..ptx import Translation

TRANSLATORS: "Tuple[Callable[[Translation, str, List[str]], Optional[str]], ...]" = (
    memory.translate,
    matrices.translate,
    barriers.translate,
    numbers.translate,
)
