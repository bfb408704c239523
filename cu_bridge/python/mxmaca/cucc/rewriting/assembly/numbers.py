"""Conversions to packed formats, comparisons with a second predicate, integers packed in a word."""

import re
from typing import List, Optional

from . import table
from .operands import Operands

PAIR = re.compile(r"cvt\.r(?P<r>[nz])(?P<relu>\.relu)?\.(?P<t>b?f16)x2\.f32")
FP8 = re.compile(r"cvt\.rn\.satfinite(?P<relu>\.relu)?\.(?P<t>e4m3|e5m2)x2\.(?P<from>f32|f16x2)")
FROM_FP8 = re.compile(r"cvt\.rn(?P<relu>\.relu)?\.f16x2\.(?P<t>e4m3|e5m2)x2")
TF32 = re.compile(r"cvt\.r(?P<r>na|n|z)(?P<relu>\.relu)?\.tf32\.f32")
PACK = re.compile(r"cvt\.pack\.sat\.(?P<sign>[us])(?P<bits>2|4|8|16)\.s32(?P<on>\.b32)?")
VIDEO = re.compile(
    r"v(?P<f>add|sub|min|max|avrg|absdiff)(?P<n>[24])\.(?P<d>[us])32\.(?P<a>[us])32\.(?P<b>[us])32(?P<m>\.sat|\.add)?"
)
OPERATIONS = {
    "add": "x + y",
    "sub": "x - y",
    "min": "x < y ? x : y",
    "max": "x < y ? y : x",
    "avrg": "(x + y + (x + y >= 0)) >> 1",
    "absdiff": "x < y ? y - x : x - y",
}
COMPARE = re.compile(r"setp\.(?P<op>\w+?)(?P<with>\.(?:and|or|xor))?(?P<ftz>\.ftz)?\.(?P<t>[busf](?:16|32|64))")
JOINED = {".and": "&&", ".or": "||", ".xor": "!="}
LOOKUP = re.compile(r"lop3\.(?P<with>and|or)\.b32")


