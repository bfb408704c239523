"""Names that programs for NVRTC put into namespace std.

NVRTC has no C++ library of the host's, so programs fill namespace std by themselves: `using cuda::std::tuple;`. Here
the host's library is there, as the SDK's headers are written over it. Where it has the name, it keeps it.
"""

import re
from typing import AbstractSet, List

from ..declarations import at_namespace_scope
from ..source import Edit, Source
from .names import namespaces_around

USING = re.compile(r"\busing\s+(?:::\s*)?(?P<from>\w+(?:\s*::\s*\w+)*)\s*::\s*(?P<name>\w+)\s*;")
STANDARD = ("std",)
# Functions of this name are told apart by what they are given: those of the program are wanted as well.
OVERLOADED = frozenset(["get"])


def edits(source: Source) -> List[Edit]:
    """Leaves out the declarations of names that namespace std has."""
    found = []
    matches = list(USING.finditer(source.text))
    # What one such declaration has brought in, another one may add to.
    brought = {match.start("name") for match in matches}
    for match in matches:
        name, place = match.group("name"), match.start()
        if match.group("from") == "std" or name in OVERLOADED or not source.is_code(place):
            continue
        if not at_namespace_scope(source, place):
            continue
        if namespaces_around(source, source.enclosing_brace(place)) == STANDARD and _has(source, name, place, brought):
            found.append(Edit(place, match.end(), re.sub(r"[^\n]", " ", match.group())))
    return found


def _has(source: Source, name: str, end: int, brought: AbstractSet[int]) -> bool:
    """Whether the name stands in namespace std before the place, outside of classes, functions and `brought`."""
    for token in source.find(name):
        if token.start >= end:
            return False
        if token.start in brought or not at_namespace_scope(source, token.start):
            continue
        if namespaces_around(source, source.enclosing_brace(token.start)) == STANDARD:
            return True
    return False
