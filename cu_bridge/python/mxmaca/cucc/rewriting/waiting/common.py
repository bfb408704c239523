"""Variables that have one value for all threads of a block though they change: a stride, a round's number, a flag.

Note: one value for a block
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A loop that waits goes round for all threads alike, so what it asks must be the same for all of them. A variable is that
where every change gives it a value made of constants, parameters, block indices, votes of the block and other such
variables, and where every change happens to all threads or to none, by conditions made of the same. Which variables
these are is found from above: all are taken for such, and those go away for which a change says otherwise, until none
goes.

Each thread keeps its own of them as it keeps any other variable. So nothing goes wrong with those that are taken for
such and are not needed, and where the values were to differ after all the launch fails (`Agreed` in execution.h).
"""

from typing import AbstractSet, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from .. import expressions as ex
from ..expressions import ASSIGNMENTS, CASTS, INTEGERS, STEPS, Tokens
from ..source import NUMBER, OTHER, Token, word_set
from ..types import declarations
from ..waits import VOTES, statement_end
from .loops import LOOPS, exits, parts

INDICES = word_set("blockIdx blockDim gridDim warpSize")
WORDS = INTEGERS | word_set("float double const true false sizeof")
# Of what has no effect, what says which thread asks, and what reads memory.
OTHERS = word_set("thread_rank thread_index __ldg __ldcg __ldca __ldcs")
FUNCTIONS = ex.PURE - OTHERS - WORDS - CASTS
Conditions = Tuple[Tokens, ...]


class Change(NamedTuple):
    """A change of a variable: the value that it gets, and what decides whether it happens."""

    name: str
    value: Tokens
    conditions: Conditions


