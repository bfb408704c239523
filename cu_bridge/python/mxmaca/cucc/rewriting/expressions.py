"""What expressions and statements of a kernel do, as far as their tokens show it.

No types are known here. So every question has a safe answer, which is given in doubt; the functions say which.
"""

from typing import AbstractSet, Iterator, List, Sequence, Set, Tuple

from .source import CLOSERS, LITERAL, NUMBER, OPENERS, OTHER, WORD, Token, word_set

Tokens = Sequence[Token]


ASSIGNMENTS = word_set("= += -= *= /= %= &= |= ^= <<= >>=")
STEPS = frozenset(["++", "--"])
INTEGERS = word_set(
    """unsigned signed short long int char bool size_t uint int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t
    uint64_t"""
)
ARITHMETIC = INTEGERS | {"float", "double"}
VECTORS = {kind + size for kind in word_set("float double int uint short ushort char uchar") for size in "1234"}
FORBIDDEN = word_set(
    """goto switch case asm __asm__ __asm try catch throw new delete static thread_local typedef using struct class
    union enum template operator extern volatile register this decltype alignas __attribute__ __noinline__"""
)
CONDITIONS = word_set("if for while")
NO_TYPES = word_set("return else do const constexpr typename sizeof case") | CONDITIONS
# What stands behind a variable's name where it is declared.
DECLARED = frozenset([*"=;,[):"])
CAST_PARTS = frozenset(["::", "<", ">", "*", "&", "&&", ","])
CASTS = word_set("static_cast reinterpret_cast const_cast")
# Their `[]` leads to memory.
VIEWS = word_set("span mdspan device_ptr")
# Functions without an effect, then those that have one; none of them waits.
MATHEMATICS = word_set(
    """abs fabs fmax fmin exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan atan2
    sinh cosh tanh pow fma floor ceil round trunc rint fmod erf erfc tgamma lgamma copysign hypot"""
)
# Of half and bfloat16, one or two in a word.
OF_HALVES = {
    f"__h{name}{size}"
    for name in word_set("add sub mul div fma neg abs max min eq ne lt le gt ge add_rn sub_rn mul_rn")
    for size in ("", "2")
} | word_set(
    """__float2half_rn __float2half_rz __float2half2_rn __floats2half2_rn __float22half2_rn __half22float2 __low2float
    __high2float __low2half __high2half __low2half2 __high2half2 __lows2half2 __highs2half2 __halves2half2 __half2half2
    __lowhigh2highlow __float2bfloat16 __float2bfloat16_rn __bfloat162float __float2bfloat162_rn __floats2bfloat162_rn
    __float22bfloat162_rn __bfloat1622float2 __halves2bfloat162 __bfloat162bfloat162 __low2bfloat16 __high2bfloat16"""
)
HALVES = word_set("half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 nv_bfloat16 nv_bfloat162")
PURE = (
    MATHEMATICS
    | OF_HALVES
    | {name + "f" for name in MATHEMATICS}
    | CASTS
    | word_set(
        """min max isnan isinf isfinite __expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __powf __fdividef
        __saturatef __fmaf_rn __fadd_rn __fsub_rn __fmul_rn __fdiv_rn __frcp_rn __fsqrt_rn __frsqrt_rn __ldg __ldcg
        __ldca __ldcs __popc __popcll __clz __clzll __ffs __ffsll __brev __mul24 __umul24 __mulhi __umulhi
        __float2int_rn __float2int_rz __float2int_rd __int2float_rn __float_as_int __int_as_float __float_as_uint
        __uint_as_float make_float2 make_float3 make_float4 make_int2 make_int3 make_int4 make_double2 sizeof unsigned
        int float double long short char bool size_t __half2float __float2half thread_rank thread_index group_index
        num_threads __double_as_longlong __longlong_as_double __double2hiint __double2loint __hiloint2double
        __double2float_rn __double2int_rn __double2int_rz __float2uint_rn __float2uint_rz __float2int_ru __uint2float_rn
        __dadd_rn __dmul_rn __ddiv_rn __fma_rn __fadd_rz __fmul_rz __brevll __mul64hi __umul64hi __umul24 __sad __usad
        __byte_perm __funnelshift_l __funnelshift_lc __funnelshift_r __funnelshift_rc __dp4a __dp2a_lo __dp2a_hi
        make_uint2 make_uint3 make_uint4 make_char2 make_char4 make_uchar2 make_uchar3 make_uchar4 make_short2
        make_short4 make_ushort2 make_ushort4 make_float1 make_int1 make_double3 make_double4"""
    )
)
EFFECTS = word_set(
    """atomicAdd atomicSub atomicMax atomicMin atomicExch atomicCAS atomicAnd atomicOr atomicXor atomicInc atomicDec
    __threadfence __threadfence_block __threadfence_system sincosf sincos __sincosf clock clock64 if for while
    return"""
)
# They write what they get the addresses of, and keep none.
RESULTS = word_set("sincos sincosf __sincos __sincosf")


