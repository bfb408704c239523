"""Functions that wait are taken into the kernels that call them, so that these become phases (phases.py).

Note: taking a function in
~~~~~~~~~~~~~~~~~~~~~~~~~~
A call within a statement becomes statements before it, and its value a variable:

    __device__ float sum(float v) {              float v_1 = x[t] * 2;
      for (int o = 16; o > 0; o >>= 1)           for (int o_1 = 16; o_1 > 0; o_1 >>= 1)
        v += __shfl_xor_sync(~0u, v, o);    →      v_1 += __shfl_xor_sync(~0u, v_1, o_1);
      return v;
    }
    … y[t] = sum(x[t] * 2) + 1;                  y[t] = v_1 + 1;

Names of the function's own get the call's number. Names of outside must mean the same in the kernel: its variables of
such a name are renamed, and nothing of that name may be declared between the two (functions.py). A shared variable of
the function is one for all its calls with the same template arguments, and stands at the kernel's beginning.

The order of evaluation stays one that C++ allows: what stands before the call in its statement may change nothing and
must be evaluated in any case. Types are needed for template arguments that a call does not name and for references;
where the tokens do not show them (types.py), or anything else is not understood, the kernel keeps its threads' stacks.
The stacks' version of the kernel is the user's text either way; this one is for the phases alone.
"""

import bisect
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import expressions as ex
from .callees import Callee, Callees, calls, changed
from .expressions import Tokens
from .functions import Function, Functions, Parameter, glued, opener_of
from .kernels import Kernel, default
from .source import NUMBER, WORD, Source, Token
from .substitution import (
    EVERYWHERE,
    check_order,
    constant_value,
    is_function,
    last_statement,
    one_each,
    outer_names,
    substituted,
    tokens_of,
    without_constexpr,
)
from .types import RANKS, SMALL, Type, Types, declarations, is_operation, of_kind
from .waiting import groups
from .waiting.returns import converted
from .waits import ALL_LANES, BLOCK, SHUFFLES, WAITS, Unfit, statement_end

SHARED = "__mxmaca_shared__"
SUFFIX = "_mxmaca"
NUMBERED = re.compile(SUFFIX + r"\d+")
# A kernel that is longer is no faster to compile for being in phases.
MOST_TOKENS, MOST_CALLS = 40000, 200


class Expanded(NamedTuple):
    """A kernel with the functions that wait in it, as a text of its own."""

    source: Source
    kernel: Kernel
    places: Sequence[Tuple[int, int]]  # in this text, in the program's

    def place(self, place: int) -> int:
        """Where in the program stands what this text has at a place."""
        return self.places[max(bisect.bisect_right(self.places, (place, len(self.source.text) * 9)) - 1, 0)][1]


class Hidden(Exception):
    """A variable of the kernel has the name of something else that a function means."""


def expand(source: Source, kernel: Kernel, functions: Functions, called: Optional[Callees]) -> Optional[Expanded]:
    """The kernel with the functions that wait in it; none if it calls none.

    Raises:
        Unfit: one of them cannot be taken in.
    """
    tokens = list(source.tokens(kernel.body + 1, kernel.end - 1))
    if not any(tokens[of].text in functions.names for of in calls(tokens)) and not ex.has(tokens, groups.PARTITION):
        return None
    tokens = glued(tokens)
    declared = {one.name for one in declarations(tokens)}
    renamed: Set[str] = set()
    while True:
        inliner = Inliner(source, kernel, functions, called, declared - renamed)
        mapping = {name: [Token(f"{name}{SUFFIX}0", 0, 0, WORD)] for name in renamed}
        try:
            return inliner.text(substituted(tokens, mapping))
        except Hidden as name:
            if str(name) in renamed or str(name) not in declared:
                why = f"a function that waits means another '{name}' than the kernel"
                raise Unfit(why, tokens[0]) from None
            renamed.add(str(name))


def refuse(source: Source, kernel: Kernel, functions: Functions) -> None:
    """Say so of a kernel that calls functions that wait, where the compiler has not taken what it became.

    Raises:
        Unfit: it calls one.
    """
    tokens = list(source.tokens(kernel.body + 1, kernel.end - 1))
    for of in calls(tokens):
        if tokens[of].text in functions.names:
            raise Unfit(f"'{tokens[of].text}' waits, and what the kernel becomes with it does not compile", tokens[of])


