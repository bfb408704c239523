"""Which tiles are computed where they are used, and which are kept in memory.

Note [Tiles]
~~~~~~~~~~~~
A tile is not computed by the operation that defines it but by those that need its elements: a store, a reduction, the
operand of a product. Each of those is one nest of loops, and the elementwise operations between loads and stores become
registers inside it. A tile is kept in memory only where computing it again would cost more, or would not give the same:
it is loaded and memory may have changed, it is used in two nests, it is used in a loop again and again.
"""

from typing import Dict, FrozenSet, List, Optional, Set

from ..ir import Block, Function, Operation, Value, walk

# Index arithmetic on the way from a result's element to the operand's.
VIEWS = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.view", "tt.trans", "tt.join", "tt.split",
         "tt.make_range", "arith.constant", "tt.unsplat"}  # fmt: skip
# A load may not pass one of them: they write, or wait until another program has written.
ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll")
# Operations with a nest, or an order, of their own.
ROOTS = {
    "tt.store", *ATOMICS, "tt.reduce", "tt.scan", "tt.dot", "tt.dot_scaled", "tt.histogram",
    "tt.cat", "tt.print", "tt.assert", "tt.call", "scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition",
    "cf.br", "cf.cond_br", "cf.assert", "tt.return", "scf.execute_region", "tt.map_elementwise", "tt.unsplat",
    "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume", "tt.descriptor_load", "tt.descriptor_store",
    "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return", "tt.descriptor_gather", "tt.descriptor_scatter",
    "tt.descriptor_reduce", "tt.make_tensor_descriptor", "tt.experimental_descriptor_load",
    "tt.experimental_descriptor_store",
}  # fmt: skip
_WRITES = {"tt.store", *ATOMICS, "tt.call", "scf.for", "scf.if", "scf.while", "cf.br",
           "cf.cond_br",
           "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "scf.execute_region", "tt.elementwise_inline_asm",
           "tt.extern_elementwise"}  # fmt: skip
_COSTS = {"tt.load": 8, "arith.divf": 6, "tt.precise_divf": 6, "tt.approx_divf": 6,
          "arith.remf": 60, "tt.fp_to_fp": 8, "arith.divsi": 12,
          "arith.remsi": 12, "arith.divui": 12, "arith.remui": 12, "tt.extern_elementwise": 40, "tt.gather": 8,
          "tt.elementwise_inline_asm": 40}  # fmt: skip
_KEEP_ABOVE = 16
_MOST = 1 << 20


def pure(operation: Operation) -> bool:
    if operation.name in ("tt.elementwise_inline_asm", "tt.extern_elementwise"):
        return operation.flag("pure")
    return True


# What gives elements of a tile other places.
MOVES = {"tt.trans", "tt.reshape", "tt.view", "tt.join", "tt.split", "tt.broadcast", "tt.expand_dims"}
_THROUGH = {"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.bitcast"}


def _bases(value: Value, seen: Set[Value]) -> Set[Optional[Value]]:
    """The arguments of functions that pointers are computed from; None among them for what is not known."""
    while value.definition is not None:
        if value.definition.name not in _THROUGH:
            return {None}
        value = value.definition.operands[0]
    if value in seen:
        return set()
    seen.add(value)
    block = value.block
    if block is None or block.parent is None:
        return {value} if value.type.is_pointer and not value.type.shape else {None}
    if block.parent.name != "scf.for" or block.operations[-1].name != "scf.yield":
        return {None}
    # A loop's argument is what the loop begins with, or what a pass yields.
    place = block.arguments.index(value)
    first, new = block.parent.operands[2 + place], block.operations[-1].operands[place - 1]
    return _bases(first, seen) | _bases(new, seen)


