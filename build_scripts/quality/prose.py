"""Wrapping paragraphs of Markdown and comments of C++ where a line is too long.

Tables, code and headings stay as they are.
"""

import re
from itertools import groupby
from typing import Iterator, List, Tuple

COMMENT = re.compile(r" *///? ")
# A line that divides a file: a title between dashes.
RULER = re.compile(r"(---.*?)-+")
MARKER = re.compile(r"(?: *(?:[-*+]|\d+[.)]) +)")
# What begins something else than a paragraph, at the beginning of a line.
APART = re.compile(r" *(?:\||#{1,6} |<|```|~~~|---)| {4,}|Note \[[^]]*\]$")
# Words that would, too, so none of them may come first in a line.
BOUND = re.compile(r"[-*+>|]$|#{1,6}$|\d+[.)]$|\||<!--|```|~~~")


def filled(text: str, first: str, rest: str, columns: int) -> List[str]:
    """The words of a text in lines, the first behind ``first`` and all others behind ``rest``."""
    words: List[str] = []
    for word in text.split():
        if words and BOUND.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    lines, line = [], first
    for word in words:
        if line.strip() and line not in (first, rest) and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = rest
        line += word if line in (first, rest) else f" {word}"
    return [*lines, line]


def wrapped(text: str, columns: int) -> str:
    """The document, with the paragraphs and entries of lists that have too long a line filled anew."""
    result: List[str] = []
    for block, prose in _blocks(text.split("\n")):
        long = prose and any(len(line) > columns for line in block)
        result += _filled_block(block, columns) if long else block
    return "\n".join(result)


def wrapped_comments(source: str, columns: int) -> str:
    """The source, with the same done to the comments that have lines of their own."""
    result: List[str] = []
    for prefix, lines in groupby(source.split("\n"), _prefix):
        if prefix:
            room = columns - len(prefix)
            text = "\n".join(_shortened(line[len(prefix) :], room) for line in lines)
            result += [f"{prefix}{line}".rstrip() for line in wrapped(text, room).split("\n")]
        else:
            result += lines
    return "\n".join(result)


def _shortened(line: str, columns: int) -> str:
    ruler = RULER.fullmatch(line)
    return line[: max(columns, len(ruler.group(1)))] if ruler else line


def _prefix(line: str) -> str:
    found = COMMENT.match(line)
    return found.group() if found else ""


def is_table(line: str) -> bool:
    return line.lstrip().startswith("|")


def _blocks(lines: List[str]) -> Iterator[Tuple[List[str], bool]]:
    """Lines that belong together, and whether they are prose: a paragraph or an entry of a list."""
    block: List[str] = []
    fence = False
    for line in lines:
        edge = line.lstrip().startswith("```")
        alone = fence or edge or not line.strip() or (APART.match(line) and not (block and line.startswith(" ")))
        fence ^= edge
        if block and (alone or MARKER.match(line)):
            yield block, True
            block = []
        if alone:
            yield [line], False
        else:
            block.append(line)
    if block:
        yield block, True


def _filled_block(block: List[str], columns: int) -> List[str]:
    marker = MARKER.match(block[0])
    first = marker.group() if marker else block[0][: len(block[0]) - len(block[0].lstrip())]
    return filled(" ".join(block)[len(first) :], first, " " * len(first), columns)
