"""Pointers to variables of a phase."""

from typing import AbstractSet, Dict, List

from .. import expressions as ex
from ..expressions import ASSIGNMENTS, Tokens
from ..types import declarations
from ..waits import Unfit, semicolon


def check(tokens: Tokens, kinds: Dict[str, List[str]], shared: Tokens, lasting: AbstractSet[str]) -> None:
    """That nothing points at a variable of one phase, since it is gone in the next.

    Args:
        kinds: the type of each variable of the body.
        shared: the declarations of shared memory.
        lasting: arrays that each thread has for as long as they are in scope.

    Raises:
        Unfit: something may.
    """
    declared = [one.name for one in declarations(tokens)]
    kinds = {name: kind for name, kind in kinds.items() if not (name in lasting and declared.count(name) == 1)}
    names = {name for name, kind in kinds.items() if "*" in kind}
    others = kinds.keys() - names
    objects = {name for name in others if not ex.is_value([part for part in kinds[name] if part != "const"])}
    for at, of in ex.addresses(tokens):
        name = tokens[of].text
        # The address of an element that a pointer leads to is none of the pointer's.
        leads = name in names and _text(tokens, of + 1) in ("[", "->")
        if name in kinds and not leads and _text(tokens, ex.opening(tokens, at) - 1) not in ex.RESULTS:
            raise Unfit(f"the address of '{name}' is taken", tokens[of])
    for at, token in enumerate(tokens):
        if token.text in names:
            behind = at + 1
            while _text(tokens, behind) == ")":
                behind += 1
            value = tokens[behind : semicolon(tokens, behind)] if _text(tokens, behind) in ASSIGNMENTS else []
            if objects.intersection(ex.names(value)):
                raise Unfit(f"the pointer '{token.text}' may point at a variable of the body", token)
        # Arrays of the body, where they stand for their first element's address; objects that may hold one.
        arrays = token.text in objects and not kinds[token.text] and _text(tokens, at - 1) != "."
        if arrays and _text(tokens, at + 1)[:1] not in tuple("[.({="):
            raise Unfit(f"the array '{token.text}' of the body is handed on", token)
        if token.text == "*" and _text(tokens, at + 1) == "*":
            raise Unfit("there is a pointer to a pointer", token)
    brackets = 0
    for token in shared:
        brackets += (token.text == "[") - (token.text == "]")
        if token.text == "*" and not brackets:
            raise Unfit("shared memory holds pointers", token)


def check_parameter(tokens: Tokens, name: str) -> None:
    """That no value of the device's memory is taken for a constant: `(a) * p` is taken for `(A) *p`.

    Raises:
        Unfit: a pointer among the kernel's parameters may be followed so.
    """
    for at in range(2, len(tokens)):
        may_cast = ex.texts(tokens[at - 2 : at + 1]) == [")", "*", name] and ex.may_be_type(tokens, at - 2)
        if may_cast and _text(tokens, at + 1) not in ASSIGNMENTS:
            raise Unfit(f"`(…) * {name}` may read memory", tokens[at])


def _text(tokens: Tokens, at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""
