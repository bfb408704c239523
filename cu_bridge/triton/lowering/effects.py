"""device_print and device_assert: text for the user from inside a kernel."""

from typing import List, Tuple

from .control import Control
from .ir import Operation, Value
from .tiles import Indices
from .types import Type

_LINE = 512


class Effects(Control):
    """Operations that the outside sees and that are not memory."""

    def print_values(self, operation: Operation) -> None:
        """A line for each element: program, place in the tile, prefix, operand and value, in upstream's form."""
        prefix = _unescape(operation.text[0] if operation.text else "").replace("%", "%%")
        hexadecimal = operation.flag("hex")
        signs = operation.integers("isSigned") if "isSigned" in operation.attributes else []
        if not operation.operands:
            self._print_line(f"pid (%u, %u, %u) {prefix}\n".replace("  ", " "), [])
            return
        for number, value in enumerate(operation.operands):
            signed = bool(signs[number]) if number < len(signs) else True
            tail = f"(operand {number}) " if len(operation.operands) > 1 else ""
            self._print_value(value, prefix, tail, hexadecimal, signed)

    def _print_value(self, value: Value, prefix: str, tail: str, hexadecimal: bool, signed: bool) -> None:
        kind, shape = value.type.scalar, value.type.shape
        form, convert = _format(kind, hexadecimal, signed)
        digits = [len(str(extent - 1)) for extent in shape]
        place = "(" + ", ".join(f"%{width}u" for width in digits) + ")"

        def line(scalar: str, indices: Indices) -> None:
            numbers = [("i32", self._number(index.base)) for index in indices]
            text = f"pid (%u, %u, %u) idx {place if shape else '()'}{prefix}{tail}{form}\n"
            self._print_line(text, numbers + [self._argument(scalar, kind, convert)])

        if shape:
            self.nest(shape, lambda indices: line(self.element(value, indices).scalar, indices), most=1)
        else:
            line(self.scalar(value), ())

    def _number(self, base: str) -> str:
        return base if base.isdigit() else self.b.emit(f"trunc i64 {base} to i32")

    def _argument(self, scalar: str, kind: Type, convert: str) -> Tuple[str, str]:
        if kind.is_pointer:
            return ("ptr", scalar)
        if kind.is_float and convert == "float":
            wide = self.e.widen(scalar, kind, 1)
            return ("double", wide if kind.element == "f64" else self.b.emit(f"fpext float {wide} to double"))
        if kind.is_float:
            scalar = scalar if kind.bits < 32 else self.b.emit(f"bitcast {kind.llvm} {scalar} to i{kind.bits}")
        size = f"i{kind.bits}"
        if kind.bits == 64:
            return ("i64", scalar)
        extend = "sext" if convert == "signed" and kind.bits > 1 else "zext"
        return ("i64", self.b.emit(f"{extend} {size} {scalar} to i64"))

    def _print_line(self, text: str, arguments: List[Tuple[str, str]]) -> None:
        room = self.b.variable(f"[{_LINE} x i8]")
        self.module.declare("i32 @snprintf(ptr, i64, ptr, ...)")
        self.module.declare("void @mcKernelPrint(ptr, i64)")
        pids = [("i32", f"%pid_{axis}") for axis in "xyz"]
        rest = "".join(f", {kind} {value}" for kind, value in pids + arguments)
        length = self.b.emit(
            f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {room}, i64 {_LINE}, ptr {self.module.string(text)}{rest})"
        )
        length = self.e.intrinsic("smin", "i32", 1, length, str(_LINE - 1))
        self.b.put(f"call void @mcKernelPrint(ptr {room}, i64 {self.b.emit(f'zext i32 {length} to i64')})")

    def check(self, operation: Operation) -> None:
        """device_assert: the kernel ends where the condition is false anywhere."""
        condition = operation.operands[0]
        message = _unescape(operation.text[0] if operation.text else operation.attributes.get("message", "").strip('"'))
        file, line = operation.location
        function = self.names.get("", "")
        self.module.declare("void @mcKernelAssertFail(ptr, ptr, i32, ptr) noreturn")
        texts = [self.module.string(part) for part in (message, file or "unknown", function)]

        def fail() -> None:
            self.b.put(f"call void @mcKernelAssertFail(ptr {texts[0]}, ptr {texts[1]}, i32 {line}, ptr {texts[2]})")

        def body(indices: Indices) -> None:
            lanes = self.element(condition, indices)
            if lanes.kind == "u":
                flag = lanes.scalar
            else:
                vector = self.vector(lanes)
                flag = self.b.call("i1", f"llvm.vector.reduce.and.v{self.width}i1", [(f"<{self.width} x i1>", vector)])
            self.when(self.b.emit(f"xor i1 {flag}, true"), fail)

        if condition.type.shape:
            self.nest(condition.type.shape, body)
        else:
            self.when(self.b.emit(f"xor i1 {self.scalar(condition)}, true"), fail)


def _format(kind: Type, hexadecimal: bool, signed: bool) -> Tuple[str, str]:
    """printf's conversion, and how the argument is passed."""
    if kind.is_pointer:
        return "%p", "pointer"
    if hexadecimal and kind.is_float and _has_hexadecimal_floats():
        return "%a", "float"
    if hexadecimal:
        return f"0x%0{max(1, kind.bits // 4)}llx", "unsigned"
    if kind.is_float:
        return "%f", "float"
    return ("%lli", "signed") if signed and kind.bits > 1 else ("%llu", "unsigned")


def _has_hexadecimal_floats() -> bool:
    from ..release import HEXADECIMAL_FLOATS

    return HEXADECIMAL_FLOATS


def _unescape(text: str) -> str:
    import re

    named = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}
    return re.sub(r'\\([0-9A-Fa-f]{2}|[nt\\"])', lambda m: named.get(m[1]) or chr(int(m[1], 16)), text)