class Common:
    """The variables of one kernel that have one value for all threads at each place that all threads come to.

    Args:
        tokens: of the body.
        fixed: the kernel's parameters that never change.
        others: its other parameters, and whether they are plain numbers.
        memory: names of variables in the block's or the device's memory.
        changed: whether a variable may change, or something get hold of it.
        own_function: whether the program has a function of CUDA's name of its own.
    """

    def __init__(
        self,
        tokens: Tokens,
        fixed: AbstractSet[str],
        others: Dict[str, bool],
        memory: AbstractSet[str],
        changed: Callable[[str, Tokens], bool],
        own_function: Callable[[str], bool],
    ) -> None:
        self._tokens, self._fixed, self._others, self._memory = tokens, fixed, others, memory
        self._changed, self._own_function = changed, own_function
        self._changes: List[Change] = []
        self._masked: Set[int] = set()  # operators of changes that are looked at
        self._names: Optional[Set[str]] = None
        self._numbers: Set[str] = set()
        self._varying: Set[str] = set()

    def has(self, value: Tokens) -> bool:
        """Whether an expression has one value for all threads, and no effect.

        Raises:
            Unfit: a statement of the kernel is not understood.
        """
        if self._names is None:
            self._names = self._found()
        return self._is_of(self._names, value)

    def _found(self) -> Set[str]:
        """The variables."""
        tokens = self._tokens
        found = list(declarations(tokens))
        words = {one.name for one in found} | _bound(tokens)
        more = {one.name for one in found if not _is_number(tokens, one.at, one.kind)} | _bound(tokens)
        self._numbers = words - more - self._fixed - self._others.keys()
        self._numbers |= {name for name, number in self._others.items() if number and name not in words}
        self._walk(0, len(tokens), ())
        rest = [Token(",", one.start, one.end, OTHER) if one.start in self._masked else one for one in tokens]
        # One that changes in another way than is seen here is none.
        names = {name for name in self._numbers - self._memory if not self._changed(name, rest)}
        self._varying = words | self._others.keys() | self._memory | {"threadIdx"}
        while True:
            gone = {
                change.name
                for change in self._changes
                if not all(self._is_of(names, self._without_votes(part)) for part in (change.value, *change.conditions))
            }
            if not gone & names:
                return names
            names -= gone

    def _is_of(self, names: Set[str], value: Tokens) -> bool:
        """Whether an expression is made of these variables, and of what is the same for all threads."""
        if not ex.is_known(value, WORDS | FUNCTIONS) or ex.dereferences(value) or ex.changes(value):
            return False
        if ex.has(value, "[", "->", "{") or any(True for _ in ex.addresses(value)):
            return False
        if any(self._own_function(name) for name in ex.calls(value) if name in FUNCTIONS):
            return False
        return not (ex.names(value) - names - WORDS - CASTS).intersection(self._varying)

    # ---- Changes ----------------------------------------------------------------------------------------------------

    def _walk(self, at: int, stop: int, conditions: Conditions) -> None:
        while at < stop:
            end = statement_end(self._tokens, at)
            self._statement(at, end, conditions)
            at = end

    def _statement(self, at: int, stop: int, conditions: Conditions) -> None:
        tokens, word = self._tokens, self._tokens[at].text
        if word == "{":
            self._walk(at + 1, stop - 1, conditions)
        elif word == "if":
            close = ex.closing(tokens, at + 1)
            end = statement_end(tokens, close + 1)
            self._walk(close + 1, end, (*conditions, tokens[at + 2 : close]))
            self._walk(end + 1, stop, (*conditions, tokens[at + 2 : close]))
        elif word in LOOPS:
            self._loop(at, stop, conditions)
        else:
            self._plain(at, stop, conditions)

    def _loop(self, at: int, stop: int, conditions: Conditions) -> None:
        tokens, close = self._tokens, ex.closing(self._tokens, at + 1)
        if tokens[at].text == "for" and len(ex.split(tokens[at + 2 : close], ";")) != 3:
            return
        loop = parts(tokens, at, stop)
        if loop.start:
            self._plain(at + 2, at + 2 + len(loop.start), conditions)
        # Who leaves the loop, or a round of it, does not do what comes behind, or not as often.
        leaving = [part for found in exits(tokens[loop.body : loop.end]) for part in found]
        inner = (*conditions, loop.condition, *leaving)
        self._expressions(close - len(loop.steps), close if loop.steps else 0, inner)
        self._walk(loop.body, loop.end, inner)

    def _plain(self, at: int, stop: int, conditions: Conditions) -> None:
        """A declaration or an expression, with its semicolon."""
        tokens = self._tokens
        found = list(declarations(tokens[at:stop]))
        if not found or found[0].at == 0:
            self._expressions(at, stop - 1, conditions)
            return
        for one in found:
            equals = tokens[at + one.at + 1]
            if one.name in self._numbers and equals.text == "=":
                self._masked.add(equals.start)
                self._changes.append(Change(one.name, one.value, ()))

    def _expressions(self, at: int, stop: int, conditions: Conditions) -> None:
        """`name = value`, `name += value`, `name++` and their like, with commas between them."""
        for part in ex.split(self._tokens[at:stop]) if at < stop else []:
            words = ex.texts(part)
            name, operator, value = 0, 1, part[2:]
            if len(words) == 2 and words[0] in STEPS:
                name, operator, value = 1, 0, part[:0]
            known = len(words) == 2 and words[operator] in STEPS
            known = known or (len(words) > 2 and words[1] in ASSIGNMENTS)
            if known and words[name] in self._numbers:
                self._masked.add(part[operator].start)
                self._changes.append(Change(words[name], value, conditions))

    def _without_votes(self, value: Tokens) -> Tokens:
        """The value with a number in the place of a vote of the block."""
        votes = [at for at, token in enumerate(value) if token.text in VOTES]
        if len(votes) != 1 or self._own_function(value[votes[0]].text) or ex.texts(value[votes[0] + 1 :])[:1] != ["("]:
            return value
        end = ex.closing(value, votes[0] + 1)
        return [*value[: votes[0]], value[votes[0]]._replace(text="1", kind=NUMBER), *value[end + 1 :]]


def _is_number(tokens: Tokens, at: int, kind: Tokens) -> bool:
    """Whether what is declared there is a plain number."""
    words = ex.without(kind, "const", "constexpr")
    behind = ex.texts(tokens[at + 1 : at + 2])
    return bool(words) and ex.ARITHMETIC.issuperset(words) and bool(behind) and behind[0] in ("=", ";", ",")


def _bound(tokens: Tokens) -> Set[str]:
    """The names of `auto [a, b] = …`."""
    found: Set[str] = set()
    for at in range(1, len(tokens)):
        if tokens[at].text == "[" and tokens[at - 1].text in ("auto", "&", "&&"):
            found |= ex.names(tokens[at : ex.closing(tokens, at)])
    return found
