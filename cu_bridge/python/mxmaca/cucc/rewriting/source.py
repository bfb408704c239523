"""Preprocessed C++ as tokens, brackets, line markers and declarations.

Note: reading no more than is wanted
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
With torch's headers a text has millions of tokens, of which the rewriting looks at some thousands. So there is no list
of them all: `find` searches for a word, and from there `token` reads forward and `before` backward. A place is an index
into the text; where a place is asked for, it lies between two tokens or where one begins.
"""

import bisect
import re
from typing import Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from ..errors import CuccError

WORD, NUMBER, LITERAL, OTHER = "word", "number", "literal", "other"
# `<` and `>` stand alone, so that they can be brackets of template arguments.
TOKEN = re.compile(
    r"""(?P<literal>(?:u8|[uUL])?(?:R"([^()\\\s]{0,16})\((?s:.*?)\)\2"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'))"""
    r"""|(?P<word>[A-Za-z_$][\w$]*)"""
    r"""|(?P<number>\.?[0-9](?:[eEpP][-+]|'?[\w.])*)"""
    r"""|(?P<other><=>|<<=|>>=|->|\+\+|--|&&|\|\||::|\.\.\.|[-+*/%&|^=!<>]=|.)"""
)
SPACE = re.compile(r"(?:\s+|^#[^\n]*)*", re.MULTILINE)
DIRECTIVE = re.compile(r"^#[^\n]*$", re.MULTILINE)
LINE_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"([^\n]*)')
# Each alternative begins with a character of its own, which makes the search fast.
BESIDE = r'|"(?:[^"\\\n]|\\.)*"|\'(?<![0-9a-fA-F]\')(?:[^\'\\\n]|\\.)+\'|\n#[^\n]*'
STRUCTURE, BRACES = re.compile("[{}();]" + BESIDE), re.compile("[{}]" + BESIDE)
CLOSERS = {"(": ")", "[": "]", "{": "}"}
OPENERS = {closer: opener for opener, closer in CLOSERS.items()}


def word_set(text: str) -> FrozenSet[str]:
    """The words of a text."""
    return frozenset(text.split())


class Token(NamedTuple):
    """A word, number or literal, or an operator, and where it stands."""

    text: str
    start: int
    end: int
    kind: str


class Marker(NamedTuple):
    """A line marker: what follows it is this line of that file."""

    start: int
    end: int
    line: int
    file: str
    system: bool  # a system header


class Edit(NamedTuple):
    """New text for what stands between two places."""

    start: int
    end: int
    text: str


class Unclear(Exception):
    """The brackets of a text do not fit each other."""


