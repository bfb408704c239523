"""Volatile memory by which the lanes of a warp tell each other numbers without a barrier.

Programs from the time when the lanes of a warp went in step add up a warp's numbers with nothing between the steps:

    volatile int* s = sums;  s[lane] += s[lane + 16];  s[lane] += s[lane + 8];  ...

`volatile` keeps compilers from holding the numbers in registers. Hardware that keeps no step goes on in step through
such code where nothing parts the lanes, so the programs are right there. Here a thread runs until it waits. So each
statement that stores to an element of such memory is written out as the steps of a warp: all lanes work out the value,
then all store, then all go on. Functions with a barrier for warps say themselves where lanes wait, and stay as they
are; so do those that only write to the memory, or only read it. In a text with loops that go round until somebody has
stored, or with locks, nothing is changed: the lane that ends such a loop would wait there for those in it.
"""

from typing import Dict, Iterator, List, Optional, Set, Tuple

from .. import expressions as ex
from ..declarations import at_namespace_scope, is_device_body
from ..expressions import Tokens
from ..source import WORD, Edit, Source, word_set
from ..waits import declared_name, is_qualifier

STEP = "__syncwarp(__activemask());"
BARRIERS_OF_WARPS = word_set("__syncwarp tiled_partition coalesced_threads thread_block_tile coalesced_group")
# What threads wait for each other by, besides loops over volatile memory.
LOCKS = sorted(
    word_set(
        "atomicCAS atomicExch atomic_ref compare_exchange_strong compare_exchange_weak test_and_set acquire try_wait"
    )
)


def written_out(source: Source) -> Source:
    """The text with the steps of warps in it; the other passes read the changed text."""
    found = _functions(source)
    if not found or any(not source.is_system(use.start) for word in LOCKS for use in source.find(word)):
        return source
    edits: List[Edit] = []
    for body, names in found.items():
        tokens = list(source.tokens(body, source.closing(body) + 1))
        if _spins(tokens, names):
            return source
        if BARRIERS_OF_WARPS.isdisjoint(ex.texts(tokens)):
            for name in names:
                edits += _steps(source, tokens, name)
    return Source(source.edited(edits)) if edits else source


def _functions(source: Source) -> Dict[int, Set[str]]:
    """The bodies of device functions, with the names of what is volatile in each."""
    outside: Set[str] = set()
    found: Dict[int, Set[str]] = {}
    for token in source.find("volatile"):
        name = declared_name(source, token) if is_qualifier(source, token) else ""
        body = _device_body(source, token.start) if name else None
        if body is not None:
            found.setdefault(body, set()).add(name)
        elif name and at_namespace_scope(source, token.start):
            outside.add(name)
    for name in outside:
        for use in source.find(name):
            body = None if source.is_system(use.start) else _device_body(source, use.start)
            if body is not None:
                found.setdefault(body, set()).add(name)
    return found


def _device_body(source: Source, place: int) -> Optional[int]:
    """The brace of the device function that the place is in, or among whose parameters it is."""
    braces: List[int] = []
    brace = source.enclosing_brace(place)
    while brace >= 0:
        braces.append(brace)
        brace = source.enclosing_brace(brace)
    found = next((brace for brace in reversed(braces) if is_device_body(source, brace)), None)
    if found is not None:
        return found
    depth = 0
    for token in source.tokens(place):
        depth += (token.text == "(") - (token.text == ")")
        if token.text in (";", "}", ""):
            return None
        if token.text == "{":
            return token.start if depth < 0 and is_device_body(source, token.start) else None
    return None


def _spins(tokens: Tokens, names: Set[str]) -> bool:
    """Whether a loop may wait for a store: what it asks is in such memory, or it asks nothing."""
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("while", "for") or ex.texts(tokens[at + 1 : at + 2]) != ["("]:
            continue
        asked = ex.texts(tokens[at + 2 : ex.closing(tokens, at + 1)])
        if not names.isdisjoint(asked) or asked in (["true"], ["1"], [";", ";"]):
            return True
    return False


def _steps(source: Source, tokens: Tokens, name: str) -> Iterator[Edit]:
    stores = [store for at in range(len(tokens)) if (store := _store(source, tokens, at, name)) is not None]
    written = {at for at, plain, _ in stores if plain}
    # Nobody waits for what is only written.
    if any(token.text == name and _is_element(tokens, at) and at not in written for at, token in enumerate(tokens)):
        yield from (edit for _, _, edit in stores)


def _is_element(tokens: Tokens, at: int) -> bool:
    return tokens[at].kind == WORD and ex.texts(tokens[at + 1 : at + 2]) == ["["]


def _store(source: Source, tokens: Tokens, at: int, name: str) -> Optional[Tuple[int, bool, Edit]]:
    """The statement that begins there, if it stores to an element of the memory: where, whether it is a plain
    assignment, and its text in steps."""
    if tokens[at].text != name or not _is_element(tokens, at) or not _begins_statement(tokens, at):
        return None
    end = ex.closing(tokens, at + 1) + 1
    while ex.texts(tokens[end : end + 1]) == ["["]:
        end = ex.closing(tokens, end) + 1
    sign = tokens[end].text
    last = next((i for i in range(end, len(tokens)) if tokens[i].text == ";"), end)
    braces = [text for text in ex.texts(tokens[end:last]) if text in ("{", "}")]
    if sign not in ex.ASSIGNMENTS or braces.count("{") != braces.count("}"):
        return None
    # What stands behind a comma operator comes behind the store.
    assigned = _first_operand(tokens[end + 1 : last])
    behind = end + 1 + len(assigned)
    target, value = (source.flat(tokens[a].start, tokens[b - 1].end) for a, b in ((at, end), (end + 1, behind)))
    further = f" {source.flat(tokens[behind].end, tokens[last].end)}" if behind < last else ""
    if sign != "=" and not ex.STEPS.isdisjoint(ex.texts(tokens[at:end])):
        return None
    whole = value if sign == "=" else f"{target} {sign[:-1]} ({value})"
    lines = source.line_ends(tokens[at].start, tokens[last].end)
    text = f"{{ const auto __mxmaca_step = {whole}; {STEP} {target} = __mxmaca_step; {STEP}{further} }}{lines}"
    if sign == "=" and len(assigned) == 1:
        # A constant, or a variable of the lane.
        text = f"{{ {STEP} {target} = {value}; {STEP}{further} }}{lines}"
    return at, sign == "=", Edit(tokens[at].start, tokens[last].end, text)


def _first_operand(tokens: Tokens) -> Tokens:
    """Of operands with comma operators between them.

    Commas in brackets are none, and those of a template's arguments: a `<` behind a name comes before them, a `>`
    before a bracket or a scope behind, and nothing is changed in between.
    """
    parts = ex.split(tokens)
    first = parts[0]
    behind = tokens[len(first) :]
    opens = any(token.text == "<" and first[at - 1].kind == WORD for at, token in enumerate(first) if at)
    closes = any(
        one.text in (">", ">>") and following.text in ("(", "{", "::") for one, following in zip(behind, behind[1:])
    )
    changes = ex.has(behind, *ex.ASSIGNMENTS, *ex.STEPS)
    return tokens if opens and closes and not changes else first


def _begins_statement(tokens: Tokens, at: int) -> bool:
    before = tokens[at - 1].text if at else "{"
    if before in ("{", "}", ";", "else", "do"):
        return True
    if before != ")":
        return False
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += (tokens[place].text == ")") - (tokens[place].text == "(")
        if depth == 0:
            return place > 0 and tokens[place - 1].text in ex.CONDITIONS
    return False
