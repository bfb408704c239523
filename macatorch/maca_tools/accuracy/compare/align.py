"""Pairs the operators of two records, also where one side has an operator more."""

import difflib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from maca_tools.accuracy.data.record_dir import Entry

# Sequences are matched window by window: matching is quadratic in the worst case.
_WINDOW = 2000


class Pair(NamedTuple):
    """One operator of both sides, or of one side alone."""

    side0: Optional[Entry]
    side1: Optional[Entry]


def pair(side0: Sequence[Entry], side1: Sequence[Entry]) -> List[Pair]:
    """All operators in the order of side 0; those of side 1 alone stand where they ran."""
    if [entry.name for entry in side0] == [entry.name for entry in side1]:
        return [Pair(a, b) for a, b in zip(side0, side1)]
    forward0 = [entry for entry in side0 if entry.name.way == "fwd"]
    forward1 = [entry for entry in side1 if entry.name.way == "fwd"]
    partner: Dict[int, Entry] = {}
    number: Dict[Tuple[int, int], Tuple[int, int]] = {}
    for a, b in _match(forward0, forward1):
        partner[a.position] = b
        number[a.name.number, a.name.inner] = (b.name.number, b.name.inner)
    backward1 = {
        (entry.name.api, entry.name.number, entry.name.inner, entry.name.again): entry
        for entry in side1
        if entry.name.way == "bwd"
    }
    left0: List[Entry] = []
    used = {entry.position for entry in partner.values()}
    for entry in side0:
        if entry.name.way != "bwd":
            continue
        there = number.get((entry.name.number, entry.name.inner))
        other = backward1.get((entry.name.api, *there, entry.name.again)) if there else None
        if other is None:
            if there is None:
                left0.append(entry)
            continue
        partner[entry.position] = other
        used.add(other.position)
    left1 = [entry for entry in side1 if entry.name.way == "bwd" and entry.position not in used]
    for a, b in _match(left0, left1):
        partner[a.position] = b
        used.add(b.position)
    # Side 1's own operators go before the partner of the next operator of side 1 that has one.
    result: List[Pair] = []
    back = {b.position: position for position, b in partner.items()}
    before: Dict[int, List[Entry]] = {}
    following = len(side0)
    for entry in reversed(side1):
        if entry.position in back:
            following = back[entry.position]
        else:
            before.setdefault(following, []).insert(0, entry)
    for entry in side0:
        result += [Pair(None, other) for other in before.get(entry.position, [])]
        result.append(Pair(entry, partner.get(entry.position)))
    result += [Pair(None, other) for other in before.get(len(side0), [])]
    return result


def _key(entry: Entry) -> Tuple[Any, ...]:
    # The signature holds dtypes too: an operator in another precision still is the same operator.
    shapes = tuple((part, tuple(shape for _, shape in tensors)) for part, tensors in entry.signature)
    return (entry.name.api, entry.name.way, shapes)


def _match(side0: Sequence[Entry], side1: Sequence[Entry]) -> List[Tuple[Entry, Entry]]:
    keys0 = [_key(entry) for entry in side0]
    keys1 = [_key(entry) for entry in side1]
    found: List[Tuple[Entry, Entry]] = []
    at0 = at1 = 0
    while at0 < len(keys0) and at1 < len(keys1):
        if keys0[at0] == keys1[at1] and (keys0[at0 + 1 : at0 + 2] == keys1[at1 + 1 : at1 + 2]):
            found.append((side0[at0], side1[at1]))
            at0, at1 = at0 + 1, at1 + 1
            continue
        window0, window1 = keys0[at0 : at0 + _WINDOW], keys1[at1 : at1 + _WINDOW]
        blocks = [
            block
            for block in difflib.SequenceMatcher(None, window0, window1, autojunk=False).get_matching_blocks()
            if block.size
        ]
        if not blocks:
            at0, at1 = at0 + len(window0), at1 + len(window1)
            continue
        # Only up to the middle of the window unless it reaches the end: what follows may pull the match elsewhere.
        whole = at0 + _WINDOW >= len(keys0) and at1 + _WINDOW >= len(keys1)
        taken = [block for block in blocks if whole or block.a < _WINDOW // 2] or blocks[:1]
        for block in taken:
            found += [(side0[at0 + block.a + k], side1[at1 + block.b + k]) for k in range(block.size)]
        end = taken[-1]
        at0, at1 = at0 + end.a + end.size, at1 + end.b + end.size
        if whole:
            break
    return found
