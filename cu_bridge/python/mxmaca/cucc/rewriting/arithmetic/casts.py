"""Casts to integers.

C++ does not say what becomes of a floating-point number that the integer type does not hold. NVIDIA's hardware gives
the nearest integer, and 0 for NaN; an x86 processor the least integer for all of them. So the casts in device functions
become those of mxmaca/arithmetic/casts.h, whatever their operand is: `(int)x` is `::mxmaca::casts::casting<int> ->* x`,
which binds its operand as the cast does; `static_cast<int>(x)` and `int(x)` are `::mxmaca::casts::cast_to<int>(x)`. So
is a cast behind a sign or another cast, which bind closer than `->*`, where its operand ends plainly.

So are casts to types that the program names, which may turn out to be integers (`T` of a template, `decltype(x)`):
cast_to leaves others to C++. What is taken for such a type by its name alone may be none; then the text does not
compile, and is compiled without these edits.
"""

import re
from typing import AbstractSet, List, NamedTuple, Optional

from ..source import LITERAL, NUMBER, OTHER, WORD, Edit, Source, Token, word_set
from .places import in_device_code, is_own
from .type_names import NAMES, PARTS

PLAIN = rf"{PARTS}(?:\s+{PARTS})*|(?:(?:::\s*)?\bstd\s*::\s*)?{NAMES}"
QUALIFIED = r"(?:::\s*)?(?:\w+\s*::\s*)*\w+"
# Where a type may begin whose end only its brackets show: `typename Of<T>::type`, `std::make_unsigned_t<T>`,
# `decltype(x)`.
START = rf"(?=typename\b|decltype\s*\(|{QUALIFIED}\s*<)"
# A cast in brackets, by its name, or as a call.
CAST = re.compile(
    rf"\(\s*(?:(?P<bracket>{PLAIN})|(?P<named_bracket>{QUALIFIED}))\s*\)"
    rf"|\bstatic_cast\s*<\s*(?:(?P<name>{PLAIN})|(?P<named_name>{QUALIFIED}))\s*>(?=\s*\()"
    rf"|\b(?P<call>int|unsigned|long|short|{NAMES})(?=\s*\()"
    rf"|\(\s*(?P<made_bracket>{START})|\bstatic_cast\s*<\s*(?P<made_name>{START})"
    r"|\b(?P<word>\w+)(?=\s*(?:<(?P<made_call>)|\((?P<named_call>)))"
)
NAMED, MADE = "named", "made"
TYPE_NAME = re.compile(r"\w*(?:type|_t)\Z")
CALL, OPERATOR, CLOSE = "cast_to<{}>", "casting<{}> ->*", "close"
BEFORE_EXPRESSIONS = word_set("return case else do and or")
SIGNS = frozenset(["-", "+", "*", "&"])
# In front of an expression, whatever it begins with.
OPERATORS = frozenset(
    ["(", "[", "{", ",", ";", "}", "?", ":", "=", "<", ">", "/", "%", "^", "|"]
    + ["+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "<<=", ">>="]
)
# In front of the name of a type they rather begin a declaration, or stand in another type's name.
NOT_BEFORE_CALLS = frozenset(["<", ">", ";", "{", "}"])
STARTS = frozenset(["(", "-", "+", "~", "!", "*", "&", "::", "++", "--"])
NO_OPERANDS = word_set("const noexcept mutable override final volatile throw sizeof alignof new delete")
PREFIXES = frozenset(["-", "+", "~", "!", "*", "&", "++", "--"])
TYPE = re.compile(rf"(?:{PARTS}|{NAMES}|const|void|float|double|bool|auto)\Z")
WHOLE = re.compile(r"(?:0[xX][0-9a-fA-F']+|[0-9']+)[uUlLzZ]*\Z")
# All that a type in brackets may be made of.
WORDS = re.compile(r"(?:\w+|::|[*&<>,])\Z")


class Found(NamedTuple):
    """Edits of casts, and whether there are some to types that are known by their names alone."""

    edits: List[Edit]
    named: bool


class Cast(NamedTuple):
    """What may be a cast: bracket, name or call; its type, and whether that is known by its name alone; the text in
    front of the operand."""

    kind: str
    type: str
    named: bool
    start: int
    end: int


def find(source: Source, type_names: Optional[AbstractSet[str]]) -> Found:
    """The edits of the casts in device functions.

    Args:
        type_names: of the program, that may be integers; None: only casts to the language's own types.
    """
    found: List[Edit] = []
    named = False
    for match in CAST.finditer(source.text):
        cast = _cast(source, match, type_names)
        if cast is None:
            continue
        before, behind = source.before(cast.start), source.token(cast.end)
        form = _form(source, cast.kind, before, behind)
        if cast.named and form and not _is_named_cast(source, cast, type_names or frozenset()):
            continue
        if not form or not in_device_code(source, cast.start) or is_own(source.line(cast.start)[0]):
            continue
        close = _operand_end(source, behind) if form == CLOSE else cast.end
        if close is None:
            continue
        if form == CLOSE:
            opening = f"::mxmaca::casts::cast_to<{cast.type}>("
            found += [Edit(cast.start, cast.end, opening), Edit(close, close, ")")]
        else:
            found.append(Edit(cast.start, cast.end, f"::mxmaca::casts::{form.format(cast.type)}"))
        named = named or cast.named
    return Found(found, named)


def _cast(source: Source, match: "re.Match[str]", type_names: Optional[AbstractSet[str]]) -> Optional[Cast]:
    group = match.lastgroup or ""
    prefix, _, kind = group.rpartition("_")
    if prefix and type_names is None:
        return None
    names = type_names or frozenset()
    name = match.group("word") or match.group(group)
    start, end = match.span()
    if name and prefix and not _may_be_type(name, prefix, names):
        return None
    if source.is_system(start) or not source.is_code(start):
        return None
    if kind == "call" and (prefix == MADE or name == "decltype"):
        return _made_call(source, start, names)
    if prefix == MADE:
        return _made_cast(source, kind, start, end, names)
    return Cast(kind, " ".join(name.split()), bool(prefix), start, end)


def _may_be_type(name: str, prefix: str, type_names: AbstractSet[str]) -> bool:
    if prefix == MADE:
        return name in type_names or TYPE_NAME.match(name) is not None
    return name in type_names or name == "decltype" or ("::" in name and name.split("::")[-1].strip() in type_names)


def _made_cast(source: Source, kind: str, start: int, place: int, type_names: AbstractSet[str]) -> Optional[Cast]:
    """The cast in brackets or by its name whose type begins at the place."""
    end = _made_type_end(source, place, type_names)
    if end is None:
        return None
    closer = source.token(end)
    if kind == "bracket":
        is_cast = closer.text == ")"
    else:
        is_cast = closer.text == ">" and source.token(closer.end).text == "("
    return Cast(kind, " ".join(source.text[place:end].split()), True, start, closer.end) if is_cast else None


def _made_call(source: Source, place: int, type_names: AbstractSet[str]) -> Optional[Cast]:
    """The cast as a call of the type whose last name is at the place."""
    end = _made_type_end(source, place, type_names)
    if end is None or source.token(end).text != "(":
        return None
    if source.token(place).text != "decltype" and not all(map(WORDS.match, _texts(source, place, end))):
        return None  # a comparison
    start, before = place, source.before(place)
    while before.text == "::":
        name = source.before(before.start)
        is_path = name.kind == WORD and name.text not in BEFORE_EXPRESSIONS
        start = name.start if is_path else before.start
        before = source.before(start)
    return Cast("call", " ".join(source.text[start:end].split()), True, start, end)


def _texts(source: Source, start: int, end: int) -> List[str]:
    return [token.text for token in source.tokens(start, end)]


def _made_type_end(source: Source, place: int, type_names: AbstractSet[str]) -> Optional[int]:
    """Where the type ends that begins there; None for what is hardly one."""
    token = source.token(place)
    if token.text == "decltype":
        return source.closing(source.token(token.end).start) + 1
    is_type = token.text == "typename"
    if is_type or token.text == "::":
        token = source.token(token.end)
    while token.kind == WORD:
        name, end = token.text, token.end
        token = source.token(end)
        if token.text == "<":
            close = source.closing_angle(token.start)
            if close is None:
                return None
            end = close + 1
            token = source.token(end)
        if token.text != "::":
            return end if is_type or name in type_names or TYPE_NAME.match(name) else None
        token = source.token(token.end)
        if token.text == "template":
            token = source.token(token.end)
    return None


def _is_named_cast(source: Source, cast: Cast, type_names: AbstractSet[str]) -> bool:
    """Whether what stands behind a type's name is one operand that is more than a whole number, which may be a null
    pointer."""
    first = source.token(cast.end)
    if cast.kind == "bracket":
        return not _is_whole(first)
    inside = list(source.outer(first.end, source.closing(first.start)))
    if len(inside) == 1:
        return not _is_whole(inside[0]) and inside[0].text not in type_names
    return bool(inside) and all(token.text not in (",", "...") for token in inside)


def _is_whole(token: Token) -> bool:
    return WHOLE.match(token.text) is not None


def _form(source: Source, kind: str, before: Token, behind: Token) -> str:
    """What is written for a cast: CALL, OPERATOR or CLOSE; "" where it is none."""
    if kind == "name":
        return CALL
    if kind == "call":
        inside = source.token(behind.end)
        stands = before.text in OPERATORS - NOT_BEFORE_CALLS or before.text in BEFORE_EXPRESSIONS
        is_cast = _begins_operand(inside) and not TYPE.match(inside.text) and inside.text not in ("*", "&")
        return CALL if stands and is_cast else ""
    if not _begins_operand(behind):
        return ""
    if before.kind == WORD:
        return OPERATOR if before.text in BEFORE_EXPRESSIONS else ""
    if before.text in OPERATORS or (before.text in SIGNS and _is_between(source, before)):
        return OPERATOR
    return CLOSE if before.text in SIGNS or before.text in ("!", "~", ")") else ""


def _is_between(source: Source, sign: Token) -> bool:
    """Whether a sign stands between two operands. False where another cast or a name may be in front of it."""
    first = source.before(sign.start)
    if first.text == ")":
        inside = source.tokens(source.opening(first.start) + 1, first.start)
        return any(token.kind != WORD and token.text not in ("::", "<", ">", "*", "&") for token in inside)
    is_name = first.kind == WORD and first.text not in BEFORE_EXPRESSIONS
    return is_name or first.kind in (NUMBER, LITERAL) or first.text == "]"


def _operand_end(source: Source, first: Token) -> Optional[int]:
    """Where the operand of a cast ends."""
    while first.text in PREFIXES:
        first = source.token(first.end)
    if first.text == "(":
        end = source.closing(first.start) + 1
        behind = source.token(end)
        words = _texts(source, first.end, end - 1)
        if behind.kind != OTHER or behind.text in ("~", "!") or all(map(TYPE.match, words)):
            return _operand_end(source, behind)  # of another cast
        if behind.text in SIGNS and all(map(WORDS.match, words)):
            return None  # of another cast, or of an operation
    elif first.kind in (NUMBER, LITERAL) or (first.kind == WORD and first.text not in NO_OPERANDS):
        end = first.end
    else:
        return None
    while True:
        token = source.token(end)
        if token.text in ("(", "["):
            end = source.closing(token.start) + 1
        elif token.text in (".", "->", "::") and source.token(token.end).kind == WORD:
            end = source.token(token.end).end
        elif token.text in ("++", "--"):
            end = token.end
        elif token.text in (".", "->", "::"):
            return None
        elif token.text == "<" and source.closing_angle(token.start) is not None:
            return None  # a comparison, or arguments of a template
        else:
            return end


def _begins_operand(token: Token) -> bool:
    return token.kind in (WORD, NUMBER, LITERAL) or token.text in STARTS
