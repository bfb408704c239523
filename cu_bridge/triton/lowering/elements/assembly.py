"""inline_asm_elementwise: the PTX of the user, read and computed on vectors.

A register is kept as its bits, one lane for each pack of elements. What the table of ptx.py does not know is refused by
its name.
"""

import re
from typing import List, Tuple

from ..errors import LoweringError
from ..types import Type
from .ptx import Ptx, PtxError

_BITS = {"r": 32, "h": 16, "l": 64, "f": 32, "d": 64, "c": 8, "b": 1}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def assembly_call(writer, operation, values: List[str], kinds: List[Type], width: int) -> List[str]:
    """The results of inline assembly for operands in registers of `width` lanes."""
    pack = operation.integer("packed_element", 1)
    constraints = [c.strip() for c in operation.attributes["constraints"].strip('"').split(",") if c.strip()]
    outputs = [c[1:].lstrip("&") for c in constraints if c.startswith("=")]
    inputs = [c for c in constraints if not c.startswith("=") and not c.startswith("~")]
    text = _unescape(operation.text[0])
    lanes = max(1, width // pack)
    ptx = Ptx(writer, lanes)
    try:
        registers = _inputs(writer, values, kinds, width, pack, lanes)
        if len(registers) != len(inputs):
            raise PtxError(f"{len(inputs)} operands for {len(registers)} registers")
        for number, letter in enumerate(outputs):
            ptx.declare(f"${number}", _BITS[letter[-1]])
        for number, ((value, bits), letter) in enumerate(zip(registers, inputs)):
            place = len(outputs) + number
            wanted = _BITS.get(letter[-1], bits)
            ptx.set(f"${place}", ptx.resize(value, bits, wanted), wanted)
        ptx.run(_COMMENT.sub(" ", text))
        found = [ptx.get(f"${number}") for number in range(len(outputs))]
        return _outputs(writer, found, [r.type.scalar for r in operation.results], width, pack, lanes)
    except (PtxError, KeyError) as error:
        raise LoweringError(operation.name, f"PTX that is not there: {error}", operation.location) from error


def _unescape(text: str) -> str:
    return re.sub(
        r"\\([0-9A-Fa-f]{2}|.)",
        lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else {"n": "\n", "t": "\t"}.get(m[1], m[1]),
        text,
    )


def _as_bits(writer, value: str, kind: Type, width: int) -> Tuple[str, int]:
    """The value as an integer of its size."""
    size = f"i{kind.bits}"
    if kind.is_pointer:
        return writer.cast("ptrtoint", value, "ptr", "i64", width), 64
    if kind.llvm != size:
        return writer.cast("bitcast", value, kind.llvm, size, width), kind.bits
    return value, kind.bits


def _inputs(writer, values, kinds, width, pack, lanes) -> List[Tuple[str, int]]:
    """Registers of the operands: elements below 32 bits share one."""
    registers: List[Tuple[str, int]] = []
    for value, kind in zip(values, kinds):
        bits_value, bits = _as_bits(writer, value, kind, width)
        if bits == 1:
            bits_value, bits = writer.cast("zext", bits_value, "i1", "i8", width), 8
        elements = []
        for number in range(pack):
            chosen = [(lane * pack + number) % width for lane in range(lanes)]
            elements.append(bits_value if width == 1 else writer.b.shuffle(bits_value, f"i{bits}", width, chosen))
        if bits >= 32:
            registers += [(element, bits) for element in elements]
            continue
        share = 32 // bits
        for first in range(0, pack, share):
            total = ""
            for number, element in enumerate(elements[first : first + share]):
                part = writer.cast("zext", element, f"i{bits}", "i32", lanes)
                if number:
                    part = writer.op("shl", "i32", lanes, part, writer.const(bits * number, "i32", lanes))
                total = part if not total else writer.op("or", "i32", lanes, total, part)
            registers.append((total, 32))
    return registers


def _outputs(writer, found: List[Tuple[str, int]], kinds: List[Type], width, pack, lanes) -> List[str]:
    results = []
    place = 0
    for kind in kinds:
        bits = 8 if kind.bits == 1 else kind.bits
        elements: List[str] = []
        while len(elements) < pack:
            value, size = found[place]
            place += 1
            share = size // bits if bits < size else 1
            for number in range(min(share, pack - len(elements))):
                part = value
                if number:
                    part = writer.op("lshr", f"i{size}", lanes, value, writer.const(bits * number, f"i{size}", lanes))
                if size != bits:
                    part = writer.cast("trunc" if size > bits else "zext", part, f"i{size}", f"i{bits}", lanes)
                elements.append(part)
        whole = _interleave(writer, elements, f"i{bits}", width, pack, lanes)
        if kind.bits == 1:
            whole = writer.op("icmp ne", "i8", width, whole, writer.const(0, "i8", width))
        elif kind.is_pointer:
            whole = writer.cast("inttoptr", whole, "i64", "ptr", width)
        elif kind.llvm != f"i{bits}":
            whole = writer.cast("bitcast", whole, f"i{bits}", kind.llvm, width)
        results.append(whole)
    return results


def _interleave(writer, elements: List[str], kind: str, width: int, pack: int, lanes: int) -> str:
    if pack == 1 or width == 1:
        return elements[0]
    found = "poison"
    for lane in range(width):
        source = elements[lane % pack]
        single = (
            source if lanes == 1 else writer.b.emit(f"extractelement <{lanes} x {kind}> {source}, i64 {lane // pack}")
        )
        found = writer.b.emit(f"insertelement <{width} x {kind}> {found}, {kind} {single}, i64 {lane}")
    return found
