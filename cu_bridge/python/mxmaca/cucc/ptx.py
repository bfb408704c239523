"""Inline PTX: known statements become C++, all others an error that names the instruction."""

import re
from typing import Callable, List, Optional

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# PTX writes types behind dots (mov.u32, ld.global.ca.f32) or is one of these words; x86 and Arm code is neither.
INSTRUCTION = re.compile(r"(?:^|[;{}\\n\\t\s])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:\.[a-z0-9_:]+)+)(?=[\s;]|$)")
WORDS = re.compile(r"^\s*(?:trap|exit|brkpt|membar|bar|ret)\b")


def is_ptx(template: str) -> bool:
    """Whether the text of an asm statement is PTX."""
    plain = template.replace("\\n", " ").replace("\\t", " ")
    return bool(INSTRUCTION.search(plain) or WORDS.match(plain) or re.search(r"\.reg\s*\.", plain))


def instructions(template: str) -> List[str]:
    """The instructions of a PTX text, with their dotted suffixes."""
    plain = template.replace("\\n", " ").replace("\\t", " ").replace("{", " ").replace("}", " ")
    names = []
    for statement in plain.split(";"):
        words = [word for word in statement.split() if not word.startswith("@")]
        if words and not words[0].startswith("."):
            names.append(words[0])
    return names


def translate(statement: str, device: bool, where: Callable[[], str]) -> Optional[str]:
    """C++ for the contents of `asm(…)`, or None where it is not PTX and stays.

    In the host pass device functions are compiled too but never run, so there PTX becomes nothing.
    """
    match = re.match(r'\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+)', statement)
    if match is None:
        return None
    template = "".join(LITERAL.findall(match.group(1)))
    if not is_ptx(template):
        return None
    if not device:
        return "(void)0;"
    names = instructions(template) or [template]
    message = f"inline PTX is not supported here: {', '.join(names)}".replace('"', "'").replace("\\", "/")
    return (
        '{ extern void __mxmaca_unsupported_ptx() __attribute__((error("' + message + '"))); '
        "__mxmaca_unsupported_ptx(); }"
    )
