"""Words of MLIR's printed form. Types, locations and lists in angle brackets are one word each."""

import re
from typing import List, NamedTuple

_WORD = re.compile(
    r"""(?P<space>[ \t\r]+|//[^\n]*)
    |(?P<line>\n)
    |(?P<value>%[\w$.\-]+(?:\#\d+)?)
    |(?P<label>\^[\w$.\-]+)
    |(?P<symbol>@(?:"[^"]*"|[\w$.\-]+))
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<arrow>->)
    |(?P<bracketed>(?:tensor|vector|dense|array|!tt\.ptr|!tt\.tensordesc|loc|memref|opaque)(?=[<(]))
    |(?P<number>-?0x[0-9A-Fa-f]+(?!\w)|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?!\w))
    |(?P<name>[\#!]?[A-Za-z_][\w$.]*)
    |(?P<sign>[(){}\[\]<>,:=*+\-?/])
    """,
    re.X,
)
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>()]')


class Word(NamedTuple):
    kind: str
    text: str
    first: bool  # of its line


def scan(text: str) -> List[Word]:
    """Split a printed module into words. Raises ValueError where it is no printed module."""
    words: List[Word] = []
    place, first = 0, True
    length = len(text)
    while place < length:
        match = _WORD.match(text, place)
        if match is None:
            raise ValueError(f"no word of a printed module: {text[place : place + 40]!r}")
        kind = match.lastgroup
        start, place = place, match.end()
        if kind == "space":
            continue
        if kind == "line":
            first = True
            continue
        if kind == "bracketed":
            place = _close(text, place)
            kind = "loc" if text.startswith("loc", start) else "type"
            if text.startswith(("dense", "array", "opaque"), start):
                kind = "list"
        words.append(Word(kind or "", text[start:place], first))
        first = False
    words.append(Word("end", "", True))
    return words


def _close(text: str, place: int) -> int:
    depth = 0
    while True:
        match = _INSIDE.search(text, place)
        if match is None:
            raise ValueError("a bracket is not closed")
        place = match.end()
        sign = match[0]
        if sign in "<(":
            depth += 1
        elif sign in ">)":
            depth -= 1
            if depth == 0:
                return place
