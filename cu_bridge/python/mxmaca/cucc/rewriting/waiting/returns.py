"""Functions that return in an `if`, where they are taken into kernels (inlining.py)."""

from typing import List, Tuple

from .. import expressions as ex
from ..expressions import Tokens
from ..source import Token
from ..substitution import tokens_of, unbraced
from ..waits import Unfit, statement_end


def converted(tokens: Tokens, name: str, void: bool, where: Token) -> Tuple[List[Token], bool]:
    """Statements with assignments in the place of `return`, and whether each way through them ends with one.

    What follows an `if` that returns becomes its `else`.
    """
    if not ex.has(tokens, "return"):
        return list(tokens), False
    made: List[Token] = []
    at = 0
    while at < len(tokens):
        stop = statement_end(tokens, at)
        statement, rest = tokens[at:stop], tokens[stop:]
        at = stop
        if not ex.has(statement, "return"):
            made += statement
            continue
        word = statement[0].text
        if word == "return":
            value = statement[1:-1]
            if void == bool(value):
                raise Unfit(f"'{where.text}', which waits, returns in a way that is not understood", where)
            return [*made, *(tokens_of(f"{name} =", statement[0]) if value else []), *value, statement[-1]], True
        if word != "if":
            raise Unfit(f"'{where.text}', which waits, returns from within a '{word}'", statement[0])
        close = ex.closing(statement, 1)
        end = statement_end(statement, close + 1)
        first, second = unbraced(statement[close + 1 : end]), unbraced(statement[end + 1 :])
        # What follows goes with the way that does not return.
        if ex.has(first, "return"):
            second = [*second, *rest]
        else:
            first = [*first, *rest]
        first, first_ends = converted(first, name, void, where)
        second, second_ends = converted(second, name, void, where)
        if rest and not (first_ends if ex.has(statement[close + 1 : end], "return") else second_ends):
            raise Unfit(f"'{where.text}', which waits, returns in a way that is not understood", statement[0])
        made += [*statement[: close + 1], *tokens_of("{", where), *first, *tokens_of("} else {", where)]
        made += [*second, *tokens_of("}", where)]
        return made, first_ends and second_ends
    return made, False
