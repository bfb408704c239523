"""Cooperative groups: variables that stand for the whole block, and barriers that are called by them."""

from typing import List, Set

from . import expressions as ex
from .expressions import Tokens
from .source import OTHER, WORD, Token

BLOCK = "this_thread_block"


def blocks(tokens: Tokens) -> Set[str]:
    """The variables whose declarations end with `= cooperative_groups::this_thread_block();`."""
    found = set()
    for at, token in enumerate(tokens):
        if token.text != BLOCK or ex.texts(tokens[at + 1 : at + 4]) != ["(", ")", ";"]:
            continue
        while at >= 2 and tokens[at - 1].text == "::":
            at -= 2
        if at >= 3 and tokens[at - 1].text == "=" and tokens[at - 3].text in ("thread_block", "auto", "const"):
            found.add(tokens[at - 2].text)
    return found


def with_barriers(tokens: Tokens, groups: Set[str]) -> List[Token]:
    """The tokens, with `__syncthreads();` for `group.sync();` and `sync(group);`."""
    made: List[Token] = []
    at = 0
    while at < len(tokens):
        end = _sync_end(tokens, at, groups)
        if end == at:
            made.append(tokens[at])
            at += 1
            continue
        while len(made) >= 2 and made[-1].text == "::" and made[-2].kind == WORD:
            del made[-2:]
        # Each stands at the place of the call: what is said of it names the line.
        start, stop = tokens[at].start, tokens[end - 1].end
        made.append(Token("__syncthreads", start, stop, WORD))
        made += [Token(text, start, stop, OTHER) for text in "();"]
        at = end
    return made


def _sync_end(tokens: Tokens, at: int, groups: Set[str]) -> int:
    """The end of a barrier that begins there, or that place."""
    words = ex.texts(tokens[at : at + 6])
    if words[1:] == [".", "sync", "(", ")", ";"] and words[0] in groups:
        return at + 6
    if words[:2] == ["sync", "("] and words[3:5] == [")", ";"] and words[2] in groups:
        return at + 5
    return at
