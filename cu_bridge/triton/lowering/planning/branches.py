"""Conditions whose branches only compute: both are computed, and each element is chosen.

A branch that gives tiles keeps them in memory, since what follows cannot know which one ran. `welford_reduce` of
torch.compile asks in each pass of a loop whether it is the first. Where both branches are a few operations on elements,
choosing costs less than three tiles that go through memory.
"""

from typing import Callable, List

from ..ir import Block, Function, Operation, Value, walk
from .plan import pure

_MOST = 16  # operations of both branches


def flatten(function: Function, is_elementwise: Callable[[Operation], bool]) -> None:
    """Replace each `scf.if` that gives tiles of few elementwise operations by `arith.select`."""
    blocks = list(function.blocks)
    for operation in walk(function.blocks):
        blocks += [block for region in operation.regions for block in region]
    for block in reversed(blocks):
        for operation in list(block.operations):
            if operation.name == "scf.if" and _may_flatten(operation, is_elementwise):
                _replace(block, operation)


def _may_flatten(operation: Operation, is_elementwise: Callable[[Operation], bool]) -> bool:
    if len(operation.regions) != 2 or any(len(region) != 1 for region in operation.regions):
        return False
    inner = [o for region in operation.regions for o in region[0].operations if o.name != "scf.yield"]
    return (
        any(result.type.shape for result in operation.results)
        and all(region[0].operations[-1].name == "scf.yield" for region in operation.regions)
        and len(inner) <= _MOST
        and all(o.name in _VIEWS or is_elementwise(o) and pure(o) for o in inner)
    )


_VIEWS = {"arith.constant", "tt.splat", "tt.broadcast", "tt.expand_dims"}


def _replace(block: Block, operation: Operation) -> None:
    bodies = [region[0].operations[:-1] for region in operation.regions]
    yielded = [region[0].operations[-1].operands for region in operation.regions]
    chosen: List[Operation] = []
    for result, first, second in zip(operation.results, *yielded):
        select = Operation("arith.select")
        select.operands = [operation.operands[0], first, second]
        select.location = operation.location
        result.definition, result.index = select, 0
        select.results = [result]
        chosen.append(select)
    ends = [region[0].operations[-1] for region in operation.regions]
    for select in chosen:
        for operand in select.operands:
            operand.users.append(select)
    _forget(operation.operands[0], operation)
    for end in ends:
        for operand in end.operands:
            _forget(operand, end)
    place = block.operations.index(operation)
    block.operations[place : place + 1] = [*bodies[0], *bodies[1], *chosen]
    for position, inner in enumerate(block.operations):
        inner.block, inner.position = block, position


def _forget(value: Value, user: Operation) -> None:
    value.users = [other for other in value.users if other is not user]
