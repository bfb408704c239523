"""Shifts by an amount that the text does not show.

C++ does not say what a shift by the width of its operand or more gives. On NVIDIA's hardware everything is shifted out,
and programs count on it: `votes << (32 - lane)`, `low >> s | high << (32 - s)`. A processor takes the amount by that
width. So the operators in device functions become those of mxmaca/arithmetic/shifts.h, which stand between the same
operands and bind as they do: `a << b` is `a << ::mxmaca::shifts::to_left << b`, `a >>= b` is `a >>=
::mxmaca::shifts::to_right <<= b`. Amounts that are plain numbers stay as they are, and so do the SDK's own headers.
"""

import re
from typing import Iterator

from ..source import LITERAL, NUMBER, WORD, Edit, Source
from .places import in_device_code, is_own

OPERATOR = re.compile(r"(?<![<>])(?:<<|>>)(?![<>])=?")
NAMES = {"<<": "to_left", ">>": "to_right"}
# What arguments of templates are made of, besides brackets and what stands in them.
OF_ARGUMENTS = frozenset(["::", ",", "*", "&", "..."])
NO_OPERAND = frozenset(["operator", "(", ",", "{", ";", "["])


def edits(source: Source) -> Iterator[Edit]:
    """The edits of the operators in device functions."""
    for match in OPERATOR.finditer(source.text):
        place, sign = match.start(), match.group()[:2]
        if _stays(source, match.end()) or source.is_system(place) or not source.is_code(place):
            continue
        before = source.before(place)
        if before.text in NO_OPERAND or (sign == ">>" and len(match.group()) == 2 and _closes_arguments(source, place)):
            continue
        if not in_device_code(source, place) or is_own(source.line(place)[0]):
            continue
        name = f"::mxmaca::shifts::{NAMES[sign]}"
        if len(match.group()) == 2:
            yield Edit(place, match.end(), f"<< {name} <<")
        elif source.before(before.start).text not in (".", "->"):  # which may be a bit field
            yield Edit(place, match.end(), f"{match.group()} {name} <<=")


def _stays(source: Source, place: int) -> bool:
    """Whether the operand there is a plain number, or what is written to streams: a literal, a manipulator."""
    operand = source.token(place)
    behind = source.token(operand.end)
    if operand.text == "std" and behind.text == "::":
        return source.token(source.token(behind.end).end).text not in ("(", "<", "::")
    return operand.kind == LITERAL or (operand.kind == NUMBER and behind.text not in ("+", "-", "*", "/", "%", "."))


def _closes_arguments(source: Source, place: int) -> bool:
    """Whether `>>` ends the arguments of two templates."""
    depth, token = 2, source.before(place)
    while token.text:
        if token.text in (")", "]"):
            token = source.before(source.opening(token.start))
            continue
        if token.text == ">":
            depth += 1
        elif token.text == "<":
            depth -= 1
            if depth == 0:
                return source.before(token.start).kind == WORD
        elif token.kind not in (WORD, NUMBER) and token.text not in OF_ARGUMENTS:
            return False
        token = source.before(token.start)
    return False
