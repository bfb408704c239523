"""Names of types, and the namespaces that they are declared in."""

from typing import List, Tuple

from ..source import Source

DECLARING = frozenset(["class", "struct", "union", "enum", "using", "typedef"])
Path = Tuple[str, ...]


def declares_type(source: Source, start: int, end: int) -> bool:
    """Whether the word is the name of a type that is declared there."""
    if source.before(start).text in DECLARING:
        return True
    return source.token(end).text == ";" and source.words(source.declaration_start(start), start)[:1] == ["typedef"]


def namespaces_around(source: Source, brace: int) -> Path:
    """The names of the namespaces that end with this brace's, without those that are inline or have none."""
    names: List[str] = []
    while brace >= 0:
        words = [token.text for token in source.outer(source.declaration_start(brace), brace)]
        if words[:1] == ["namespace"]:
            names[:0] = [word for word in words[1:] if word.isidentifier() and word != "__attribute__"]
        brace = source.enclosing_brace(brace)
    return tuple(names)