class Plan:
    """The decisions for one function: `kept` are the tiles in memory, `groups` gives each store's nest."""

    def __init__(self, function: Function):
        self.kept: Set[Value] = set()
        # Arguments of a kernel are taken not to overlap at a shift. Those of a function may be one and the same.
        self.apart = set(function.arguments) if function.public else set()
        self.groups: Dict[Operation, int] = {}
        self.group_members: Dict[int, List[Operation]] = {}
        self.sites: Dict[Value, FrozenSet[object]] = {}
        self.costs: Dict[Value, int] = {}
        self.repeated: Dict[Value, bool] = {}
        self.moved: Dict[Value, bool] = {}
        for operation in walk(function.blocks):
            for region in operation.regions:
                for block in region:
                    self._group_stores(block)
        for block in function.blocks:
            self._group_stores(block)
        operations = list(walk(function.blocks))
        for operation in operations:
            self._cost(operation)
        for operation in reversed(operations):
            self._decide(operation)

    # ---- stores that share a nest
    def _group_stores(self, block: Block) -> None:
        current: List[Operation] = []

        def close() -> None:
            if current:
                number = id(current[0])
                self.group_members[number] = list(current)
                for member in current:
                    self.groups[member] = number
            current.clear()

        for operation in block.operations:
            if operation.name == "tt.store" and operation.operands[0].type.shape:
                if current and not self._may_join(current, operation):
                    close()
                current.append(operation)
            elif operation.name in ROOTS or operation.name == "tt.load" or not pure(operation) or operation.regions:
                close()
        close()

    def _may_join(self, current: List[Operation], store: Operation) -> bool:
        pointer = store.operands[0]
        if current[0].operands[0].type.shape != pointer.type.shape:
            return False
        mine = self.base_pointer(pointer)
        for other in current:
            theirs = self.base_pointer(other.operands[0])
            if other.operands[0] is not pointer and (mine is None or theirs is None or mine is theirs):
                return False
        return True

    # ---- what is kept
    def _cost(self, operation: Operation) -> None:
        own = _COSTS.get(operation.name, 20 if operation.name.startswith("math.") else 1)
        if operation.name in VIEWS:
            own = 0
        elif operation.name in ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui"):
            bottom = operation.operands[1].definition
            if bottom is not None and bottom.name == "arith.constant":
                own = 3
        total = own + sum(self.costs.get(operand, 0) for operand in operation.operands)
        for result in operation.results:
            self.costs[result] = min(total, _MOST) if result.type.shape else 0

    def _decide(self, operation: Operation) -> None:
        for result in operation.results:
            if not result.type.shape:
                continue
            sites: Set[object] = set()
            repeated = moved = False
            for user in result.users:
                if user.block is not operation.block:
                    sites.add(("far", id(user.block)))
                    repeated = True
                # A loop may compute what it starts from again in each pass.
                repeated = repeated or user.name == "scf.for"
                if user.name in ROOTS or not pure(user):
                    sites.add(self.groups.get(user, id(user)))
                    continue
                widened = user.name == "tt.broadcast"
                moved = moved or user.name in MOVES
                for used in user.results:
                    if used in self.kept:
                        sites.add(id(used))
                        repeated = repeated or widened
                    else:
                        sites |= self.sites.get(used, frozenset())
                        repeated = repeated or widened or self.repeated.get(used, False)
                        moved = moved or self.moved.get(used, False)
                if user.name == "tt.gather" and user.operands[0] is result:
                    self.kept.add(result)
            self.sites[result], self.repeated[result] = frozenset(sites), repeated
            self.moved[result] = moved
            if operation.name in ROOTS:
                continue
            if self._keep(operation, result, sites, repeated):
                self.kept.add(result)
                self._forget_cost(result)

    def _forget_cost(self, result: Value) -> None:
        self.costs[result] = 2

    def _keep(self, operation: Operation, result: Value, sites: Set[object], repeated: bool) -> bool:
        if not pure(operation):
            return True
        if result in self.kept:
            return True
        if operation.name == "tt.load":
            return repeated or len(sites) != 1 or self._memory_changes(operation, result)
        if operation.name in VIEWS or operation.name == "tt.addptr" and self.costs[result] < 40:
            return False
        if not sites:
            return False
        return (repeated or len(sites) > 1) and self.costs[result] >= _KEEP_ABOVE

    def _memory_changes(self, load: Operation, result: Value) -> bool:
        """Whether memory may be written between the load and the nest that uses it, or by that nest before its turn."""
        assert load.block is not None
        site = next(iter(self.sites[result]))
        for operation in load.block.operations[load.position + 1 :]:
            group = self.groups.get(operation)
            if group is not None and group == site:
                return any(self._conflict(load, store) for store in self.group_members[group])
            if id(operation) == site and operation.name in ATOMICS:
                return self._conflict(load, operation)
            if id(operation) == site or any(id(r) == site for r in operation.results):
                return False
            if operation.name in _WRITES and (
                operation.name not in ("tt.elementwise_inline_asm", "tt.extern_elementwise") or not pure(operation)
            ):
                return True
        return True

    def base_pointer(self, value: Value) -> Optional[Value]:
        """The argument of the kernel that a tile of pointers is computed from; None where that is not known."""
        found = _bases(value, set())
        base = found.pop() if len(found) == 1 else None
        return base if base in self.apart else None

    def _conflict(self, load: Operation, store: Operation) -> bool:
        """Arguments are taken not to overlap at a shift: programs of a grid run in no order, so none may rely on it.

        Where elements change places, threads of a GPU have loaded all of them before the first is stored.
        """
        mine, theirs = load.operands[0], store.operands[0]
        if self.moved[load.results[0]] or mine is theirs:
            return self.moved[load.results[0]]
        first, second = self.base_pointer(mine), self.base_pointer(theirs)
        return first is None or second is None or first is second
