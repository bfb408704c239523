"""Where statements end, and whether a loop may wait for another thread by an atomic function."""

from typing import Iterator, Optional

from . import expressions as ex
from .expressions import Tokens
from .source import CLOSERS, WORD, Token
from .waits import Unfit

# Programs wait by them for other threads of their block: for a lock, for a flag.
SPINNING = ("atomicCAS", "atomicExch")


def semicolon(tokens: Tokens, at: int) -> int:
    """The semicolon behind, outside of brackets."""
    while at < len(tokens) and tokens[at].text != ";":
        at = ex.closing(tokens, at) + 1 if tokens[at].text in CLOSERS else at + 1
    return at


def statement_end(tokens: Tokens, at: int) -> int:
    """Where the statement that begins there is over.

    Raises:
        Unfit: it is not understood.
    """
    word = tokens[at].text if at < len(tokens) else ""
    if word == "{":
        return ex.closing(tokens, at) + 1
    if word == "do":
        return semicolon(tokens, statement_end(tokens, at + 1)) + 1
    if word not in ("if", "for", "while"):
        return semicolon(tokens, at) + 1
    if ex.texts(tokens[at + 1 : at + 2]) != ["("]:
        raise Unfit(f"'{word}' without a condition in parentheses", tokens[at])
    end = statement_end(tokens, ex.closing(tokens, at + 1) + 1)
    return statement_end(tokens, end + 1) if word == "if" and ex.texts(tokens[end : end + 1]) == ["else"] else end


def spin(tokens: Tokens) -> Optional[Token]:
    """The first loop that may go round until another thread of the block has done something, by SPINNING.

    Not among them are loops that count to an end, and those that try an exchange again with the value that they found.
    """
    return next(_spins(tokens), None) if ex.has(tokens, *SPINNING) else None


def _spins(tokens: Tokens) -> Iterator[Token]:
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("for", "while", "do"):
            continue
        loop = tokens[at : statement_end(tokens, at)]
        if not ex.has(loop, *SPINNING):
            continue
        if not (counts(loop) if token.text == "for" else token.text == "do" and _tries_again(loop)):
            yield token


def counts(loop: Tokens) -> bool:
    """Whether a `for` ends whatever memory holds: nothing in its body changes what its end depends on."""
    close = ex.closing(loop, 1)
    header, body = loop[2:close], loop[close + 1 :]
    pieces = ex.split(header, ";")
    if len(pieces) == 1:
        return True
    if len(pieces) != 3 or not pieces[1] or not pieces[2] or ex.has(header, *SPINNING):
        return False
    deciding = ex.names(pieces[1]) | ex.names(pieces[2])
    return not any(ex.modified(name, body) for name in deciding)


def _tries_again(loop: Tokens) -> bool:
    """Whether it is `do { a = b; b = atomicCAS(p, a, …); } while (a != b);`: it is over unless p has changed."""
    words = ex.texts(loop)
    at = next(place for place, word in enumerate(words) if word in SPINNING)
    arguments = ex.split(loop[at + 2 : ex.closing(loop, at + 1)])
    if words[at] != "atomicCAS" or words[at - 1] != "=" or len(arguments) != 3 or len(arguments[1]) != 1:
        return False
    found, assumed = words[at - 2], arguments[1][0].text
    if any(word in SPINNING for word in words[at + 1 :]) or ex.has(loop, "continue"):
        return False
    takes = any(words[start : start + 4] == [assumed, "=", found, ";"] for start in range(2, at))
    ends = [["while", "(", a, "!=", b, ")", ";"] for a, b in ((found, assumed), (assumed, found))]
    return takes and words[-7:] in ends
