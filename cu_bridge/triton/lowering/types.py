"""Types of Triton's IR as their printed form names them, and how each is kept in LLVM's."""

import re
from typing import NamedTuple, Optional, Tuple

# Floating-point elements that are kept as their bits; arithmetic goes through f32.
SMALL_FLOATS = {
    "f16": 16,
    "bf16": 16,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "f8E4M3FNUZ": 8,
    "f8E5M2FNUZ": 8,
    "f8E4M3B11FNUZ": 8,
}
FLOATS = {**SMALL_FLOATS, "f32": 32, "f64": 64}
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*?)(?:, #.*)?>\Z", re.S)
_POINTER = re.compile(r'!tt\.ptr<(.*?)(?:, (\d+|"\w+"))?>\Z', re.S)


class Type(NamedTuple):
    """A scalar (no shape) or a tensor. `element` is MLIR's name of the element; `pointee` is set for pointers."""

    shape: Tuple[int, ...]
    element: str
    pointee: Optional["Type"] = None

    @property
    def is_tensor(self) -> bool:
        return bool(self.shape)

    @property
    def is_pointer(self) -> bool:
        return self.pointee is not None

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def bits(self) -> int:
        """Bits of an element in registers."""
        if self.is_pointer:
            return 64
        if self.element in FLOATS:
            return FLOATS[self.element]
        return 64 if self.element == "index" else int(self.element[1:])

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return max(1, self.bits // 8)

    @property
    def count(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def llvm(self) -> str:
        """The LLVM type of an element in registers."""
        return llvm_type(self)

    @property
    def scalar(self) -> "Type":
        return Type((), self.element, self.pointee)

    def shaped(self, shape: Tuple[int, ...]) -> "Type":
        return Type(tuple(shape), self.element, self.pointee)

    def __str__(self) -> str:
        if not self.shape:
            return self.element
        return "tensor<" + "x".join(map(str, self.shape)) + f"x{self.element}>"


def llvm_type(kind: Type) -> str:
    if kind.is_pointer:
        return "ptr"
    if kind.element == "f32":
        return "float"
    if kind.element == "f64":
        return "double"
    return f"i{kind.bits}"


def parse_type(text: str) -> Type:
    """Read one printed type. Raises ValueError for one that no value of a kernel has here."""
    text = text.strip()
    tensor = _TENSOR.match(text)
    if tensor:
        element = parse_type(tensor[2])
        # A tensor of no dimensions is a value like a scalar.
        return element.shaped(tuple(int(extent) for extent in tensor[1].split("x") if extent))
    pointer = _POINTER.match(text)
    if pointer:
        return Type((), text, parse_type(pointer[1]))
    if text in FLOATS or text == "index" or re.match(r"i\d+\Z", text):
        return Type((), text)
    raise ValueError(f"no type of a kernel: {text}")


I1 = Type((), "i1")
I8 = Type((), "i8")
I16 = Type((), "i16")
I32 = Type((), "i32")
I64 = Type((), "i64")
F32 = Type((), "f32")
F64 = Type((), "f64")
