"""What the functions do that kernels call, as far as their definitions in the same text show it.

Asked is one thing: whether a call may wait for other threads. In doubt: it may.
"""

from typing import AbstractSet, Dict, FrozenSet, Iterator, NamedTuple, Optional, Set

from . import expressions as ex
from .declarations import behind_attributes
from .expressions import CASTS, Tokens
from .source import WORD, Source, word_set
from .waits import Unfit, spin, template_words

# Words that stand before a parenthesis and call nothing.
STATEMENTS = word_set("if for while switch return sizeof alignof do else")
# Assembler may hold a barrier; the rest may bring control to where no token shows it.
UNKNOWN = word_set("asm __asm__ __asm try catch throw goto operator")
BEHIND = frozenset(["const", "noexcept", "override", "final", "volatile", "&", "&&"])
# Behind them a name is called and not defined.
OPERATORS = word_set("? + - / % ( , = | || && == != <= >= < += -= !") | {"return"}


class Callee(NamedTuple):
    """All definitions of a name: none of them waits. `references`: positions of arguments that they may change."""

    references: FrozenSet[int]


def changed(tokens: Tokens, of: int, callee: Callee) -> Set[str]:
    """The variables that the call at `of` may change. What indices are made of is only read."""
    if not callee.references:
        return set()
    opener = next(at for at in range(of, len(tokens)) if tokens[at].text == "(")
    found: Set[str] = set()
    for position, argument in enumerate(ex.split(tokens[opener + 1 : ex.closing(tokens, opener)])):
        if position in callee.references:
            found |= ex.names([one for at, one in enumerate(argument) if not ex.in_brackets(argument, at)])
    return found


def calls(tokens: Tokens) -> Iterator[int]:
    """The places of the words that are called, those with template arguments among them."""
    for at in range(len(tokens) - 1):
        if tokens[at + 1].text != "(":
            continue
        of = at
        if tokens[at].text == ">":
            depth = 0
            while of >= 0 and (depth or of == at):
                depth += (tokens[of].text == ">") - (tokens[of].text == "<")
                of -= 1
        if of >= 0 and tokens[of].kind == WORD:
            yield of


class Callees:
    """The functions of one text.

    Args:
        waits: words of which none may stand in a function that does not wait.
        known: functions that are known not to wait, and to change nothing but what they get the address of.
    """

    def __init__(self, source: Source, waits: AbstractSet[str], known: AbstractSet[str]) -> None:
        self.source, self.waits = source, waits
        self.known = known | STATEMENTS | CASTS
        self._found: Dict[str, Optional[Callee]] = {}

    def of(self, name: str) -> Optional[Callee]:
        """What is known of all functions of the name, if they do not wait."""
        # The host compiler's own functions wait for nobody; one gives an address.
        if name in self.known or (name.startswith("__builtin_") and name != "__builtin_addressof"):
            return Callee(frozenset())
        if name not in self._found:
            before = set(self._found)
            # Meanwhile it counts as one: what calls itself, or another of its name, does no more than the rest of it.
            self._found[name] = Callee(frozenset())
            found = self._look(name)
            for other in set(self._found) - before if found is None else ():
                if self._found[other] is not None:
                    del self._found[other]  # it may have been taken for one by what is none
            self._found[name] = found
        return self._found[name]

    def _look(self, name: str) -> Optional[Callee]:
        found = False
        references: Set[int] = set()
        for token in self.source.find(name):
            opener = self.source.token(token.end)
            if opener.text == "<":  # a specialisation
                angle = self.source.closing_angle(opener.start)
                opener = opener if angle is None else self.source.token(angle + 1)
            if opener.text != "(":
                continue
            close = self.source.closing(opener.start)
            behind = self.source.token(behind_attributes(self.source, close + 1))
            while behind.text in BEHIND:
                behind = self.source.token(behind_attributes(self.source, behind.end))
            if behind.text in (":", "->") and self.source.before(token.start).text not in OPERATORS:
                return None  # a constructor, or a type behind: not looked into
            if behind.text != "{":
                continue
            found = True
            result = list(self.source.tokens(self.source.declaration_start(token.start), token.start))
            by_reference = ex.has(list(self.source.tokens(opener.end, close)), "&", "&&")
            if by_reference and ex.has(result, "&", "&&", "*", "auto", "decltype"):
                return None  # it may give away where an argument lies
            parameters = list(self.source.tokens(opener.end, close))
            body = list(self.source.tokens(behind.end, self.source.closing(behind.start)))
            words = template_words(self.source, token.start)
            # What is called by the name of a type is a cast, as `static_cast` is.
            types = {name for before, name in zip(words, words[1:]) if before in ("class", "typename")}
            own = (ex.declared(parameters) | ex.declared(body)) - types
            if not self._is_harmless(body, own, types):
                return None
            for position, (start, end) in enumerate(self.source.split(opener.start + 1, close)):
                parameter = list(self.source.tokens(start, end))
                if ex.has(parameter, "..."):
                    return None
                star = max((at for at, one in enumerate(parameter) if one.text == "*"), default=0)
                if ex.has(parameter, "&", "&&") and not ex.has(parameter[star:], "const"):
                    references.add(position)
        return Callee(frozenset(references)) if found else None

    def _is_harmless(self, body: Tokens, variables: AbstractSet[str], types: AbstractSet[str]) -> bool:
        """Whether the body waits for nothing, and keeps nobody's address. What its variables do is not known."""
        if any(token.text in self.waits or token.text in UNKNOWN for token in body):
            return False
        try:
            if any(True for _ in ex.addresses(body)) or spin(body) is not None:
                return False
        except Unfit:
            return False
        names: Set[str] = {body[at].text for at in calls(body)} - types
        if not names.isdisjoint(variables) or ex.calls_unnamed(body):
            return False
        return all(self.of(name) is not None for name in names)


def unknown(statement: Tokens, harmless: AbstractSet[str]) -> str:
    """Why the statement is none of those that are known to wait for nothing, and to hide nothing."""
    called = sorted({statement[of].text for of in calls(statement)} - ex.PURE - ex.EFFECTS - CASTS - harmless)
    words = sorted(ex.FORBIDDEN.intersection(ex.texts(statement)))
    if called:
        return f"'{called[0]}' is called, which may wait"
    return f"'{words[0]}' is not understood" if words else "a statement that is not understood"
