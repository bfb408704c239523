"""Tokens in the place of others, for functions that are taken into kernels (inlining.py)."""

from typing import Dict, List, Set

from . import expressions as ex
from .expressions import Tokens
from .functions import Function, Parameter
from .source import NUMBER, OTHER, WORD, Token, word_set
from .types import RANKS, SMALL, Type, declarations, of_kind
from .waits import SHUFFLES, VOTES, Unfit, statement_end

# Words of CUDA's and of the language that mean the same everywhere.
EVERYWHERE = (
    ex.PURE
    | ex.EFFECTS
    | ex.ARITHMETIC
    | ex.FORBIDDEN
    | ex.NO_TYPES
    | ex.VECTORS
    | frozenset([*SHUFFLES, *VOTES])
    | ex.CASTS
) | word_set(
    """threadIdx blockIdx blockDim gridDim warpSize true false nullptr break continue void auto __syncthreads __syncwarp
    __restrict __restrict__ __mxmaca_shared__ std float double"""
)


def substituted(tokens: Tokens, mapping: Dict[str, List[Token]]) -> List[Token]:
    """The tokens with others in the place of names that stand for variables, types and constants."""
    made: List[Token] = []
    for at, token in enumerate(tokens):
        member = at > 0 and tokens[at - 1].text in (".", "->", "::")
        if token.kind != WORD or token.text not in mapping or member:
            made.append(token)
        else:
            new = [Token(one.text, token.start, token.start, one.kind) for one in mapping[token.text]]
            # `unsigned long(0)` is no expression.
            if len(new) > 1 and ex.texts(tokens[at + 1 : at + 2]) == ["("] and all(one.kind == WORD for one in new):
                new = [*tokens_of("static_cast <", token), *new, *tokens_of(">", token)]
            made += new
    return made


def tokens_of(text: str, where: Token) -> List[Token]:
    """Tokens at the place of another one."""
    return [
        Token(one, where.start, where.start, WORD if one[0].isalpha() or one[0] == "_" else OTHER)
        for one in text.split()
    ]


def unbraced(statement: Tokens) -> Tokens:
    return statement[1:-1] if statement and statement[0].text == "{" else statement


def last_statement(tokens: Tokens) -> int:
    """Where the last statement begins."""
    at = last = 0
    while at < len(tokens):
        last = at
        at = statement_end(tokens, at)
    return last


def one_each(statement: Tokens) -> List[Tokens]:
    """A declaration of several variables as one of each; any other statement as it is."""
    declared = list(declarations(statement))
    if len(declared) < 2 or ex.has(declared[0].kind, "*", "&", "&&") or declared[0].at == 0:
        return [statement]
    if any(one.kind != declared[0].kind for one in declared):
        return [statement]
    kind, end = statement[: declared[0].at], statement[-1]
    stops = [*(one.at - 1 for one in declared[1:]), len(statement) - 1]
    return [[*kind, *statement[one.at : stop], end] for one, stop in zip(declared, stops)]


def is_function(tokens: Tokens, of: int) -> bool:
    """Whether the word there is called as a function, and neither as a method nor declared."""
    before = tokens[of - 1] if of else None
    if before is None or before.text in (".", "->"):
        return before is None
    return before.kind != WORD or before.text in ("return", "else", "do")


def check_order(before: Tokens, call: Token) -> None:
    """That a call may be evaluated before what stands before it in its statement.

    Raises:
        Unfit: that might change something, or the call might not be reached.
    """
    if ex.has(before, "?", "&&", "||", "<<", ">>", "sizeof", "decltype", "noexcept", "alignof"):
        raise Unfit(f"'{call.text}', which waits, is called where it may not be reached, or in a fixed order", call)
    depth = 0
    for token in before:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        steps = token.text in ex.STEPS or (depth and token.text in ex.ASSIGNMENTS) or token.text == "{"
        if steps or (depth == 0 and token.text == ","):
            raise Unfit(f"something may change before '{call.text}' is called, which waits", call)


def without_constexpr(tokens: Tokens) -> List[Token]:
    return [
        token
        for at, token in enumerate(tokens)
        if not (token.text == "constexpr" and at and tokens[at - 1].text == "if")
    ]


def outer_names(function: Function, own: Set[str]) -> Set[str]:
    """The names of a function that are declared outside of it."""
    found: Set[str] = set()
    parts = [function.body, function.result]
    parts += [parameter.kind for parameter in function.parameters]
    parts += [parameter.default for parameter in (*function.parameters, *function.templates)]
    for tokens in parts:
        for at, token in enumerate(tokens):
            if token.kind == WORD and not (at and tokens[at - 1].text in (".", "->", "::")):
                found.add(token.text)
    return found - own


def constant_value(parameter: Parameter, value: Tokens, found: Dict[str, List[Token]], where: Token) -> List[Token]:
    """A template's constant with the type of its parameter."""
    kind = substituted(parameter.kind, found)
    text = ex.texts(value)
    if len(value) == 1 and text[0].isdigit() and len(text[0]) < 10 and of_kind(kind) == Type("int"):
        return list(value)
    if len(value) == 1 and text[0].isdigit() and len(text[0]) < 10 and of_kind(kind) == Type("unsigned"):
        return [Token(text[0] + "u", value[0].start, value[0].end, NUMBER)]
    if of_kind(kind) == Type("bool") and text in (["true"], ["false"]):
        return list(value)
    known = of_kind(kind)
    if known is None or known.pointer or known.base not in (*RANKS, *SMALL):
        # A function, or of a type whose names mean the same there: the program's own words are the best.
        if len(value) != 1 or value[0].kind != WORD:
            raise Unfit(f"the template argument '{parameter.name}' is not understood", where)
        return list(value)
    return [*tokens_of("static_cast <", where), *kind, *tokens_of("> (", where), *value, *tokens_of(")", where)]
