"""Atomic functions on shared memory become those of the block's scope.

Nobody but the block comes to its shared memory, and its threads run on one processor one after the other, so such a
function needs no bus lock. Taken is what the text shows: `atomicAdd(&x[…], …)` of an array of numbers that is declared
`__shared__` around it, and whose name nothing else in that scope may have.
"""

from typing import AbstractSet, Iterator, List, Set, Tuple

from . import expressions as ex
from .declarations import PREFIX, at_namespace_scope
from .expressions import Tokens
from .source import WORD, Edit, Source, word_set

# The functions that are there in the block's scope, by the type of the array. Programs overload the names for others.
OF_INTEGERS = word_set("atomicAdd atomicSub atomicAnd atomicOr atomicXor atomicMin atomicMax atomicExch atomicCAS")
OF_FLOATS = frozenset(["atomicAdd"])
FUNCTIONS = {
    **dict.fromkeys(("int", "int32_t"), OF_INTEGERS),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), OF_INTEGERS | {"atomicInc", "atomicDec"}),
    **dict.fromkeys(("float", "double"), OF_FLOATS),
}
NOT_IN_FRONT = word_set("return else do case throw")


def edits(source: Source) -> Iterator[Edit]:
    for token in source.find(PREFIX + "shared__"):
        if at_namespace_scope(source, token.start):
            continue
        stop = source.declaration_end(token.end)
        functions, names = _arrays(list(source.tokens(token.end, stop)))
        if not names or source.text.find("atomic", stop) < 0:
            continue
        scope = list(source.tokens(stop, source.closing(source.enclosing_brace(token.start))))
        for name in names:
            if not _is_hidden(name, scope):
                yield from _calls(name, functions, scope)


def _arrays(declared: Tokens) -> Tuple[AbstractSet[str], List[str]]:
    """The functions of an array's type, and the names that the declaration gives to arrays of it."""
    outer = [token for at, token in enumerate(declared) if not ex.in_brackets(declared, at) and token.text != "]"]
    parts = ex.split([token for token in outer if token.text != "["])
    if not all(all(token.kind == WORD for token in part) for part in parts):
        return frozenset(), []
    functions = FUNCTIONS.get(" ".join(ex.without(parts[0][:-1], "extern", "static")), frozenset())
    if not functions or any(len(part) != 1 for part in parts[1:]):
        return frozenset(), []
    found: Set[str] = {part[-1].text for part in parts}
    return functions, [name for at in range(len(declared)) for name in found if _is_array(declared, at, name)]


def _is_array(declared: Tokens, at: int, name: str) -> bool:
    outside = not ex.in_brackets(declared, at)
    return declared[at].text == name and outside and ex.texts(declared[at + 1 : at + 2]) == ["["]


def _is_hidden(name: str, scope: Tokens) -> bool:
    """Whether another variable may have the name: where it stands behind a type, or behind what may be one's end."""
    for at, token in enumerate(scope):
        if token.text != name or at == 0:
            continue
        before = scope[at - 1]
        if before.kind == WORD and before.text not in NOT_IN_FRONT:
            return True
        if before.text in ("*", "&", "&&", ">") and not ex.is_unary(scope, at - 1):
            return True
    return False


def _calls(name: str, functions: AbstractSet[str], scope: Tokens) -> Iterator[Edit]:
    for at, token in enumerate(scope):
        if token.text not in functions or ex.texts(scope[at + 1 : at + 5]) != ["(", "&", name, "["]:
            continue
        end = at + 4
        while end < len(scope) and scope[end].text == "[":
            end = ex.closing(scope, end) + 1
        if ex.texts(scope[end : end + 1]) == [","] and scope[at - 1].text not in ("::", ".", "->"):
            yield Edit(token.end, token.end, "_block")