def translate(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    """C++ for one of these, or None."""
    for one in (_pair, _fp8, _tf32, _pack, _video, _compare, _lookup):
        code = one(work, name, arguments)
        if code is not None:
            return code
    return None


def _put(work: Operands, target: str, lines: List[str], result: str) -> str:
    return "{ " + " ".join([*lines, f"mxmaca::ptx::put({work.target(target)}, {result});"]) + " }"


def _pair(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = PAIR.fullmatch(name)
    if match is None or len(arguments) != 3:
        return None
    kind = table.TYPES[match.group("t")]
    convert = f"mxmaca::ptx::convert<{kind}, mxmaca::Rounding::{table.ROUNDINGS[match.group('r')]}, false, false>"
    high, low = (f"{convert}({work.value(text, 'float')})" for text in arguments[1:])
    result = f"{kind}x2{{{low}, {high}}}"
    return _put(work, arguments[0], [], f"mxmaca::ptx::relu({result})" if match.group("relu") else result)


def _fp8(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = FROM_FP8.fullmatch(name)
    if match is not None and len(arguments) == 2:
        wide = str(match.group("t") == "e5m2").lower()
        lines = [f"const uint16_t both = {work.value(arguments[1], 'uint16_t')};"]
        low, high = (
            f"mxmaca::ptx::rounded_to(mxmaca::ptx::F16(), mxmaca::ptx::fp8_value<{wide}>(static_cast<uint8_t>({part})))"
            for part in ("both", "both >> 8")
        )
        result = f"mxmaca::ptx::F16x2{{{low}, {high}}}"
        return _put(work, arguments[0], lines, f"mxmaca::ptx::relu({result})" if match.group("relu") else result)
    match = FP8.fullmatch(name)
    if match is None or len(arguments) != (3 if match.group("from") == "f32" else 2):
        return None
    if match.group("from") == "f32":
        lines = [f"const float {n} = {work.value(text, 'float')};" for n, text in zip(("high", "low"), arguments[1:])]
    else:
        lines = [f"const mxmaca::ptx::F16x2 both = {work.value(arguments[1], 'mxmaca::ptx::F16x2')};"]
        lines += [f"const float {half} = mxmaca::ptx::value(both.{half});" for half in ("high", "low")]
    high, low = (f"mxmaca::ptx::relu({half})" if match.group("relu") else half for half in ("high", "low"))
    wide = str(match.group("t") == "e5m2").lower()
    return _put(work, arguments[0], lines, f"mxmaca::ptx::fp8_pair<{wide}>({high}, {low})")


def _tf32(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = TF32.fullmatch(name)
    if match is None or len(arguments) != 2:
        return None
    mode = f"{str(match.group('r') == 'na').lower()}, {str(match.group('r') == 'z').lower()}"
    result = f"mxmaca::ptx::tf32({work.value(arguments[1], 'float')}, {mode})"
    return _put(work, arguments[0], [], f"mxmaca::ptx::relu({result})" if match.group("relu") else result)


def _pack(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = PACK.fullmatch(name)
    if match is None or len(arguments) != (4 if match.group("on") else 3):
        return None
    if (match.group("bits") == "16") == bool(match.group("on")):
        return None
    a, b = (work.value(text, "int32_t") for text in arguments[1:3])
    above = work.value(arguments[3], "uint32_t") if match.group("on") else "0"
    function = f"mxmaca::ptx::packed_on<{match.group('bits')}, {str(match.group('sign') == 's').lower()}>"
    return _put(work, arguments[0], [], f"{function}({a}, {b}, {above})")


def _video(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = VIDEO.fullmatch(name)
    if match is None or len(arguments) != 4:
        return None
    size = 32 // int(match.group("n"))
    kinds = ", ".join(f"{'' if match.group(one) == 's' else 'u'}int{size}_t" for one in "dab")
    saturate, added = (str(match.group("m") == word).lower() for word in (".sat", ".add"))
    values = ", ".join(work.value(text, "uint32_t") for text in arguments[1:])
    call = f"mxmaca::ptx::packed<{kinds}, {saturate}, {added}>"
    operation = f"[](int x, int y) {{ return {OPERATIONS[match.group('f')]}; }}"
    return _put(work, arguments[0], [], f"{call}({values}, {operation})")


def _compare(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = COMPARE.fullmatch(name)
    if match is None or len(arguments) != (4 if match.group("with") else 3):
        return None
    expression, kind = table.SET_OPERATORS.get(match.group("op")), table.TYPES.get(match.group("t"))
    if expression is None or kind is None:
        return None
    # lo, ls, hi, hs compare as unsigned whatever the type says.
    if match.group("op") in ("lo", "ls", "hi", "hs"):
        kind = table.UNSIGNED.get(match.group("t"), kind)
    a, b = (work.value(text, kind) for text in arguments[1:3])
    if "::" in kind:
        kind, a, b = "float", f"mxmaca::ptx::value({a})", f"mxmaca::ptx::value({b})"
    if match.group("ftz") and kind == "float":
        a, b = f"mxmaca::ptx::flushed({a})", f"mxmaca::ptx::flushed({b})"
    lines = [f"const {kind} a = {a}; const {kind} b = {b}; const bool holds = {expression};"]
    yes, no = "holds", "!holds"
    if match.group("with"):
        lines.append(f"const bool c = {work.value(arguments[3], 'bool')};")
        yes, no = (f"({one} {JOINED[match.group('with')]} c)" for one in (yes, no))
    first, _, second = arguments[0].partition("|")
    for target, result in ((first, yes), (second, no)):
        if target.strip() not in ("", "_"):
            lines.append(f"{work.target(target)} = {result};")
    return "{ " + " ".join(lines) + " }"


def _lookup(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = LOOKUP.fullmatch(name)
    targets = arguments[0].partition("|") if arguments else ("", "", "")
    if match is None or len(arguments) != 6 or not targets[2]:
        return None
    values = ", ".join(work.value(text, "uint32_t") for text in arguments[1:5])
    joined = "&&" if match.group("with") == "and" else "||"
    lines = [f"const uint32_t result = mxmaca::ptx::lop3({values}); const bool q = {work.value(arguments[5], 'bool')};"]
    if targets[0].strip() != "_":
        lines.append(f"mxmaca::ptx::put({work.target(targets[0])}, result);")
    return "{ " + " ".join(lines) + f" {work.target(targets[2])} = result != 0 {joined} q; }}"