class Inliner:
    """One kernel."""

    def __init__(
        self,
        source: Source,
        kernel: Kernel,
        functions: Functions,
        called: Optional[Callees],
        declared: Set[str],
    ) -> None:
        self.source, self.kernel, self.functions, self.called = source, kernel, functions, called
        self.types = Types()
        self.hoisted: List[Token] = []  # declarations of functions' shared memory
        self.copies: Dict[Tuple[str, ...], Dict[str, List[Token]]] = {}
        self.count = self.size = 0
        self.tiles: Dict[str, groups.Tile] = {}  # those that are declared so far
        self.parameters = [
            glued(list(source.tokens(start, default(source, start, end)))) for start, end in kernel.parameters
        ]
        own = [tokens[-1].text for tokens in self.parameters if len(tokens) > 1 and tokens[-1].kind == WORD]
        start = source.declaration_start(kernel.start)
        self.names = declared | set(own) | {one.name for one in functions.templates(start)}

    def text(self, tokens: Tokens) -> Expanded:
        """The kernel's text.

        Raises:
            Unfit: there is none.
            Hidden: a variable of the kernel has to be renamed.
        """
        for parameter in self.parameters:
            if len(parameter) > 1 and parameter[-1].kind == WORD:
                self.types.declare(parameter[-1].text, of_kind(parameter[:-1]))
        self.types.declare_all(tokens)
        self.tiles.update(groups.tiles(self.source, tokens))
        body = self._statements(tokens, ())
        body = groups.with_types(groups.lowered(self.source, body, self.types), self.types)
        text = f"void {self.kernel.name}("
        parameters: List[Tuple[int, int]] = []
        for parameter in self.parameters:
            text += ", " if parameters else ""
            spelled = " ".join(ex.texts(parameter))
            parameters.append((len(text), len(text) + len(spelled)))
            text += spelled
        begin = len(text) + 2
        pieces, places, at = [text, ") {"], [(0, self.kernel.body)], begin + 1
        new, depth = True, 0
        for token in [*self.hoisted, *body]:
            piece = (self.source.marker(token.start, quiet=False) if new else " ") + token.text
            pieces.append(piece)
            at += len(piece)
            places.append((at - len(token.text), token.start))
            depth += (token.text == "(") - (token.text == ")")
            new = token.text in (";", "{", "}") and depth == 0
        pieces.append("\n}")
        kernel = Kernel(0, self.kernel.name, parameters, begin, at + 2, self.kernel.bound)
        return Expanded(Source("".join(pieces)), kernel, places)

    # ---- Statements -------------------------------------------------------------------------------------------------

    def _statements(self, tokens: Tokens, active: Tuple[str, ...]) -> List[Token]:
        made: List[Token] = []
        at = 0
        while at < len(tokens):
            stop = statement_end(tokens, at)
            made += self._statement(tokens[at:stop], active)
            at = stop
        return made

    def _braced(self, statement: Tokens, active: Tuple[str, ...]) -> List[Token]:
        inner = statement[1:-1] if statement[0].text == "{" else statement
        return [*tokens_of("{", statement[0]), *self._statements(inner, active), *tokens_of("}", statement[-1])]

    def _statement(self, statement: Tokens, active: Tuple[str, ...]) -> List[Token]:
        self.size += len(statement)
        if self.size > MOST_TOKENS:
            raise Unfit("the functions that wait make it too long", statement[0])
        if not self._waiting(statement):
            return list(statement)
        word = statement[0].text
        if word == "{":
            return self._braced(statement, active)
        if word in ("if", "for", "while"):
            close = ex.closing(statement, 1)
            made, head = self._without_calls(statement[2:close], active)
            if made and word != "if":
                raise Unfit(f"a function that waits is called in the head of a `{word}`", statement[0])
            end = statement_end(statement, close + 1) if word == "if" else len(statement)
            made += [*statement[:2], *head, statement[close], *self._braced(statement[close + 1 : end], active)]
            if end < len(statement):
                made += [statement[end], *self._braced(statement[end + 1 :], active)]
            return made
        if word in ("do", "switch", "return"):
            raise Unfit(f"a function that waits is called within a `{word}`", statement[0])
        made = []
        for one in one_each(statement):
            before, rest = self._without_calls(one, active)
            made += before + (rest if ex.texts(rest) != [";"] else [])
        return made

    def _waiting(self, tokens: Tokens) -> List[int]:
        """The calls of functions that wait."""
        names = self.functions.names
        return [of for of in calls(tokens) if tokens[of].text in names and is_function(tokens, of)]

    def _without_calls(self, tokens: Tokens, active: Tuple[str, ...]) -> Tuple[List[Token], List[Token]]:
        """What the functions do that an expression or a statement calls, and the rest of it."""
        made: List[Token] = []
        rest = list(tokens)
        while True:
            found = [(of, ex.closing(rest, opener_of(rest, of))) for of in self._waiting(rest)]
            # Arguments come first.
            inner = [(of, end) for of, end in found if not any(of < other < end for other, _ in found)]
            if not inner:
                return made, rest
            start, end = inner[0]
            alone = ex.texts(rest[end + 1 :]) == [";"]
            before = rest[:start]
            if ex.texts(before[-1:]) == ["::"]:
                before = before[:-1]
                if before and before[-1].kind == WORD and before[-1].text not in ("return", "else"):
                    raise Unfit(f"'{rest[start].text}', which waits, is called by the name of its scope", rest[start])
            check_order(before, rest[start])
            opener = opener_of(rest, start)
            explicit = ex.split(rest[start + 2 : opener - 1]) if opener > start + 1 else []
            arguments = ex.split(rest[opener + 1 : end]) if end > opener + 1 else []
            statements, value = self._call(rest[start], explicit, arguments, active, before)
            made += statements
            if not before and alone:
                return made, rest[end + 1 :]
            if not value:
                raise Unfit(f"'{rest[start].text}', which waits, has no value", rest[start])
            rest = [*before, *value, *rest[end + 1 :]]

    # ---- Calls ------------------------------------------------------------------------------------------------------

    def _call(
        self, where: Token, explicit: List[Tokens], arguments: List[Tokens], active: Tuple[str, ...], before: Tokens
    ) -> Tuple[List[Token], List[Token]]:
        """The statements that a call becomes, and its value; a function without one has none."""
        name = where.text
        if name in active:
            raise Unfit(f"'{name}', which waits, calls itself", where)
        self.count += 1
        if self.count > MOST_CALLS:
            raise Unfit("it calls too many functions that wait", where)
        function = self._chosen(where, explicit, arguments)
        body = without_constexpr(function.body)
        local = list(declarations(body))
        own = {one.name for one in local} | {one.name for one in function.parameters}
        own |= {one.name for one in function.templates}
        self._check_names(function, outer_names(function, own), where)
        templates = self._templates(function, explicit, arguments, where)
        suffix = f"{SUFFIX}{self.count}"
        mapping = {one.name: tokens_of(one.name + suffix, where) for one in local}
        mapping.update(templates)
        if any(parameter.name in {one.name for one in local} for parameter in function.parameters):
            raise Unfit(f"a variable of '{name}', which waits, hides a parameter", where)
        made = self._parameters(function, arguments, templates, mapping, suffix, where)
        if "[" in ex.texts(before)[len(before) - 1 :] and any(ex.has(one.kind, "&") for one in function.parameters):
            raise Unfit(f"'{name}', which waits, may change what its value is the index of", where)
        body = self._own_shared(function, body, explicit, templates, mapping, where)
        mapped = substituted(body, mapping)
        self.tiles.update(groups.tiles(self.source, mapped))
        # The calls' own numbers make each name another one: what is declared here is known from here on.
        self.types.declare_all(mapped)
        result = substituted(function.result, templates)
        statements, value = self._returned(mapped, result, suffix, where)
        return made + self._statements(statements, (*active, name)), value

    def _chosen(self, where: Token, explicit: List[Tokens], arguments: List[Tokens]) -> Function:
        """The function that is called.

        Raises:
            Unfit: that is not certain.
        """
        found = self.functions.of(where.text, len(arguments), where)
        if len(found) > 1 and not explicit:
            # One that takes exactly these types wins.
            kinds = [self.types.of(argument) for argument in arguments]
            exact = [
                one
                for one in found
                if not one.templates
                and len(one.parameters) == len(kinds)
                and None not in kinds
                and [of_kind(parameter.kind) for parameter in one.parameters] == kinds
            ]
            found = exact if len(exact) == 1 else found
        if where.text in self.functions.standard and not all(self._is_builtin(argument) for argument in arguments):
            found = []
        if len(found) != 1:
            why = "there are several functions of the name" if found else "no function of the name takes its arguments"
            raise Unfit(f"'{where.text}' is called, which may wait: {why}", where)
        return found[0]

    def _is_builtin(self, argument: Tokens) -> bool:
        kind = self.types.of(argument)
        return kind is not None and (kind.base in RANKS or kind.base in SMALL or kind.base in ex.VECTORS)

    def _check_names(self, function: Function, names: Set[str], where: Token) -> None:
        for name in sorted(names & self.names):
            raise Hidden(name)
        names = {name for name in names - EVERYWHERE if not name.startswith("__builtin_")}
        self.functions.check_names(function, names, self.kernel, where)

    def _templates(
        self, function: Function, explicit: List[Tokens], arguments: List[Tokens], where: Token
    ) -> Dict[str, List[Token]]:
        """What a template's parameters stand for."""
        found: Dict[str, List[Token]] = {}
        if len(explicit) > len(function.templates):
            raise Unfit(f"the template arguments of '{function.name}', which waits, are not understood", where)
        for position, parameter in enumerate(function.templates):
            value = list(explicit[position]) if position < len(explicit) else []
            if not value and not parameter.kind:
                value = self._deduced(parameter.name, function, arguments, where)
            value = value or substituted(parameter.default, found)
            if not value:
                raise Unfit(f"'{parameter.name}' of '{function.name}', which waits, is not known", where)
            found[parameter.name] = constant_value(parameter, value, found, where) if parameter.kind else value
        return found

    def _deduced(self, name: str, function: Function, arguments: List[Tokens], where: Token) -> List[Token]:
        """The type that the arguments give a template's parameter; empty where none does."""
        found: Set[Type] = set()
        for parameter, argument in zip(function.parameters, arguments):
            if not ex.has(parameter.kind, name):
                continue
            words = ex.without(parameter.kind, "const", "__restrict", "__restrict__")
            kind = self.types.of(argument)
            array = len(argument) == 1 and argument[0].text in self.types.arrays
            if len(argument) == 1 and argument[0].text in self.tiles and words in ([name], [name, "&"]):
                size = self.tiles[argument[0].text].size
                return groups.spelled(f":: cooperative_groups :: thread_block_tile < {size} >", where)
            if kind is None or words not in ([name], [name, "&"], [name, "*"]) or (array and "&" in words):
                raise Unfit(f"the type of an argument of '{function.name}', which waits, is not known", where)
            if words[-1] == "*":
                constant = kind.constant and "const" not in ex.texts(parameter.kind)
                if not kind.pointer or constant:
                    raise Unfit(f"the type of an argument of '{function.name}', which waits, is not known", where)
                kind = Type(kind.base)
            found.add(kind)
        if len(found) > 1:
            raise Unfit(f"'{name}' of '{function.name}', which waits, is not known", where)
        return tokens_of(" ".join(found.pop().words()), where) if found else []

    def _parameters(
        self,
        function: Function,
        arguments: List[Tokens],
        templates: Dict[str, List[Token]],
        mapping: Dict[str, List[Token]],
        suffix: str,
        where: Token,
    ) -> List[Token]:
        """The statements that make the parameters. Others stand for the variables that they are given."""
        made: List[Token] = []
        copied: List[str] = []
        referred: Set[str] = set()
        for position, parameter in enumerate(function.parameters):
            value = (
                list(arguments[position]) if position < len(arguments) else substituted(parameter.default, templates)
            )
            if not value or ex.changes(value) or ex.has(value, "{"):
                raise Unfit(f"an argument of '{function.name}', which waits, is not understood", where)
            declared = substituted(parameter.kind, templates)
            if self._is_same(function, parameter, declared, value):
                mapping[parameter.name] = value
                if not ex.has(declared, "&"):
                    copied.append(value[0].text)
                elif not ex.has(declared, "const"):
                    referred.add(value[0].text)
                continue
            if ex.has(declared, "&"):
                if not ex.has(declared, "const") or not self._is_temporary(value):
                    why = f"a reference of '{function.name}', which waits, is to something that is no plain variable"
                    raise Unfit(why, where)
                declared = [token for token in declared if token.text != "&"]
            name = f"{parameter.name}{suffix}"
            mapping[parameter.name] = tokens_of(name, where)
            kind = of_kind(declared)
            self.types.declare(name, kind)
            declared = [Token(one.text, where.start, where.start, one.kind) for one in declared]
            made += [*declared, *tokens_of(f"{name} =", where), *value, *tokens_of(";", where)]
        if referred.intersection(copied):
            raise Unfit(f"'{function.name}', which waits, is given a variable twice", where)
        return made

    def _is_same(self, function: Function, parameter: Parameter, declared: Tokens, value: List[Token]) -> bool:
        """Whether a parameter is the variable that it is given, or may stand for it, as nobody changes it."""
        if ex.has(declared, "volatile"):
            return False
        if ex.has(declared, "["):
            # Such an array is handed over as it is, or the program would not compile.
            dimensions = self.types.arrays.get(value[0].text, 0) if len(value) == 1 else 0
            if dimensions != ex.texts(declared).count("["):
                raise Unfit(f"an array that is given to '{function.name}', which waits, is not understood", value[0])
            return True
        last = ex.without(declared, "const", "&")[-1:]
        if len(value) == 1 and value[0].text in self.tiles:
            size = self.tiles[value[0].text].size
            if ex.without(declared, "const", "&")[-4:] != ["thread_block_tile", "<", size, ">"]:
                raise Unfit("a tile is given to a function that waits, and it is not known which", value[0])
            return True
        if last == ["thread_block"]:
            if len(value) != 1 and not ex.has(value, BLOCK):
                raise Unfit("a group is given to a function that waits, and it is not known which", value[0])
            return len(value) == 1
        text = "".join(ex.without(value, "(", ")")).lower().rstrip("ul")
        if text in ALL_LANES and len(value) < 3 and self._is_mask(parameter.name, function.body):
            return not ex.has(declared, "&")
        if len(value) != 1 or value[0].kind != WORD:
            return False
        kind = self.types.of(value)
        if kind is None or kind != of_kind(declared):
            # `const T* p` of a `T*`: the pointer itself is the same.
            wanted = of_kind(declared)
            if kind is None or wanted is None or not (wanted.pointer and wanted._replace(constant=False) == kind):
                return False
            if ex.has(declared, "&"):
                return False
        if ex.has(declared, "&"):
            return True
        counted = ex.has(function.body, "sizeof", "decltype", "typeid")
        changes = ex.modified(parameter.name, function.body, -1, ex.may_be_object(ex.texts(declared)))
        # What is in memory may change while the function runs.
        return not (
            changes or counted or value[0].text in self.types.cells or self._is_handed(parameter.name, function)
        )

    def _is_handed(self, name: str, function: Function) -> bool:
        """Whether something that the function calls or makes may change the variable, as a reference. In doubt: yes."""
        body = function.body
        if name in ex.listed(body):
            return True
        for of in calls(body):
            word, opener = body[of].text, opener_of(body, of)
            if word in WAITS or word == BLOCK:
                continue
            count = len(ex.split(body[opener + 1 : ex.closing(body, opener)]))
            callee = self._taken(body[of], count) if word in self.functions.names else None
            if callee is None and self.called is not None:
                callee = self.called.of(word)
            if name in changed(body, of, callee or Callee(frozenset(range(count)))):
                return True
        return False

    def _taken(self, name: Token, count: int) -> Callee:
        """What functions of the name that wait may change of so many arguments."""
        kinds = [one.parameters for one in self.functions.of(name.text, count, name)]
        found = {
            position
            for parameters in kinds
            for position, parameter in enumerate(parameters)
            if ex.has(parameter.kind, "&", "&&")
            and (ex.has(parameter.kind, "*") or not ex.has(parameter.kind, "const"))
        }
        return Callee(frozenset(found))

    def _is_mask(self, name: str, body: Tokens) -> bool:
        """Whether a parameter is nothing but the first argument of warp operations, and of functions that wait."""
        warps = self.functions.names | set(SHUFFLES) | {"__syncwarp"}
        for at, token in enumerate(body):
            if token.text != name:
                continue
            if at < 2 or body[at - 1].text != "(" or body[at - 2].text not in warps:
                return False
            if ex.texts(body[at + 1 : at + 2]) not in ([","], [")"]):
                return False
        return True

    def _is_temporary(self, value: Tokens) -> bool:
        """Whether an expression makes a value of its own: nobody else changes that."""
        kind = self.types.of(value)
        return kind is not None and not kind.pointer and (value[0].kind == NUMBER or is_operation(value))

    def _own_shared(
        self,
        function: Function,
        body: Tokens,
        explicit: List[Tokens],
        templates: Dict[str, List[Token]],
        mapping: Dict[str, List[Token]],
        where: Token,
    ) -> List[Token]:
        """The body without its declarations of shared memory, which go to the kernel's beginning once."""
        if not ex.has(body, SHARED):
            return list(body)
        rest: List[Token] = []
        found: List[Tokens] = []
        at = 0
        while at < len(body):
            stop = at
            while stop < len(body) and body[stop].text not in (";", "{", "}"):
                stop += 1
            statement = body[at : stop + 1]
            if ex.has(statement, SHARED):
                if ex.texts(statement[-1:]) != [";"]:
                    raise Unfit(f"the shared memory of '{function.name}', which waits, is not understood", where)
                found.append(statement)
            else:
                rest += statement
            at = stop + 1
        key = (function.name, str(function.start), *(" ".join(ex.texts(one)) for one in templates.values()))
        names = [one.name for statement in found for one in declarations(statement)]
        # What an array's length names is a constant, whose value may name others.
        constants: Dict[str, List[Token]] = {}
        for one in declarations(rest):
            if ex.has(one.kind, "const", "constexpr") and one.value:
                value = substituted(one.value, constants)
                constants[one.name] = [*tokens_of("(", where), *value, *tokens_of(")", where)]
        if key not in self.copies:
            self.copies[key] = {name: tokens_of(f"{name}{SUFFIX}{self.count}", where) for name in names}
            own = {one.name for one in declarations(rest)} | {one.name for one in function.parameters}
            for statement in found:
                statement = substituted(substituted(statement, constants), templates)
                if own.intersection(ex.names(statement)):
                    why = f"the shared memory of '{function.name}', which waits, is as large as a variable says"
                    raise Unfit(why, where)
                mapped = substituted(statement, self.copies[key])
                self.types.declare_all(mapped)
                self.hoisted += mapped
        mapping.update(self.copies[key])
        return rest

    # ---- Results ----------------------------------------------------------------------------------------------------

    def _returned(
        self, body: List[Token], result: Tokens, suffix: str, where: Token
    ) -> Tuple[List[Token], List[Token]]:
        """The body without its `return`, and the value."""
        name = f"result{suffix}"
        void = ex.texts(result) == ["void"]
        if ex.has(result, "&", "*", "volatile"):
            raise Unfit(f"'{where.text}', which waits, gives a reference or a pointer", where)
        result = [Token(one.text, where.start, where.start, one.kind) for one in result if one.text != "const"]
        last = last_statement(body)
        if not void and ex.texts(body[last : last + 1]) == ["return"] and not ex.has(body[:last], "return"):
            value = body[last + 1 : -1]
            kind = of_kind(result)
            if kind is None:  # auto
                kind = self.types.of(value)
                if ex.texts(result) != ["auto"] or kind is None or kind.pointer:
                    raise Unfit(f"the type of '{where.text}', which waits, is not known", where)
                result = tokens_of(" ".join(kind.words()), where)
            own = len(value) == 1 and value[0].text.endswith(suffix) and self.types.of(value) == kind
            if own:
                return body[:last], value
            self.types.declare(name, kind)
            return [*body[:last], *result, *tokens_of(f"{name} =", where), *value, body[-1]], tokens_of(name, where)
        if void and not ex.has(body, "return"):
            return body, []
        statements, always = converted(body, name, void, where)
        if void:
            return statements, []
        if not always or of_kind(result) is None:
            raise Unfit(f"'{where.text}', which waits, returns in a way that is not understood", where)
        self.types.declare(name, of_kind(result))
        return [*result, *tokens_of(f"{name} ;", where), *statements], tokens_of(name, where)
