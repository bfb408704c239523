"""`asm("PTX" : outputs : inputs)` becomes C++ (ptx.py); assembly that is no PTX stays."""

from typing import List, Optional

from . import ptx
from .assembly.operands import Operand, Unsupported
from .source import LITERAL, WORD, Edit, Source


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
            text = _translation(source, opener.end, close, device)
            if text is None:
                continue
            semicolon = source.token(close + 1)
            end = semicolon.end if semicolon.text == ";" else close + 1
            result.append(Edit(token.start, end, text + source.line_ends(token.start, end)))
    return result


def _translation(source: Source, start: int, end: int, device: bool) -> Optional[str]:
    """C++ for what stands between the parentheses, or None where it is no PTX.

    In the host pass device functions are compiled too but never run, so there PTX becomes nothing.
    """
    template = ""
    token = source.token(start)
    while token.text.startswith('"'):
        template += token.text[1:-1]
        token = source.token(token.end)
    if not ptx.is_ptx(template):
        return None
    if not device:
        return "(void)0;"
    # Outputs, inputs and what is overwritten stand behind a colon each; `::` is two of them.
    places = [start]
    for one in source.outer(token.start, end):
        if one.text in (":", "::"):
            places += [one.end - 1] * len(one.text)
    sections = [source.split(first + 1, last) for first, last in zip(places[1:], [*places[2:], end])]
    try:
        outputs, inputs = ([_operand(source, *part) for part in section] for section in [*sections, [], []][:2])
    except Unsupported as problem:
        return ptx.refusal([str(problem)])
    return ptx.translate(template, outputs, inputs)


def _operand(source: Source, start: int, end: int) -> Operand:
    """`[name] "=r"(expression)`."""
    tokens = list(source.outer(start, end))
    name = ""
    if tokens and tokens[0].text == "[" and source.token(tokens[0].end).kind == WORD:
        name = source.token(tokens[0].end).text
        tokens = tokens[1:]
    if len(tokens) < 2 or any(token.kind != LITERAL for token in tokens[:-1]) or tokens[-1].text != "(":
        raise Unsupported(f"the operand {source.flat(start, end)}")
    expression = source.flat(tokens[-1].end, source.closing(tokens[-1].start))
    return Operand(name, "".join(token.text[1:-1] for token in tokens[:-1]), expression)
