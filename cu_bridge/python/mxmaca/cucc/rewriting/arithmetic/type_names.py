"""Types that a program names itself and that may be integers: parameters of its templates, and aliases."""

import functools
import re
from typing import Dict, FrozenSet, List

from ..source import Source
from .places import is_own

PARTS = "(?:unsigned|signed|long|short|int|char)"
NAMES = (
    "(?:s?size_t|ptrdiff_t|u?int(?:ptr|max)_t|u?int(?:_least|_fast)?(?:8|16|32|64)_t|u_int(?:8|16|32|64)_t"
    "|uint|ulong|ushort|uchar|u?longlong)"
)
PARAMETER = re.compile(r"\b(?:typename|class)\s+(\w+)\s*(?=[,>=])")
ALIAS = re.compile(
    r"\busing\s+(?P<using>\w+)\s*=(?P<what>[^;{}()*&]*);|\btypedef\b(?P<type>[^;{}()*&]*)\b(?P<name>\w+)\s*;"
)
WORD = re.compile(r"\w+")
INTEGER = re.compile(rf"(?:{PARTS}|{NAMES})\Z")
BESIDE = frozenset(["const", "volatile", "std", "cuda"])


@functools.lru_cache(maxsize=2)
def type_names(source: Source) -> FrozenSet[str]:
    """The names of all template parameters that are types, and of all aliases of integers or of what depends on a
    template's arguments, wherever they are declared outside of the system's headers and the SDK's."""
    found = {match.group(1) for match in PARAMETER.finditer(source.text) if _counts(source, match.start())}
    aliases: Dict[str, List[str]] = {}
    for match in ALIAS.finditer(source.text):
        if _counts(source, match.start()):
            words = WORD.findall(match.group("what") or match.group("type") or "")
            aliases[match.group("using") or match.group("name")] = words
    while True:
        # One alias may be another one's.
        more = {name for name, words in aliases.items() if name not in found and _may_be_integer(words, found)}
        if not more:
            return frozenset(found)
        found |= more


def _counts(source: Source, place: int) -> bool:
    return not source.is_system(place) and source.is_code(place) and not is_own(source.line(place)[0])


def _may_be_integer(words: List[str], names: "set[str]") -> bool:
    if "typename" in words:
        return True
    return bool(words) and all(word in BESIDE or word in names or INTEGER.match(word) for word in words)