# ---- Parts -----------------------------------------------------------------------------------------------------------


def texts(tokens: Tokens) -> List[str]:
    return [token.text for token in tokens]


def closing(tokens: Tokens, at: int) -> int:
    """The bracket that closes the one there, or the end."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text in CLOSERS) - (tokens[index].text in OPENERS)
        if depth == 0:
            return index
    return len(tokens)


def opening(tokens: Tokens, at: int) -> int:
    """The bracket that is open there, or -1."""
    depth = 0
    for index in range(at - 1, -1, -1):
        depth += (tokens[index].text in OPENERS) - (tokens[index].text in CLOSERS)
        if depth < 0:
            return index
    return -1


def in_brackets(tokens: Tokens, at: int) -> bool:
    """Whether `[` is open there."""
    depth = 0
    for token in tokens[:at]:
        depth += (token.text == "[") - (token.text == "]")
    return depth > 0


def split(tokens: Tokens, separator: str = ",") -> List[Tokens]:
    """What separators separate outside of brackets."""
    found, begin, at = [], 0, 0
    while at < len(tokens):
        if tokens[at].text in CLOSERS:
            at = closing(tokens, at)
        elif tokens[at].text == separator:
            found.append(tokens[begin:at])
            begin = at + 1
        at += 1
    return [*found, tokens[begin:]]


def names(tokens: Tokens) -> Set[str]:
    """All words but members' names behind a dot."""
    return {
        token.text
        for index, token in enumerate(tokens)
        if token.kind == WORD and not (index and tokens[index - 1].text == ".")
    }


def calls(tokens: Tokens) -> Iterator[str]:
    """The words that a parenthesis stands behind."""
    for token, behind in zip(tokens, tokens[1:]):
        if behind.text == "(" and token.kind == WORD:
            yield token.text


def has(tokens: Tokens, *wanted: str) -> bool:
    return any(token.text in wanted for token in tokens)


# ---- Types -----------------------------------------------------------------------------------------------------------


def without(kind: Tokens, *words: str) -> List[str]:
    return [token.text for token in kind if token.text not in words]


def is_integer(kind: Sequence[str]) -> bool:
    return bool(kind) and INTEGERS.issuperset(kind)


def is_builtin(kind: Sequence[str]) -> bool:
    """An arithmetic type, or a vector of CUDA's."""
    return (bool(kind) and ARITHMETIC.issuperset(kind)) or (len(kind) == 1 and kind[0] in VECTORS)


def is_value(kind: Sequence[str]) -> bool:
    """Of these types no member is an array, and none becomes a pointer."""
    named = bool(kind) and kind[-1].endswith("_t") and all(part.isidentifier() for part in kind if part != "::")
    return named or is_builtin(kind)


def may_be_object(kind: Sequence[str]) -> bool:
    """Whether a variable of the type may be changed by `variable[…] = …`: no number, pointer or view of memory."""
    words = [part for part in kind if part != "const"]
    return "*" not in words and not is_value(words) and not any("Accessor" in part or part in VIEWS for part in words)


# ---- Effects ---------------------------------------------------------------------------------------------------------


def modified(name: str, tokens: Tokens, declared: int = -1, is_object: bool = False) -> bool:
    """Whether the variable or a part of it may change, or something else get hold of it. In doubt: yes.

    What a pointer points to is no part of it. A function that is called by `name.` may change it.

    Args:
        declared: where the name stands in its own declaration, which is no change.
        is_object: its type may be a class, so that `name[…]` may be a part of it.
    """
    for at, token in enumerate(tokens):
        if token.text != name or token.start == declared:
            continue
        before = at - 1
        while before >= 0 and tokens[before].text == "(":
            before -= 1
        if before >= 0 and (tokens[before].text in STEPS or _may_be_address(tokens, before)):
            return True
        # A reference: `& other = name`, `& other(name)`.
        before = at - 1
        while before >= 0 and tokens[before].text in ("=", "(", "{"):
            before -= 1
        if before < at - 1 and before > 0 and tokens[before].kind == WORD and tokens[before - 1].text in ("&", "&&"):
            return True
        behind = at + 1
        while behind + 1 < len(tokens) and (
            tokens[behind].text == "." or (tokens[behind].text == "[" and (behind > at + 1 or is_object))
        ):
            behind = behind + 2 if tokens[behind].text == "." else closing(tokens, behind) + 1
        if tokens[behind - 2].text == "." and _is_called(tokens, behind - 1):
            return True
        while behind < len(tokens) and tokens[behind].text == ")":
            behind += 1
        if behind < len(tokens):
            if tokens[behind].text in STEPS:
                return True
            if tokens[behind].text in ASSIGNMENTS and not (at and tokens[at - 1].text == "*"):
                return True
    return False


