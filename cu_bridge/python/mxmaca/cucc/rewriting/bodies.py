"""The device pass without the host's function bodies.

Note: dropped bodies
~~~~~~~~~~~~~~~~~~~~
A CUDA file is compiled twice, and torch's headers are nearly all of either text. What they define inline is for the
host: no kernel reaches it, yet the compiler reads it and instantiates the templates in it. So the device pass sees only
the declarations of torch's plain inline functions, and an empty body for the function that registers a module's
bindings.

Kept are templates (they may launch kernels), constexpr functions and those with a deduced type (their bodies are part
of their meaning), and all that is marked for the device. That a kernel reaches a dropped body after all, or that only a
dropped body instantiates a kernel, shows in the object files (objects.lacks_bodies); then the pass runs again on the
whole text. So does one that fails.
"""

import re
from typing import Dict, List, Tuple

from .source import DIRECTIVE, Edit, Source, Unclear

# Headers whose inline functions are the host's; those under cuda/ may launch.
HOST_HEADERS = re.compile(r"/(?:lib)?torch/include/(?!.*(?:/cuda/|\.cuh$))")
# The functions that PYBIND11_MODULE and TORCH_LIBRARY define, in any file.
REGISTRATION = re.compile(
    r"\bvoid\s+(?:pybind11_init_|TORCH_LIBRARY_(?:FRAGMENT_|IMPL_)?init_)\w+\s*\([^()]*?(\w+)\s*\)\s*$"
)
KEPT = re.compile(
    r"\b(?:template|constexpr|consteval|auto|decltype|friend|static|extern|always_inline|__always_inline__|operator|asm|try|requires"
    r"|__mxmaca_\w+|namespace|class|struct|union|enum)\b|="
)
NAMESPACE = re.compile(r'\bnamespace\b|\bextern\s*"C\+\+"\s*$')
LINKAGE = re.compile(r'\bextern\s*"C"\s*$')
CLASS = re.compile(r"\b(?:class|struct|union)\b")
ATTRIBUTES = re.compile(r"(?:__attribute__|__attribute|alignas|decltype|__declspec)\s*$")
BEHIND = re.compile(r"(?:\s|\bconst\b|\bnoexcept\b|\boverride\b|\bfinal\b|\bvolatile\b|&)*")
QUALIFIED = re.compile(r"::\s*~?\w+\s*$")


def drop(source: Source) -> List[Edit]:
    """The edits that leave the host's bodies out of the device pass. No line moves."""
    try:
        return Scan(source).edits
    except Unclear:
        return []


class Scan:
    """The structure of a text down to the functions' bodies."""

    def __init__(self, source: Source) -> None:
        self.source, self.text = source, source.text
        self.edits: List[Edit] = []
        self.tokens, self.closing = source.structure()
        self.hosts: Dict[str, bool] = {}  # by file
        self._scan()

    def _scan(self) -> None:
        text, tokens, closing = self.text, self.tokens, self.closing
        index, start = 0, 0  # start: of the statement
        parameters = (-1, -1)  # the last brackets at the statement's own level that may be a function's parameters
        while index < len(tokens):
            kind, place = tokens[index]
            if kind in ";}":
                start, parameters = place + 1, (-1, -1)
            elif kind == "(":
                end = closing[index]
                # The first ones are the parameters; behind a constructor's come its members' values.
                if parameters[0] < 0 and not ATTRIBUTES.search(text, max(start, place - 20), place):
                    parameters = (place, tokens[end][1])
                index = end
            else:
                index, ended = self._brace(index, start, parameters)
                if ended:
                    start, parameters = tokens[index][1] + 1, (-1, -1)
            index += 1

    def _brace(self, index: int, start: int, parameters: Tuple[int, int]) -> Tuple[int, bool]:
        """The token to go on behind of, and whether a statement ends with it."""
        text, close = self.text, self.closing[index]
        place, end = self.tokens[index][1], self.tokens[close][1]
        if parameters[0] < 0:
            head = text[max(start, place - 2000) : place]
            if LINKAGE.search(head):
                return close, True  # names that do not say what they are would not be missed
            if NAMESPACE.search(head) or (CLASS.search(head) and not re.search(r"\benum\b|=", _bare(head))):
                return index, True  # go on within it
            return close, False
        behind = text[parameters[1] + 1 : place]
        initialised = re.match(r"(?:\s|\bnoexcept\b)*:(?!:)", behind) is not None
        if initialised and re.search(r"[\w>]\s*$", behind):
            return close, False  # a member's value
        module = REGISTRATION.search(text[start:place]) if place - start < 400 else None
        if module is not None:
            self._cut(place, end + 1, f"{{ (void){module.group(1)}; }}")
        elif self._is_host(start) and (initialised or BEHIND.fullmatch(behind)):
            self._drop(start, parameters, place, end)
        return close, True

    def _drop(self, start: int, parameters: Tuple[int, int], place: int, end: int) -> None:
        text = self.text
        # Line markers stand within declarations where macros were; here they are spaces.
        head = DIRECTIVE.sub(lambda match: " " * len(match.group()), text[start : parameters[0]])
        if KEPT.search(head):
            return
        if QUALIFIED.search(head):
            # A member of a class that is defined outside of it.
            self._cut(start + len(head) - len(head.lstrip()), end + 1, "")
            return
        # What is inline must be defined.
        for word in re.finditer(r"\b(?:__inline__|inline)\b", head):
            self._cut(start + word.start(), start + word.end(), "")
        values = re.compile(r"(?:\s|\bnoexcept\b)*(?=:(?!:))").match(text, parameters[1] + 1)
        self._cut(values.end() if values else place, end + 1, ";")

    def _cut(self, start: int, end: int, text: str) -> None:
        self.edits.append(Edit(start, end, text + self.source.line_ends(start, end)))

    def _is_host(self, place: int) -> bool:
        file = self.source.line(place)[0]
        if file not in self.hosts:
            self.hosts[file] = HOST_HEADERS.search(file) is not None
        return self.hosts[file]


def _bare(head: str) -> str:
    """A head without its template parameters."""
    match = re.match(r"\s*template\s*<", head)
    if not match:
        return head
    depth = 0
    for place in range(match.end() - 1, len(head)):
        depth += (head[place] == "<") - (head[place] == ">")
        if depth == 0:
            return _bare(head[place + 1 :])
    return head
