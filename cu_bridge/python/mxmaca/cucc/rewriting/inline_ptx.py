"""`asm("PTX")` becomes C++ (ptx.py); assembly that is no PTX stays."""

from typing import List

from . import ptx
from .source import LITERAL, Edit, Source


def edits(source: Source, device: bool) -> List[Edit]:
    """The edits of all statements of inline assembly."""
    result: List[Edit] = []
    for word in ("asm", "__asm__", "__asm"):
        for token in source.find(word):
            opener = source.token(token.end)
            while opener.text in ("volatile", "__volatile__", "goto", "inline"):
                opener = source.token(opener.end)
            if opener.text != "(" or source.token(opener.end).kind != LITERAL:
                continue
            close = source.closing(opener.start)
            text = ptx.translate(source.flat(opener.end, close), device)
            if text is None:
                continue
            semicolon = source.token(close + 1)
            end = semicolon.end if semicolon.text == ";" else close + 1
            result.append(Edit(token.start, end, text + source.line_ends(token.start, end)))
    return result
