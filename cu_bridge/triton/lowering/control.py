"""Control flow: blocks, loops, conditions, calls. What they carry is a scalar, or a tile in memory."""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from .errors import LoweringError
from .ir import Block, Operation, Value
from .memory import Memory
from .planning.plan import MOVES
from .tiles import Buffer, Indices, product
from .types import Type

# A tile that is read, and whether it is read at the index that is computed.
Read = Tuple[Value, bool]


class Carried(NamedTuple):
    """What holds a carried value: a variable (a scalar), a buffer (a tile), an offset (a tile that is advanced)."""

    variable: str
    buffer: Optional[Buffer]
    advanced: bool


class Control(Memory):
    """Statements with regions, and branches."""

    names: Dict[str, str]

    def statement(self, operation: Operation) -> None:
        raise NotImplementedError

    def statements(self, block: Block) -> None:
        for operation in block.operations:
            self.statement(operation)

    # ---- values that are carried
    def holder(self, kind: Type) -> Carried:
        if kind.shape:
            return Carried("", self.new_buffer(kind), False)
        return Carried(self.b.variable(kind.llvm), None, False)

    def put_in(self, held: Carried, value: Value) -> None:
        """Store a value where it is carried."""
        if held.buffer is None:
            self.b.put(f"store {value.type.llvm} {self.scalar(value)}, ptr {held.variable}")
        elif self.buffers.get(value) != held.buffer:
            self.keep_copy(value, held.buffer)

    def keep_copy(self, value: Value, buffer: Buffer) -> None:
        source = self.buffers.get(value)
        if source is None:
            self.keep(value, buffer)
        else:
            self.copy(source, buffer)

    def copy(self, source: Buffer, target: Buffer) -> None:
        size = target.type.count * target.type.bytes
        self.module.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.b.put(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align 64 {target.pointer}, "
            f"ptr align 64 {source.pointer}, i64 {size}, i1 false)"
        )

    def take_from(self, held: Carried, value: Value) -> None:
        """Make a value stand for what is carried now."""
        if held.buffer is None:
            self.scalars[value] = self.b.emit(f"load {value.type.llvm}, ptr {held.variable}")
        else:
            self.buffers[value] = held.buffer

    def put_all(self, held: List[Carried], values: List[Value], arguments: Optional[List[Value]] = None) -> None:
        """Store several values at once: none may see what another store has changed.

        `arguments` are the values that the holders stand for while the new ones are computed.
        """
        loads = [(h, v) for h, v in zip(held, values) if h.buffer is None and not h.advanced]
        scalars = [self.scalar(v) for _, v in loads]
        tiles = [(h, v) for h, v in zip(held, values) if h.buffer is not None and self.buffers.get(v) != h.buffer]
        fresh = [(h, v) for h, v in tiles if v not in self.buffers]
        nests = [[pair] for pair in fresh] if arguments is None else self._nests_in_place(fresh, held, arguments)
        own = [h.buffer for h in held]
        pending: List[Tuple[Carried, Buffer]] = []
        for holder, value in tiles:
            if any(holder is other for nest in nests for other, _ in nest):
                continue
            source = self.buffers.get(value)
            if source is None or source in own:
                source = self.new_buffer(value.type)
                self.keep_copy(value, source)
            pending.append((holder, source))
        for nest in nests:
            self._keep_together(nest)
        for holder, buffer in pending:
            assert holder.buffer is not None
            self.copy(buffer, holder.buffer)
        for (holder, value), scalar in zip(loads, scalars):
            self.b.put(f"store {value.type.llvm} {scalar}, ptr {holder.variable}")

    def _keep_together(self, pairs: List[Tuple[Carried, Value]]) -> None:
        """Compute tiles of one shape into their holders in one nest, which loads once what several need."""

        def body(indices: Indices) -> None:
            vectors = [self.vector(self.element(value, indices)) for _, value in pairs]
            for (holder, _), vector in zip(pairs, vectors):
                assert holder.buffer is not None
                self.write(holder.buffer, indices, vector)

        self.nest(pairs[0][1].type.shape, body)

    def _nests_in_place(
        self, fresh: List[Tuple[Carried, Value]], held: List[Carried], arguments: List[Value]
    ) -> List[List[Tuple[Carried, Value]]]:
        """The nests that may compute straight into what they read, in their order; what is left needs a copy.

        A nest computes an element of all its tiles before it writes one, so it may read at the same index what it
        overwrites. What it reads of another nest's tiles that one may not have overwritten.
        """
        reads: Dict[Value, List[Tuple[Carried, bool]]] = {}
        for _, value in fresh:
            reads[value] = [
                (holder, same)
                for tile, same in self.inside(value, {})
                for holder, argument in zip(held, arguments)
                if holder.buffer is not None and (tile is argument or self.buffers.get(tile) == holder.buffer)
            ]
        groups: Dict[Tuple[int, ...], List[Tuple[Carried, Value]]] = {}
        for holder, value in fresh:
            shape = value.type.shape
            if all(same or read.buffer.type.shape != shape for read, same in reads[value] if read.buffer is not None):
                groups.setdefault(shape, []).append((holder, value))
        order: List[List[Tuple[Carried, Value]]] = []
        while groups:
            for shape, members in groups.items():
                others = [value for other, pairs in groups.items() if other != shape for _, value in pairs]
                if not any(read is holder for value in others for read, _ in reads[value] for holder, _ in members):
                    order.append(groups.pop(shape))
                    break
            else:
                del groups[min(groups, key=lambda shape: product(shape))]
        return order

    def inside(self, value: Value, seen: Dict[Value, FrozenSet[Read]]) -> FrozenSet[Read]:
        """Tiles in memory that computing a value reads, each with whether all on the way keeps its index."""
        if value in seen:
            return seen[value]
        found: FrozenSet[Read] = frozenset()
        if value.type.shape and (value in self.buffers or value.definition is None):
            found = frozenset({(value, True)})
        elif value.type.shape:
            definition = value.definition
            assert definition is not None
            for operand in definition.operands:
                found |= self.inside(operand, seen)
            if definition.name in MOVES or definition.name == "tt.gather":
                found = frozenset((tile, False) for tile, _ in found)
        seen[value] = found
        return found

    # ---- scf.for
    def for_loop(self, operation: Operation) -> None:
        low, high, step = (self.scalar(value) for value in operation.operands[:3])
        initial = operation.operands[3:]
        body = operation.regions[0][0]
        counter, arguments = body.arguments[0], body.arguments[1:]
        inside, yielded = self._yielded(body)
        kind = counter.type.llvm
        held: List[Carried] = []
        steps: List[List[Value]] = []
        for argument, new in zip(arguments, yielded):
            chain = self._advances(argument, new, body)
            steps.append(chain or [])
            if chain is not None:
                size = "i64" if argument.type.is_pointer else argument.type.llvm
                variable = self.b.variable(size)
                self.b.put(f"store {size} 0, ptr {variable}")
                held.append(Carried(variable, None, True))
            else:
                held.append(self.holder(argument.type))
        plain = [(h, v) for h, v in zip(held, initial) if not h.advanced]
        self.put_all([h for h, _ in plain], [v for _, v in plain])
        place = self.b.variable(kind)
        self.b.put(f"store {kind} {low}, ptr {place}")
        test, run, done = self.b.fresh("for.test"), self.b.fresh("for.body"), self.b.fresh("for.done")
        self.b.jump(test)
        self.b.mark(test)
        now = self.b.emit(f"load {kind}, ptr {place}")
        compare = "ult" if "unsigned" in operation.words else "slt"
        self.b.branch(self.b.emit(f"icmp {compare} {kind} {now}, {high}"), run, done)
        self.b.mark(run)
        self.scalars[counter] = now
        for holder, argument, first in zip(held, arguments, initial):
            self._bind(holder, argument, first)
        for inner in inside:
            self.statement(inner)
        moved = [self._total(chain, argument) for chain, argument, h in zip(steps, arguments, held)]
        rest = [(h, v, a) for h, v, a in zip(held, yielded, arguments) if not h.advanced]
        self.put_all([h for h, _, _ in rest], [v for _, v, _ in rest], [a for _, _, a in rest])
        for holder, argument, total in zip(held, arguments, moved):
            if holder.advanced:
                size = "i64" if argument.type.is_pointer else argument.type.llvm
                self.b.put(f"store {size} {total}, ptr {holder.variable}")
        self.b.put(f"store {kind} {self.b.emit(f'add {kind} {now}, {step}')}, ptr {place}")
        self.b.jump(test)
        self.b.mark(done)
        for holder, result, first in zip(held, operation.results, initial):
            self._bind(holder, result, first)

    def _bind(self, holder: Carried, value: Value, first: Value) -> None:
        if not holder.advanced:
            self.take_from(holder, value)
            return
        size = "i64" if value.type.is_pointer else value.type.llvm
        self.advanced[value] = (first, self.b.emit(f"load {size}, ptr {holder.variable}"))

    def _advances(self, argument: Value, new: Value, body: Block) -> Optional[List[Value]]:
        """The steps by which a tile of pointers or integers is moved in a pass of a loop, or None.

        All its elements move by the same scalar, so that scalar is all that has to be carried.
        """
        if not argument.type.shape or argument.type.is_float or argument.type.element == "i1":
            return None
        chain: List[Value] = []
        while new is not argument:
            definition = new.definition
            if definition is None or definition.name not in ("tt.addptr", "arith.addi") or new in self.plan.kept:
                return None
            follow, step = definition.operands
            if not self._is_uniform(step):
                if definition.name == "arith.addi" and self._is_uniform(follow):
                    follow, step = step, follow
                else:
                    return None
            chain.append(step)
            new = follow
        return chain

    def _is_uniform(self, value: Value) -> bool:
        definition = value.definition
        if definition is None or value in self.plan.kept:
            return False
        if definition.name == "tt.splat":
            return True
        if definition.name == "arith.constant":
            return "[" not in definition.words[0]
        if definition.name in ("tt.broadcast", "tt.expand_dims"):
            return self._is_uniform(definition.operands[0])
        return False

    def _total(self, chain: List[Value], argument: Value) -> str:
        """What the offset is after a pass: bytes for pointers."""
        advanced = self.advanced.get(argument)
        if advanced is None or argument not in self.advanced:
            return ""
        total = advanced[1]
        for step in chain:
            scalar = self._uniform_scalar(step)
            if argument.type.is_pointer:
                if step.type.bits < 64:
                    scalar = self.b.emit(f"sext {step.type.llvm} {scalar} to i64")
                scalar = self.b.emit(f"mul i64 {scalar}, {argument.type.pointee.bytes}")  # type: ignore[union-attr]
                total = self.b.emit(f"add i64 {total}, {scalar}")
            else:
                total = self.b.emit(f"add {argument.type.llvm} {total}, {scalar}")
        return total

    def _uniform_scalar(self, value: Value) -> str:
        from .lanes import ZERO

        with self.lanes_of(1):
            self.b.level.memo.clear()
            return self.element(value, tuple(ZERO for _ in value.type.shape)).scalar

    # ---- scf.if, scf.while, scf.execute_region
    def condition(self, operation: Operation) -> None:
        held = [self.holder(result.type) for result in operation.results]
        yes, no, done = self.b.fresh("if"), self.b.fresh("else"), self.b.fresh("endif")
        self.b.branch(self.scalar(operation.operands[0]), yes, no if len(operation.regions) > 1 else done)
        for label, region in zip((yes, no), operation.regions):
            self.b.mark(label)
            self.region_into(region, held)
            self.b.jump(done)
        self.b.mark(done)
        for holder, result in zip(held, operation.results):
            self.take_from(holder, result)

    def region_into(self, region: List[Block], held: List[Carried]) -> None:
        """A region of one block, whose yielded values go to their holders."""
        if len(region) != 1:
            raise LoweringError("scf", "a region of several blocks is not lowered")
        operations, yielded = self._yielded(region[0])
        for operation in operations:
            self.statement(operation)
        self.put_all(held, yielded)

    @staticmethod
    def _yielded(block: Block) -> Tuple[List[Operation], List[Value]]:
        """The operations of a block and what it yields at the end; a yield of nothing is not printed."""
        operations = block.operations
        if operations and operations[-1].name == "scf.yield":
            return operations[:-1], operations[-1].operands
        return operations, []

    def while_loop(self, operation: Operation) -> None:
        before, after = operation.regions[0][0], operation.regions[1][0]
        held = [self.holder(argument.type) for argument in before.arguments]
        passed = [self.holder(argument.type) for argument in after.arguments]
        self.put_all(held, operation.operands)
        test, run, done = self.b.fresh("while.test"), self.b.fresh("while.body"), self.b.fresh("while.done")
        self.b.jump(test)
        self.b.mark(test)
        for holder, argument in zip(held, before.arguments):
            self.take_from(holder, argument)
        for inner in before.operations[:-1]:
            self.statement(inner)
        last = before.operations[-1]
        flag = self.scalar(last.operands[0])
        self.put_all(passed, last.operands[1:])
        self.b.branch(flag, run, done)
        self.b.mark(run)
        for holder, argument in zip(passed, after.arguments):
            self.take_from(holder, argument)
        inside, yielded = self._yielded(after)
        for inner in inside:
            self.statement(inner)
        self.put_all(held, yielded)
        self.b.jump(test)
        self.b.mark(done)
        for holder, result in zip(passed, operation.results):
            self.take_from(holder, result)

    def inner_region(self, operation: Operation) -> None:
        held = [self.holder(result.type) for result in operation.results]
        self.region_into(operation.regions[0], held)
        for holder, result in zip(held, operation.results):
            self.take_from(holder, result)

    # ---- cf: blocks of a function
    def blocks(self, blocks: List[Block]) -> None:
        self.holders, self.labels = {}, {}
        self.arguments = {block.label: block.arguments for block in blocks}
        for block in blocks[1:]:
            self.labels[block.label] = self.b.fresh("block")
            self.holders[block.label] = [self.holder(argument.type) for argument in block.arguments]
        for block in blocks:
            if block is not blocks[0]:
                self.b.mark(self.labels[block.label])
                for holder, argument in zip(self.holders[block.label], block.arguments):
                    self.take_from(holder, argument)
            self.statements(block)

    def branch_to(self, operation: Operation) -> None:
        targets = operation.successors
        if operation.name == "cf.br":
            self._go(*targets[0])
            return
        count = sum(len(values) for _, values in targets)
        condition = operation.operands[0]
        assert len(operation.operands) in (1, 1 + count)
        yes, no = self.b.fresh("yes"), self.b.fresh("no")
        self.b.branch(self.scalar(condition), yes, no)
        for label, (target, values) in zip((yes, no), targets):
            self.b.mark(label)
            self._go(target, values)

    def _go(self, target: str, values: List[Value]) -> None:
        self.put_all(self.holders[target], values, self.arguments[target])
        self.b.jump(self.labels[target])

    # ---- functions
    def call_function(self, operation: Operation) -> None:
        """Scalars go by value, tiles by address; results through addresses."""
        arguments: List[Tuple[str, str]] = []
        for operand in operation.operands:
            if operand.type.shape:
                arguments.append(("ptr", self.kept(operand).pointer))
            else:
                arguments.append((operand.type.llvm, self.scalar(operand)))
        held = [self.holder(result.type) for result in operation.results]
        arguments += [("ptr", h.buffer.pointer if h.buffer else h.variable) for h in held]
        self.calls.append((operation.symbol, self.b.fresh("callee")))
        name = f'"{self.names[operation.symbol]}"'
        grid = [("i32", f"%{part}") for part in ("grid_x", "grid_y", "grid_z", "pid_x", "pid_y", "pid_z")]
        scratch = f"%{self.calls[-1][1]}"
        self.b.call("void", name, arguments + grid + [("ptr", scratch)])
        for holder, result in zip(held, operation.results):
            self.take_from(holder, result)

    calls: List[Tuple[str, str]]
    holders: Dict[str, List[Carried]] = {}
    labels: Dict[str, str] = {}
    arguments: Dict[str, List[Value]] = {}
    # Where a region that runs on scalars puts what it returns, and the label after it.
    ends: Tuple[List[Carried], str] = ([], "")
