"""Elements of tiles: computed where they are needed, or read from the memory that a tile is kept in."""

from contextlib import contextmanager
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .affine import Affine, facts_of_text
from .elements.elementwise import Elementwise, constant_value
from .errors import LoweringError
from .ir import Operation, Value
from .lanes import UNKNOWN, ZERO, Facts, Index, Lanes, facts_of_number, facts_of_result
from .planning.plan import Plan
from .text import Builder, Level, ModuleText, vector_constant
from .types import Type

Indices = Tuple[Index, ...]


class Buffer(NamedTuple):
    """Memory of a tile: rows in order, elements as in user memory (i1 in a byte each)."""

    pointer: str
    type: Type


class Tiles(Affine):
    """Evaluates elements; the base of the lowering of a function."""

    b: Builder
    e: Elementwise
    module: ModuleText
    plan: Plan

    def __init__(self, module: ModuleText):
        self.module = module
        self.b = Builder(module)
        self.e = Elementwise(self.b)
        self.scalars: Dict[Value, str] = {}
        self.scalar_facts: Dict[Value, Facts] = {}
        self.buffers: Dict[Value, Buffer] = {}
        # A tile that a loop advances: the tile before the loop, and what has been added to each element since.
        self.advanced: Dict[Value, Tuple[Value, str]] = {}
        # How far ahead loads of loops fetch.
        self.ahead: Dict[Operation, Optional[int]] = {}
        # Whether nests go through the rows of a chunk before they go on to the next chunk.
        self.chunks_first = False
        self.width = 1
        self.scratch_bytes = 0
        self.slack = 0  # bytes behind the last tile that wide loads may reach

    # ---- memory
    def allocate(self, size: int) -> str:
        """A pointer to `size` bytes of the program's scratch memory."""
        place = (self.scratch_bytes + 63) // 64 * 64
        self.scratch_bytes = place + size
        name = "%" + self.b.fresh("tile")
        self.b.allocas.append(f"  {name} = getelementptr i8, ptr %scratch, i64 {place}")
        return name

    def new_buffer(self, kind: Type) -> Buffer:
        return Buffer(self.allocate(kind.count * kind.bytes), kind)

    @staticmethod
    def memory_type(kind: Type) -> str:
        return "i8" if kind.element == "i1" else kind.llvm

    # ---- levels
    @contextmanager
    def at(self, level: Level):
        """Write at the depth of `level`: before the loops that are deeper."""
        before, self.b.level = self.b.level, level
        try:
            yield
        finally:
            self.b.level = before

    def level_of(self, indices: Indices) -> Level:
        return self.b.levels[max((index.depth for index in indices), default=0)]

    # ---- nests
    @contextmanager
    def lanes_of(self, width: int):
        before, self.width = self.width, width
        try:
            yield
        finally:
            self.width = before

    def nest(
        self,
        shape: Sequence[int],
        body: Callable[[Indices], None],
        most: int = 0,
        order: Optional[Sequence[int]] = None,
    ) -> None:
        """Run `body` for all elements of a shape, in chunks of as many lanes as the target's vectors have.

        `most` bounds the lanes; `order` lists dimensions from the outermost loop to the lanes.
        """
        order = list(order) if order is not None else list(range(len(shape)))
        width = min(most or self.module.lanes, product(shape))
        self.b.level.memo.clear() if self.b.level.depth == 0 else None
        covered, stride = {}, 1
        for dimension in reversed(order):
            take = min(shape[dimension], width // stride)
            covered[dimension] = (take, stride)
            stride *= take
        indices: List[Index] = [ZERO] * len(shape)
        opened = 0
        with self.lanes_of(width):
            for dimension in reversed(order) if self.chunks_first else order:
                take, stride = covered[dimension]
                pattern = tuple(lane // stride % take for lane in range(width)) if take > 1 else None
                base, depth = "0", 0
                if shape[dimension] > take:
                    base = self.b.open_loop(shape[dimension], take)
                    depth = self.b.level.depth
                    opened += 1
                indices[dimension] = Index(base, pattern, depth, take)
            body(tuple(indices))
            for _ in range(opened):
                self.b.close_loop()
        self.b.level.memo.clear() if self.b.level.depth == 0 else None

    # ---- lanes
    def uniform(self, scalar: str, kind: Type, level: Optional[Level] = None) -> Lanes:
        return Lanes("u", kind, level or self.b.levels[0], scalar)

    def varying(self, kind: Type, level: Level, text: str) -> Lanes:
        """Lanes of a computed vector; in a nest of one lane that is a scalar."""
        return Lanes("u", kind, level, text) if self.width == 1 else Lanes("v", kind, level, vector=text)

    def vector(self, lanes: Lanes) -> str:
        """The elements as one vector (a scalar for nests of one lane)."""
        if lanes.vector is None:
            with self.at(lanes.level):
                lanes.vector = self._vector(lanes)
        return lanes.vector

    def _vector(self, lanes: Lanes) -> str:
        width, kind = self.width, lanes.type.llvm
        if width == 1:
            return lanes.scalar
        if lanes.exact is not None:
            return lanes.exact()
        if lanes.kind == "u":
            return self.b.splat(lanes.scalar, kind, width)
        assert lanes.offsets is not None
        if kind == "ptr":
            offsets = vector_constant(lanes.offsets, "i64")
            return self.b.emit(f"getelementptr i8, ptr {lanes.scalar}, <{width} x i64> {offsets}")
        offsets = vector_constant([_wrap(offset, lanes.type.bits) for offset in lanes.offsets], kind)
        if lanes.scalar == "0":
            return offsets
        return self.b.emit(f"add <{width} x {kind}> {self.b.splat(lanes.scalar, kind, width)}, {offsets}")

    # ---- elements of a tile
    def element(self, value: Value, indices: Indices) -> Lanes:
        if not value.type.shape:
            found = self.uniform(self.scalar(value), value.type)
            found.facts = self.facts_of(value)
            return found
        level = self.level_of(indices)
        key = (value, indices)
        found = level.memo.get(key)
        if found is None:
            with self.at(level):
                found = self._element(value, indices, level)
            level.memo[key] = found
        return found  # type: ignore[return-value]

    def facts_of(self, value: Value) -> Facts:
        """What is known of a scalar."""
        if value not in self.scalar_facts:
            self.scalar_facts[value] = UNKNOWN  # of what a loop hands on to itself
            self.scalar_facts[value] = self._facts_of(value)
        return self.scalar_facts[value]

    def _facts_of(self, value: Value) -> Facts:
        operation = value.definition
        # A flag is 1, and -1 where it is extended with its sign.
        if value.type.shape or value.type.is_float or value.type.is_pointer or value.type.element == "i1":
            return UNKNOWN
        if operation is None:
            parent = value.block.parent if value.block is not None else None
            if parent is None or parent.name != "scf.for" or value is not parent.regions[0][0].arguments[0]:
                return UNKNOWN
            # The loop's counter.
            return facts_of_result("arith.addi", [self.facts_of(parent.operands[0]), self.facts_of(parent.operands[2])])
        if operation.name == "arith.constant":
            return facts_of_text(constant_value(operation.words[0], value.type.scalar))
        return facts_of_result(operation.name, [self.facts_of(operand) for operand in operation.operands])

    def scalar(self, value: Value) -> str:
        found = self.scalars.get(value)
        if found is None:
            raise LoweringError(
                value.definition.name if value.definition else "argument", f"{value.name} has no value here"
            )
        return found

    def _element(self, value: Value, indices: Indices, level: Level) -> Lanes:
        buffer = self.buffers.get(value)
        if buffer is not None:
            return self.read(buffer, indices, level)
        advanced = self.advanced.get(value)
        if advanced is not None:
            return self._advance(self.element(advanced[0], indices), advanced[1], value.type.scalar, level)
        operation = value.definition
        if operation is None:
            raise LoweringError("argument", f"{value.name} has no value here")
        return self.compute(operation, value, indices, level)

    def compute(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        """Elements of a result from those of its operands."""
        view = _VIEWS.get(operation.name)
        if view is not None:
            return getattr(self, view)(operation, value, indices, level)
        if operation.name == "tt.load":
            return self.load_lanes(operation, indices, level)
        operands = [self.element(operand, indices) for operand in operation.operands]
        found = self.affine(operation, operands, level)
        if found is not None:
            return found
        return self._elementwise(operation, value, operands, indices, level)

    def _elementwise(
        self, operation: Operation, value: Value, operands: List[Lanes], indices: Indices, level: Level
    ) -> Lanes:
        kind = value.type.scalar
        if all(lanes.kind == "u" for lanes in operands) and not operation.name.endswith("inline_asm"):
            results = self.e.apply(operation, [lanes.scalar for lanes in operands], 1)
            facts = facts_of_result(operation.name, [lanes.facts for lanes in operands])
            made = [Lanes("u", r.type.scalar, level, text, facts=facts) for r, text in zip(operation.results, results)]
        else:
            results = self.e.apply(operation, [self.vector(lanes) for lanes in operands], self.width)
            made = [self.varying(r.type.scalar, level, text) for r, text in zip(operation.results, results)]
        for result, lanes in zip(operation.results, made):
            if result is not value and result not in self.buffers:
                level.memo[(result, indices)] = lanes
        assert kind is not None
        return made[value.index]

    # ---- reading what is kept
    def place(self, indices: Indices, shape: Sequence[int]) -> Tuple[str, Tuple[int, ...]]:
        """The linear index: its scalar part as an i64 and its part for each lane."""
        total, offsets, stride = "0", [0] * self.width, 1
        for index, extent in zip(reversed(indices), reversed(shape)):
            if index.pattern is not None:
                offsets = [old + stride * lane for old, lane in zip(offsets, index.pattern)]
            if index.base != "0":
                part = index.base
                if stride > 1:
                    part = (
                        str(int(part) * stride) if part.isdigit() else self.b.emit(f"mul nuw nsw i64 {part}, {stride}")
                    )
                total = part if total == "0" else self.b.emit(f"add nuw nsw i64 {total}, {part}")
            stride *= extent
        return total, tuple(offsets)

    def read(self, buffer: Buffer, indices: Indices, level: Level) -> Lanes:
        kind, memory, width = buffer.type.scalar, self.memory_type(buffer.type), self.width
        total, offsets = self.place(indices, buffer.type.shape)
        pointer = self.b.emit(f"getelementptr inbounds {memory}, ptr {buffer.pointer}, i64 {total}")
        align = buffer.type.bytes
        if len(set(offsets)) == 1:
            if offsets[0]:
                pointer = self.b.emit(f"getelementptr inbounds {memory}, ptr {pointer}, i64 {offsets[0]}")
            scalar = self.b.emit(f"load {memory}, ptr {pointer}, align {align}")
            return Lanes("u", kind, level, self._from_memory(scalar, kind, 1))
        if offsets == tuple(range(width)):
            vector = self.b.emit(f"load <{width} x {memory}>, ptr {pointer}, align {align}")
        else:
            vector = self._pick(pointer, memory, offsets, align)
        return self.varying(kind, level, self._from_memory(vector, kind, width))

    def _pick(self, pointer: str, memory: str, offsets: Tuple[int, ...], align: int) -> str:
        """Elements at constant offsets: from one wide load where they lie close together, else one by one."""
        low, high, width = min(offsets), max(offsets), self.width
        span = 1 << (high - low).bit_length()
        if low == 0 and span <= 4 * width and memory != "ptr":
            self.slack = max(self.slack, span * align)
            wide = self.b.emit(f"load <{span} x {memory}>, ptr {pointer}, align {align}")
            return self.b.shuffle(wide, memory, span, offsets)
        found = "poison"
        for lane, offset in enumerate(offsets):
            place = self.b.emit(f"getelementptr inbounds {memory}, ptr {pointer}, i64 {offset}")
            single = self.b.emit(f"load {memory}, ptr {place}, align {align}")
            found = self.b.emit(f"insertelement <{width} x {memory}> {found}, {memory} {single}, i64 {lane}")
        return found

    def _from_memory(self, value: str, kind: Type, width: int) -> str:
        if kind.element != "i1":
            return value
        return self.e.op("icmp ne", "i8", width, value, self.e.const(0, "i8", width))

    def to_memory(self, value: str, kind: Type, width: int) -> str:
        return self.e.cast("zext", value, "i1", "i8", width) if kind.element == "i1" else value

    def write(self, buffer: Buffer, indices: Indices, value: str) -> None:
        """Store a vector of the nest's lanes (a scalar for one lane) into a tile."""
        memory, width = self.memory_type(buffer.type), self.width
        total, offsets = self.place(indices, buffer.type.shape)
        value = self.to_memory(value, buffer.type.scalar, width)
        pointer = self.b.emit(f"getelementptr inbounds {memory}, ptr {buffer.pointer}, i64 {total}")
        full, align = self.b.vector_type(memory, width), buffer.type.bytes
        if offsets == tuple(range(width)):
            self.b.put(f"store {full} {value}, ptr {pointer}, align {align}")
            return
        for lane, offset in enumerate(offsets):
            single = self.b.emit(f"extractelement {full} {value}, i64 {lane}")
            place = self.b.emit(f"getelementptr inbounds {memory}, ptr {pointer}, i64 {offset}")
            self.b.put(f"store {memory} {single}, ptr {place}, align {align}")

    def keep(self, value: Value, into: Optional[Buffer] = None) -> Buffer:
        """Compute all elements of a tile into memory."""
        buffer = into or self.new_buffer(value.type)
        self.nest(
            value.type.shape, lambda indices: self.write(buffer, indices, self.vector(self.element(value, indices)))
        )
        return buffer

    def kept(self, value: Value) -> Buffer:
        """The memory of a tile; filled now where it is not kept already."""
        return self.buffers.get(value) or self.keep(value)

    # ---- views
    def _constant(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        text, kind = operation.words[0], value.type.scalar
        if text.startswith("dense<"):
            text = text[6 : text.rindex(">")]
        if text.startswith("["):
            raise LoweringError(operation.name, "a list of numbers is not lowered", operation.location)
        number = constant_value(text, kind)
        facts = UNKNOWN if kind.element == "i1" else facts_of_text(number)
        return Lanes("u", kind, level, number, facts=facts)

    def _splat(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        return self.element(operation.operands[0], tuple(ZERO for _ in operation.operands[0].type.shape))

    def _range(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        index, start = indices[0], operation.integer("start")
        if index.base == "0" or index.base.isdigit():
            base = str(int(index.base) + start)
        else:
            base = self.b.emit(f"trunc nuw nsw i64 {index.base} to i32")
            if start:
                base = self.b.emit(f"add nsw i32 {base}, {start}")
        facts = facts_of_result("arith.addi", [Facts(index.multiple, True), facts_of_number(start)])
        if index.pattern is None:
            return Lanes("u", value.type.scalar, level, base, facts=facts)
        if base.isdigit():
            offsets = tuple(int(base) + lane for lane in index.pattern)
            return Lanes("a", value.type.scalar, level, "0", offsets, facts=facts_of_number(0))
        return Lanes("a", value.type.scalar, level, base, index.pattern, facts=facts)

    def _broadcast(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        source = operation.operands[0]
        return self.element(
            source, tuple(ZERO if extent == 1 else index for extent, index in zip(source.type.shape, indices))
        )

    def _expand(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        axis = operation.integer("axis")
        return self.element(operation.operands[0], indices[:axis] + indices[axis + 1 :])

    def _transpose(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        order = operation.integers("order")
        source: List[Index] = [ZERO] * len(order)
        for target, dimension in enumerate(order):
            source[dimension] = indices[target]
        return self.element(operation.operands[0], tuple(source))

    def _reshape(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        return self.element(
            operation.operands[0], self.reshaped(indices, value.type.shape, operation.operands[0].type.shape)
        )

    def reshaped(self, indices: Indices, shape: Sequence[int], target: Sequence[int]) -> Indices:
        """The same places in another shape. Bits of bases and patterns are apart, so each is split by itself."""
        if [e for e in shape if e > 1] == [e for e in target if e > 1]:
            large = iter([index for index, extent in zip(indices, shape) if extent > 1])
            return tuple(next(large) if extent > 1 else ZERO for extent in target)
        total, offsets = self.place(indices, shape)
        depth = max(index.depth for index in indices)
        found, stride = [], 1
        for extent in reversed(target):
            shift = stride.bit_length() - 1
            if extent == 1:
                found.append(ZERO)
                continue
            pattern: Optional[Tuple[int, ...]] = tuple((lane >> shift) & (extent - 1) for lane in offsets)
            base = total
            if base.isdigit():
                base = str((int(base) >> shift) & (extent - 1))
            else:
                base = self.b.emit(f"lshr i64 {base}, {shift}") if shift else base
                base = self.b.emit(f"and i64 {base}, {extent - 1}")
            if not any(pattern or ()):
                pattern = None
            found.append(Index(base, pattern, 0 if base.isdigit() else depth))
            stride *= extent
        return tuple(reversed(found))

    def _join(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        first, second = (self.element(operand, indices[:-1]) for operand in operation.operands)
        last, kind = indices[-1], value.type.scalar
        if last.pattern is None:
            if last.base.isdigit():
                return second if int(last.base) else first
            odd = self.b.emit(f"icmp ne i64 {last.base}, 0")
            if first.kind == "u" and second.kind == "u":
                return Lanes("u", kind, level, self.e.choose(odd, second.scalar, first.scalar, kind.llvm, 1))
            full = self.b.vector_type(kind, self.width)
            text = f"select i1 {odd}, {full} {self.vector(second)}, {full} {self.vector(first)}"
            return Lanes("v", kind, level, vector=self.b.emit(text))
        lanes = [lane + self.width * part for lane, part in enumerate(last.pattern)]
        return Lanes(
            "v",
            kind,
            level,
            vector=self.b.shuffle(self.vector(first), kind.llvm, self.width, lanes, self.vector(second)),
        )

    def _split(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        return self.element(operation.operands[0], indices + (Index(str(value.index), None, 0),))

    def _advance(self, lanes: Lanes, offset: str, kind: Type, level: Level) -> Lanes:
        """All elements moved by a scalar: bytes for pointers."""
        if kind.is_pointer:
            if lanes.kind == "v":
                text = f"getelementptr i8, <{self.width} x ptr> {lanes.vector}, i64 {offset}"
                return Lanes("v", kind, level, vector=self.b.emit(text))
            scalar = self.b.emit(f"getelementptr i8, ptr {lanes.scalar}, i64 {offset}")
            return Lanes(lanes.kind, kind, level, scalar, lanes.offsets)

        def moved() -> str:
            offsets = self.b.splat(offset, kind.llvm, self.width)
            return self.e.op("add", kind.llvm, self.width, self.vector(lanes), offsets)

        if lanes.kind == "v":
            return Lanes("v", kind, level, vector=moved())
        scalar = self._sum(lanes.scalar, offset, kind.llvm, "add")
        return Lanes(lanes.kind, kind, level, scalar, lanes.offsets, exact=moved if lanes.exact is not None else None)

    def _gather(self, operation: Operation, value: Value, indices: Indices, level: Level) -> Lanes:
        """out[i, j] = source[index[i, j], j] along an axis; the source is kept in memory."""
        source, chosen = operation.operands
        axis = operation.integer("axis")
        buffer = self.buffers[source]
        memory = self.memory_type(buffer.type)
        where = self.element(chosen, indices)
        kind, width = chosen.type.llvm, self.width
        stride = product(source.type.shape[axis + 1 :])
        others = tuple(ZERO if d == axis else index for d, index in enumerate(indices))
        total, offsets = self.place(others, source.type.shape)
        vector = self.vector(where)
        extend = "zext" if chosen.type.bits < 64 else ""
        wide = self.e.cast(extend, vector, kind, "i64", width) if extend else vector
        wide = self.e.op("and", "i64", width, wide, self.e.const(source.type.shape[axis] - 1, "i64", width))
        wide = self.e.op("mul", "i64", width, wide, self.e.const(stride, "i64", width))
        wide = self.e.op("add", "i64", width, wide, vector_constant(offsets, "i64"))
        pointer = self.b.emit(f"getelementptr {memory}, ptr {buffer.pointer}, i64 {total}")

        def single(values: Sequence[str]) -> str:
            place = self.b.emit(f"getelementptr {memory}, ptr {pointer}, i64 {values[0]}")
            return self.b.emit(f"load {memory}, ptr {place}, align {buffer.type.bytes}")

        found = self.e.each_lane(width, memory, [wide], ["i64"], single)
        found = self._from_memory(found, value.type.scalar, width)
        return self.varying(value.type.scalar, level, found)

    def load_lanes(self, operation: Operation, indices: Indices, level: Level) -> Lanes:
        raise NotImplementedError


def product(extents: Sequence[int]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total


def _wrap(number: int, bits: int) -> int:
    """The signed number of so many bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


_VIEWS = {
    "arith.constant": "_constant",
    "tt.splat": "_splat",
    "tt.make_range": "_range",
    "tt.broadcast": "_broadcast",
    "tt.expand_dims": "_expand",
    "tt.trans": "_transpose",
    "tt.reshape": "_reshape",
    "tt.view": "_reshape",
    "tt.join": "_join",
    "tt.split": "_split",
    "tt.gather": "_gather",
}
