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

A condition may also read memory, at a place that is the same for all threads: they are asked in a loop of their own, in
which nobody stores. A variable may get its value there only through a pointer to constants, as others may store before
the last thread has read.
"""

from typing import AbstractSet, Counter, Dict, List, NamedTuple, Optional, Set, Tuple

from .. import expressions as ex
from ..expressions import ASSIGNMENTS, CASTS, INTEGERS, STEPS, Tokens
from ..source import NUMBER, OTHER, Source, Token, word_set
from ..types import declarations
from ..waits import VOTES, is_overloaded, statement_end
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


class Memory(NamedTuple):
    """What a kernel's threads share."""

    variables: AbstractSet[str]  # the words of declarations of shared and device variables
    pointers: Dict[str, bool]  # parameters that never change, and whether they lead to constants


class Common:
    """The variables of one kernel that have one value for all threads at each place that all threads come to.

    Args:
        source: the program.
        tokens: of the body.
        fixed: the kernel's parameters that never change.
        others: its other parameters, and whether they are plain numbers.
        memory: what may be read.
        handed: names that a call may change.
    """

    def __init__(
        self,
        source: Source,
        tokens: Tokens,
        fixed: AbstractSet[str],
        others: Dict[str, bool],
        memory: Memory,
        handed: AbstractSet[str],
    ) -> None:
        self._source, self._tokens, self._fixed, self._others, self._handed = source, tokens, fixed, others, handed
        self._memory, self._pointers = memory.variables, memory.pointers
        self._changes: List[Change] = []
        self._masked: Set[int] = set()  # operators of changes that are looked at
        self._names: Optional[Set[str]] = None
        self._declared: Counter[str] = Counter()  # how often the body declares a name
        self._arrays: AbstractSet[str] = frozenset()  # behind these stand brackets wherever they are read
        self._numbers: Set[str] = set()
        self._varying: Set[str] = set()

    def has(self, value: Tokens) -> bool:
        """Whether an expression has one value for all threads, and no effect.

        Raises:
            Unfit: a statement of the kernel is not understood.
        """
        if self._names is None:
            self._names = self._found()
        return self._is_of(self._names, self._without_reads(self._names, value, self._memory | self._pointers.keys()))

    def reads(self, value: Tokens) -> bool:
        """Whether such an expression reads memory."""
        return bool(ex.names(value) & (self._memory | self._pointers.keys()))

    def _found(self) -> Set[str]:
        """The variables."""
        tokens = self._tokens
        found = list(declarations(tokens))
        self._declared.update(one.name for one in found)
        self._arrays = self._pointers.keys() | {one.name for one in found if one.dimensions}
        words = {one.name for one in found} | _bound(tokens)
        more = {one.name for one in found if not _is_number(tokens, one.at, one.kind)} | _bound(tokens)
        self._numbers = words - more - self._fixed - self._others.keys()
        self._numbers |= {name for name, number in self._others.items() if number and name not in words}
        self._walk(0, len(tokens), ())
        rest = [Token(",", one.start, one.end, OTHER) if one.start in self._masked else one for one in tokens]
        # One that changes in another way than is seen here is none.
        names = {name for name in self._numbers - self._memory if not (name in self._handed or ex.modified(name, rest))}
        self._varying = words | self._others.keys() | self._memory | {"threadIdx"}
        while True:
            gone = {
                change.name
                for change in self._changes
                if not all(self._is_alike(names, part) for part in (change.value, *change.conditions))
            }
            if not gone & names:
                return names
            names -= gone

    def _is_alike(self, names: Set[str], part: Tokens) -> bool:
        """The same of a part of a change, which may hold a vote of the block, and read constants."""
        constants = {name for name, constant in self._pointers.items() if constant}
        return self._is_of(names, self._without_reads(names, self._without_votes(part), constants))

    def _without_reads(self, names: Set[str], value: Tokens, memory: AbstractSet[str]) -> Tokens:
        """The value with numbers in the place of what is read there, at places that are the same for all threads."""
        made: List[Token] = []
        at = 0
        while at < len(value):
            token, behind = value[at], at + 1
            member = at > 0 and value[at - 1].text in (".", "->", "::")
            while ex.texts(value[behind : behind + 1]) == ["["]:
                close = ex.closing(value, behind)
                index = self._without_reads(names, value[behind + 1 : close], memory)
                if not index or not self._is_of(names, index):
                    return value
                behind = close + 1
            known = self._declared[token.text] == (token.text not in self._pointers)
            if token.text in memory and known and not member and (behind > at + 1) == (token.text in self._arrays):
                while ex.texts(value[behind : behind + 1]) == ["."]:
                    behind += 2
                pointed = at > 0 and value[at - 1].text in ("&", "*") and ex.is_unary(value, at - 1)
                if pointed or ex.texts(value[behind : behind + 1]) in (["("], ["->"]):
                    return value
                token = token._replace(text="1", kind=NUMBER)
            elif behind > at + 1:
                return value
            made.append(token)
            at = behind
        return made

    def _is_of(self, names: Set[str], value: Tokens) -> bool:
        """Whether an expression is made of these variables, and of what is the same for all threads."""
        if not ex.is_known(value, WORDS | FUNCTIONS) or ex.dereferences(value) or ex.changes(value):
            return False
        if ex.has(value, "[", "->", "{") or any(True for _ in ex.addresses(value)):
            return False
        if any(is_overloaded(self._source, name) for name in ex.calls(value) if name in FUNCTIONS):
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
        if (
            len(votes) != 1
            or is_overloaded(self._source, value[votes[0]].text)
            or ex.texts(value[votes[0] + 1 :])[:1] != ["("]
        ):
            return value
        end = ex.closing(value, votes[0] + 1)
        return [*value[: votes[0]], value[votes[0]]._replace(text="1", kind=NUMBER), *value[end + 1 :]]


def leads_to_constants(declared: Tokens) -> bool:
    """Whether a pointer is declared as one to constants."""
    star = next((at for at, token in enumerate(declared) if token.text == "*"), 0)
    return ex.has(declared[:star], "const") and ex.texts(declared).count("*") == 1


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