def _is_called(tokens: Tokens, at: int) -> bool:
    """Whether a parenthesis stands behind the name there, or behind what may be its template arguments."""
    behind = at + 1
    if behind < len(tokens) and tokens[behind].text == "<":
        depth = 0
        while behind < len(tokens) and tokens[behind].text not in ";{":
            depth += (tokens[behind].text == "<") - (tokens[behind].text == ">")
            behind += 1
            if depth == 0:
                break
    return behind < len(tokens) and tokens[behind].text == "("


def declared(tokens: Tokens) -> Set[str]:
    """The words that may be variables' names where they are declared: behind a type, or what may be a type's end."""
    found = set()
    for at in range(1, len(tokens)):
        before, token = tokens[at - 1], tokens[at]
        behind = tokens[at + 1].text if at + 1 < len(tokens) else ";"
        named = before.kind == WORD and before.text not in NO_TYPES and behind in ("(", "{")
        part = before.kind == WORD or before.text in ("*", "&", "&&", ">")
        if token.kind == WORD and (named or (part and behind in DECLARED)):
            found.add(token.text)
    return found


def calls_unnamed(tokens: Tokens) -> bool:
    """Whether something is called that is no function of a name: `table[i](x)`, `(*f)(x)`, `Function{}(x)`.

    What may be a cast, as `(T)(x)`, is none, unless a variable has the name. In all other doubt: yes.
    """
    variables = declared(tokens)
    for at in range(1, len(tokens)):
        if tokens[at].text != "(" or tokens[at - 1].text not in OPENERS:
            continue
        start = opening(tokens, at - 1)
        before = tokens[start - 1] if start > 0 else None
        inner = tokens[start + 1 : at - 1]
        if tokens[at - 1].text == "}":
            # Behind a statement's end there may be `(*p) = x`.
            if before is not None and (before.kind == WORD or before.text == ">") and before.text not in NO_TYPES:
                return True
        elif tokens[at - 1].text == "]":
            return True
        elif before is not None and before.text in CONDITIONS:
            continue
        elif (
            before is not None
            and before.text == ">"
            and _is_cast(tokens, start - 1)
            or (
                before is not None
                and before.kind == WORD
                and before.text not in NO_TYPES
                or not inner
                or inner[0].kind != WORD
                or variables.intersection(texts(inner))
                or not all(one.kind == WORD or one.text in CAST_PARTS for one in inner)
            )
        ):
            return True
    return False


def _is_cast(tokens: Tokens, angle: int) -> bool:
    """Whether the `>` there ends the type of `static_cast<type>` or its kin."""
    depth, at = 1, angle - 1
    while at > 0 and depth:
        depth += (tokens[at].text == ">") - (tokens[at].text == "<")
        at -= 1
    return at >= 0 and tokens[at].text in CASTS


def listed(tokens: Tokens) -> Set[str]:
    """The names in lists that objects begin with, as `Reference r{v}`: a member may be a reference to a variable."""
    found: Set[str] = set()
    for at in range(2, len(tokens)):
        name = at - 2 if tokens[at - 1].text == "=" else at - 1
        if tokens[at].text != "{" or tokens[name].kind != WORD or name < 1:
            continue
        kind = tokens[name - 1]
        if (kind.kind == WORD and not is_builtin([kind.text]) and kind.text not in NO_TYPES) or kind.text == ">":
            found |= names(tokens[at : closing(tokens, at)])
    return found


def changes(tokens: Tokens) -> bool:
    """Whether there is an operator that changes a variable."""
    return any(token.text in STEPS or token.text in ASSIGNMENTS for token in tokens)


def is_unary(tokens: Tokens, at: int) -> bool:
    """Whether the operator there has no operand before it."""
    if at == 0 or tokens[at - 1].text == "return":
        return True
    return tokens[at - 1].kind == OTHER and tokens[at - 1].text not in (")", "]")


def dereferences(tokens: Tokens) -> bool:
    """Whether a `*` may be one of a pointer. In doubt, behind what may be a cast: yes."""
    for at, token in enumerate(tokens):
        if token.text != "*":
            continue
        if is_unary(tokens, at):
            return True
        if tokens[at - 1].text == ")":
            inner = texts(tokens[opening(tokens, at - 1) + 1 : at - 1])
            inner = inner[1:] if inner[:1] == ["const"] else inner
            if is_builtin([text for text in inner if text != "*"]):
                return True
    return False


def may_be_type(tokens: Tokens, close: int) -> bool:
    """Whether what stands in the parentheses that end there may be a type. In doubt: yes."""
    inner = tokens[opening(tokens, close) + 1 : close]
    return all(one.kind == WORD or one.text in CAST_PARTS for one in inner)


