"""Conversions of floating-point numbers to integers that no cast says, as in `int i = x`.

They have to saturate as casts do (rewriting/arithmetic/casts.py), and only the compiler knows where they are. So it is
asked to warn about them in the device pass. A text that it names none in, as most, is compiled once. For another one
it says where they are, those places go through mxmaca/arithmetic/conversions.h, and the text is compiled again. Where
it says so is GCC's JSON (9 to 15). A place that stays as it was, with another compiler or in a template that takes no
other form, keeps the processor's conversion, and cucc warns about it.
"""

import bisect
import json
import re
from typing import AbstractSet, Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from . import messages
from .rewriting.source import Edit, Source

OPTION = "-Wfloat-conversion"
WARNING = [OPTION, "-Wno-error=float-conversion"]
# What asks for the same warnings, or for none at all.
ASKED = frozenset([OPTION, "-Wconversion"])
SILENT = "-w"
UNCONVERTED = (
    "a conversion to an integer does not saturate here as it does in CUDA: NaN and numbers out of range become the "
    "processor's least integer; a cast, (int)x, saturates"
)
UNSATURATED = (
    "casts to types that the program names, (T)x, do not saturate in this file as they do in CUDA: it does not compile "
    "with them rewritten, perhaps since a variable has the name of a type"
)
FLOATS = frozenset(["float", "double", "long double", "_Float16", "__bf16", "__fp16"])
# "conversion from 'float' to 'T' {aka 'int'} may change value"; of a constant it says which value it "changes".
MESSAGE = re.compile(r"conversion from .* to '(?P<type>[^']*)'(?: \{aka '(?P<meant>[^']*)'\})? may change value")
LINE_MARKER = re.compile(r'^# \d+ "(?:[^"\\\n]|\\.)*"(?P<flags>[^\n]*)$', re.M)
COMPOUND = frozenset(["+=", "-=", "*=", "/="])
Range = Tuple[int, int]


def named(said: str) -> bool:
    """Whether the compiler has warned about a conversion to an integer, and not to a narrower floating type alone."""
    lines = [line for line in said.splitlines() if f"[{OPTION}]" in line and "changes value" not in line]
    matches = [MESSAGE.search(_plain(line)) for line in lines]
    # Without a match it speaks another language.
    return any(match is None or _is_integer(match) for match in matches)


def places(said: str) -> List[str]:
    """The lines, as "file:line", where the compiler has warned about a conversion to an integer, each once."""
    found: Dict[str, None] = {}
    for message in messages.split(said):
        match = MESSAGE.search(_plain(message.key[2])) if f"[{OPTION}]" in message.key[2] else None
        if match is not None and _is_integer(match):
            found[message.key[0]] = None
    return list(found)


def _plain(message: str) -> str:
    return message.replace("\u2018", "'").replace("\u2019", "'")


def _is_integer(match: "re.Match[str]") -> bool:
    name = match.group("meant") or match.group("type")
    return name.replace("const ", "").replace("volatile ", "") not in FLOATS


def without(said: str) -> str:
    """What the compiler said but for these warnings, for who has not asked for them."""
    if f"[{OPTION}]" not in said:
        return said
    return "".join(message.text for message in messages.split(said) if not message.key[2].endswith(f"[{OPTION}]"))


def numbered(text: str) -> str:
    """The text with line markers that count its own lines, and say still what a system header is."""
    starts = [match.start() for match in re.finditer(r"^", text, re.M)]

    def mark(match: "re.Match[str]") -> str:
        line = bisect.bisect_right(starts, match.start())
        return f'# {line + 1} "text"' + (" 3" if "3" in match.group("flags").split() else "")

    return LINE_MARKER.sub(mark, text)


def command(compiling: Sequence[str], text: str, numbered_text: str) -> List[str]:
    """The command that names the conversions of a numbered text, from the one that compiles the text."""
    checking = [word for word in compiling if word not in (SILENT, text) and not word.startswith("-Werror")]
    format_ = "-fdiagnostics-format=json"
    return ["env", "LC_ALL=C", *checking, numbered_text, "-fsyntax-only", OPTION, format_]


def edits(text: str, report: str, without: AbstractSet[int] = frozenset()) -> List[Edit]:
    """The edits that let the named conversions saturate.

    Args:
        text: as it was compiled.
        report: what the compiler said of it, with the markers of `numbered`.
        without: the numbers of lines that keep what they have.
    """
    source, found = Source(text), sorted(set(_ranges(text, report, without)), key=lambda place: (place[0], -place[1]))
    opened: List[Edit] = []
    closed: Dict[int, int] = {}
    for start, end in found:
        target = _target(source, start, end)
        if target is None:
            continue
        what, end = target
        opened.append(Edit(start, start, f"::mxmaca::casts::{what}("))
        closed[end] = closed.get(end, 0) + 1
    return [*(Edit(end, end, ")" * count) for end, count in closed.items()), *opened]


def broken_lines(report: str) -> Set[int]:
    """The numbers of the lines that the compiler's errors speak of, with the markers of `numbered`."""
    lines: Set[int] = set()
    is_error = False
    for message in _messages(report):
        is_error = "error" in message["kind"] or (is_error and message["kind"] == "note")
        places = [place["caret"] for place in message["locations"]] if is_error else []
        lines.update(place["line"] for place in places if place["file"] == "text")
    return lines


def _target(source: Source, start: int, end: int) -> Optional[Tuple[str, int]]:
    """The function for an expression, and how far its argument goes; nothing where the place is no whole expression."""
    depth = 0
    for token in source.tokens(start, end):
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        if depth < 0 or (depth == 0 and token.text in (";", ",")):
            return None
        if depth == 0 and token.text in COMPOUND:
            return "combining", token.start
        if depth == 0 and token.text == "=":
            return None
    return ("converting", end) if depth == 0 else None


def _ranges(text: str, report: str, without: AbstractSet[int]) -> Iterator[Range]:
    """From where to where an expression goes that is converted to an integer."""
    lines = [match.start() for match in re.finditer(r"^", text, re.M)]

    def place(at: Dict[str, int]) -> int:
        return lines[at["line"] - 1] + at.get("byte-column", at["column"]) - 1

    for message in _messages(report):
        match = MESSAGE.search(_plain(message["message"]))
        if message.get("option") != OPTION or match is None or not _is_integer(match):
            continue
        where = message["locations"][0]
        first, last = where.get("start", where["caret"]), where.get("finish", where["caret"])
        if {first["file"], last["file"]} == {"text"} and first["line"] not in without:
            yield place(first), place(last) + 1


def _messages(report: str) -> Iterator[Dict[str, Any]]:
    """The messages of a report, which other lines may stand around."""
    for line in report.splitlines():
        if not line.startswith("["):
            continue
        try:
            for message in json.loads(line):
                yield message
                yield from message.get("children", ())
        except ValueError:
            continue
