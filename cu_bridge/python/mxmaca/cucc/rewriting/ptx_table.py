"""The PTX instructions that inline assembly may use, and the C++ that each becomes (PTX ISA 8).

A row is: a pattern of the whole instruction name; the types of the result and of the operands; an expression over the
operands a, b, c, d. In a type, `T` is the type in the instruction's name (its group t), `U` the unsigned integer of its
size and `W` the integer of twice its size; an empty result type is a statement without a result. What no row matches is
refused by its name.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Pattern, Sequence, Tuple

# The C++ type of a PTX type.
TYPES: Dict[str, str] = {
    **{f"{kind}{bits}": f"{'' if kind == 's' else 'u'}int{bits}_t" for kind in "usb" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
    "f16": "mxmaca::ptx::F16",
    "bf16": "mxmaca::ptx::BF16",
    "f16x2": "mxmaca::ptx::F16x2",
    "bf16x2": "mxmaca::ptx::BF16x2",
    "pred": "bool",
}
# Registers by constraint letter of an asm statement.
CONSTRAINTS: Dict[str, str] = {
    "h": "uint16_t",
    "r": "uint32_t",
    "l": "uint64_t",
    "f": "float",
    "d": "double",
    "n": "int64_t",
    "i": "int64_t",
    "b": "bool",
}
UNSIGNED: Dict[str, str] = {
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "usb" for bits in (8, 16, 32, 64)},
    "f32": "uint32_t",
    "f64": "uint64_t",
    "pred": "bool",
}
WIDER: Dict[str, str] = {"u16": "uint32_t", "s16": "int32_t", "u32": "uint64_t", "s32": "int64_t"}
ROUNDINGS: Dict[str, str] = {"n": "nearest", "z": "zero", "m": "down", "p": "up"}

LINEAR_THREAD = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))"
LANE = f"({LINEAR_THREAD} & 31u)"
SPECIAL: Dict[str, str] = {
    **{f"%tid.{c}": f"threadIdx.{c}" for c in "xyz"},
    **{f"%ntid.{c}": f"blockDim.{c}" for c in "xyz"},
    **{f"%ctaid.{c}": f"blockIdx.{c}" for c in "xyz"},
    **{f"%nctaid.{c}": f"gridDim.{c}" for c in "xyz"},
    "%laneid": LANE,
    "%warpid": f"({LINEAR_THREAD} >> 5)",
    "%nwarpid": "32u",
    "%smid": "0u",
    "%nsmid": "1u",
    "%gridid": "uint64_t{0}",
    "%clock": "static_cast<uint32_t>(clock64())",
    "%clock64": "static_cast<uint64_t>(clock64())",
    "%globaltimer": "mxmaca::ptx::global_timer()",
    "%lanemask_eq": f"(1u << {LANE})",
    "%lanemask_lt": f"((1u << {LANE}) - 1u)",
    "%lanemask_le": f"(((1u << {LANE}) - 1u) | 1u << {LANE})",
    "%lanemask_gt": f"~(((1u << {LANE}) - 1u) | 1u << {LANE})",
    "%lanemask_ge": f"~((1u << {LANE}) - 1u)",
    "WARP_SZ": "32u",
}


class Row(NamedTuple):
    """One kind of instruction."""

    pattern: Pattern[str]
    result: str
    operands: Sequence[str]
    expression: str


INT = r"(?P<t>[us](?:16|32|64))"
WORDS = r"(?P<t>[us](?:32|64))"
HIGH = "mxmaca::ptx::mul_hi(a, b)"
BITS = r"(?P<t>(?:b(?:16|32|64)|pred))"
FLOAT = r"(?P<t>f(?:32|64))"
NARROW = r"(?P<t>b?f16(?:x2)?)"
ROUND = r"(?:\.r(?P<r>[nzmp]))?"
FTZ = r"(?:\.ftz)?"
FIRST = "mxmaca::in_mode<mxmaca::Rounding::{r}>(mxmaca::"


def _row(pattern: str, result: str, operands: str, expression: str) -> Row:
    return Row(re.compile(pattern), result, operands.split(), expression)


ROWS: List[Row] = [
    # ---- integers
    _row(rf"add\.{INT}", "U", "U U", "a + b"),
    _row(rf"sub\.{INT}", "U", "U U", "a - b"),
    _row(rf"mul(?:24)?\.lo\.{INT}", "U", "U U", "a * b"),
    _row(rf"mul\.hi\.{INT}", "T", "T T", "mxmaca::ptx::mul_hi(a, b)"),
    _row(rf"mul\.wide\.{INT}", "W", "T T", "static_cast<W>(a) * static_cast<W>(b)"),
    _row(rf"mad(?:24)?\.lo\.{INT}", "U", "U U U", "a * b + c"),
    _row(rf"mad\.hi\.{INT}", "T", "T T T", "static_cast<U>(mxmaca::ptx::mul_hi(a, b)) + static_cast<U>(c)"),
    _row(rf"mad\.wide\.{INT}", "W", "T T W", "static_cast<W>(a) * static_cast<W>(b) + c"),
    # With the carry flag; `sub` keeps the borrow in it.
    _row(rf"add\.cc\.{WORDS}", "U", "U U", "mxmaca::ptx::add_with<true>(a, b, false)"),
    _row(rf"addc\.{WORDS}", "U", "U U", "mxmaca::ptx::add_with<false>(a, b, mxmaca::ptx::carry)"),
    _row(rf"addc\.cc\.{WORDS}", "U", "U U", "mxmaca::ptx::add_with<true>(a, b, mxmaca::ptx::carry)"),
    _row(rf"sub\.cc\.{WORDS}", "U", "U U", "mxmaca::ptx::subtract_with<true>(a, b, false)"),
    _row(rf"subc\.{WORDS}", "U", "U U", "mxmaca::ptx::subtract_with<false>(a, b, mxmaca::ptx::carry)"),
    _row(rf"subc\.cc\.{WORDS}", "U", "U U", "mxmaca::ptx::subtract_with<true>(a, b, mxmaca::ptx::carry)"),
    _row(rf"mad\.lo\.cc\.{WORDS}", "U", "U U U", "mxmaca::ptx::add_with<true>(U(a * b), c, false)"),
    _row(rf"madc\.lo\.{WORDS}", "U", "U U U", "mxmaca::ptx::add_with<false>(U(a * b), c, mxmaca::ptx::carry)"),
    _row(rf"madc\.lo\.cc\.{WORDS}", "U", "U U U", "mxmaca::ptx::add_with<true>(U(a * b), c, mxmaca::ptx::carry)"),
    _row(rf"mad\.hi\.cc\.{WORDS}", "U", "T T U", "mxmaca::ptx::add_with<true>(U(" + HIGH + "), c, false)"),
    _row(rf"madc\.hi\.{WORDS}", "U", "T T U", "mxmaca::ptx::add_with<false>(U(" + HIGH + "), c, mxmaca::ptx::carry)"),
    _row(
        rf"madc\.hi\.cc\.{WORDS}", "U", "T T U", "mxmaca::ptx::add_with<true>(U(" + HIGH + "), c, mxmaca::ptx::carry)"
    ),
    _row(rf"div\.{INT}", "T", "T T", "b == 0 ? static_cast<T>(-1) : static_cast<T>(a / b)"),
    _row(rf"rem\.{INT}", "T", "T T", "b == 0 ? a : static_cast<T>(a % b)"),
    _row(rf"min\.{INT}", "T", "T T", "a < b ? a : b"),
    _row(rf"max\.{INT}", "T", "T T", "a < b ? b : a"),
    _row(r"abs\.(?P<t>s(?:16|32|64))", "U", "T", "a < 0 ? U(0) - static_cast<U>(a) : static_cast<U>(a)"),
    _row(r"neg\.(?P<t>s(?:16|32|64))", "U", "U", "U(0) - a"),
    _row(rf"and\.{BITS}", "T", "T T", "a & b"),
    _row(rf"or\.{BITS}", "T", "T T", "a | b"),
    _row(rf"xor\.{BITS}", "T", "T T", "a ^ b"),
    _row(r"not\.(?P<t>b(?:16|32|64))", "T", "T", "~a"),
    _row(r"not\.(?P<t>pred)", "T", "T", "!a"),
    _row(rf"cnot\.{BITS}", "T", "T", "a == 0"),
    _row(r"shl\.(?P<t>b(?:16|32|64))", "T", "T u32", "mxmaca::ptx::shift_left(a, b)"),
    _row(r"shr\.(?P<t>[bus](?:16|32|64))", "T", "T u32", "mxmaca::ptx::shift_right(a, b)"),
    _row(r"popc\.(?P<t>b(?:32|64))", "u32", "T", "__builtin_popcountll(a)"),
    _row(r"clz\.(?P<t>b32)", "u32", "T", "__clz(static_cast<int>(a))"),
    _row(r"clz\.(?P<t>b64)", "u32", "T", "__clzll(static_cast<long long>(a))"),
    _row(r"brev\.(?P<t>b32)", "T", "T", "__brev(a)"),
    _row(r"brev\.(?P<t>b64)", "T", "T", "__brevll(a)"),
    _row(r"bfind\.(?P<t>[us](?:32|64))", "u32", "T", "mxmaca::ptx::find_leading(a, false)"),
    _row(r"bfind\.shiftamt\.(?P<t>[us](?:32|64))", "u32", "T", "mxmaca::ptx::find_leading(a, true)"),
    _row(r"bfe\.(?P<t>[us](?:32|64))", "T", "T u32 u32", "mxmaca::ptx::extract(a, b, c)"),
    _row(r"bfi\.(?P<t>b(?:32|64))", "T", "T T u32 u32", "mxmaca::ptx::insert(a, b, c, d)"),
    _row(r"prmt\.(?P<t>b32)", "T", "T T T", "__byte_perm(a, b, c)"),
    _row(r"lop3\.(?P<t>b32)", "T", "T T T u32", "mxmaca::ptx::lop3(a, b, c, d)"),
    _row(r"shf\.l\.wrap\.(?P<t>b32)", "T", "T T u32", "__funnelshift_l(a, b, c)"),
    _row(r"shf\.l\.clamp\.(?P<t>b32)", "T", "T T u32", "c >= 32 ? a : __funnelshift_l(a, b, c)"),
    _row(r"shf\.r\.wrap\.(?P<t>b32)", "T", "T T u32", "__funnelshift_r(a, b, c)"),
    _row(r"shf\.r\.clamp\.(?P<t>b32)", "T", "T T u32", "c >= 32 ? b : __funnelshift_r(a, b, c)"),
    _row(
        r"sad\.(?P<t>[us]32)",
        "U",
        "T T U",
        "c + (a < b ? static_cast<U>(b) - static_cast<U>(a) : static_cast<U>(a) - static_cast<U>(b))",
    ),
    _row(r"dp4a\.u32\.(?P<t>u32)", "T", "T T T", "__dp4a(a, b, c)"),
    _row(r"dp4a\.s32\.(?P<t>s32)", "T", "T T T", "__dp4a(a, b, c)"),
    # ---- floating point
    _row(rf"add{ROUND}{FTZ}\.{FLOAT}", "T", "T T", FIRST + "Add(), a, b)"),
    _row(rf"sub{ROUND}{FTZ}\.{FLOAT}", "T", "T T", FIRST + "Subtract(), a, b)"),
    _row(rf"mul{ROUND}{FTZ}\.{FLOAT}", "T", "T T", FIRST + "Multiply(), a, b)"),
    _row(rf"(?:fma|mad){ROUND}{FTZ}\.{FLOAT}", "T", "T T T", FIRST + "FusedMultiplyAdd(), a, b, c)"),
    _row(rf"div(?:\.approx|\.full|{ROUND}){FTZ}\.{FLOAT}", "T", "T T", FIRST + "Divide(), a, b)"),
    _row(rf"rcp(?:\.approx|{ROUND}){FTZ}\.{FLOAT}", "T", "T", FIRST + "Reciprocal(), a)"),
    _row(rf"sqrt(?:\.approx|{ROUND}){FTZ}\.{FLOAT}", "T", "T", FIRST + "SquareRoot(), a)"),
    _row(rf"rsqrt\.approx{FTZ}\.{FLOAT}", "T", "T", "static_cast<T>(1 / ::sqrt(static_cast<double>(a)))"),
    _row(rf"ex2\.approx{FTZ}\.(?P<t>f32)", "T", "T", "::exp2f(a)"),
    _row(rf"lg2\.approx{FTZ}\.(?P<t>f32)", "T", "T", "::log2f(a)"),
    _row(rf"sin\.approx{FTZ}\.(?P<t>f32)", "T", "T", "::sinf(a)"),
    _row(rf"cos\.approx{FTZ}\.(?P<t>f32)", "T", "T", "::cosf(a)"),
    _row(r"tanh\.approx\.(?P<t>f32)", "T", "T", "::tanhf(a)"),
    _row(rf"min{FTZ}\.{FLOAT}", "T", "T T", "mxmaca::ptx::smaller(a, b, false)"),
    _row(rf"max{FTZ}\.{FLOAT}", "T", "T T", "mxmaca::ptx::larger(a, b, false)"),
    _row(rf"min{FTZ}\.NaN\.(?P<t>f32)", "T", "T T", "mxmaca::ptx::smaller(a, b, true)"),
    _row(rf"max{FTZ}\.NaN\.(?P<t>f32)", "T", "T T", "mxmaca::ptx::larger(a, b, true)"),
    _row(rf"abs{FTZ}\.{FLOAT}", "T", "T", "std::fabs(a)"),
    _row(rf"neg{FTZ}\.{FLOAT}", "T", "T", "-a"),
    _row(rf"copysign\.{FLOAT}", "T", "T T", "std::copysign(b, a)"),
    # ---- half and bfloat16
    _row(rf"(?P<f>add|sub|mul)(?:\.rn)?{FTZ}\.{NARROW}", "T", "T T", "mxmaca::ptx::{f}(a, b)"),
    _row(rf"(?P<f>min|max){FTZ}\.{NARROW}", "T", "T T", "mxmaca::ptx::{f}(a, b)"),
    _row(rf"(?P<f>fma)\.rn{FTZ}\.{NARROW}", "T", "T T T", "mxmaca::ptx::{f}(a, b, c)"),
    _row(rf"(?P<f>neg|abs){FTZ}\.{NARROW}", "T", "T", "mxmaca::ptx::{f}(a)"),
    _row(rf"(?P<f>ex2|tanh)\.approx{FTZ}\.{NARROW}", "T", "T", "mxmaca::ptx::{f}(a)"),
    _row(
        r"cvt\.rn\.(?P<t>f16x2)\.f32",
        "T",
        "f32 f32",
        "T{mxmaca::ptx::rounded_to(mxmaca::ptx::F16(), b), mxmaca::ptx::rounded_to(mxmaca::ptx::F16(), a)}",
    ),
    _row(
        r"cvt\.rn\.(?P<t>bf16x2)\.f32",
        "T",
        "f32 f32",
        "T{mxmaca::ptx::rounded_to(mxmaca::ptx::BF16(), b), mxmaca::ptx::rounded_to(mxmaca::ptx::BF16(), a)}",
    ),
    # ---- choice
    _row(r"selp\.(?P<t>[busf](?:16|32|64))", "U", "U U pred", "c ? a : b"),
    _row(r"slct\.(?P<t>[busf](?:32|64))\.s32", "U", "U U s32", "c >= 0 ? a : b"),
    _row(r"slct\.(?P<t>[busf](?:32|64))\.f32", "U", "U U f32", "c >= 0 ? a : b"),
    # ---- warp
    _row(r"activemask\.b32", "u32", "", "__activemask()"),
    _row(r"vote\.sync\.ballot\.b32", "u32", "pred u32", "__ballot_sync(b, a)"),
    _row(r"vote\.sync\.any\.pred", "pred", "pred u32", "__any_sync(b, a) != 0"),
    _row(r"vote\.sync\.all\.pred", "pred", "pred u32", "__all_sync(b, a) != 0"),
    _row(r"match\.any\.sync\.(?P<t>b(?:32|64))", "u32", "T u32", "__match_any_sync(b, a)"),
    _row(r"redux\.sync\.(?P<f>add|min|max)\.(?P<t>[us]32)", "T", "T u32", "__reduce_{f}_sync(b, a)"),
    _row(r"redux\.sync\.(?P<f>and|or|xor)\.(?P<t>b32)", "T", "T u32", "__reduce_{f}_sync(b, a)"),
    _row(r"bar\.warp\.sync", "", "u32", "__syncwarp(a)"),
    # ---- block, order, time
    _row(r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?", "", "zero", "__syncthreads()"),
    _row(r"membar\.cta|fence(?:\.sc|\.acq_rel)?\.cta", "", "", "__threadfence_block()"),
    _row(r"membar\.gl|fence(?:\.sc|\.acq_rel)?\.gpu", "", "", "__threadfence()"),
    _row(r"membar\.sys|fence(?:\.sc|\.acq_rel)?\.sys", "", "", "__threadfence_system()"),
    _row(r"nanosleep\.u32", "", "u32", "__nanosleep(a)"),
    _row(r"trap", "", "", "__trap()"),
    # ---- copies that are complete when started
    _row(r"cp\.async\.(?:commit_group|wait_all)", "", "", "static_cast<void>(0)"),
    _row(r"cp\.async\.wait_group", "", "u32", "static_cast<void>(a)"),
    # ---- hints
    _row(r"prefetch(?:u)?(?:\.\w+)*", "", "address", "static_cast<void>(0)"),
    _row(r"cvta(?:\.global|\.const|\.local|\.param)?\.u64", "u64", "u64", "a"),
    _row(r"cvta\.to(?:\.global|\.const|\.local|\.param)\.u64", "u64", "u64", "a"),
    _row(r"cvta\.to\.shared\.u64", "u64", "u64", "mxmaca::ptx::shared_address(reinterpret_cast<const void*>(a))"),
    _row(r"cvta\.shared\.u64", "u64", "u64", "reinterpret_cast<uint64_t>(mxmaca::ptx::shared_pointer(a))"),
]

SET_OPERATORS: Dict[str, str] = {
    "eq": "a == b",
    "ne": "a != b",
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "lo": "a < b",
    "ls": "a <= b",
    "hi": "a > b",
    "hs": "a >= b",
    "num": "a == a && b == b",
    "nan": "a != a || b != b",
    **{
        f"{name}u": f"a != a || b != b || a {op} b"
        for name, op in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
    },
}
ATOMICS: Dict[str, str] = {
    "add": "static_cast<T>(old + b)",
    "min": "old < b ? old : b",
    "max": "old < b ? b : old",
    "and": "old & b",
    "or": "old | b",
    "xor": "old ^ b",
    "exch": "b",
    "inc": "old >= b ? T(0) : static_cast<T>(old + 1)",
    "dec": "old == 0 || old > b ? b : static_cast<T>(old - 1)",
}
NARROW_ATOMICS: Tuple[str, ...] = ("add", "min", "max")

SETP = re.compile(r"setp\.(\w+)(?:\.ftz)?\.(\w+)")
CVT = re.compile(
    r"cvt(?:\.r(?P<r>[nzmp])(?P<i>i)?)?(?P<relu>\.relu)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<to>\w+)\.(?P<from>\w+)"
)
SPACE = r"(?:\.(?P<space>global|shared(?:::cta)?|local|const|param))?"
ORDER = r"(?P<order>\.volatile|\.relaxed|\.acquire|\.release|\.acq_rel)?(?:\.(?:cta|gpu|sys|cluster))?"
CACHE = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|nc|L1::\w+|L2::\w+))*"
LOAD = re.compile(rf"ldu?{ORDER}{SPACE}{CACHE}(?:\.v(?P<v>[248]))?\.(?P<t>\w+)")
STORE = re.compile(rf"st{ORDER}{SPACE}{CACHE}(?:\.v(?P<v>[248]))?\.(?P<t>\w+)")
ATOM = re.compile(
    rf"(?P<kind>atom|red){ORDER}{SPACE}{ORDER.replace('order', 'order2')}\.(?P<f>\w+)(?:\.noftz)?\.(?P<t>\w+)"
)
COPY = re.compile(r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::\w+)*")
LOAD_MATRICES = re.compile(
    r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<n>[124])(?P<trans>\.trans)?(?P<space>\.shared(?:::cta)?)?\.b16"
)
MULTIPLY_MATRICES = re.compile(
    r"mma\.sync\.aligned\.m16n8k(?P<k>8|16)\.row\.col\.(?P<d>f32|f16)\.(?P<t>b?f16)\.(?P=t)\.(?P=d)"
)
SHUFFLE = re.compile(r"shfl\.sync\.(?P<f>idx|up|down|bfly)\.b32")


def find_row(name: str) -> Optional[Tuple[Row, "re.Match[str]"]]:
    """The row of an instruction, with its match."""
    for row in ROWS:
        match = row.pattern.fullmatch(name)
        if match is not None:
            return row, match
    return None
