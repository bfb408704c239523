"""Matrix products of tiles: blocks of the result stay in registers while the inner dimension runs.

Products of formats below 32 bits are computed and summed in f32, of i8 in i32. `tf32` is not rounded to 10 bits: the
operands of f32 are used as they are, which only is more exact.
"""

from typing import List, Optional, Tuple

from .errors import LoweringError
from .ir import Operation, Value
from .reductions import Reductions
from .text import Builder
from .tiles import Buffer, Indices
from .types import F32, F64, I32, Type


class Dot(Reductions):
    """tt.dot and what it shares with tt.dot_scaled."""

    def dot(self, operation: Operation) -> None:
        left, right, start = operation.operands[:3]
        result = operation.results[0]
        kind = self._sum_type(operation)
        target = self._in_place(operation)
        a = self.operand_as(left, kind)
        b = self.operand_as(right, kind)
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
        size = a.type.bytes
        if batches == 1:
            self.b.call("void", name, [("ptr", buffer.pointer) for buffer in (a, b, out)])
            return
        counter = self.b.open_loop(batches, 1)
        pointers = []
        for buffer, elements in ((a, rows * inner), (b, inner * columns), (out, rows * columns)):
            offset = self.b.emit(f"mul i64 {counter}, {elements * size}")
            pointers.append(("ptr", self.b.emit(f"getelementptr i8, ptr {buffer.pointer}, i64 {offset}")))
        self.b.call("void", name, pointers)
        self.b.close_loop()

    def _kernel(self, kind: Type, rows: int, columns: int, inner: int) -> str:
        name = f'"maca.dot.{kind.element}.{rows}x{columns}x{inner}"'
        if name not in self.module.helpers:
            self.module.helpers[name] = _write_kernel(self.module, name, kind, rows, columns, inner)
        return name


def _write_kernel(module, name: str, kind: Type, rows: int, columns: int, inner: int) -> str:
    """out[m, n] += sum over k of a[m, k] b[k, n], all in rows one after another."""
    b = Builder(module)
    wide = "avx512f" in module.features
    lanes = (16 if wide else 8) // (kind.bytes // 4)
    width = min(lanes, columns)
    vectors = min(2, columns // width)
    height = min(8 if wide else 4, rows)
    full, element = b.vector_type(kind, width), kind.llvm
    align = kind.bytes

    def place(pointer: str, index: str) -> str:
        return b.emit(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

    def counter(count: int, step: int) -> Tuple[str, bool]:
        return (b.open_loop(count, step), True) if count > step else ("0", False)

    n, n_loop = counter(columns, width * vectors)
    m, m_loop = counter(rows, height)
    sums: List[List[Tuple[str, str]]] = []
    left = []
    for row in range(height):
        number = b.emit(f"add i64 {m}, {row}")
        left.append(place("%a", b.emit(f"mul i64 {number}, {inner}")))
        start = b.emit(f"add i64 {b.emit(f'mul i64 {number}, {columns}')}, {n}")
        line = []
        for vector in range(vectors):
            pointer = place("%c", b.emit(f"add i64 {start}, {vector * width}"))
            variable = b.variable(full)
            b.put(f"store {full} {b.emit(f'load {full}, ptr {pointer}, align {align}')}, ptr {variable}")
            line.append((pointer, variable))
        sums.append(line)
    k, k_loop = counter(inner, 1)
    start = b.emit(f"add i64 {b.emit(f'mul i64 {k}, {columns}')}, {n}")
    right = [
        b.emit(f"load {full}, ptr {place('%b', b.emit(f'add i64 {start}, {v * width}'))}, align {align}")
        for v in range(vectors)
    ]
    for row in range(height):
        single = b.emit(f"load {element}, ptr {place(left[row], k)}, align {align}")
        same = b.splat(single, element, width)
        for vector in range(vectors):
            variable = sums[row][vector][1]
            old = b.emit(f"load {full}, ptr {variable}")
            if kind.is_float:
                short = "f32" if kind.element == "f32" else "f64"
                suffix = short if width == 1 else f"v{width}{short}"
                new = b.call(full, f"llvm.fma.{suffix}", [(full, same), (full, right[vector]), (full, old)])
            else:
                new = b.emit(f"add {full} {old}, {b.emit(f'mul {full} {same}, {right[vector]}')}")
            b.put(f"store {full} {new}, ptr {variable}")
    if k_loop:
        b.close_loop()
    for line in sums:
        for pointer, variable in line:
            b.put(f"store {full} {b.emit(f'load {full}, ptr {variable}')}, ptr {pointer}, align {align}")
    for looped in (m_loop, n_loop):
        if looped:
            b.close_loop()
    b.put("ret void")
    header = f"define internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c) #0 {{"
    return f"{header}\n{b.body()}\n}}"
