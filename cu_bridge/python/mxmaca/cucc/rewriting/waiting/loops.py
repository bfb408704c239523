"""Loops by their parts, and what jumps out of them.

Note: loops that go round together
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Where a condition is made of variables that change, and that are the same for all threads nevertheless (common.py), each
thread counts for itself, and all are asked:

    int k = 1;                                phase([&](unsigned i) { k[i] = 1; asked.say(k[i] < n); });
    while (k < n) {                      →    while (asked.yes()) {
      … __syncthreads(); … k *= 2;              phase(…); phase([&](unsigned i) { … k[i] *= 2; asked.say(k[i] < n); });
    }                                         }

With a `continue` in it they are asked at the loop's head. An `if` is asked likewise, and in it may be a `break`.
"""

from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from .. import expressions as ex
from ..expressions import ASSIGNMENTS, STEPS, Tokens
from ..source import WORD
from ..waits import FENCES, WAITS, Unfit, statement_end

LOOPS = ("for", "while", "do")
JUMPS = ("break", "continue")


class Loop(NamedTuple):
    """A loop; what it does not have is empty."""

    word: str
    start: Tokens  # with its semicolon
    condition: Tokens
    steps: Tokens
    body: int  # where that begins and ends
    end: int


def parts(tokens: Tokens, at: int, stop: int) -> Loop:
    """The parts of the loop between the places.

    Raises:
        Unfit: it is a `for` over a range.
    """
    word = tokens[at].text
    if word == "do":
        end = statement_end(tokens, at + 1)
        return Loop(word, (), tokens[end + 2 : ex.closing(tokens, end + 1)], (), at + 1, end)
    close = ex.closing(tokens, at + 1)
    head = tokens[at + 2 : close]
    if word == "while":
        return Loop(word, (), head, (), close + 1, stop)
    pieces = ex.split(head, ";")
    if len(pieces) != 3:
        raise Unfit("a wait within a `for` over a range", tokens[at])
    start, condition, steps = pieces
    return Loop(word, head[: len(start) + 1], condition, steps, close + 1, stop)


def counters(loop: Loop, is_uniform: Callable[[Tokens], bool], is_taken: Callable[[str], bool]) -> List[str]:
    """The variables that a loop's head declares: integers with the same value in all threads.

    Raises:
        Unfit: there are others.
    """
    where = loop.start[0]
    declarators = ex.split(loop.start[:-1])
    first = declarators[0]
    equals = ex.texts(first).index("=") if ex.has(first, "=") else 0
    if equals < 2 or not ex.is_integer(ex.texts(first[: equals - 1])):
        raise Unfit("a wait within a `for` that declares no integer", where)
    found = []
    for one in [first[equals - 1 :], *declarators[1:]]:
        if ex.texts(one[1:2]) != ["="] or one[0].kind != WORD or not is_uniform(one[2:]):
            raise Unfit("a wait within a `for` whose beginning may differ between threads", where)
        if is_taken(one[0].text):
            raise Unfit(f"the counter '{one[0].text}' of a `for` that waits hides another variable", where)
        found.append(one[0].text)
    return found


def counts(step: Tokens, names: Sequence[str], is_uniform: Callable[[Tokens], bool]) -> bool:
    """Whether a step of a loop changes one of its counters, and in all threads alike."""
    words = ex.texts(step)
    if len(words) == 2:
        return bool(STEPS.intersection(words)) and bool(set(words).intersection(names))
    return len(words) > 2 and words[0] in names and words[1] in ASSIGNMENTS and is_uniform(step[2:])


def jumps(tokens: Tokens) -> List[str]:
    """The words `break` and `continue` that belong to a loop around the tokens."""
    found: List[str] = []
    at = 0
    while at < len(tokens):
        if tokens[at].kind == WORD and tokens[at].text in LOOPS:
            at = statement_end(tokens, at)
            continue
        if tokens[at].text in JUMPS:
            found.append(tokens[at].text)
        at += 1
    return found


def statements(tokens: Tokens, at: int, end: int) -> List[Tuple[int, int, bool]]:
    """From where to where each statement goes, and whether a loop over the threads ends there.

    An empty one stands before what has a fence: the lanes of a warp come to it together, and what all of them have
    stored is announced behind it.
    """
    found = []
    while at < end:
        stop = statement_end(tokens, at)
        statement = tokens[at:stop]
        ends = ex.has(statement, *WAITS) or bool(jumps(statement))
        if not ends and ex.has(statement, *FENCES):
            found.append((at, at, True))
        found.append((at, stop, ends))
        at = stop
    return found


def exits(tokens: Tokens) -> Iterator[Tuple[Tokens, ...]]:
    """For each jump out of a loop with that body, or back to its head, the conditions around it."""
    at = 0
    while at < len(tokens):
        stop = statement_end(tokens, at)
        statement = tokens[at:stop]
        word = statement[0].text
        if word in JUMPS:
            yield ()
        elif word == "{":
            yield from exits(statement[1:-1])
        elif word == "if":
            close = ex.closing(statement, 1)
            end = statement_end(statement, close + 1)
            for part in (statement[close + 1 : end], statement[end + 1 :]):
                for conditions in exits(part):
                    yield (statement[2:close], *conditions)
        at = stop


def is_return(statement: Tokens) -> bool:
    """Whether it is `if (…) return;`."""
    if statement[0].text != "if":
        return False
    behind = ex.texts(statement[ex.closing(statement, 1) + 1 :])
    return behind in (["return", ";"], ["{", "return", ";", "}"])


def returns(tokens: Tokens) -> bool:
    """Whether there is a plain `return;`."""
    return any(ex.texts(tokens[at : at + 2]) == ["return", ";"] for at in range(len(tokens)))
