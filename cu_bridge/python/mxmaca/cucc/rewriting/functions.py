"""The functions of one text that wait, by themselves or by others that they call, and what their heads say.

They are looked for from the waits outwards, so a text whose functions do not wait costs a search for a few words.
Functions of system headers are not among them: they are not the program's, and there is more to them than is read here.
"""

import bisect
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import CuccError
from . import expressions as ex
from .callees import BEHIND, OPERATORS
from .declarations import PREFIX, behind_attributes
from .expressions import Tokens
from .kernels import Kernel
from .source import CLOSERS, LITERAL, OTHER, WORD, Source, Token, word_set
from .waits import BLOCK, WAITS, Unfit

# `sync` of a group that is a parameter: no other word shows that such a function waits.
OF_TILES = ("shfl", "shfl_up", "shfl_down", "shfl_xor", "any", "all", "ballot", "reduce")
WAITING = (*sorted(word for word in WAITS if not word.startswith("__tile_")), BLOCK, "sync")
BLOCKS = word_set("else do try")
CONDITIONS = word_set("if for while switch constexpr catch")
# What may stand before a function's type and says nothing of its values.
DECORATIONS = word_set("static inline __inline__ __inline constexpr __noinline__ extern") | {
    PREFIX + "device__",
    PREFIX + "host__",
}
# What stands behind a name where it is declared.
DECLARED = frozenset("=;([{:,")
NO_FUNCTION = word_set("friend virtual operator explicit template typename class struct enum using") | {
    PREFIX + "global__"
}


class Parameter(NamedTuple):
    """A parameter of a function, or of a template: those that are types have no tokens of a type."""

    kind: Tokens
    name: str
    default: Tokens


class Function(NamedTuple):
    """A function's definition."""

    name: str
    start: int
    end: int
    templates: Sequence[Parameter]
    result: Tokens
    parameters: Sequence[Parameter]
    body: Tokens  # between its braces
    scope: Tuple[str, ...]


def glued(tokens: Tokens) -> List[Token]:
    """The tokens with `<<` and `>>` as one each, so that they can be written anew with spaces."""
    made: List[Token] = []
    for token in tokens:
        last = made[-1] if made else None
        if last is not None and last.text == token.text and token.text in "<>" and last.end == token.start:
            made[-1] = Token(token.text * 2, last.start, token.end, token.kind)
        else:
            made.append(token)
    return made


def opener_of(tokens: Tokens, of: int) -> int:
    """The parenthesis of a call whose name stands there, also behind template arguments."""
    at, depth = of + 1, 0
    while at < len(tokens) and (depth or tokens[at].text != "("):
        depth += (tokens[at].text == "<") - (tokens[at].text == ">")
        at = ex.closing(tokens, at) + 1 if tokens[at].text in CLOSERS else at + 1
    return at


