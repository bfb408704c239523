"""Reductions and scans with the user's combine function, on one tile or several together."""

from typing import Dict, List, Sequence

from .effects import Effects
from .elements.elementwise import constant_value
from .errors import LoweringError
from .ir import Block, Operation, Value
from .lanes import ZERO, Index
from .tiles import Buffer, Indices

# So many vectors are combined independently, as each waits for the one before it.
_INDEPENDENT = 4
_SMALL_AXIS = 8


class Reductions(Effects):
    """tt.reduce, tt.scan, tt.map_elementwise and tt.histogram."""

    # ---- the combine function
    def simple(self, block: Block) -> bool:
        """Whether a region can run on vectors."""
        return len(block.parent.regions[0] if block.parent else [block]) == 1 and all(
            self.e.knows(inner) or inner.name == "arith.constant" or inner.name.endswith(".return")
            for inner in block.operations
        )

    def combine(self, block: Block, values: Sequence[str], width: int) -> List[str]:
        """The values that a region returns for its arguments."""
        if width == 1 and not self.simple(block):
            return self._combine_scalars(block, values)
        found: Dict[Value, str] = dict(zip(block.arguments, values))

        def value_of(value: Value) -> str:
            if value not in found:
                found[value] = self.b.splat(self.scalar(value), value.type.llvm, width)
            return found[value]

        for inner in block.operations:
            if inner.name.endswith(".return"):
                return [value_of(value) for value in inner.operands]
            if inner.name == "arith.constant":
                kind = inner.results[0].type
                found[inner.results[0]] = self.e.const(constant_value(inner.words[0], kind), kind.llvm, width)
                continue
            results = self.e.apply(inner, [value_of(value) for value in inner.operands], width)
            found.update(zip(inner.results, results))
        raise LoweringError("tt.reduce", "its region returns nothing")

    def _combine_scalars(self, block: Block, values: Sequence[str]) -> List[str]:
        """A region with control flow, on scalars. Its blocks end in one place with what they return."""
        self.scalars.update(zip(block.arguments, values))
        region = next(r for r in block.parent.regions if r[0] is block) if block.parent else [block]
        returns = [b.operations[-1].operands for b in region if b.operations[-1].name.endswith(".return")]
        outer = self.holders, self.labels, self.arguments, self.ends
        held = [self.holder(value.type) for value in returns[0]]
        done = self.b.fresh("region.done")
        self.ends = (held, done)
        self.blocks(region)
        self.holders, self.labels, self.arguments, self.ends = outer
        self.b.mark(done)
        return [self.b.emit(f"load {value.type.llvm}, ptr {h.variable}") for h, value in zip(held, returns[0])]

    def region_return(self, operation: Operation) -> None:
        """The end of a region that runs on scalars."""
        held, done = self.ends
        self.put_all(held, operation.operands)
        self.b.jump(done)

    # ---- reduce
    def reduce(self, operation: Operation) -> None:
        """One result for each operand, without the axis."""
        axis = operation.integer("axis")
        shape = operation.operands[0].type.shape
        buffers = [self.new_buffer(r.type) if r.type.shape else None for r in operation.results]
        block = operation.regions[0][0]

        def done(indices: Indices, values: List[str]) -> None:
            for result, buffer, value in zip(operation.results, buffers, values):
                if buffer is None:
                    self.scalars[result] = value
                else:
                    self.write(buffer, indices, value)

        rest = shape[:axis] + shape[axis + 1 :]
        along = self.simple(block) and (not rest or axis == len(shape) - 1 and shape[axis] >= self.module.lanes)
        if along:
            self.nest(rest, lambda indices: done(indices, self._reduce_along(operation, block, axis, indices)), most=1)
        else:
            most = 0 if self.simple(block) else 1
            self.nest(
                rest, lambda indices: done(indices, self._reduce_across(operation, block, axis, indices)), most=most
            )
        for result, buffer in zip(operation.results, buffers):
            if buffer is not None:
                self.buffers[result] = buffer

    def _chunk(self, operation: Operation, axis: int, indices: Indices, index: Index) -> List[str]:
        place = indices[:axis] + (index,) + indices[axis:]
        return [self.vector(self.element(operand, place)) for operand in operation.operands]

    def _reduce_along(self, operation: Operation, block: Block, axis: int, indices: Indices) -> List[str]:
        """Lanes lie along the axis; they are combined with each other at the end."""
        extent = operation.operands[0].type.shape[axis]
        width = min(self.module.lanes, extent)
        pattern = tuple(range(width)) if width > 1 else None
        parts = min(_INDEPENDENT, extent // width)
        kinds = [operand.type.scalar for operand in operation.operands]
        with self.lanes_of(width):
            sums = [
                self._chunk(operation, axis, indices, Index(str(part * width), pattern, 0, width))
                for part in range(parts)
            ]
            if extent > parts * width:
                places = [[self.b.variable(self.b.vector_type(kind, width)) for kind in kinds] for _ in range(parts)]
                self._store_all(places, sums, kinds, width)
                counter = self.b.open_loop(extent - parts * width, parts * width)
                depth = self.b.level.depth
                news = []
                for part, old in enumerate(self._load_all(places, kinds, width)):
                    base = self.b.emit(f"add nuw nsw i64 {counter}, {(parts + part) * width}")
                    now = self._chunk(operation, axis, indices, Index(base, pattern, depth, width))
                    news.append(self.combine(block, old + now, width))
                self._store_all(places, news, kinds, width)
                self.b.close_loop()
                sums = self._load_all(places, kinds, width)
        while len(sums) > 1:
            sums = [self.combine(block, sums[i] + sums[i + 1], width) for i in range(0, len(sums), 2)]
        return self.fold(block, sums[0], [kind.llvm for kind in kinds], width)

    def fold(self, block: Block, values: List[str], kinds: List[str], width: int) -> List[str]:
        """Combine the lanes of vectors to scalars."""
        while width > 1:
            half = width // 2
            low = [self.b.shuffle(v, k, width, range(half)) for v, k in zip(values, kinds)]
            high = [self.b.shuffle(v, k, width, range(half, width)) for v, k in zip(values, kinds)]
            values, width = self.combine(block, low + high, half), half
        return values

    def _store_all(self, places, values, kinds, width) -> None:
        for row, new in zip(places, values):
            for place, value, kind in zip(row, new, kinds):
                self.b.put(f"store {self.b.vector_type(kind, width)} {value}, ptr {place}")

    def _load_all(self, places, kinds, width) -> List[List[str]]:
        return [
            [self.b.emit(f"load {self.b.vector_type(kind, width)}, ptr {place}") for place, kind in zip(row, kinds)]
            for row in places
        ]

    def _reduce_across(self, operation: Operation, block: Block, axis: int, indices: Indices) -> List[str]:
        """Lanes lie along other dimensions: each lane runs through the axis."""
        extent, width = operation.operands[0].type.shape[axis], self.width
        kinds = [operand.type.scalar for operand in operation.operands]
        total = self._chunk(operation, axis, indices, ZERO)
        if extent <= _SMALL_AXIS:
            for number in range(1, extent):
                now = self._chunk(operation, axis, indices, Index(str(number), None, 0))
                total = self.combine(block, total + now, width)
            return total
        # Extents are powers of two. Each of the sums takes every so many-th row.
        parts = _INDEPENDENT if self.simple(block) else 1
        sums = [total] + [self._chunk(operation, axis, indices, Index(str(n), None, 0)) for n in range(1, parts)]
        places = [[self.b.variable(self.b.vector_type(kind, width)) for kind in kinds] for _ in range(parts)]
        self._store_all(places, sums, kinds, width)
        counter = self.b.open_loop(extent - parts, parts)
        depth = self.b.level.depth
        news = []
        for part, old in enumerate(self._load_all(places, kinds, width)):
            base = self.b.emit(f"add nuw nsw i64 {counter}, {parts + part}")
            now = self._chunk(operation, axis, indices, Index(base, None, depth))
            news.append(self.combine(block, old + now, width))
        self._store_all(places, news, kinds, width)
        self.b.close_loop()
        sums = self._load_all(places, kinds, width)
        while len(sums) > 1:
            sums = [self.combine(block, sums[i] + sums[i + 1], width) for i in range(0, len(sums), 2)]
        return sums[0]

    # ---- scan
    def scan(self, operation: Operation) -> None:
        """Running results along the axis, in order; backwards with `reverse`."""
        axis, backwards = operation.integer("axis"), operation.flag("reverse")
        shape = operation.operands[0].type.shape
        block = operation.regions[0][0]
        buffers = [self.new_buffer(result.type) for result in operation.results]
        rest = shape[:axis] + shape[axis + 1 :]
        extent = shape[axis]
        kinds = [operand.type.scalar for operand in operation.operands]

        def body(indices: Indices) -> None:
            width = self.width
            places = [[self.b.variable(self.b.vector_type(kind, width)) for kind in kinds]]
            first = Index(str(extent - 1) if backwards else "0", None, 0)
            total = self._chunk(operation, axis, indices, first)
            self._store_all(places, [total], kinds, width)
            self._write_all(buffers, axis, indices, first, total)
            if extent == 1:
                return
            counter = self.b.open_loop(extent - 1, 1)
            text = f"sub nuw nsw i64 {extent - 2}, {counter}" if backwards else f"add nuw nsw i64 {counter}, 1"
            index = Index(self.b.emit(text), None, self.b.level.depth)
            now = self._chunk(operation, axis, indices, index)
            old = self._load_all(places, kinds, width)[0]
            total = self.combine(block, old + now, width)
            self._store_all(places, [total], kinds, width)
            self._write_all(buffers, axis, indices, index, total)
            self.b.close_loop()

        self.nest(rest, body, most=0 if self.simple(block) else 1)
        self.buffers.update(zip(operation.results, buffers))

    def _write_all(self, buffers: List[Buffer], axis: int, indices: Indices, index: Index, values: List[str]) -> None:
        for buffer, value in zip(buffers, values):
            self.write(buffer, indices[:axis] + (index,) + indices[axis:], value)

    # ---- histogram, map_elementwise
    def histogram(self, operation: Operation) -> None:
        """How often each number below the extent of the result occurs; other numbers count nowhere."""
        result = operation.results[0]
        buffer = self.new_buffer(result.type)
        kind, size = result.type.llvm, result.type.count
        self.module.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.b.put(
            f"call void @llvm.memset.p0.i64(ptr align 64 {buffer.pointer}, "
            f"i8 0, i64 {size * result.type.bytes}, i1 false)"
        )
        source = operation.operands[0].type

        def body(indices: Indices) -> None:
            number = self.element(operation.operands[0], indices).scalar
            if source.bits < 64:
                # Numbers of 8 bits may be without a sign, and as many as there are places.
                extend = "zext" if source.bits == 8 else "sext"
                number = self.b.emit(f"{extend} {source.llvm} {number} to i64")
            inside = self.b.emit(f"icmp ult i64 {number}, {size}")
            if len(operation.operands) > 1:
                inside = self.b.emit(f"and i1 {inside}, {self.element(operation.operands[1], indices).scalar}")

            def count() -> None:
                place = self.b.emit(f"getelementptr {kind}, ptr {buffer.pointer}, i64 {number}")
                more = self.b.emit(f"add {kind} {self.b.emit(f'load {kind}, ptr {place}')}, 1")
                self.b.put(f"store {kind} {more}, ptr {place}")

            self.when(inside, count)

        self.nest(operation.operands[0].type.shape, body, most=1)
        self.buffers[result] = buffer

    def map_elementwise(self, operation: Operation) -> None:
        """The user's function on scalars, `pack` elements at a time."""
        pack = operation.integer("pack", 1)
        block = operation.regions[0][0]
        buffers = [self.new_buffer(result.type) for result in operation.results]
        shape = operation.operands[0].type.shape
        extent = shape[-1]
        if extent % pack:
            raise LoweringError(operation.name, f"{extent} elements in packs of {pack}", operation.location)

        def body(indices: Indices) -> None:
            last = indices[-1]
            places: List[Indices] = []
            for number in range(pack):
                base = last.base
                if pack > 1:
                    scaled = self.b.emit(f"mul i64 {base}, {pack}")
                    base = self.b.emit(f"add i64 {scaled}, {number}")
                places.append(indices[:-1] + (Index(base, None, last.depth),))
            values = [self.element(v, place).scalar for v in operation.operands for place in places]
            found = self.combine(block, values, 1)
            for number, buffer in enumerate(buffers):
                for part, place in enumerate(places):
                    self.write(buffer, place, found[number * pack + part])

        self.nest(shape[:-1] + (extent // pack,), body, most=1)
        self.buffers.update(zip(operation.results, buffers))
