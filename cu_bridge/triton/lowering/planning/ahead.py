"""Which loads of a loop are fetched ahead.

Note [Rows that lie apart]
~~~~~~~~~~~~~~~~~~~~~~~~~~
A processor sees what is read in order and fetches it before it is asked for. A loop over the rows of a matrix that
reads a part of each (a sum over the pixels of a channels-last image) reads a few lines here and a few a kilobyte on;
with two or three such parts to a page no processor sees an order, and each row costs the time of the memory. Where the
text shows how far a pass of the loop moves an address, the load asks for what it reads in a later pass. To ask for
memory that is not there is no error.
"""

from typing import Dict, Optional

from ..ir import Operation, Value
from .numbers import constant_number
from .turning import steps_of

_APART = 512  # bytes between rows that a processor does not fetch by itself
_AHEAD = 2048  # bytes of a tile that are asked for at a time: what memory delivers while it is waited for

_SUMS = {"arith.addi": 1, "arith.subi": -1, "tt.addptr": 1}
_SAME = {"tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.extui", "arith.index_cast", "tt.bitcast"}


def bytes_ahead(load: Operation) -> Optional[int]:
    """How far from the address of a load that of a later pass is, in bytes; None where it is not to be fetched."""
    pointer = load.operands[0]
    loop = load.block.parent if load.block is not None else None
    if loop is None or loop.name != "scf.for" or len(pointer.type.shape) != 2:
        return None
    size = pointer.type.pointee.bytes  # type: ignore[union-attr]
    rows, columns = steps_of(pointer)
    if columns != 1 or rows is None or not _lie_apart(rows * size, pointer.type.shape[1] * size):
        return None
    step = constant_number(loop.operands[2])
    moved = _moved(pointer, loop, {})
    if step is None or not moved:
        return None
    passes = max(1, _AHEAD // (pointer.type.count * size))
    return moved * step * size * passes


def _lie_apart(distance: int, length: int) -> bool:
    return abs(distance) >= max(_APART, 2 * length)


def _moved(value: Value, loop: Operation, known: Dict[Value, Optional[int]]) -> Optional[int]:
    """What is added to all elements when the loop's counter grows by one, in elements for pointers."""
    if value not in known:
        known[value] = None  # of what a loop hands on to itself
        known[value] = _compute(value, loop, known)
    return known[value]


def _compute(value: Value, loop: Operation, known: Dict[Value, Optional[int]]) -> Optional[int]:
    body = loop.regions[0][0]
    operation = value.definition
    if operation is None:
        if value.block is not body:
            return 0
        return 1 if value is body.arguments[0] else None
    if operation.block is not body:
        return 0
    if operation.name == "arith.constant" or operation.name == "tt.make_range":
        return 0
    if operation.name in _SAME:
        return _moved(operation.operands[0], loop, known)
    if operation.name not in ("arith.muli", *_SUMS):
        return None
    first, second = (_moved(operand, loop, known) for operand in operation.operands)
    if first is None or second is None:
        return None
    if operation.name in _SUMS:
        return first + _SUMS[operation.name] * second
    if first == second == 0:
        return 0
    factor = constant_number(operation.operands[1 if second == 0 else 0])
    return None if factor is None or 0 not in (first, second) else (first + second) * factor