class Source:
    """One preprocessed text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines: Dict[int, Tuple[List[Token], List[int]]] = {}
        self._partners: Dict[int, int] = {}
        self._markers: Optional[List[Marker]] = None
        self._raw: List[Tuple[int, int]] = []
        self._braces: Optional[Tuple[List[int], List[int]]] = None
        # Of braces that were asked for: whether each is a namespace's (declarations.py).
        self.namespace_braces: Dict[int, bool] = {-1: True}
        self.constants: Dict[str, str] = {}  # numbers that names stand for (waits.py)
        self.overloaded: Dict[str, bool] = {}  # names of CUDA's that the program may have functions of (waits.py)
        place = text.find('R"')
        while place >= 0:
            prefixes = (TOKEN.match(text, start) for start in range(max(place - 2, 0), place + 1))
            match = next((m for m in prefixes if m and m.lastgroup == LITERAL and m.group(2) is not None), None)
            if match is not None:
                self._raw.append(match.span())
            place = text.find('R"', match.end() if match else place + 2)

    # ---- Tokens -----------------------------------------------------------------------------------------------------

    def token(self, place: int) -> Token:
        """The first token that begins at the place or behind it; an empty one at the text's end."""
        space = SPACE.match(self.text, place)
        at = space.end() if space else place
        match = TOKEN.match(self.text, at)
        return Token(match.group(), at, match.end(), match.lastgroup or "") if match else Token("", at, at, OTHER)

    def before(self, place: int) -> Token:
        """The last token that ends at the place or before it; an empty one at the text's beginning."""
        while place > 0:
            start, tokens, ends = self._line(place - 1)
            index = bisect.bisect_right(ends, place) - 1
            if index >= 0:
                return tokens[index]
            place = start
        return Token("", 0, 0, OTHER)

    def tokens(self, start: int, end: Optional[int] = None) -> Iterator[Token]:
        """The tokens that begin between the places."""
        end = len(self.text) if end is None else end
        token = self.token(start)
        while token.start < end:
            yield token
            token = self.token(token.end)

    def outer(self, start: int, end: Optional[int] = None) -> Iterator[Token]:
        """The tokens outside of brackets and template arguments, of which the opening ones are given."""
        end = len(self.text) if end is None else end
        token = self.token(start)
        while token.start < end:
            yield token
            close: Optional[int] = None
            if token.text in CLOSERS:
                close = self.closing(token.start)
            elif token.text == "<":
                close = self.closing_angle(token.start)
            token = self.token(token.end if close is None or close >= end else close + 1)

    def find(self, word: str) -> Iterator[Token]:
        """The places of a word (or of an operator's characters) outside of literals."""
        at, is_word = self.text.find(word), word[0] != "<"
        while at >= 0:
            end = at + len(word)
            part = is_word and (self._continues(at - 1) or self._continues(end))
            if not part and not self._in_literal(at):
                yield Token(word, at, end, WORD if is_word else OTHER)
            at = self.text.find(word, end)

    def find_between(self, word: str, start: int, end: int) -> Iterator[Token]:
        """The places of a word between two others, outside of literals."""
        at = self.text.find(word, start, end)
        while at >= 0:
            behind = at + len(word)
            if not (self._continues(at - 1) or self._continues(behind)) and not self._in_literal(at):
                yield Token(word, at, behind, WORD)
            at = self.text.find(word, behind, end)

    def is_code(self, place: int) -> bool:
        """Whether the token that begins there is outside of literals."""
        return not self._in_literal(place)

    def _continues(self, place: int) -> bool:
        char = self.text[place : place + 1] if place >= 0 else ""
        return char.isalnum() or char == "_"

    def _in_literal(self, place: int) -> bool:
        start = self.text.rfind("\n", 0, place) + 1
        line = self.text[start:place]
        if line.startswith("#"):
            return True
        if '"' not in line and "'" not in line and self._raw_around(place) is None:
            return False
        return all(token.start != place for token in self._line(place)[1])

    def _line(self, place: int) -> Tuple[int, List[Token], List[int]]:
        """Where the line around the place begins, its tokens and their ends. Raw strings may make it several lines."""
        start, end = self.text.rfind("\n", 0, place) + 1, place
        while self._raw_around(start) is not None:
            start = self.text.rfind("\n", 0, start - 1) + 1
        if start not in self._lines:
            while True:
                end = self.text.find("\n", end)
                end = len(self.text) if end < 0 else end
                if self._raw_around(end) is None:
                    break
                end += 1
            found = [] if self.text.startswith("#", start) else list(self.tokens(start, end))
            self._lines[start] = (found, [token.end for token in found])
        return (start, *self._lines[start])

    def _raw_around(self, place: int) -> Optional[Tuple[int, int]]:
        index = bisect.bisect_left(self._raw, (place,)) - 1
        return self._raw[index] if index >= 0 and place < self._raw[index][1] else None

    # ---- Brackets ---------------------------------------------------------------------------------------------------

    def closing(self, place: int) -> int:
        """The place of the bracket that closes the one at `place`."""
        waiting: List[Token] = []
        token = self.token(place)
        while place not in self._partners:
            if token.text in CLOSERS:
                waiting.append(token)
            elif token.text in OPENERS:
                opener = waiting.pop()
                if CLOSERS[opener.text] != token.text:
                    raise self.error(token.start, f"unexpected '{token.text}'")
                self._partners[opener.start] = token.start
            elif not token.text:
                raise self.error(place, f"'{self.text[place]}' is never closed")
            token = self.token(token.end)
        return self._partners[place]

    def opening(self, place: int) -> int:
        """The place of the bracket that the one at `place` closes."""
        depth, token = 1, self.before(place)
        while token.text:
            depth += (token.text in OPENERS) - (token.text in CLOSERS)
            if depth == 0:
                return token.start
            token = self.before(token.start)
        raise self.error(place, f"'{self.text[place]}' is never opened")

    def enclosing_brace(self, place: int) -> int:
        """The innermost brace around the place, or -1."""
        places, around = self._all_braces()
        index = bisect.bisect_left(places, place) - 1
        return around[index] if index >= 0 else -1

    def braces_behind(self, place: int) -> Iterator[int]:
        """The opening braces behind the place, in order."""
        places, _ = self._all_braces()
        for index in range(bisect.bisect_left(places, place), len(places)):
            if self.text[places[index]] == "{":
                yield places[index]

    def _all_braces(self) -> Tuple[List[int], List[int]]:
        if self._braces is None:
            self._braces = self._find_braces()
        return self._braces

    def _find_braces(self) -> Tuple[List[int], List[int]]:
        """The places of all braces, and for each the innermost brace around what follows it."""
        places, around, opened = [], [], [-1]
        for char, place in self._marks(BRACES):
            if char == "{":
                opened.append(place)
            elif len(opened) > 1:
                opened.pop()
            places.append(place)
            around.append(opened[-1])
        return places, around

    def closing_angle(self, place: int) -> Optional[int]:
        """The `>` for the `<` at `place`, if it is one that opens template arguments."""
        depth, token = 0, self.token(place)
        while token.text and token.text not in ";)]}":
            depth += (token.text == "<") - (token.text == ">")
            if depth == 0:
                return token.start
            token = self.token(self.closing(token.start) + 1 if token.text in CLOSERS else token.end)
        return None

    def opening_angle(self, place: int) -> int:
        """The `<` for the `>` at `place`."""
        depth, token = 1, self.before(place)
        while token.text and token.text not in ";{":
            depth += (token.text == ">") - (token.text == "<")
            if depth == 0:
                return token.start
            token = self.before(self.opening(token.start) if token.text in OPENERS else token.start)
        raise self.error(place, "template arguments have no beginning")

    def structure(self) -> Tuple[List[Tuple[str, int]], Dict[int, int]]:
        """All braces, parentheses and semicolons: character and place, and which of them closes which.

        Raises:
            Unclear: they do not fit each other.
        """
        found: List[Tuple[str, int]] = []
        closing: Dict[int, int] = {}
        waiting: List[int] = []
        for char, place in self._marks(STRUCTURE):
            if char in "{(":
                waiting.append(len(found))
            elif char in "})":
                if not waiting or CLOSERS[found[waiting[-1]][0]] != char:
                    raise Unclear
                closing[waiting.pop()] = len(found)
            found.append((char, place))
        if waiting:
            raise Unclear
        return found, closing

    def _marks(self, pattern: "re.Pattern[str]") -> Iterator[Tuple[str, int]]:
        """The characters of STRUCTURE or BRACES outside of literals, and where they stand."""
        pieces, at = [], 0
        for start, end in self._raw:
            pieces += [self.text[at:start], " " * (end - start)]
            at = end
        for match in pattern.finditer("".join([*pieces, self.text[at:]])):
            if len(match.group()) == 1:
                yield match.group(), match.start()

    def split(self, start: int, end: int) -> List[Tuple[int, int]]:
        """The parts of a list that commas separate outside of brackets of any kind."""
        parts, begin = [], start
        for token in self.outer(start, end):
            if token.text == ",":
                parts.append((begin, token.start))
                begin = token.end
        if self.text[begin:end].strip() or parts:
            parts.append((begin, end))
        return parts

    # ---- Lines ------------------------------------------------------------------------------------------------------

    @property
    def markers(self) -> List[Marker]:
        """The line markers, in order."""
        if self._markers is None:
            self._markers = []
            place = 0
            while place >= 0:
                match = LINE_MARKER.match(self.text, place)
                if match is not None:
                    file, system = match.group(2), match.group(3).endswith((" 3", " 3 4"))
                    self._markers.append(Marker(place, match.end(), int(match.group(1)), file, system))
                place = self.text.find("\n# ", place) + 1 or -1
        return self._markers

    def line(self, place: int) -> Tuple[str, int, bool]:
        """File and line of a place, and whether it is in a system header."""
        index = bisect.bisect_right(self.markers, (place,)) - 1
        if index < 0:
            return "", self.text.count("\n", 0, place) + 1, False
        marker = self.markers[index]
        return marker.file, marker.line + self.text.count("\n", marker.end + 1, place), marker.system

    def is_system(self, place: int) -> bool:
        """Whether a place is in a system header."""
        index = bisect.bisect_right(self.markers, (place,)) - 1
        return index >= 0 and self.markers[index].system

    def where(self, place: int) -> str:
        """`file:line` of a place in the text."""
        file, line, _ = self.line(place)
        return f"{file}:{line}" if file else f"line {line}"

    def error(self, place: int, text: str) -> CuccError:
        return CuccError(f"{self.where(place)}: error: {text}")

    def marker(self, place: int, quiet: bool = True) -> str:
        """A line marker for text from this place that is written elsewhere; quiet: without warnings.

        A system header stays one: compilers take things there that they refuse elsewhere.
        """
        file, line, system = self.line(place)
        return f'\n# {line} "{file}"{" 3" if quiet or system else ""}\n' if file else "\n"

    def flat(self, start: int, end: int, edits: Iterable[Edit] = ()) -> str:
        """The text between the places on one line, without line markers, as the edits leave it."""
        return DIRECTIVE.sub(" ", self.edited(edits, start, end)).replace("\n", " ").strip()

    def line_ends(self, start: int, end: int) -> str:
        """What keeps the lines behind `end` where they are, if the text between goes away."""
        first, last = (bisect.bisect_left(self.markers, (place,)) for place in (start, end))
        if first == last:
            return "\n" * self.text.count("\n", start, end)
        marker = self.markers[last - 1]
        lines = "\n" * max(1, self.text.count("\n", marker.end, end))
        return "\n" + self.text[marker.start : marker.end] + lines

    # ---- Declarations -----------------------------------------------------------------------------------------------

    def declaration_start(self, place: int) -> int:
        """Where the declaration begins that is around the place; template parameters stand before it."""
        token = self.before(place)
        while token.text not in ("", ";", "{", "}", ">", ":"):
            place = self.opening(token.start) if token.text in OPENERS else token.start
            token = self.before(place)
        return place

    def declaration_end(self, place: int) -> int:
        """The semicolon behind the place, outside of brackets."""
        for token in self.outer(place):
            if token.text == ";":
                return token.start
        raise self.error(place - 1, "';' expected")

    def words(self, start: int, end: int) -> List[str]:
        return [token.text for token in self.tokens(start, end) if token.kind == WORD]

    # ---- Edits ------------------------------------------------------------------------------------------------------

    def edited(self, edits: Iterable[Edit], start: int = 0, end: Optional[int] = None) -> str:
        """The text between two places as the edits leave it.

        Of edits that overlap the one that begins first counts, as it has kept what it wants of the text that it
        encloses. Edits at equal places stay in order.
        """
        end = len(self.text) if end is None else end
        parts, at = [], start
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
            if edit.start < at or edit.end > end:
                continue
            parts += [self.text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*parts, self.text[at:end]])
