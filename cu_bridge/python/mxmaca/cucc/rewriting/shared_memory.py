"""`__shared__` variables.

The threads of a block run on one processor, so a static one is `static thread_local`. A dynamic one, `extern __shared__
T x[];`, becomes a reference to where the block's dynamic shared memory is.
"""

from typing import Iterator, List, Tuple

from .declarations import ATTRIBUTES, PREFIX, alignment, at_namespace_scope, specifiers
from .source import WORD, Edit, Source, Token


def edits(source: Source) -> List[Edit]:
    """The edits of all shared variables."""
    result: List[Edit] = []
    for token in source.find(PREFIX + "shared__"):
        stop = source.declaration_end(token.end)
        # The standard's word may not stand in the middle of a declaration, where CUDA's users put it.
        for word in source.tokens(token.end, stop):
            if word.text == "alignas":
                close = source.closing(source.token(word.end).start) + 1
                result += [Edit(word.start, word.end, "__attribute__((aligned"), Edit(close, close, "))")]
        before, behind = specifiers(source, token.start), source.token(token.end)
        if "extern" in before:
            result.append(Edit(before["extern"], before["extern"] + len("extern"), ""))
        elif behind.text == "extern":
            result.append(Edit(behind.start, behind.end, ""))
        if "extern" in before or behind.text == "extern":
            result.append(Edit(token.start, token.end, ""))
            start = behind.end if behind.text == "extern" else token.end
            result += _dynamic(source, start, stop)
            continue
        words = "thread_local" if "static" in before or behind.text == "static" else "static thread_local"
        result.append(Edit(token.start, token.end, f"{words} {alignment(source, token.end, stop)}"))
    return result


def without_reinterpretation(source: Source) -> Source:
    """The text without `reinterpret_cast` of dynamic shared memory that is declared outside of functions.

    That cast takes no class, which such a variable becomes: the address of its first element is the same pointer. The
    other passes read the changed text.
    """
    found: List[Edit] = []
    for token in source.find(PREFIX + "shared__"):
        behind = source.token(token.end)
        if "extern" not in specifiers(source, token.start) and behind.text != "extern":
            continue
        if at_namespace_scope(source, token.start):
            name, _ = _name(source, token.end, source.declaration_end(token.end))
            found += [Edit(use.start, use.end, f"&{name.text}[0]") for use in _reinterpreted(source, name.text)]
    return Source(source.edited(found)) if found else source


def _reinterpreted(source: Source, name: str) -> Iterator[Token]:
    for use in source.find(name):
        before = source.before(use.start)
        angle = source.before(before.start)
        if (before.text, angle.text, source.token(use.end).text) == ("(", ">", ")"):
            cast = source.before(source.opening_angle(angle.start))
            if cast.text == "reinterpret_cast":
                yield use


def _dynamic(source: Source, start: int, stop: int) -> List[Edit]:
    """The declaration between the words and the semicolon."""
    name, dimensions = _name(source, start, stop)
    if at_namespace_scope(source, start):
        if dimensions != 1:
            raise source.error(start, "an extern __shared__ variable outside of functions has one dimension")
        kind = source.flat(start, name.start)
        for token in source.tokens(start, name.start):
            if token.text in ATTRIBUTES:
                close = source.closing(source.token(token.end).start)
                kind = kind.replace(source.flat(token.start, close + 1), "")
        text = f" static ::mxmaca::DynamicShared<{kind}> {name.text}{source.line_ends(start, stop)}"
        return [Edit(start, stop, text)]
    kind, cast = f"::mxmaca::pointee<decltype({name.text})>", "reinterpret_cast"
    if not dimensions:
        kind, cast = f"typename ::std::remove_reference<decltype({name.text})>::type", "static_cast"
    return [
        Edit(name.start, name.end, f"(&{name.text})" if dimensions else f"&{name.text}"),
        Edit(stop, stop, f" = *{cast}<{kind}*>(::mxmaca::dynamic_shared())"),
    ]


def _name(source: Source, start: int, stop: int) -> Tuple[Token, int]:
    """The variable's name, and how many dimensions it has."""
    name = None
    dimensions = 0
    for token in source.outer(start, stop):
        if token.text == "[":
            dimensions += 1
        elif token.kind == WORD and token.text not in ATTRIBUTES:
            name, dimensions = token, 0
    if name is None:
        raise source.error(start, "the name of the shared variable was not found")
    return name, dimensions
