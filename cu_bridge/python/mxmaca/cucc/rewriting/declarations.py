"""What the passes ask about declarations, and what they answer."""

from typing import Dict, List, NamedTuple, Optional

from .source import CLOSERS, LITERAL, WORD, Source

PREFIX = "__mxmaca_"
ATTRIBUTES = frozenset(["__attribute__", "__attribute", "alignas", "__declspec", PREFIX + "launch_bounds__"])
# Bytes. The largest vector type has 16; an array begins where dynamic shared memory does.
VECTOR_ALIGNMENT, ARRAY_ALIGNMENT = 16, 128


class Warned(NamedTuple):
    """A place that one of nvcc's own warnings is about."""

    kind: str
    place: int
    text: str


class Declarator(NamedTuple):
    """The words of a declaration, and what stands behind them."""

    words: List[str]
    behind: str  # "(" of a function
    place: int

    @property
    def name(self) -> str:
        return self.words[-1] if self.words else ""


def behind_attributes(source: Source, place: int) -> int:
    """The first place that no attribute stands at."""
    token = source.token(place)
    while token.text in ATTRIBUTES:
        token = source.token(source.closing(source.token(token.end).start) + 1)
    return token.start


def declarator(source: Source, place: int) -> Declarator:
    """The declaration that goes on at the place."""
    words: List[str] = []
    while True:
        token = source.token(behind_attributes(source, place))
        if token.text in ("", "(", ";", "=", "{", "[", ",", ")"):
            return Declarator(words, token.text, token.start)
        place = token.end
        if token.text == "<":
            close = source.closing_angle(token.start)
            if close is None:
                return Declarator(words, "", token.start)
            place = close + 1
        elif token.kind == WORD:
            words.append(token.text)
            if token.text == "operator":
                return Declarator(words, "(", place)
            if token.text == "decltype":
                place = source.closing(source.token(place).start) + 1


def specifiers(source: Source, place: int) -> Dict[str, int]:
    """The storage and type qualifiers directly before the place: word and place."""
    found: Dict[str, int] = {}
    while True:
        token = source.before(place)
        if token.text == ")":
            token = source.before(source.opening(token.start))
            if token.text != "__attribute__":
                return found
        elif token.text not in ("const", "volatile", "static", "extern"):
            return found
        found[token.text] = place = token.start


def alignment(source: Source, start: int, end: int) -> str:
    """An attribute for a variable of the device's: it begins where vectors may be read from it.

    On hardware shared memory and global variables begin at such places, and CUDA code counts on it. An alignment of
    the user's that is larger remains.
    """
    for token in source.outer(start, end):
        if token.text == "=":
            break
        # An array within a structure counts as well.
        if token.text in CLOSERS and "[" in source.text[token.start : source.closing(token.start)]:
            return f"__attribute__((aligned({ARRAY_ALIGNMENT})))"
    return f"__attribute__((aligned({VECTOR_ALIGNMENT})))"


def is_device_body(source: Source, brace: int) -> bool:
    """Whether the brace opens the body of a device function."""
    words = source.words(source.declaration_start(brace), brace)
    return PREFIX + "device__" in words or PREFIX + "global__" in words


def template_parameters(source: Source, place: int) -> Optional[str]:
    """What stands in `template <…>` before the declaration around the place: nothing of a specialisation, None if it
    is no template."""
    angle = source.before(source.declaration_start(place))
    if angle.text != ">":
        return None
    opener = source.opening_angle(angle.start)
    return source.flat(opener + 1, angle.start) if source.before(opener).text == "template" else None


def at_namespace_scope(source: Source, place: int) -> bool:
    """Whether the innermost brace around the place, if any, is that of a namespace or a linkage block."""
    brace = source.enclosing_brace(place)
    known = source.namespace_braces
    if brace not in known:
        head = list(source.outer(source.declaration_start(brace), brace))
        words = [one.text for one in head if one.text != "inline"]
        known[brace] = words[:1] == ["namespace"] or (words[:1] == ["extern"] and head[-1].kind == LITERAL)
    return known[brace]
