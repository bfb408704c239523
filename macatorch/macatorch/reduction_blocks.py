"""How much of a row a program of Inductor's generated reductions over rows takes at a time.

Note [Whole rows]
~~~~~~~~~~~~~~~~~
A sum over the rows of a matrix, such as a batch norm's over the pixels of a channels-last image, is generated for
multiprocessors: each program takes 64 columns of 8 rows, so that there are many programs. A processor reads memory at
its full rate where it reads on and on; of a row of 256 columns a program leaves three quarters to others. With whole
rows and as few of them at a time as make up the same tile, such sums take half to a third of the time (docs, "Compiled
training steps"). The rows' length is what Inductor writes into the kernel's text: the number of a column is
`xindex % 256`.

Which rows are added up first depends on the tile and so does rounding, as between two of upstream's configurations;
the choice follows from the text alone and is the same on every machine.
"""

from __future__ import annotations

import copy
import re
from typing import Any, List

__all__ = ["whole_rows"]

_MOST = 1024  # columns: a tile's sums stay in the processor's first cache
_PROGRAMS = 16  # so many are left, that all threads have some
_COLUMN = re.compile(r"^ *x\d+ = \(?xindex(?: % (\d+))?\)?$", re.MULTILINE)
_COLUMNS = re.compile(r"^ *xnumel = (\d+)$", re.MULTILINE)


def whole_rows(kernel: Any, configs: List[Any], meta: Any) -> List[Any]:
    """Return what CachingAutotuner shall compile a kernel with: `configs`, or the one that takes whole rows.

    kernel: Triton's JITFunction. meta: Inductor's notes on it. Only the configuration of a reduction over an outer
    dimension changes, where Inductor has chosen it without trying and the text says how long rows are.
    """
    hint = getattr((meta or {}).get("reduction_hint"), "name", None)
    if hint != "OUTER" or len(configs) != 1:
        return configs
    blocks = configs[0].kwargs
    rows = next((name for name in ("RBLOCK", "R0_BLOCK") if name in blocks), None)
    if rows is None or set(blocks) != {"XBLOCK", rows}:
        return configs
    columns = _columns(kernel.src)
    if columns <= blocks["XBLOCK"]:
        return configs
    config = copy.copy(configs[0])
    config.kwargs = {"XBLOCK": columns, rows: max(1, blocks["XBLOCK"] * blocks[rows] // columns)}
    return [config]


def _columns(source: str) -> int:
    """The largest power of two of columns that parts a row evenly and leaves enough programs; 0 where it is unknown."""
    count = _COLUMNS.search(source)
    if count is None:
        return 0
    number = int(count.group(1))
    lengths = [int(length) if length else number for length in _COLUMN.findall(source)]
    if not lengths:
        return 0
    columns = min(_MOST, *(length & -length for length in lengths))
    while columns * _PROGRAMS > number:
        columns //= 2
    return columns
