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
    "%globaltimer_lo": "static_cast<uint32_t>(mxmaca::ptx::global_timer())",
    "%globaltimer_hi": "static_cast<uint32_t>(mxmaca::ptx::global_timer() >> 32)",
    "%clock_hi": "static_cast<uint32_t>(static_cast<uint64_t>(clock64()) >> 32)",
    "%dynamic_smem_size": "mxmaca::dynamic_shared_bytes()",
    **{f"%cluster_ctaid.{c}": "0u" for c in "xyz"},
    **{f"%cluster_nctaid.{c}": "1u" for c in "xyz"},
    **{f"%clusterid.{c}": f"blockIdx.{c}" for c in "xyz"},
    **{f"%nclusterid.{c}": f"gridDim.{c}" for c in "xyz"},
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
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
SAT = r"(?:\.sat)?"
FIRST = "mxmaca::in_mode<mxmaca::Rounding::{r}>(mxmaca::"
PTX = "mxmaca::ptx::"
_INT = {"u": "uint", "s": "int"}
WRAP = (("clamp", "false"), ("wrap", "true"))
PACKED = PTX + "packed<{0}16_t, {0}16_t, {0}16_t, false, false>(a, b, 0, "
# prmt's modes: the byte that byte i of the result comes from, for the number n.
PLACES = tuple(
    (mode, f"[](uint32_t n, uint32_t i) {{ return {place}; }}")
    for mode, place in (
        ("f4e", "n + i"),
        ("b4e", "n - i"),
        ("rc8", "n + 0 * i"),
        ("ecl", "i < n ? n : i"),
        ("ecr", "i < n ? i : n"),
        ("rc16", "(n & 1) * 2 + (i & 1)"),
    )
)


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
    *(
        _row(rf"dp4a\.{x}32\.{y}32", "u32", "u32 u32 u32", f"{PTX}dot4<{_INT[x]}8_t, {_INT[y]}8_t>(a, b, c)")
        for x in "us"
        for y in "us"
    ),
    *(
        _row(
            rf"dp2a\.{half}\.{x}32\.{y}32",
            "u32",
            "u32 u32 u32",
            f"{PTX}dot2<{_INT[x]}16_t, {_INT[y]}8_t>(a, b, c, {first})",
        )
        for half, first in (("lo", 0), ("hi", 2))
        for x in "us"
        for y in "us"
    ),
    *(_row(rf"prmt\.b32\.{mode}", "u32", "u32 u32 u32", f"{PTX}permuted(a, b, c, {place})") for mode, place in PLACES),
    _row(r"fns\.b32", "u32", "u32 u32 s32", "__fns(a, b, c)"),
    *(_row(rf"bmsk\.{mode}\.b32", "u32", "u32 u32", f"{PTX}mask_of_bits(a, b, {wrap})") for mode, wrap in WRAP),
    *(_row(rf"szext\.{mode}\.(?P<t>[us]32)", "T", "T u32", f"{PTX}extended<T>(a, b, {wrap})") for mode, wrap in WRAP),
    _row(r"mul24\.hi\.(?P<t>[us]32)", "T", "T T", "mxmaca::ptx::mul24_hi(a, b)"),
    _row(r"mad24\.hi\.(?P<t>[us]32)", "T", "T T T", "static_cast<U>(mxmaca::ptx::mul24_hi(a, b)) + static_cast<U>(c)"),
    _row(r"add\.sat\.(?P<t>s32)", "T", "T T", "mxmaca::ptx::clamped<T>(static_cast<__int128>(a) + b)"),
    _row(r"sub\.sat\.(?P<t>s32)", "T", "T T", "mxmaca::ptx::clamped<T>(static_cast<__int128>(a) - b)"),
    _row(
        r"mad\.hi\.sat\.(?P<t>s32)",
        "T",
        "T T T",
        "mxmaca::ptx::clamped<T>(static_cast<__int128>(mxmaca::ptx::mul_hi(a, b)) + c)",
    ),
    _row(r"min\.relu\.(?P<t>s32)", "T", "T T", "a < b ? (a > 0 ? a : 0) : (b > 0 ? b : 0)"),
    _row(r"max\.relu\.(?P<t>s32)", "T", "T T", "a < b ? (b > 0 ? b : 0) : (a > 0 ? a : 0)"),
    *(
        _row(rf"{name}\.{x}16x2", "u32", "u32 u32", f"{PACKED.format(_INT[x])}[](int x, int y) {{ return {op}; }})")
        for name, op in (("add", "x + y"), ("min", "x < y ? x : y"), ("max", "x < y ? y : x"))
        for x in "us"
    ),
    *(
        _row(
            rf"{name}\.relu\.s16x2",
            "u32",
            "u32 u32",
            f"{PACKED.format(_INT['s'])}[](int x, int y) {{ const int z = {op}; return z > 0 ? z : 0; }})",
        )
        for name, op in (("min", "x < y ? x : y"), ("max", "x < y ? y : x"))
    ),
    # ---- floating point
    _row(rf"add{ROUND}{FTZ}{SAT}\.{FLOAT}", "T", "T T", FIRST + "Add(), a, b)"),
    _row(rf"sub{ROUND}{FTZ}{SAT}\.{FLOAT}", "T", "T T", FIRST + "Subtract(), a, b)"),
    _row(rf"mul{ROUND}{FTZ}{SAT}\.{FLOAT}", "T", "T T", FIRST + "Multiply(), a, b)"),
    _row(rf"(?:fma|mad){ROUND}{FTZ}{SAT}\.{FLOAT}", "T", "T T T", FIRST + "FusedMultiplyAdd(), a, b, c)"),
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
    _row(rf"(?P<f>add|sub|mul)(?:\.rn)?{FTZ}{SAT}\.{NARROW}", "T", "T T", "mxmaca::ptx::{f}(a, b)"),
    _row(rf"(?P<f>min|max){FTZ}\.{NARROW}", "T", "T T", "mxmaca::ptx::{f}(a, b)"),
    _row(rf"(?P<f>min|max){FTZ}\.NaN\.{NARROW}", "T", "T T", "mxmaca::ptx::{f}_nan(a, b)"),
    _row(rf"(?P<f>fma)\.rn{FTZ}(?:\.sat|\.relu)?\.{NARROW}", "T", "T T T", "mxmaca::ptx::{f}(a, b, c)"),
    _row(rf"(?P<f>neg|abs){FTZ}\.{NARROW}", "T", "T", "mxmaca::ptx::{f}(a)"),
    _row(rf"(?P<f>ex2|tanh)\.approx{FTZ}\.{NARROW}", "T", "T", "mxmaca::ptx::{f}(a)"),
    # ---- choice
    _row(r"selp\.(?P<t>[busf](?:16|32|64))", "U", "U U pred", "c ? a : b"),
    _row(r"slct\.(?P<t>[busf](?:32|64))\.s32", "U", "U U s32", "c >= 0 ? a : b"),
    _row(r"slct\.(?P<t>[busf](?:32|64))\.f32", "U", "U U f32", "c >= 0 ? a : b"),
    # ---- warp
    _row(r"activemask\.b32", "u32", "", "__activemask()"),
    _row(r"vote\.sync\.ballot\.b32", "u32", "pred u32", "__ballot_sync(b, a)"),
    _row(r"vote\.sync\.any\.pred", "pred", "pred u32", "__any_sync(b, a) != 0"),
    _row(r"vote\.sync\.all\.pred", "pred", "pred u32", "__all_sync(b, a) != 0"),
    _row(r"vote\.sync\.uni\.pred", "pred", "pred u32", "__uni_sync(b, a) != 0"),
    _row(r"match\.any\.sync\.(?P<t>b(?:32|64))", "u32", "T u32", "__match_any_sync(b, a)"),
    _row(r"redux\.sync\.(?P<f>add|min|max)\.(?P<t>[us]32)", "T", "T u32", "__reduce_{f}_sync(b, a)"),
    _row(r"redux\.sync\.(?P<f>and|or|xor)\.(?P<t>b32)", "T", "T u32", "__reduce_{f}_sync(b, a)"),
    _row(r"bar\.warp\.sync", "", "u32", "__syncwarp(a)"),
    # ---- block, order, time
    _row(r"membar\.cta|fence(?:\.sc|\.acq_rel)?\.cta", "", "", "__threadfence_block()"),
    _row(r"membar\.gl|fence(?:\.sc|\.acq_rel)?\.gpu", "", "", "__threadfence()"),
    _row(r"membar\.sys|fence(?:\.sc|\.acq_rel)?\.sys", "", "", "__threadfence_system()"),
    # Clusters are of one block here.
    _row(r"fence(?:\.sc|\.acq_rel)?\.cluster", "", "", "__threadfence()"),
    _row(
        r"fence\.(?:proxy\.(?:alias|async(?:\.(?:global|shared::(?:cta|cluster)))?)|mbarrier_init\.release\.cluster)",
        "",
        "",
        "__threadfence_block()",
    ),
    _row(r"barrier\.cluster\.arrive(?:\.(?:release|relaxed))?(?:\.aligned)?", "", "", "__threadfence_block()"),
    _row(r"barrier\.cluster\.wait(?:\.acquire)?(?:\.aligned)?", "", "", "__syncthreads()"),
    _row(r"mapa(?:\.shared::cluster)?\.(?P<t>u(?:32|64))", "T", "T u32", "mxmaca::ptx::only_block(a, b)"),
    # A launch begins when what stands before it in its stream has ended.
    _row(r"griddepcontrol\.(?:wait|launch_dependents)", "", "", "static_cast<void>(0)"),
    _row(r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32", "", "u32", "static_cast<void>(a)"),
    _row(r"pmevent(?:\.mask)?", "", "u32", "static_cast<void>(a)"),
    _row(r"brkpt", "", "", "__brkpt()"),
    _row(r"nanosleep\.u32", "", "u32", "__nanosleep(a)"),
    _row(r"trap", "", "", "__trap()"),
    # ---- copies that are complete when started
    _row(r"cp\.async\.(?:commit_group|wait_all)", "", "", "static_cast<void>(0)"),
    _row(r"cp\.async\.wait_group", "", "u32", "static_cast<void>(a)"),
    _row(r"cp\.async\.bulk\.commit_group", "", "", "static_cast<void>(0)"),
    _row(r"cp\.async\.bulk\.wait_group(?:\.read)?", "", "u32", "static_cast<void>(a)"),
    # ---- hints
    _row(r"prefetchu?(?:\.(?:global|local|L[12](?:::\w+)?))+", "", "address", "static_cast<void>(0)"),
    _row(r"cvta(?:\.global|\.const|\.local|\.param)?\.u64", "u64", "u64", "a"),
    _row(r"cvta\.to(?:\.global|\.const|\.local|\.param)\.u64", "u64", "u64", "a"),
    _row(r"cvta\.to\.shared\.u64", "u64", "u64", "mxmaca::ptx::shared_address(reinterpret_cast<const void*>(a))"),
    *[
        _row(rf"isspacep\.{space}", "pred", "u64", f"{function}(reinterpret_cast<const void*>(a)) != 0")
        for space, function in (
            ("global", "__isGlobal"),
            (r"shared(?:::cta|::cluster)?", "__isShared"),
            ("local", "__isLocal"),
            ("const", "__isConstant"),
        )
    ],
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

CVT = re.compile(
    r"cvt(?:\.r(?P<r>[nzmp])(?P<i>i)?)?(?P<relu>\.relu)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<to>\w+)\.(?P<from>\w+)"
)


def bytes_of(kind: str) -> int:
    """The size of a PTX type."""
    return 4 if kind.endswith("x2") else int(kind.strip("usbf")) // 8


def find_row(name: str) -> Optional[Tuple[Row, "re.Match[str]"]]:
    """The row of an instruction, with its match."""
    for row in ROWS:
        match = row.pattern.fullmatch(name)
        if match is not None:
            return row, match
    return None
