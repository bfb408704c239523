"""Loops that read volatile memory let other threads run.

On hardware the warps of a block proceed side by side, and so do blocks; here a thread runs until it waits. A loop that
goes round until another thread has stored something must say so. In CUDA such a loop reads memory that is `volatile`,
or else compilers move the load out of it. So each loop of a function that mentions such memory, but for those that
count to an end, calls `mxmaca::spinning`.
"""

from typing import Dict, Iterator, List, Optional, Set, Tuple

from . import expressions as ex
from .declarations import at_namespace_scope
from .expressions import Tokens
from .loops import counts, statement_end
from .source import WORD, Edit, Source, Token, word_set
from .waits import Unfit

# Behind these the word of a cast ends: no variable has such a name.
TYPES = word_set("int unsigned signed char short long float double bool const void")
CALL = "::mxmaca::spinning();"
NO_QUALIFIER = ("asm", "__asm__", "__asm")


def edits(source: Source) -> Iterator[Edit]:
    mentions = [token for token in source.find("volatile") if _is_qualifier(source, token)]
    if not mentions:
        return
    bodies: Dict[int, Set[str]] = {}
    for token in mentions:
        body, name = _function(source, token.start), _name(source, token)
        if body is not None:
            bodies.setdefault(body, {"volatile"}).add(name)
        elif name and _is_variable(source, token):
            # Of a variable the functions are meant that have its name.
            around = (_function(source, use.start) for use in source.find(name))
            for body in (brace for brace in around if brace is not None):
                bodies.setdefault(body, {"volatile"}).add(name)
    for body, names in bodies.items():
        yield from _loops(list(source.tokens(body, source.closing(body) + 1)), names - {""})


def _is_qualifier(source: Source, token: Token) -> bool:
    return not source.line(token.start)[2] and source.before(token.start).text not in NO_QUALIFIER


def _function(source: Source, place: int) -> Optional[int]:
    """The brace of the outermost body or class around the place, or of the function whose parameters it is among."""
    brace = -1
    while not at_namespace_scope(source, place):
        place = brace = source.enclosing_brace(place)
    if brace >= 0:
        return brace
    # Among parameters a parenthesis closes before any semicolon; a body follows it, or a constructor's initialisers.
    depth = 0
    for token in source.tokens(place):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == ";" or not token.text:
            return None
        if token.text == "{":
            return token.start if depth < 0 else None
    return None


def _is_variable(source: Source, token: Token) -> bool:
    """Whether what is declared at namespace scope is not a parameter of a function without a body."""
    depth = 0
    for following in source.tokens(token.end):
        depth += (following.text == "(") - (following.text == ")")
        if depth < 0 or following.text in (";", "=", "[", "{", ""):
            return depth == 0
    return False


def _name(source: Source, token: Token) -> str:
    """The name that the declaration gives which the word `volatile` belongs to; empty for a cast."""
    name = ""
    for following in source.tokens(token.end):
        if following.text in (",", ")", ";", "=", "[", "(", "{", ""):
            return name
        if following.kind == WORD:
            name = "" if following.text in TYPES else following.text
    return name


def _loops(tokens: Tokens, names: Set[str]) -> Iterator[Edit]:
    over: List[int] = []  # the `while` of a `do`
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("for", "while", "do") or at in over:
            continue
        try:
            end = statement_end(tokens, at)
            if token.text == "do":
                over.append(statement_end(tokens, at + 1))
            loop = tokens[at:end]
            if not names.isdisjoint(ex.texts(loop)) and not (token.text == "for" and counts(loop)):
                yield from _call(tokens, at, end)
        except (Unfit, IndexError):
            continue


def _call(tokens: Tokens, at: int, end: int) -> Tuple[Edit, ...]:
    """The call at the beginning of the loop's body."""
    body = at + 1 if tokens[at].text == "do" else ex.closing(tokens, at + 1) + 1
    first = tokens[body]
    if first.text == "{":
        return (Edit(first.end, first.end, f" {CALL}"),)
    if first.text == ";":
        return (Edit(first.start, first.end, f" {CALL}"),)
    last = tokens[(statement_end(tokens, body) if tokens[at].text == "do" else end) - 1]
    return (Edit(first.start, first.start, f"{{ {CALL} "), Edit(last.end, last.end, " }"))
