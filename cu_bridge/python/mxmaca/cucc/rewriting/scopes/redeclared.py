"""Members of a class that have the name of a type around it, and are declared by that type.

nvcc's front end hands the host compiler types with all of their scopes. So `using Scan = Scan<int>` in a class, or a
function `Kind Kind()`, compile with it, where g++ by itself says that the name changes its meaning within the class.
"""

import re
from typing import List, Optional, Set

from ...errors import CuccError
from ..declarations import at_namespace_scope
from ..source import OPENERS, Edit, Source
from .names import DECLARING, Path, declares_type, namespaces_around

ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:(?:typename|class|struct)\s+)?(?P<type>\1)\b(?!\s*::)")
FUNCTION = re.compile(r"\b(?P<type>(?!long\b)[A-Za-z_]\w*)\s+(?P=type)\s*\(")


def edits(source: Source) -> List[Edit]:
    """The scopes in front of such types. One whose declaration is in doubt stays as it is."""
    found = []
    for pattern in (ALIAS, FUNCTION):
        for match in pattern.finditer(source.text):
            place = match.start("type")
            if source.before(place).text == "::" or not source.is_code(place) or at_namespace_scope(source, place):
                continue
            path = _namespaces_of(source, match.group("type"), match.start())
            if path is not None:
                found.append(Edit(place, place, "::" + "".join(f"{name}::" for name in path)))
    return found


def _namespaces_of(source: Source, name: str, place: int) -> Optional[Path]:
    """The namespaces of the type that a name stands for in a class; None if it may be a type of a class."""
    classes = []
    brace = source.enclosing_brace(place)
    while not at_namespace_scope(source, brace + 1):
        classes.append(brace)
        brace = source.enclosing_brace(brace)
    based = any(DECLARING.isdisjoint(_head(source, one)) for one in classes)
    own = namespaces_around(source, brace)
    declared: Set[Path] = set()
    for token in source.find(name):
        if token.start >= place:
            break
        if not declares_type(source, token.start, token.end):
            continue
        around = source.enclosing_brace(token.start)
        if at_namespace_scope(source, token.start):
            declared.add(namespaces_around(source, around))
        elif based or around in classes:
            return None
    return next((own[:count] for count in range(len(own), -1, -1) if own[:count] in declared), None)


def _head(source: Source, brace: int) -> Set[str]:
    """The words in front of a class's brace. Of one with bases they are the bases', which may have types of their own.

    Template arguments and what stands in brackets are left out. There are none where the head is no class's.
    """
    words: Set[str] = set()
    token = source.before(brace)
    while token.text not in ("", ";", "{", "}", ":"):
        place = token.start
        if token.text == ">":
            try:
                place = source.opening_angle(place)
            except CuccError:  # an operator
                return set()
        elif token.text in OPENERS:
            place = source.opening(place)
        words.add(token.text)
        token = source.before(place)
        if token.text == "template":
            break
    return words