def addresses(tokens: Tokens) -> Iterator[Tuple[int, int]]:
    """Where an address is taken, and the word of what. In doubt, behind what may be a cast: it is."""
    for at in range(len(tokens)):
        if not _may_be_address(tokens, at):
            continue
        of = at + 1
        while of < len(tokens) and tokens[of].text == "(":
            of += 1
        if of < len(tokens) and tokens[of].kind == WORD:
            yield at, of


def _may_be_address(tokens: Tokens, at: int) -> bool:
    """Whether the token is a `&` that takes an address. In doubt, behind what may be a cast: it does."""
    if tokens[at].text != "&":
        return False
    if is_unary(tokens, at):
        return True
    inner = tokens[opening(tokens, at - 1) + 1 : at - 1] if tokens[at - 1].text == ")" else []
    parts = [one for one in inner if one.kind == OTHER and one.text != "::"]
    last = inner[:-1] if inner and inner[-1].text == "const" else inner
    pointer = bool(last) and last[-1].text == "*" and all(one.text in ("*", "<", ">") for one in parts)
    return bool(inner) and (not parts or pointer)


def binds_to_a_choice(tokens: Tokens) -> bool:
    """Whether a reference may be bound to one of several variables, or to each of a range."""
    for at in range(len(tokens) - 2):
        if tokens[at].text not in ("&", "&&") or tokens[at + 1].kind != WORD:
            continue
        behind, kind = tokens[at + 2].text, tokens[at - 1].text if at else ""
        declared = kind == "auto" or is_builtin([kind])
        if behind == ":" and opening(tokens, at) > 0 and tokens[opening(tokens, at) - 1].text == "for":
            return True
        if (behind == "=" and tokens[at].text == "&") or (behind in ("=", "(", "{") and declared):
            end = next((one for one in range(at, len(tokens)) if tokens[one].text == ";"), len(tokens))
            value = tokens[at + 3 : end]
            if has(value, "?", ",") or any(calls(value)):
                return True
    return False


def assigns_to_a_choice(tokens: Tokens) -> bool:
    """Whether brackets with a `?` in them stand where something is changed."""
    for at, token in enumerate(tokens):
        if token.text != "(":
            continue
        close = closing(tokens, at)
        if not has(tokens[at:close], "?"):
            continue
        behind, before = texts(tokens[close + 1 : close + 2]), texts(tokens[max(at - 1, 0) : at])
        if behind and (behind[0] in STEPS or behind[0] in ASSIGNMENTS or behind[0] == "."):
            return True
        if before and (before[0] in STEPS or (before[0] == "&" and is_unary(tokens, at - 1))):
            return True
    return False


def is_plain(tokens: Tokens) -> bool:
    """Whether there are only plain operators, variables and calls: no literals, lambdas, or words that do more."""
    for at, token in enumerate(tokens):
        if token.kind == LITERAL or token.text in FORBIDDEN or token.text.startswith(("__mxmaca_", "\\")):
            return False
        if token.text == "[" and at + 1 < len(tokens) and tokens[at + 1].text[0] in "&=]":  # a lambda, or `name[]`
            named = at > 0 and tokens[at - 1].kind == WORD and tokens[at - 1].text not in NO_TYPES
            if not named or tokens[at + 1].text != "]":
                return False
    return True


def is_known(tokens: Tokens, functions: AbstractSet[str]) -> bool:
    """Whether it is plain, and calls nothing but these functions. In doubt about what is called: no."""
    templates = (at for at in range(len(tokens) - 1) if tokens[at].text == ">" and tokens[at + 1].text == "(")
    known = functions | CASTS
    return is_plain(tokens) and set(calls(tokens)) <= functions and all(_calls(tokens, at, known) for at in templates)


def _calls(tokens: Tokens, at: int, functions: AbstractSet[str]) -> bool:
    """Whether the `>` there compares, or ends the template arguments of one of the functions: types and constants."""
    if not any(token.text == "<" for token in tokens[opening(tokens, at) + 1 : at]):
        return True
    before = at - 1
    while before > 0 and (tokens[before].kind in (WORD, NUMBER) or tokens[before].text in ("*", "::", ",")):
        before -= 1
    return before > 0 and tokens[before].text == "<" and tokens[before - 1].text in functions


def is_declaration(statement: Tokens) -> bool:
    """Whether it begins as a declaration does. `a * b` is taken for one."""
    if statement[0].kind != WORD:
        return False
    at, end = 1, len(statement) - 1
    while at < end and statement[at].text == "::":
        at += 2
    if at < end and statement[at].text == "<":
        depth, at = 1, at + 1
        while at < end and depth:
            depth += (statement[at].text == "<") - (statement[at].text == ">")
            at += 1
    while at < end and statement[at].text in ("const", "*", "&", "&&", "__restrict", "__restrict__"):
        at += 1
    return at < end and statement[at].kind == WORD
