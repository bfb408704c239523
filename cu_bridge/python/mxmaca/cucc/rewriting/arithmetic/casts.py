"""Casts to integers.

C++ does not say what becomes of a floating-point number that the integer type does not hold. NVIDIA's hardware gives
the nearest integer, and 0 for NaN; an x86 processor the least integer for all of them. So the casts in device functions
become those of mxmaca/arithmetic/casts.h, whatever their operand is: `(int)x` is `::mxmaca::casts::casting<int> ->* x`,
which binds its operand as the cast does; `static_cast<int>(x)` and `int(x)` are `::mxmaca::casts::cast_to<int>(x)`. So
is a cast behind a sign or another cast, which bind closer than `->*`, where its operand is a name, a number or a
bracket with what is called or taken of it; what else stands there keeps the processor's cast.
"""

import re
from typing import Iterator, Optional

from ..source import LITERAL, NUMBER, OTHER, WORD, Edit, Source, Token, word_set
from .places import in_device_code, is_own

PARTS = "(?:unsigned|signed|long|short|int|char)"
NAMES = "(?:s?size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|uint|ulong|ushort|uchar|u?longlong)"
# A cast in brackets, by its name, or as a call.
CAST = re.compile(
    rf"\(\s*(?P<bracket>{PARTS}(?:\s+{PARTS})*|{NAMES})\s*\)"
    rf"|\bstatic_cast\s*<\s*(?P<name>{PARTS}(?:\s+{PARTS})*|{NAMES})\s*>(?=\s*\()"
    rf"|\b(?P<call>int|unsigned|long|short|{NAMES})(?=\s*\()"
)
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
TYPE = re.compile(rf"(?:{PARTS}|{NAMES}|const|void|float|double|bool|auto)\Z")


def edits(source: Source) -> Iterator[Edit]:
    """The edits of the casts in device functions."""
    for match in CAST.finditer(source.text):
        start, end = match.span()
        if source.is_system(start) or not source.is_code(start):
            continue
        before, behind = source.before(start), source.token(end)
        form = _form(source, match.lastgroup or "", before, behind)
        if not form or not in_device_code(source, start) or is_own(source.line(start)[0]):
            continue
        name = " ".join(match.group(match.lastgroup or "").split())
        if form == CLOSE:
            close = _simple_operand(source, behind)
            if close is not None:
                yield Edit(start, end, f"::mxmaca::casts::cast_to<{name}>(")
                yield Edit(close, close, ")")
        else:
            yield Edit(start, end, f"::mxmaca::casts::{form.format(name)}")


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


def _simple_operand(source: Source, first: Token) -> Optional[int]:
    """Where an operand without signs, casts and arguments of templates ends."""
    if first.text == "(":
        end = source.closing(first.start) + 1
        if source.token(end).kind != OTHER:
            return None  # another cast
    elif first.kind == NUMBER or (first.kind == WORD and first.text not in NO_OPERANDS):
        end = first.end
    else:
        return None
    while True:
        token = source.token(end)
        if token.text in ("(", "["):
            end = source.closing(token.start) + 1
        elif token.text in (".", "->", "::") and source.token(token.end).kind == WORD:
            end = source.token(token.end).end
        elif token.text in ("<", "++", "--", ".", "->", "::"):
            return None
        else:
            return end


def _begins_operand(token: Token) -> bool:
    return token.kind in (WORD, NUMBER, LITERAL) or token.text in STARTS
