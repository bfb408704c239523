"""Which kernels may go round a loop until something outside of their grid has happened.

A program may store to a flag that a running kernel asks for, or launch the kernel that stores to it on another stream.
A launch of such a kernel must return at once, so the runtime is told of it (mcKernelMayWait) and gives it a thread.
"""

import re
from typing import AbstractSet, Dict, Iterator, List, Sequence, Set

from .. import expressions as ex
from ..declarations import PREFIX
from ..expressions import Tokens
from ..kernels import Kernel
from ..source import LITERAL, WORD, Source, Token, word_set
from ..waits import (
    Unfit,
    counts,
    declared_name,
    function_around,
    is_qualifier,
    statement_end,
    volatile_variables,
)

ASSEMBLY = word_set("asm __asm__ __asm")
# Loads of PTX that ask memory each time.
ORDERED = re.compile(r"\bld\.(?:[\w:]+\.)*?(?:volatile|relaxed|acquire|mmio)\b")
ATOMICS = frozenset(
    f"atomic{name}{scope}"
    for name in ("Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "CAS", "And", "Or", "Xor")
    for scope in ("", "_system")
) | {"__ldcv"}
# Methods of cuda::atomic, cuda::atomic_ref and cuda::atomic_flag.
METHODS = frozenset(["load", "exchange", "test", "test_and_set", "compare_exchange_weak", "compare_exchange_strong"])
# Of these the memory of the host is asked as well.
OUTSIDE = frozenset(["load", "__ldcv"]) | frozenset(name for name in ATOMICS if name.endswith("_system"))
DEVICE = PREFIX + "device__"
LEAVING = ("break", "return", "goto")


def waiting_kernels(source: Source, kernels: Sequence[Kernel]) -> Set[int]:
    """Where the bodies begin of the kernels that hold such a loop, or mention a function or class that does."""
    if not kernels:
        return set()
    places = {kernel.body for kernel in kernels}
    device = places.union(_device_bodies(source))
    found: Set[int] = set()
    names: Set[str] = set()
    suspects = _suspects(source).items()
    pending = [body for body, asked in suspects if body in device and _has_loop(source, body, asked)]
    while pending:
        body = pending.pop()
        if body in found or body not in device:
            continue
        found.add(body)
        name = "" if body in places else _name_of(source, body)
        if name and name not in names:
            names.add(name)
            pending += _mentions(source, name)
    return found & places


def _device_bodies(source: Source) -> Iterator[int]:
    """The outermost bodies that hold device functions or are those of such a function, among others.

    A kernel calls nothing else, and the host's functions are the most by far where headers of PyTorch are included.
    """
    for token in source.find(DEVICE):
        inside = function_around(source, token.start)
        if inside is not None:
            yield inside
            continue
        for brace in source.braces_behind(token.end):
            yield brace
            head = source.text[token.end : brace]
            if head.count("(") == head.count(")"):  # no default value of a parameter
                break


def _mentions(source: Source, word: str) -> Iterator[int]:
    """The outermost bodies in which the word stands, but for those of system headers."""
    for token in source.find(word):
        if not source.is_system(token.start):
            body = function_around(source, token.start)
            if body is not None:
                yield body


def _suspects(source: Source) -> Dict[int, Set[str]]:
    """Bodies that mention what others may change, with the names of their volatile variables."""
    found: Dict[int, Set[str]] = {}
    for token in source.find("volatile"):
        body = function_around(source, token.start) if is_qualifier(source, token) else None
        if body is not None:
            found.setdefault(body, set()).update({"volatile", declared_name(source, token)} - {""})
    for name in volatile_variables(source):
        for body in _mentions(source, name):
            found.setdefault(body, set()).add(name)
    for word in (*ATOMICS, *METHODS):
        for body in _mentions(source, word):
            found.setdefault(body, set())
    for word in ASSEMBLY:
        for token in source.find(word):
            close = source.token(token.end)
            text = source.text[token.start : source.closing(close.start)] if close.text == "(" else "ld.volatile"
            body = function_around(source, token.start) if ORDERED.search(text) else None
            if body is not None:
                found.setdefault(body, set())
    return found


def _name_of(source: Source, body: int) -> str:
    """The name of the function or class with the body."""
    head = list(source.tokens(source.declaration_start(body), body))
    for at, token in enumerate(head[:-1]):
        if token.text in ("class", "struct") and head[at + 1].kind == WORD:
            return head[at + 1].text
    opener = next((at for at, token in enumerate(head) if token.text == "(" and at), 0)
    return head[opener - 1].text if opener and head[opener - 1].kind == WORD else ""


def _has_loop(source: Source, body: int, names: AbstractSet[str]) -> bool:
    tokens = list(source.tokens(body, source.closing(body) + 1))
    over: List[int] = []  # the `while` of a `do`
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("for", "while", "do") or at in over:
            continue
        try:
            loop = tokens[at : statement_end(tokens, at)]
            if token.text == "do":
                over.append(statement_end(tokens, at + 1))
            if not (token.text == "for" and counts(loop)) and _waits(loop, names):
                return True
        except (Unfit, IndexError):
            continue
    return False


def _waits(loop: Tokens, names: AbstractSet[str]) -> bool:
    """Whether what memory holds decides, by itself, when the loop is over.

    Loops that only try an exchange again are not among them: a condition without end has no such function.
    """
    condition, body = _condition(loop)
    if _asks(condition, names, ATOMICS | METHODS):
        return True
    asking = [statement for statement in _statements(body) if _asks(statement, names, OUTSIDE)]
    if ex.texts(condition) in ([], ["1"], ["true"]):
        return bool(asking) and ex.has(body, *LEAVING)
    for statement in asking:
        assembly = any(token.text in ASSEMBLY for token in statement)
        for name in ex.names(condition):
            if ex.modified(name, statement) or (assembly and name in ex.texts(statement)):
                return True
    return False


def _condition(loop: Tokens) -> Sequence[Tokens]:
    """The condition and the body."""
    if loop[0].text == "do":
        end = statement_end(loop, 1)
        return loop[end + 2 : ex.closing(loop, end + 1)], loop[1:end]
    close = ex.closing(loop, 1)
    header, body = loop[2:close], loop[close + 1 :]
    pieces = ex.split(header, ";")
    return (pieces[1] if loop[0].text == "for" and len(pieces) == 3 else header), body


def _statements(body: Tokens) -> Iterator[Tokens]:
    statement: List[Token] = []
    for token in body:
        if token.text in ("{", "}", ";"):
            yield statement
            statement = []
        else:
            statement.append(token)
    yield statement


def _asks(tokens: Tokens, names: AbstractSet[str], functions: AbstractSet[str]) -> bool:
    """Whether it reads memory that others may change meanwhile."""
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        if token.kind == LITERAL and ORDERED.search(token.text):
            return True
        if token.text in names:
            return True
        if token.text in functions and (token.text not in METHODS or before in (".", "->")):
            return True
    return False
