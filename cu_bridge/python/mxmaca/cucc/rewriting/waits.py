"""What kernels wait by: barriers, and shuffles as statements are looked at that hold one."""

from typing import Optional

from . import expressions as ex
from .expressions import Tokens
from .source import NUMBER, Source, Token

BARRIERS = ("__syncthreads", "__syncwarp")
SHUFFLES = {
    "__shfl_sync": "index",
    "__shfl_up_sync": "up",
    "__shfl_down_sync": "down",
    "__shfl_xor_sync": "xor",
}
WAITS = frozenset([*BARRIERS, *SHUFFLES])
ALL_LANES = ("0xffffffff", "4294967295", "~0", "-1")
TAKEN = "(taken)"  # stands for the value of a shuffle


class Unfit(Exception):
    """The kernel keeps its threads' stacks.

    Args:
        why: what is not understood, as the end of a sentence about the kernel.
        token: where.
    """

    def __init__(self, why: str, token: Optional[Token] = None) -> None:
        super().__init__(why)
        self.why, self.token = why, token


class Shuffle:
    """The one shuffle of a statement.

    Its value is computed in one loop over the threads, the rest of the statement in the next one. So nothing of the
    statement may change what the value is computed from, and no thread may change in the second loop what another one
    reads there for its lane.

    Attributes:
        kind: "index", "up", "down" or "xor".
        call, value, lane, width: the shuffle and its arguments; no width is an empty one.
        rest: the statement, with a number in the place of the shuffle.

    Raises:
        Unfit: the statement is not understood.
    """

    def __init__(self, source: Source, statement: Tokens) -> None:
        found = [at for at, token in enumerate(statement) if token.text in SHUFFLES]
        # What may not be reached at all must not be computed beforehand.
        if len(found) != 1 or statement[found[0] + 1].text != "(" or ex.has(statement[: found[0]], "?", "&&", "||"):
            raise Unfit("a statement with two shuffles, or one that may not be reached", statement[0])
        start, end = found[0], ex.closing(statement, found[0] + 1)
        if len(ex.split(statement[:start])) > 1 or _changes_in_brackets(statement[:start]):
            raise Unfit("a statement that changes something before it comes to a shuffle", statement[0])
        if _is_overloaded(source, statement[start].text):
            raise Unfit(f"a '{statement[start].text}' of the program's own", statement[start])
        arguments = ex.split(statement[start + 2 : end])
        if not 3 <= len(arguments) <= 4 or not all(arguments):
            raise Unfit("a shuffle whose arguments are not understood", statement[start])
        if "".join(ex.without(arguments[0], "(", ")")).lower().rstrip("ul") not in ALL_LANES:
            raise Unfit("a shuffle that is not of all lanes", statement[start])
        if ex.changes(statement[start:end]) or not all(_is_lane(argument) for argument in arguments[1:2]):
            raise Unfit("a shuffle whose value is not a plain expression", statement[start])
        if not all(_is_lane(argument) and not _reads_memory(argument) for argument in arguments[2:]):
            raise Unfit("a shuffle whose lane is not a plain expression", statement[start])
        self.kind = SHUFFLES[statement[start].text]
        self.call = statement[start : end + 1]
        self.value, self.lane = arguments[1], arguments[2]
        self.width: Tokens = arguments[3] if len(arguments) == 4 else ()
        number = Token(TAKEN, statement[start].start, statement[end].end, NUMBER)
        self.rest: Tokens = [*statement[:start], number, *statement[end + 1 :]]


def _is_lane(argument: Tokens) -> bool:
    return ex.is_known(argument, ex.PURE)


def _reads_memory(argument: Tokens) -> bool:
    return ex.has(argument, "[", "->") or ex.dereferences(argument)


def _changes_in_brackets(tokens: Tokens) -> bool:
    """Whether something is changed within brackets, as in `f(v = t, …`, before the end of the tokens."""
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth and (token.text in ex.STEPS or token.text in ex.ASSIGNMENTS):
            return True
    return False


def _is_overloaded(source: Source, name: str) -> bool:
    """Whether the program defines a function of the name: its values may be larger than a lane's, or mean another."""
    for token in source.find(name):
        opener = source.token(token.end)
        if opener.text != "(" or source.line(token.start)[2]:
            continue
        if source.token(source.closing(opener.start) + 1).text == "{":
            return True
    return False
