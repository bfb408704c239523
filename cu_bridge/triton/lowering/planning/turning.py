"""Which order of a function's two dimensions serves its loads and stores.

Note [Turned tiles]
~~~~~~~~~~~~~~~~~~~
A tile's elements lie row by row, and the lanes of a nest run along its last dimension. A kernel that sums over the rows
of a matrix often has its tiles the other way round, since a GPU does not mind: its neighbours in memory are neighbours
along the first dimension, and every chunk would gather. Such a function is turned as a whole before anything is
planned: each tile of two dimensions changes them, and with it the axes of what adds a dimension or takes one away. Only
the order of elements in which a program proceeds depends on it, so what `steps` cannot tell costs time and no value.
"""

from typing import Callable, Dict, List, Optional, Tuple

from ..ir import Function, Operation, Value, walk
from .numbers import constant_number

# How far an element is from its neighbour along each dimension, in elements; None where that is not known.
Steps = Tuple[Optional[int], ...]

_FAR = 1 << 20  # the step of a product with a number that only the launch knows
_ROW = 16  # a quotient or a remainder by so much or more mostly keeps neighbours together
_IN_LOOP = 16  # so many times a loop's loads count
_MOVED_AS_ONE = {"tt.load", "tt.store", "scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition"}
_CONVERSIONS = {"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.bitcast"}
_SUMS = {"arith.addi": 1, "arith.subi": -1, "tt.addptr": 1}
_QUOTIENTS = {"arith.divsi", "arith.divui", "arith.floordivsi"}
_REMAINDERS = {"arith.remsi", "arith.remui"}


def turn(function: Function, is_elementwise: Callable[[Operation], bool]) -> bool:
    """Change the dimensions of a function's tiles where that puts more neighbours of memory side by side.

    `is_elementwise` tells operations whose results have the shape of their operands. Returns whether nests should take
    a chunk of all rows before the next chunk: rows of a turned function that do not follow each other in memory come
    faster when several are on their way at a time.
    """
    if not function.public or not _may_turn(function, is_elementwise):
        return False
    gain, apart = _gain(function)
    if gain <= 0:
        return False
    for operation in walk(function.blocks):
        _turn_axis(operation)
    for value in _values(function):
        if len(value.type.shape) == 2:
            value.type = value.type.shaped(value.type.shape[::-1])
    return apart


def _values(function: Function) -> List[Value]:
    found = list(function.arguments)
    blocks = list(function.blocks)
    for operation in walk(function.blocks):
        found += operation.results
        blocks += [block for region in operation.regions for block in region]
    return found + [argument for block in blocks for argument in block.arguments if argument not in function.arguments]


def _may_turn(function: Function, is_elementwise: Callable[[Operation], bool]) -> bool:
    """Whether all that handles tiles of two dimensions does the same when they have changed places."""
    for operation in walk(function.blocks):
        most = max((len(v.type.shape) for v in [*operation.operands, *operation.results]), default=0)
        if most > 2 or any(values for _, values in operation.successors):
            return False
        if most < 2 or operation.name in _MOVED_AS_ONE or operation.name in ("tt.reduce", "tt.scan"):
            continue
        if operation.name in ("tt.splat", "tt.broadcast", "tt.expand_dims"):
            continue
        if operation.name == "arith.constant":
            if "[" in operation.words[0]:
                return False
            continue
        if operation.name.endswith("inline_asm") or not is_elementwise(operation):
            return False
    return True


def _turn_axis(operation: Operation) -> None:
    counted = operation.results if operation.name == "tt.expand_dims" else operation.operands
    if operation.name in ("tt.expand_dims", "tt.reduce", "tt.scan") and len(counted[0].type.shape) == 2:
        operation.attributes["axis"] = f"{1 - operation.integer('axis')} : i32"


def _gain(function: Function) -> Tuple[int, bool]:
    """How many more elements of loads and stores lie beside their neighbours in the turned function.

    And whether most of its rows would not begin where the one before ends.
    """
    known: Dict[Value, Steps] = {}
    total = apart = 0
    for operation in walk(function.blocks):
        if operation.name not in ("tt.load", "tt.store") or len(operation.operands[0].type.shape) != 2:
            continue
        pointer = operation.operands[0]
        if min(pointer.type.shape) == 1:
            continue
        weight = pointer.type.count * (_IN_LOOP if _in_loop(operation) else 1)
        first, last = _steps(pointer, known)
        if last == 1 or first == 0:
            total -= weight
        elif first == 1 or last == 0:
            total += weight
            apart += -weight if last is not None and last <= pointer.type.shape[0] else weight
    return total, apart > 0


def steps_of(value: Value) -> Steps:
    """How far an element of a tile is from its neighbour along each dimension, in elements."""
    return _steps(value, {})


def _in_loop(operation: Operation) -> bool:
    block = operation.block
    while block is not None and block.parent is not None:
        if block.parent.name in ("scf.for", "scf.while"):
            return True
        block = block.parent.block
    return False


def _steps(value: Value, known: Dict[Value, Steps]) -> Steps:
    if not value.type.shape:
        return ()
    if value not in known:
        known[value] = (None,) * len(value.type.shape)  # what a loop hands on to itself
        known[value] = _compute(value, known)
    return known[value]


def _compute(value: Value, known: Dict[Value, Steps]) -> Steps:
    operation, rank = value.definition, len(value.type.shape)
    if operation is None:
        parent = value.block.parent if value.block is not None else None
        if parent is None or parent.name != "scf.for":
            return (None,) * rank
        # A loop that moves a tile moves all its elements.
        assert value.block is not None
        return _steps(parent.operands[2 + value.block.arguments.index(value)], known)
    if operation.name == "tt.make_range":
        return (1,)
    if operation.name in ("arith.constant", "tt.splat"):
        return (0,) * rank
    found = [_steps(operand, known) or (0,) * rank for operand in operation.operands]
    if operation.name == "tt.expand_dims":
        axis = operation.integer("axis")
        return (*found[0][:axis], 0, *found[0][axis:])
    if operation.name == "tt.broadcast":
        return tuple(0 if e == 1 else step for e, step in zip(operation.operands[0].type.shape, found[0]))
    if operation.name in _CONVERSIONS:
        return found[0]
    if any(len(steps) != rank for steps in found):
        return (None,) * rank
    return tuple(_combined(operation, [steps[place] for steps in found]) for place in range(rank))


def _combined(operation: Operation, steps: List[Optional[int]]) -> Optional[int]:
    """The step of a result along one dimension."""
    if all(step == 0 for step in steps):
        return 0
    if any(step is None for step in steps):
        return None
    first, second = (*steps, 0)[:2]
    assert first is not None and second is not None
    if operation.name in _SUMS and len(steps) == 2:
        return first + _SUMS[operation.name] * second
    if operation.name == "arith.muli" and 0 in (first, second):
        factor = constant_number(operation.operands[0 if first == 0 else 1])
        return (first + second) * (_FAR if factor is None else factor)
    bottom = constant_number(operation.operands[1]) if len(steps) == 2 and second == 0 else None
    if bottom is not None and bottom >= _ROW:
        if operation.name in _REMAINDERS:
            return first
        if operation.name in _QUOTIENTS and first < bottom:
            return 0
    return None
