"""ldmatrix, stmatrix, movmatrix and mma.sync: calls of mxmaca/ptx/matrices.h."""

import re
from typing import Dict, List, NamedTuple, Optional

from . import table
from .operands import Operands

LAYOUT = re.compile(r"(?:ld|st)matrix\.sync\.aligned((?:\.(?:m8n8|x[124]|trans|shared(?:::cta)?))+)\.b16")
MULTIPLY = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>8|16)n8k(?P<k>\d+)\.(?P<left>row|col)\.(?P<right>row|col)(?P<sat>\.satfinite)?"
    r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+)(?:\.(?P<bits>xor|and)\.popc)?"
)
LATE = re.compile(r"(mma\.sync\.aligned\.m\d+n8k\d+\.\w+\.\w+)(\.s32\..+)\.satfinite")
HALVES = {kind: f"mxmaca::ptx::Halves<{table.TYPES[kind]}>" for kind in ("f16", "bf16")}
QUARTERS = {"e4m3": "mxmaca::ptx::Quarters<false>", "e5m2": "mxmaca::ptx::Quarters<true>"}
INTEGERS = {
    f"{sign}{bits}": f"mxmaca::ptx::Integers<{bits}, {str(sign == 's').lower()}>" for sign in "us" for bits in (4, 8)
}


class Kind(NamedTuple):
    """Elements of a kind in the registers of a and b, and the shapes that there are."""

    names: Dict[str, str]
    each: int  # in a register
    shapes: List[str]
    sums: List[str]


KINDS = [
    Kind({"f16": HALVES["f16"]}, 2, ["16x8", "16x16"], ["f32", "f16"]),
    Kind({"bf16": HALVES["bf16"]}, 2, ["16x8", "16x16"], ["f32"]),
    Kind({"tf32": "mxmaca::ptx::Tf32"}, 1, ["16x4", "16x8"], ["f32"]),
    Kind({"f64": "mxmaca::ptx::Doubles"}, 1, ["8x4", "16x4", "16x8", "16x16"], ["f64"]),
    Kind(QUARTERS, 4, ["16x16", "16x32"], ["f32", "f16"]),
    Kind({name: INTEGERS[name] for name in ("u8", "s8")}, 4, ["8x16", "16x16", "16x32"], ["s32"]),
    Kind({name: INTEGERS[name] for name in ("u4", "s4")}, 8, ["8x32", "16x32", "16x64"], ["s32"]),
    Kind({"b1": ""}, 32, ["8x128", "16x128", "16x256"], ["s32"]),
]


def translate(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    """C++ for an instruction on matrices, or None."""
    if name == "movmatrix.sync.aligned.m8n8.trans.b16" and len(arguments) == 2:
        value = work.value(arguments[1], "uint32_t")
        return f"mxmaca::ptx::put({work.target(arguments[0])}, mxmaca::ptx::transpose_matrix({value}));"
    layout = LAYOUT.fullmatch(name)
    if layout is not None and len(arguments) == 2:
        return _move(work, name.startswith("ld"), layout.group(1).strip(".").split("."), arguments)
    # Assemblers take the word at the end as well, where Marlin's kernels have it.
    product = MULTIPLY.fullmatch(LATE.sub(r"\1.satfinite\2", name))
    return None if product is None or len(arguments) != 4 else _multiply(work, product, arguments)


def _move(work: Operands, load: bool, words: List[str], arguments: List[str]) -> Optional[str]:
    numbers = [word for word in words if word.startswith("x")]
    if len(numbers) != 1 or "m8n8" not in words:
        return None
    count = int(numbers[0][1:])
    parts, place = (work.vector(arguments[0]), arguments[1]) if load else (work.vector(arguments[1]), arguments[0])
    if len(parts) != count:
        return None
    row = work.address(place, "shared" if any(word.startswith("shared") for word in words) else None)
    function = f"mxmaca::ptx::{'load' if load else 'store'}_matrices<{count}, {str('trans' in words).lower()}>"
    if load:
        puts = " ".join(f"mxmaca::ptx::put({work.target(text)}, parts[{i}]);" for i, text in enumerate(parts))
        return f"{{ uint32_t parts[{count}]; {function}({row}, parts); {puts} }}"
    values = ", ".join(work.value(text, "uint32_t") for text in parts)
    return f"{{ const uint32_t parts[{count}] = {{{values}}}; {function}({row}, parts); }}"


def _multiply(work: Operands, match: "re.Match[str]", arguments: List[str]) -> Optional[str]:
    m, k, kind = int(match.group("m")), int(match.group("k")), match.group("d")
    left, right = match.group("a"), match.group("b")
    if match.group("c") != kind:
        return None
    parts = [work.vector(text) for text in arguments]
    if (m, k, left, right) == (8, 4, "f16", "f16") and kind in ("f16", "f32") and not match.group("sat"):
        columns = ", ".join(str(match.group(side) == "col").lower() for side in ("left", "right"))
        return _call(work, f"mxmaca::ptx::multiply_quarters<{columns}>", kind, "uint32_t", parts, [8, 2, 2])
    for one in KINDS:
        if left in one.names and right in one.names and kind in one.sums and f"{m}x{k}" in one.shapes:
            break
    else:
        return None
    if (match.group("left"), match.group("right")) != ("row", "col") or (match.group("sat") and kind != "s32"):
        return None
    if (left == "b1") != bool(match.group("bits")) or (left == "b1" and match.group("sat")):
        return None
    dot = f"mxmaca::ptx::Products<{one.names[left]}, {one.names[right]}>"
    if left == "b1":
        dot = f"mxmaca::ptx::CountedBits<{str(match.group('bits') == 'xor').lower()}>"
    count = k // (4 * one.each)
    function = f"mxmaca::ptx::multiply_matrices<{dot}, {str(bool(match.group('sat'))).lower()}, {m}, {count}>"
    word = "double" if kind == "f64" else "uint32_t"
    return _call(work, function, kind, word, parts, [m // 4, count * m // 8, count])


def _call(
    work: Operands, function: str, kind: str, word: str, parts: List[List[str]], sizes: List[int]
) -> Optional[str]:
    """d = function(a, b, c), with halves in pairs."""
    d, a, b, c = parts
    pairs = kind == "f16"
    outer = sizes[0] // 2 if pairs else sizes[0]
    if [len(d), len(a), len(b), len(c)] != [outer, sizes[1], sizes[2], outer]:
        return None
    lines = []
    for letter, texts in (("a", a), ("b", b)):
        lines.append(f"const {word} {letter}[] = {{{', '.join(work.value(text, word) for text in texts)}}};")
    cpp = table.TYPES[kind]
    if pairs:
        values = [f"{work.value(text, table.TYPES['f16x2'])}.{half}" for text in c for half in ("low", "high")]
    else:
        values = [work.value(text, cpp) for text in c]
    lines.append(f"const {cpp} c[] = {{{', '.join(values)}}}; {cpp} d[{sizes[0]}]; {function}(d, a, b, c);")
    for i, text in enumerate(d):
        result = f"{table.TYPES['f16x2']}{{d[{2 * i}], d[{2 * i + 1}]}}" if pairs else f"d[{i}]"
        lines.append(f"mxmaca::ptx::put({work.target(text)}, {result});")
    return "{ " + " ".join(lines) + " }"
