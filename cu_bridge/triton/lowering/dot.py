"""Matrix products of tiles: blocks of the result stay in registers while the inner dimension runs.

Products of formats below 32 bits are computed and summed in f32, of i8 in i32. `tf32` is not rounded to 10 bits: the
operands of f32 are used as they are, which only is more exact.

Note [Pairs of bf16]
~~~~~~~~~~~~~~~~~~~~
A processor with AVX512_BF16 adds two products of bf16 to each f32 in one instruction, so bf16 stays as it is, two
neighbours of the inner dimension side by side: in the left operand they lie so, the right one is interleaved once for
all rows. The instruction takes subnormal operands for zero and gives no subnormal sums, as torch's own product of bf16
on such a processor.
"""

from typing import Callable, List, NamedTuple, Optional, Tuple

from .errors import LoweringError
from .ir import Operation, Value
from .reductions import Reductions
from .text import Builder
from .tiles import Buffer, Indices
from .types import F32, F64, I32, Type

_PAIR_LANES = 16  # sums in a vector of AVX-512


class Dot(Reductions):
    """tt.dot and what it shares with tt.dot_scaled."""

    def dot(self, operation: Operation) -> None:
        left, right, start = operation.operands[:3]
        result = operation.results[0]
        kind = self._sum_type(operation)
        target = self._in_place(operation)
        if self._in_pairs(left.type, right.type, kind):
            a, b = self.kept(left), self.kept(right)
        else:
            a, b = self.operand_as(left, kind), self.operand_as(right, kind)
        direct = result.type.element == kind.element
        out = target if target is not None and direct else self.new_buffer(kind.shaped(result.type.shape))
        if not (start in self.buffers and self.buffers[start] == out):
            self.convert_into(start, out)
        self.multiply(a, b, out)
        if not direct:
            wide, out = out, self.new_buffer(result.type)
            self._narrow_into(wide, out)
        self.buffers[result] = out

    def _sum_type(self, operation: Operation) -> Type:
        result = operation.results[0].type
        if result.element == "f64":
            return F64
        if result.is_float:
            return F32
        if result.element == "i32":
            return I32
        raise LoweringError(operation.name, f"products summed in {result.element}", operation.location)

    def _in_pairs(self, left: Type, right: Type, kind: Type) -> bool:
        """Whether the operands stay bf16, see Note [Pairs of bf16]."""
        there = self.module.lanes == _PAIR_LANES and "avx512_bf16" in self.module.features
        bf16 = left.element == right.element == "bf16" and kind.element == "f32"
        return there and bf16 and right.shape[-1] >= _PAIR_LANES and right.shape[-2] > 1

    def operand_as(self, value: Value, kind: Type) -> Buffer:
        """The tile in memory with elements of the type that is summed in."""
        if value.type.element == kind.element:
            return self.kept(value)
        buffer = self.new_buffer(kind.shaped(value.type.shape))
        self.convert_into(value, buffer)
        return buffer

    def convert_into(self, value: Value, buffer: Buffer) -> None:
        source, target = value.type.scalar, buffer.type.scalar

        def body(indices: Indices) -> None:
            self.write(buffer, indices, self._converted(self.vector(self.element(value, indices)), source, target))

        self.nest(value.type.shape, body)

    def _converted(self, text: str, source: Type, target: Type) -> str:
        if source.is_float and target.is_float:
            return self.e.convert_float(text, source, target, self.width)
        if source.element == target.element:
            return text
        return self.e.cast("sext", text, source.llvm, target.llvm, self.width)

    def _narrow_into(self, source: Buffer, target: Buffer) -> None:
        def body(indices: Indices) -> None:
            wide = self.vector(self.read(source, indices, self.level_of(indices)))
            self.write(target, indices, self._converted(wide, source.type.scalar, target.type.scalar))

        self.nest(source.type.shape, body)

    def _in_place(self, operation: Operation) -> Optional[Buffer]:
        """The memory that a loop carries the sum in, where nothing else needs what is in it before."""
        result, start = operation.results[0], operation.operands[2]
        if len(result.users) != 1 or result.users[0].name != "scf.yield" or operation.block is None:
            return None
        last = result.users[0]
        arguments = operation.block.arguments[1:]
        if (
            last.block is not operation.block
            or operation.block.parent is None
            or operation.block.parent.name != "scf.for"
        ):
            return None
        places = [i for i, value in enumerate(last.operands) if value is result]
        argument = arguments[places[0]]
        buffer = self.buffers.get(argument)
        if len(places) != 1 or buffer is None:
            return None
        if any(self.buffers.get(operand) == buffer for operand in operation.operands[:2]):
            # The sum would overwrite what is multiplied.
            return None
        if start is not argument:
            found = self.inside(start, {})
            if start in self.buffers or not all(value is not argument or same for value, same in found):
                return None
        users = list(argument.users)
        while users:
            user = users.pop()
            if user is operation:
                continue
            if user.block is not operation.block or not user.results or user.results[0] in self.buffers:
                return None
            if not self.e.knows(user):
                return None
            users += user.results[0].users
        return buffer

    # ---- the product itself
    def multiply(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """out += a b, for each of the leading dimensions."""
        rows, inner = a.type.shape[-2:]
        columns = b.type.shape[-1]
        name = self._kernel(a.type.scalar, rows, columns, inner)
        batches = out.type.count // (rows * columns)
        # Room for the right operand in pairs.
        room = [("ptr", self.allocate(inner * columns * b.type.bytes))] if a.type.element == "bf16" else []
        if batches == 1:
            self.b.call("void", name, [("ptr", buffer.pointer) for buffer in (a, b, out)] + room)
            return
        counter = self.b.open_loop(batches, 1)
        pointers = []
        for buffer, elements in ((a, rows * inner), (b, inner * columns), (out, rows * columns)):
            offset = self.b.emit(f"mul i64 {counter}, {elements * buffer.type.bytes}")
            pointers.append(("ptr", self.b.emit(f"getelementptr i8, ptr {buffer.pointer}, i64 {offset}")))
        self.b.call("void", name, pointers + room)
        self.b.close_loop()

    def _kernel(self, kind: Type, rows: int, columns: int, inner: int) -> str:
        name = f'"maca.dot.{kind.element}.{rows}x{columns}x{inner}"'
        if name not in self.module.helpers:
            write = _write_pairs if kind.element == "bf16" else _write_kernel
            self.module.helpers[name] = write(self.module, name, kind, rows, columns, inner)
        return name


def _write_kernel(module, name: str, kind: Type, rows: int, columns: int, inner: int) -> str:
    """out[m, n] += sum over k of a[m, k] b[k, n], all in rows one after another."""
    b = Builder(module)
    wide = "avx512f" in module.features
    lanes = (16 if wide else 8) // (kind.bytes // 4)
    width = min(lanes, columns)
    full, element = b.vector_type(kind, width), kind.llvm
    align = kind.bytes

    def place(pointer: str, index: str) -> str:
        return b.emit(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

    def right(k: str, n: str) -> str:
        index = b.emit(f"add i64 {b.emit(f'mul i64 {k}, {columns}')}, {n}")
        return b.emit(f"load {full}, ptr {place('%b', index)}, align {align}")

    def left(row: str, k: str) -> str:
        index = b.emit(f"add i64 {b.emit(f'mul i64 {row}, {inner}')}, {k}")
        return b.splat(b.emit(f"load {element}, ptr {place('%a', index)}, align {align}"), element, width)

    def add(old: str, one: str, other: str) -> str:
        if not kind.is_float:
            return b.emit(f"add {full} {old}, {b.emit(f'mul {full} {one}, {other}')}")
        short = "f32" if kind.element == "f32" else "f64"
        suffix = short if width == 1 else f"v{width}{short}"
        return b.call(full, f"llvm.fma.{suffix}", [(full, one), (full, other), (full, old)])

    parts = Parts(kind, width, 8 if wide else 4, 1, left, right, add)
    _write_blocks(b, parts, rows, columns, inner)
    header = f"define internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c) #0 {{"
    return f"{header}\n{b.body()}\n}}"


def _write_pairs(module, name: str, kind: Type, rows: int, columns: int, inner: int) -> str:
    """The same of bf16 by AVX512_BF16; %p has room for the right operand in pairs. See Note [Pairs of bf16]."""
    b = Builder(module)
    width, pairs, words = _PAIR_LANES, f"<{2 * _PAIR_LANES} x bfloat>", f"<{2 * _PAIR_LANES} x i16>"
    full = b.vector_type(F32, width)

    def place(pointer: str, index: str) -> str:
        return b.emit(f"getelementptr inbounds i16, ptr {pointer}, i64 {index}")

    def paired(k: str, n: str) -> str:
        start = b.emit(f"add i64 {b.emit(f'mul i64 {k}, {columns}')}, {b.emit(f'mul i64 {n}, 2')}")
        return place("%p", start)

    k = b.open_loop(inner, 2)
    n = b.open_loop(columns, width)
    half = f"<{width} x i16>"
    start = b.emit(f"add i64 {b.emit(f'mul i64 {k}, {columns}')}, {n}")
    upper = place("%b", start)
    lower = place(upper, str(columns))
    both = [b.emit(f"load {half}, ptr {pointer}, align 2") for pointer in (upper, lower)]
    order = [lane + width * side for lane in range(width) for side in range(2)]
    b.put(f"store {words} {b.shuffle(both[0], 'i16', width, order, both[1])}, ptr {paired(k, n)}, align 2")
    b.close_loop()
    b.close_loop()

    def right(k: str, n: str) -> str:
        return b.emit(f"load {pairs}, ptr {paired(k, n)}, align 2")

    def left(row: str, k: str) -> str:
        index = b.emit(f"add i64 {b.emit(f'mul i64 {row}, {inner}')}, {k}")
        pair = b.splat(b.emit(f"load i32, ptr {place('%a', index)}, align 2"), "i32", width)
        return b.emit(f"bitcast <{width} x i32> {pair} to {pairs}")

    def add(old: str, one: str, other: str) -> str:
        return b.call(full, "llvm.x86.avx512bf16.dpbf16ps.512", [(full, old), (pairs, one), (pairs, other)])

    _write_blocks(b, Parts(F32, width, 8, 2, left, right, add), rows, columns, inner)
    header = f"define internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %p) #0 {{"
    return f"{header}\n{b.body()}\n}}"


class Parts(NamedTuple):
    """What products of one kind differ in. `height`: rows of a block; `step`: what one instruction sums over."""

    kind: Type
    width: int
    height: int
    step: int
    left: Callable[[str, str], str]  # row and k: the element, in all lanes
    right: Callable[[str, str], str]  # k and column: a vector
    add: Callable[[str, str, str], str]  # sum, left, right


def _write_blocks(b: Builder, parts: Parts, rows: int, columns: int, inner: int) -> None:
    """The loops over blocks of `%c`, whose sums are registers while the inner dimension runs."""
    width, kind = parts.width, parts.kind
    vectors = min(2, columns // width)
    height = min(parts.height, rows)
    full, align = b.vector_type(kind, width), kind.bytes

    def counter(count: int, step: int) -> Tuple[str, bool]:
        return (b.open_loop(count, step), True) if count > step else ("0", False)

    n, n_loop = counter(columns, width * vectors)
    m, m_loop = counter(rows, height)
    numbers = [b.emit(f"add i64 {m}, {row}") for row in range(height)]
    ends = [b.emit(f"add i64 {n}, {vector * width}") for vector in range(vectors)]
    sums: List[List[Tuple[str, str]]] = []
    for number in numbers:
        line = []
        for end in ends:
            index = b.emit(f"add i64 {b.emit(f'mul i64 {number}, {columns}')}, {end}")
            pointer = b.emit(f"getelementptr inbounds {kind.llvm}, ptr %c, i64 {index}")
            variable = b.variable(full)
            b.put(f"store {full} {b.emit(f'load {full}, ptr {pointer}, align {align}')}, ptr {variable}")
            line.append((pointer, variable))
        sums.append(line)
    k, k_loop = counter(inner, parts.step)
    right = [parts.right(k, end) for end in ends]
    for number, line in zip(numbers, sums):
        left = parts.left(number, k)
        for (_, variable), vector in zip(line, right):
            b.put(f"store {full} {parts.add(b.emit(f'load {full}, ptr {variable}'), left, vector)}, ptr {variable}")
    if k_loop:
        b.close_loop()
    for line in sums:
        for pointer, variable in line:
            b.put(f"store {full} {b.emit(f'load {full}, ptr {variable}')}, ptr {pointer}, align {align}")
    for looped in (m_loop, n_loop):
        if looped:
            b.close_loop()
    b.put("ret void")