class Functions:
    """The functions of one text that wait."""

    def __init__(self, source: Source, kernels: Sequence[Kernel]) -> None:
        self.source = source
        self.bodies = sorted((kernel.body, kernel.end) for kernel in kernels)
        self._names: Optional[Set[str]] = None
        self._parsed: Dict[str, List[Function]] = {}
        self.standard: Set[str] = set()  # names of the standard library, found by their arguments
        self._braces: Dict[int, int] = {}  # the brace around a place that was asked for
        self._known: List[int] = []  # these places, in order
        self._paths: Dict[int, Tuple[str, ...]] = {-1: ()}

    @property
    def names(self) -> Set[str]:
        """Their unqualified names; methods' are among them."""
        if self._names is None:
            self._names = set()
            pending: List[str] = []
            # Tiles are looked for where there are any: their methods have names that others have as well.
            tiles = any(True for _ in self.source.find("tiled_partition"))
            for word in (*WAITING, *(OF_TILES if tiles else ())):
                self._note(word, pending)
            while pending:
                self._note(pending.pop(), pending)
        return self._names

    def _note(self, word: str, pending: List[str]) -> None:
        """The functions in whose bodies the word is called."""
        assert self._names is not None
        for token in self.source.find(word):
            if self.source.is_system(token.start) or self._in_kernel(token.start):
                continue
            if self.source.token(token.end).text not in ("(", "<"):
                continue
            if word in OF_TILES and self.source.before(token.start).text not in (".", "::"):
                continue
            name = self._enclosing(token.start)
            # `sync` of groups is looked at as such (waits.py), also where their header is no system header.
            if name and name not in self._names and name not in WAITING:
                self._names.add(name)
                pending.append(name)

    def _in_kernel(self, place: int) -> bool:
        at = bisect.bisect_right(self.bodies, (place,)) - 1
        return at >= 0 and place < self.bodies[at][1]

    def _enclosing(self, place: int) -> str:
        """The name of the function in whose body the place is."""
        source = self.source
        brace = self._brace(place)
        while brace >= 0:
            before = source.before(brace)
            while before.text in BEHIND:
                before = source.before(before.start)
            if before.text == ")":
                word = source.before(source.opening(before.start))
                if word.kind == WORD and word.text not in CONDITIONS:
                    return word.text
                if word.text not in CONDITIONS:
                    return ""
            elif before.text not in BLOCKS and before.text not in (";", "{", "}", ":"):
                return ""
            brace = self._brace(brace)
        return ""

    # ---- Definitions ------------------------------------------------------------------------------------------------

    def of(self, name: str, arguments: int, where: Token) -> List[Function]:
        """The functions of the name, methods apart, that take so many arguments, waiting or not.

        Raises:
            Unfit: one of them is not understood.
        """
        if name not in self._parsed:
            try:
                self._parsed[name] = list(self._definitions(name))
            except (Unfit, CuccError) as problem:
                raise Unfit(f"'{name}' waits, and its head is not understood ({problem})", where) from None
        return [
            one
            for one in self._parsed[name]
            if sum(not parameter.default for parameter in one.parameters) <= arguments <= len(one.parameters)
        ]

    def _definitions(self, name: str) -> Iterator[Function]:
        source = self.source
        for token in source.find(name):
            opener = source.token(token.end)
            specialised = opener.text == "<"
            if specialised:
                angle = source.closing_angle(opener.start)
                opener = opener if angle is None else source.token(angle + 1)
            if opener.text != "(" or source.before(token.start).text in OPERATORS:
                continue
            behind = source.token(behind_attributes(source, source.closing(opener.start) + 1))
            while behind.text in BEHIND:
                behind = source.token(behind_attributes(source, behind.end))
            if behind.text == "->":
                raise Unfit("its type stands behind its parameters")
            if behind.text != "{" or self._in_kernel(token.start):
                continue
            if source.before(token.start).text in CONDITIONS or self._enclosing(token.start):
                continue
            scope = self.scope(token.start)
            if any(part.startswith("class ") for part in scope):
                continue
            if scope[:1] == ("std",) and "using namespace std;" not in source.text:
                self.standard.add(name)
                continue
            if specialised:
                raise Unfit("it is specialised")
            yield self._parse(token, opener, behind)

    def _parse(self, name: Token, opener: Token, brace: Token) -> Function:
        source = self.source
        start = source.declaration_start(name.start)
        result: List[Token] = []
        head = [token for token in source.tokens(start, name.start) if token.kind != LITERAL]
        at = 0
        while at < len(head):
            if head[at].text in ("__attribute__", "alignas"):
                at = ex.closing(head, at + 1)
            elif head[at].text not in DECORATIONS:
                result.append(head[at])
            at += 1
        if not result or result[-1].text in ("::", "~") or ex.has(result, *NO_FUNCTION):
            raise Unfit("it is no plain function")
        end = source.closing(brace.start)
        parameters = [
            self._parameter(glued(list(source.tokens(first, last))))
            for first, last in source.split(opener.end, source.closing(opener.start))
            if source.flat(first, last) != "void"
        ]
        body = glued(list(source.tokens(brace.end, end)))
        templates = self.templates(start)
        return Function(name.text, start, end + 1, templates, result, parameters, body, self.scope(name.start))

    def templates(self, start: int) -> List[Parameter]:
        """The template parameters of the declaration that begins there.

        Raises:
            Unfit: they are not understood.
        """
        source = self.source
        angle = source.before(start)
        if angle.text != ">":
            return []
        opener = source.opening_angle(angle.start)
        word = source.before(opener)
        if word.text != "template" or source.before(word.start).text == ">":
            raise Unfit("its type is not understood")
        found = []
        for first, last in source.split(opener + 1, angle.start):
            tokens = glued(list(source.tokens(first, last)))
            at = ex.texts(tokens).index("(") if ex.has(tokens, "(") else 0
            if at and ex.texts(tokens[at + 1 : at + 2] + tokens[at + 3 : at + 5]) == ["*", ")", "("]:
                found.append(Parameter(tokens, tokens[at + 2].text, []))  # a pointer to a function
                continue
            if ex.has(tokens, "...", "template", "(") or len(tokens) < 2:
                raise Unfit("its template parameters are not understood")
            equals = next((at for at, token in enumerate(tokens) if token.text == "="), len(tokens))
            kind, default = tokens[: equals - 1], tokens[equals + 1 :]
            kind = [] if ex.texts(kind) in (["class"], ["typename"]) else kind
            if tokens[equals - 1].kind != WORD:
                raise Unfit("its template parameters are not understood")
            found.append(Parameter(kind, tokens[equals - 1].text, default))
        return found

    def _parameter(self, tokens: Tokens) -> Parameter:
        equals = next((at for at, token in enumerate(tokens) if token.text == "="), len(tokens))
        declared, default = list(tokens[:equals]), tokens[equals + 1 :]
        array = _array(declared)
        if array is not None:
            return array
        if ex.texts(declared[-1:]) == ["]"]:
            bracket = ex.opening(declared, len(declared) - 1)
            name = declared[bracket - 1]
            # What is declared as an array is a pointer.
            declared = [*declared[: bracket - 1], Token("*", name.start, name.start, name.kind), name]
        if ex.has(declared, "...", "(", "[", "&&") or sum(token.kind == WORD for token in declared) < 2:
            raise Unfit("a parameter is not understood")
        if declared[-1].kind != WORD or declared[-1].text in ex.ARITHMETIC:
            raise Unfit("a parameter has no name")
        return Parameter(declared[:-1], declared[-1].text, default)

    # ---- Scopes -----------------------------------------------------------------------------------------------------

    def scope(self, place: int) -> Tuple[str, ...]:
        """The namespaces with names around a place, and "class …" for what else it is in."""
        return self._path(self._brace(place))

    def _path(self, brace: int) -> Tuple[str, ...]:
        if brace not in self._paths:
            head = list(self.source.tokens(self.source.declaration_start(brace), brace))
            words = [token.text for token in head if token.text not in ("inline", "::")]
            outer = self._path(self._brace(brace))
            if words[:1] == ["extern"] and head[-1].kind == LITERAL:
                self._paths[brace] = outer
            elif words[:1] == ["namespace"]:
                self._paths[brace] = (*outer, *words[1:])
            else:
                self._paths[brace] = (*outer, "class " + " ".join(words))
        return self._paths[brace]

    def _brace(self, place: int) -> int:
        """The innermost brace around the place, or -1. Places that were asked for before shorten the way."""
        if place in self._braces:
            return self._braces[place]
        text, depth, at = self.source.text, 1, place
        index = bisect.bisect_left(self._known, place) - 1
        while at >= 0 and depth:
            at = max(text.rfind("{", 0, at), text.rfind("}", 0, at))
            if index >= 0 and at < self._known[index]:
                # Between a place that is known and the brace around it all braces are pairs.
                at = self._braces[self._known[index]]
                depth -= 1
                index = bisect.bisect_left(self._known, at) - 1
            elif at >= 0 and self.source.is_code(at):
                depth += 1 if text[at] == "}" else -1
        self._braces[place] = at
        bisect.insort(self._known, place)
        return at

    def check_names(self, function: Function, names: Set[str], kernel: Kernel, where: Token) -> None:
        """That names mean in a kernel what they mean in a function: nothing of the kind is declared between the two.

        Raises:
            Unfit: they may mean something else.
        """
        source = self.source
        if function.scope != self.scope(kernel.start):
            raise Unfit(f"'{function.name}' waits and is in another namespace", where)
        start, end = (function.end, kernel.start) if function.start < kernel.start else (kernel.end, function.start)
        for token in source.find_between("using", start, end):
            if source.token(source.token(token.end).end).text != "=" and not self._enclosing(token.start):
                raise Unfit(f"there is a `using` between '{function.name}', which waits, and the kernel", where)
        for name in sorted(names):
            for token in source.find_between(name, start, end):
                before = source.before(token.start)
                kind = before.kind == WORD and before.text not in ex.NO_TYPES
                behind = source.token(token.end).text
                if not (kind or before.text in ("*", "&", ">")) or behind not in DECLARED:
                    continue
                if self._in_kernel(token.start):
                    continue
                inside = any(part.startswith("class ") for part in self.scope(token.start))
                if not inside and not self._enclosing(token.start):
                    raise Unfit(f"'{name}' may mean another one in '{function.name}', which waits", where)


def _array(declared: Tokens) -> Optional[Parameter]:
    """A parameter that is an array of several dimensions, or a reference to one: `a[4][8]`, `(*a)[8]`, `(&a)[8]`.

    Each dimension is a `[` in its type.
    """
    end, dimensions = len(declared), 0
    while end and declared[end - 1].text == "]":
        end, dimensions = ex.opening(declared, end - 1), dimensions + 1
    name = declared[end - 1] if end else None
    if end > 4 and ex.texts(declared[end - 1 : end]) == [")"] and declared[end - 4].text == "(":
        name = declared[end - 2]
        dimensions += declared[end - 3].text == "*"
        end -= 3
        if declared[end].text not in ("*", "&"):
            return None
    elif dimensions < 2:
        return None
    if name is None or name.kind != WORD or dimensions < 1:
        return None
    brackets = [Token("[", name.start, name.start, OTHER)] * dimensions
    return Parameter([*declared[: end - 1], *brackets], name.text, [])
