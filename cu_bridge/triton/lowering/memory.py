"""Loads, stores and atomic operations on the memory of the user."""

from typing import List, Optional, Sequence, Tuple

from .errors import LoweringError
from .ir import Operation, Value
from .lanes import Lanes
from .planning.ahead import bytes_ahead
from .text import Level
from .tiles import Indices, Tiles
from .types import Type

_ATOMIC_INTEGER = {"and", "or", "xor", "add", "max", "min", "umax", "umin", "exch"}


class Memory(Tiles):
    """Operations through pointers."""

    # ---- addresses
    def _contiguous(self, pointer: Lanes, size: int) -> bool:
        return pointer.kind == "a" and pointer.offsets == tuple(
            pointer.offsets[0] + size * lane for lane in range(self.width)
        )

    def _first(self, pointer: Lanes) -> str:
        """The address of lane 0 of an "a"."""
        assert pointer.offsets is not None
        if pointer.offsets[0] == 0:
            return pointer.scalar
        return self.b.emit(f"getelementptr i8, ptr {pointer.scalar}, i64 {pointer.offsets[0]}")

    def _mask(self, operation: Operation, place: int, indices: Indices) -> Optional[Lanes]:
        """The mask operand; None where all lanes are active."""
        if len(operation.operands) <= place:
            return None
        lanes = self.element(operation.operands[place], indices)
        return None if lanes.kind == "u" and lanes.scalar == "1" else lanes

    def check_lanes(self, operation: Operation, pointer: Lanes, mask: Optional[Lanes]) -> None:
        """With MACA_TRITON_CHECK=1: each address that is used is looked up among the device's allocations."""
        if not self.module.checked:
            return
        size = operation.operands[0].type.pointee.bytes  # type: ignore[union-attr]
        if pointer.kind == "u" and (mask is None or mask.kind == "u"):
            self.check_address(operation, pointer.scalar, mask.scalar if mask is not None else None, size)
            return
        pointers = self.vector(pointer)
        flags = self.vector(mask) if mask is not None else None
        for lane in range(self.width):
            single = self.b.emit(f"extractelement <{self.width} x ptr> {pointers}, i64 {lane}")
            flag = self.b.emit(f"extractelement <{self.width} x i1> {flags}, i64 {lane}") if flags is not None else None
            self.check_address(operation, single, flag, size)

    def check_address(self, operation: Operation, pointer: str, mask: Optional[str], size: int) -> None:
        """The same for one address."""
        if not self.module.checked:
            return
        file, line = operation.location
        where = self.module.string(f"{file or 'unknown'}:{line}")
        writes = int(operation.name != "tt.load")

        def look_up() -> None:
            arguments = [("ptr", pointer), ("i64", str(size)), ("i32", str(writes)), ("ptr", where)]
            self.b.call("void", "mcKernelCheckAccess", arguments)

        if mask is None:
            look_up()
        else:
            self.when(mask, look_up)

    # ---- loads
    def load_lanes(self, operation: Operation, indices: Indices, level: Level) -> Lanes:
        kind = operation.results[0].type.scalar
        pointer = self.element(operation.operands[0], indices)
        mask = self._mask(operation, 1, indices)
        other = self.element(operation.operands[2], indices) if len(operation.operands) > 2 else None
        self.check_lanes(operation, pointer, mask)
        if pointer.kind == "u" and (mask is None or mask.kind == "u") and (other is None or other.kind == "u"):
            flag = mask.scalar if mask is not None else None
            return Lanes(
                "u", kind, level, self.load_scalar(operation, pointer.scalar, flag, other.scalar if other else None)
            )
        memory, width = self.memory_type(kind), self.width
        filler = "zeroinitializer"
        if other is not None:
            filler = self.to_memory(self.vector(other), kind, width)
        flags = self.vector(mask) if mask is not None else None
        if pointer.kind == "u":
            found = self._load_same(pointer.scalar, memory, flags, filler, kind)
        elif self._contiguous(pointer, kind.bytes):
            first = self._first(pointer)
            self._fetch_ahead(operation, first)
            found = self._load_row(first, memory, flags, filler, kind)
        elif pointer.kind == "a":
            found = self._gather_load(self.vector(pointer), memory, flags, filler, kind)
        else:
            found = self._load_any(self.vector(pointer), memory, flags, filler, kind)
        return self.varying(kind, level, self._from_memory(found, kind, width))

    def load_scalar(self, operation: Operation, pointer: str, mask: Optional[str], other: Optional[str]) -> str:
        """One element; a pointer whose mask is false is not followed."""
        kind = operation.results[0].type.scalar
        memory = self.memory_type(kind)
        # A loop may wait for what another program stores.
        load = f"load {'volatile ' if operation.flag('isVolatile') else ''}{memory}"
        if mask is None:
            return self._from_memory(self.b.emit(f"{load}, ptr {pointer}, align {kind.bytes}"), kind, 1)
        spare = self.b.variable("i64")
        self.b.put(f"store i64 0, ptr {spare}")
        place = self.b.emit(f"select i1 {mask}, ptr {pointer}, ptr {spare}")
        found = self._from_memory(self.b.emit(f"{load}, ptr {place}, align {kind.bytes}"), kind, 1)
        return found if other is None else self.e.choose(mask, found, other, kind.llvm, 1)

    def _load_row(self, pointer: str, memory: str, flags: Optional[str], filler: str, kind: Type) -> str:
        full, align = f"<{self.width} x {memory}>", kind.bytes
        if flags is None:
            return self.b.emit(f"load {full}, ptr {pointer}, align {align}")
        name = f"llvm.masked.load.v{self.width}{_short(memory)}.p0"
        text = [("ptr", pointer), ("i32", str(align)), (f"<{self.width} x i1>", flags), (full, filler)]
        return self.masked(full, name, text)

    def _fetch_ahead(self, operation: Operation, pointer: str) -> None:
        """Ask for what a load reads in a later pass of its loop. See Note [Rows that lie apart]."""
        if operation not in self.ahead:
            self.ahead[operation] = bytes_ahead(operation)
        distance = self.ahead[operation]
        if distance is None:
            return
        self._prefetch(self.b.emit(f"getelementptr i8, ptr {pointer}, i64 {distance}"), writes=False)

    def _prefetch(self, pointer: str, writes: bool) -> None:
        """Ask for the memory at an address, which may be any, to be in the nearest cache."""
        self.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.b.put(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(writes)}, i32 3, i32 1)")

    def masked(self, result: str, name: str, arguments: Sequence[Tuple[str, str]]) -> str:
        """A masked intrinsic."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.module.declare(f"{result} @{name}({kinds})")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result == "void":
            self.b.put(text)
            return ""
        return self.b.emit(text)

    def _load_same(self, pointer: str, memory: str, flags: Optional[str], filler: str, kind: Type) -> str:
        width = self.width
        if flags is None:
            return self.b.splat(self.b.emit(f"load {memory}, ptr {pointer}, align {kind.bytes}"), memory, width)
        some = self.b.call("i1", f"llvm.vector.reduce.or.v{width}i1", [(f"<{width} x i1>", flags)])
        spare = self.b.variable("i64")
        self.b.put(f"store i64 0, ptr {spare}")
        place = self.b.emit(f"select i1 {some}, ptr {pointer}, ptr {spare}")
        single = self.b.splat(self.b.emit(f"load {memory}, ptr {place}, align {kind.bytes}"), memory, width)
        return self.e.choose(flags, single, filler, memory, width)

    def _gather_load(self, pointers: str, memory: str, flags: Optional[str], filler: str, kind: Type) -> str:
        width = self.width
        full, places = f"<{width} x {memory}>", f"<{width} x ptr>"
        mask = flags if flags is not None else self.e.const("true", "i1", width)
        name = f"llvm.masked.gather.v{width}{_short(memory)}.v{width}p0"
        arguments = [(places, pointers), ("i32", str(kind.bytes)), (f"<{width} x i1>", mask), (full, filler)]
        return self.masked(full, name, arguments)

    def _are_row(self, pointers: str, size: int) -> Tuple[str, str]:
        """Whether pointers lie side by side, which the text did not show; and the first one."""
        width = self.width
        first = self.b.emit(f"extractelement <{width} x ptr> {pointers}, i64 0")
        numbers = self.e.cast("ptrtoint", pointers, "ptr", "i64", width)
        base = self.b.emit(f"ptrtoint ptr {first} to i64")
        steps = "<" + ", ".join(f"i64 {size * lane}" for lane in range(width)) + ">"
        row = self.e.op("add", "i64", width, self.b.splat(base, "i64", width), steps)
        same = self.e.op("icmp eq", "i64", width, numbers, row)
        return self.b.call("i1", f"llvm.vector.reduce.and.v{width}i1", [(f"<{width} x i1>", same)]), first

    def _load_any(self, pointers: str, memory: str, flags: Optional[str], filler: str, kind: Type) -> str:
        full = f"<{self.width} x {memory}>"
        row, first = self._are_row(pointers, kind.bytes)
        found = self.b.variable(full)
        yes, no, done = self.b.fresh("row"), self.b.fresh("apart"), self.b.fresh("loaded")
        self.b.branch(row, yes, no)
        self.b.mark(yes)
        self.b.put(f"store {full} {self._load_row(first, memory, flags, filler, kind)}, ptr {found}")
        self.b.jump(done)
        self.b.mark(no)
        self.b.put(f"store {full} {self._gather_load(pointers, memory, flags, filler, kind)}, ptr {found}")
        self.b.jump(done)
        self.b.mark(done)
        return self.b.emit(f"load {full}, ptr {found}")

    # ---- stores
    def store_group(self, stores: List[Operation]) -> None:
        """Stores of tiles of one shape, in one nest."""

        def write(indices: Indices) -> None:
            # What is stored may have been loaded where another of the stores writes.
            for operation in stores:
                for operand in operation.operands:
                    self.element(operand, indices)
            for operation in stores:
                self._store_lanes(operation, indices)

        def body(indices: Indices) -> None:
            some = self._stores_some(stores, indices)
            if some is None:
                write(indices)
            else:
                self.when(some, lambda: write(indices))

        self.nest(stores[0].operands[0].type.shape, body)

    def _stores_some(self, stores: List[Operation], indices: Indices) -> Optional[str]:
        """Whether a chunk has anything to store; None where it is not asked.

        A program at the edge of its data, or beyond it, has many chunks without: their loads and sums are left out.
        Only inside of a loop, where nothing that is computed for a chunk is used behind it. Checked loads report what
        they load whoever needs it.
        """
        if self.b.level.depth == 0 or self.module.checked:
            return None
        masks = [self._mask(operation, 2, indices) for operation in stores]
        some = ""
        for mask in masks:
            if mask is None:
                return None
            flags = mask.scalar
            if mask.kind != "u" and self.width > 1:
                kind = f"<{self.width} x i1>"
                flags = self.b.call("i1", f"llvm.vector.reduce.or.v{self.width}i1", [(kind, self.vector(mask))])
            some = self.b.emit(f"or i1 {some}, {flags}") if some else flags
        return some

    def _store_lanes(self, operation: Operation, indices: Indices) -> None:
        kind = operation.operands[1].type.scalar
        pointer = self.element(operation.operands[0], indices)
        value = self.element(operation.operands[1], indices)
        mask = self._mask(operation, 2, indices)
        self.check_lanes(operation, pointer, mask)
        memory, width = self.memory_type(kind), self.width
        if width == 1 or (pointer.kind == "u" and value.kind == "u" and (mask is None or mask.kind == "u")):
            self.store_scalar(pointer.scalar, value.scalar, kind, mask.scalar if mask else None)
            return
        data = self.to_memory(self.vector(value), kind, width)
        flags = self.vector(mask) if mask is not None else None
        if self._contiguous(pointer, kind.bytes):
            self._store_row(self._first(pointer), data, memory, flags, kind)
        elif pointer.kind != "v":
            self._scatter(self.vector(pointer), data, memory, flags, kind)
        else:
            pointers = self.vector(pointer)
            row, first = self._are_row(pointers, kind.bytes)
            yes, no, done = self.b.fresh("row"), self.b.fresh("apart"), self.b.fresh("stored")
            self.b.branch(row, yes, no)
            self.b.mark(yes)
            self._store_row(first, data, memory, flags, kind)
            self.b.jump(done)
            self.b.mark(no)
            self._scatter(pointers, data, memory, flags, kind)
            self.b.jump(done)
            self.b.mark(done)

    def store_scalar(self, pointer: str, value: str, kind: Type, mask: Optional[str]) -> None:
        memory = self.memory_type(kind)

        def store() -> None:
            self.b.put(f"store {memory} {self.to_memory(value, kind, 1)}, ptr {pointer}, align {kind.bytes}")

        if mask is None:
            store()
        else:
            self.when(mask, store)

    def when(self, condition: str, body) -> None:
        """Run `body` where a scalar condition holds."""
        yes, done = self.b.fresh("when"), self.b.fresh("done.when")
        self.b.branch(condition, yes, done)
        self.b.mark(yes)
        body()
        self.b.jump(done)
        self.b.mark(done)

    def _store_row(self, pointer: str, data: str, memory: str, flags: Optional[str], kind: Type) -> None:
        full, align = f"<{self.width} x {memory}>", kind.bytes
        if flags is None:
            self.b.put(f"store {full} {data}, ptr {pointer}, align {align}")
            return
        name = f"llvm.masked.store.v{self.width}{_short(memory)}.p0"
        self.masked(
            "void", name, [(full, data), ("ptr", pointer), ("i32", str(align)), (f"<{self.width} x i1>", flags)]
        )

    def _scatter(self, pointers: str, data: str, memory: str, flags: Optional[str], kind: Type) -> None:
        width = self.width
        mask = flags if flags is not None else self.e.const("true", "i1", width)
        name = f"llvm.masked.scatter.v{width}{_short(memory)}.v{width}p0"
        full, places = f"<{width} x {memory}>", f"<{width} x ptr>"
        self.masked(
            "void", name, [(full, data), (places, pointers), ("i32", str(kind.bytes)), (f"<{width} x i1>", mask)]
        )

    # ---- atomic operations
    def atomic(self, operation: Operation) -> None:
        """Each element by itself; elements whose mask is false give 0 and touch nothing."""
        result = operation.results[0] if operation.results else None
        shape = operation.operands[0].type.shape
        self._deadline = ""
        if operation.name == "tt.atomic_poll" and len(operation.operands) > 2:
            # All elements of a tile share the time.
            limit = self.scalar(operation.operands[2])
            self._deadline = self.e.intrinsic("uadd.sat", "i64", 1, self._now(), limit)
        if not shape:
            found = self._atomic_one(operation, ())
            if result is not None:
                self.scalars[result] = found
            return
        buffer = self.new_buffer(result.type) if result is not None and result.users else None
        self._keep_operands(operation)

        def body(indices: Indices) -> None:
            found = self._atomic_one(operation, indices)
            if buffer is not None:
                self.write(buffer, indices, found)

        self.nest(shape, body, most=1)
        if result is not None and buffer is not None:
            self.buffers[result] = buffer

    _deadline = ""

    def _keep_operands(self, operation: Operation) -> None:
        """Compute the operands' elements before the first of the updates, which a nest of one lane would do one by one.

        An update holds up all that follows until its memory is there, so that is asked for beforehand.
        """
        pointer = operation.operands[0]

        def body(indices: Indices) -> None:
            lanes = self.element(pointer, indices)
            vector = self.vector(lanes)
            if lanes.kind != "u" and not self._contiguous(lanes, pointer.type.pointee.bytes):  # type: ignore[union-attr]
                for lane in range(self.width):
                    single = self.b.emit(f"extractelement <{self.width} x ptr> {vector}, i64 {lane}")
                    self._prefetch(single, writes=True)
            self.write(buffer, indices, vector)

        for operand in operation.operands[1:]:
            if operand.type.shape and operand not in self.buffers:
                self.buffers[operand] = self.keep(operand)
        if pointer not in self.buffers:
            buffer = self.new_buffer(pointer.type)
            self.nest(pointer.type.shape, body)
            self.buffers[pointer] = buffer

    def _scalar_of(self, value: Value, indices: Indices) -> str:
        return self.element(value, indices).scalar if value.type.shape else self.scalar(value)

    def _atomic_one(self, operation: Operation, indices: Indices) -> str:
        kind = operation.operands[0].type.scalar.pointee
        assert kind is not None
        values = [self._scalar_of(operand, indices) for operand in operation.operands]
        name = operation.name
        unmasked = 1 if name == "tt.atomic_load" else 2
        may_mask = name not in ("tt.atomic_cas", "tt.atomic_poll")
        mask = values[unmasked] if may_mask and len(values) > unmasked and values[unmasked] != "1" else None
        self.check_address(operation, values[0], mask, kind.bytes)
        if name == "tt.atomic_cas":
            return self._exchange_if(values, kind)
        if name == "tt.atomic_poll":
            return self._poll(values[0], values[1], kind)
        if name == "tt.atomic_store":
            text = f"store atomic {kind.llvm} {values[1]}, ptr {values[0]} seq_cst, align {kind.bytes}"
            if mask is None:
                self.b.put(text)
            else:
                self.when(mask, lambda: self.b.put(text))
            return ""

        def update() -> str:
            if name == "tt.atomic_load":
                return self.b.emit(f"load atomic {kind.llvm}, ptr {values[0]} seq_cst, align {kind.bytes}")
            return self._atomic_update(operation, values[0], values[1], kind)

        if mask is None:
            return update()
        found = self.b.variable(kind.llvm)
        zero = "null" if kind.is_pointer else "0.0" if kind.element in ("f32", "f64") else "0"
        self.b.put(f"store {kind.llvm} {zero}, ptr {found}")
        self.when(mask, lambda: self.b.put(f"store {kind.llvm} {update()}, ptr {found}"))
        return self.b.emit(f"load {kind.llvm}, ptr {found}")

    def _now(self) -> str:
        """Nanoseconds of a clock that only goes forward."""
        self.module.declare("i32 @clock_gettime(i32, ptr)")
        parts = self.b.variable("[2 x i64]")
        self.b.put(f"call i32 @clock_gettime(i32 1, ptr {parts})")
        seconds = self.b.emit(f"load i64, ptr {parts}")
        rest = self.b.emit(f"load i64, ptr {self.b.emit(f'getelementptr i8, ptr {parts}, i64 8')}")
        return self.b.emit(f"add i64 {self.b.emit(f'mul i64 {seconds}, 1000000000')}, {rest}")

    def _poll(self, pointer: str, wanted: str, kind: Type) -> str:
        """Look until the value is there or the time is over. Between two looks others may have the processor."""
        self.module.declare("i32 @sched_yield()")
        found = self.b.variable("i1")
        look, wait, pause, done = (self.b.fresh(name) for name in ("look", "wait", "pause", "seen"))
        self.b.jump(look)
        self.b.mark(look)
        value = self.b.emit(f"load atomic {kind.llvm}, ptr {pointer} seq_cst, align {kind.bytes}")
        same = self.b.emit(f"icmp eq {kind.llvm} {value}, {wanted}")
        self.b.put(f"store i1 {same}, ptr {found}")
        self.b.branch(same, done, wait)
        self.b.mark(wait)
        if self._deadline:
            self.b.branch(self.b.emit(f"icmp uge i64 {self._now()}, {self._deadline}"), done, pause)
        else:
            self.b.jump(pause)
        self.b.mark(pause)
        self.b.put("call i32 @sched_yield()")
        self.b.jump(look)
        self.b.mark(done)
        return self.b.emit(f"load i1, ptr {found}")

    def _exchange_if(self, values: List[str], kind: Type) -> str:
        pointer, expected, new = values
        size = f"i{kind.bits}"
        if kind.llvm != size:
            expected, new = (self.b.emit(f"bitcast {kind.llvm} {value} to {size}") for value in (expected, new))
        pair = self.b.emit(
            f"cmpxchg ptr {pointer}, {size} {expected}, {size} {new} seq_cst seq_cst, align {kind.bytes}"
        )
        before = self.b.emit(f"extractvalue {{ {size}, i1 }} {pair}, 0")
        return before if kind.llvm == size else self.b.emit(f"bitcast {size} {before} to {kind.llvm}")

    def _atomic_update(self, operation: Operation, pointer: str, value: str, kind: Type) -> str:
        name = operation.words[0]
        name = {"exch": "xchg", "fadd": "fadd"}.get(name, name)
        if name == "xchg" or not kind.is_float:
            if name not in _ATOMIC_INTEGER | {"xchg"}:
                raise LoweringError(operation.name, f"kind {name} on {kind}", operation.location)
            size = f"i{kind.bits}"
            data = (
                value
                if kind.llvm == size
                else self.b.emit(f"{'ptrtoint' if kind.is_pointer else 'bitcast'} {kind.llvm} {value} to {size}")
            )
            before = self.b.emit(f"atomicrmw {name} ptr {pointer}, {size} {data} seq_cst, align {kind.bytes}")
            if kind.llvm == size:
                return before
            return self.b.emit(f"{'inttoptr' if kind.is_pointer else 'bitcast'} {size} {before} to {kind.llvm}")
        if name == "fadd" and kind.element in ("f32", "f64"):
            return self.b.emit(f"atomicrmw fadd ptr {pointer}, {kind.llvm} {value} seq_cst, align {kind.bytes}")
        return self._atomic_loop(operation, name, pointer, value, kind)

    def _atomic_loop(self, operation: Operation, name: str, pointer: str, value: str, kind: Type) -> str:
        """Compute and exchange until nobody else has written in between."""
        size = f"i{kind.bits}"
        wide = "double" if kind.element == "f64" else "float"
        held = self.b.variable(size)
        first = self.b.emit(f"load atomic {size}, ptr {pointer} monotonic, align {kind.bytes}")
        self.b.put(f"store {size} {first}, ptr {held}")
        again, done = self.b.fresh("again"), self.b.fresh("updated")
        self.b.jump(again)
        self.b.mark(again)
        before = self.b.emit(f"load {size}, ptr {held}")
        old = before if kind.llvm == size else self.b.emit(f"bitcast {size} {before} to {kind.llvm}")
        if name == "fadd":
            total = self.e.op("fadd", wide, 1, self.e.widen(old, kind, 1), self.e.widen(value, kind, 1))
            new = self.e.narrow_result(total, kind, 1)
        elif name in ("max", "min"):
            new = self.e.extreme("maximum" if name == "max" else "minimum", True, [old, value], kind, 1)
        else:
            raise LoweringError(operation.name, f"kind {name} on {kind}", operation.location)
        data = new if kind.llvm == size else self.b.emit(f"bitcast {kind.llvm} {new} to {size}")
        pair = self.b.emit(f"cmpxchg ptr {pointer}, {size} {before}, {size} {data} seq_cst seq_cst, align {kind.bytes}")
        self.b.put(f"store {size} {self.b.emit(f'extractvalue {{ {size}, i1 }} {pair}, 0')}, ptr {held}")
        self.b.branch(self.b.emit(f"extractvalue {{ {size}, i1 }} {pair}, 1"), done, again)
        self.b.mark(done)
        return old


def _short(memory: str) -> str:
    return {"float": "f32", "double": "f64", "ptr": "p0"}.get(memory, memory)
