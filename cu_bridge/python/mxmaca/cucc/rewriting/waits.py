"""What kernels wait by: barriers, also those that are called by a block of cooperative groups, shuffles as statements
are looked at that hold one, atomic functions in loops, volatile memory in loops. And where statements end.
"""

from typing import AbstractSet, Dict, Iterator, List, Optional, Set, Tuple

from . import expressions as ex
from .declarations import at_namespace_scope
from .expressions import Tokens
from .source import CLOSERS, NUMBER, OTHER, WORD, Edit, Source, Token, word_set

BARRIERS = ("__syncthreads", "__syncwarp")
FENCES = ("__threadfence", "__threadfence_block", "__threadfence_system")
SHUFFLES = {
    "__shfl_sync": "index",
    "__shfl_up_sync": "up",
    "__shfl_down_sync": "down",
    "__shfl_xor_sync": "xor",
    "__ballot_sync": "ballot",
    "__any_sync": "any",
    "__all_sync": "all",
}
# Reductions of a tile of cooperative groups, by the names of their operations. Words of the phases alone, as its
# shuffles (waiting/groups.py): their values have the types of what is given to them.
REDUCTIONS = ("plus", "less", "greater", "bit_and", "bit_or", "bit_xor")
SHUFFLES.update({"__tile_shfl": "index", "__tile_shfl_up": "up", "__tile_shfl_down": "down", "__tile_shfl_xor": "xor"})
SHUFFLES.update({f"__tile_{name}": name for name in REDUCTIONS})
OF_VOTES = ("ballot", "any", "all")
# Votes of a block: for which predicates a thread is counted, and what the number says.
VOTES = {
    "__syncthreads_count": ("!= 0", "{}"),
    "__syncthreads_or": ("!= 0", "static_cast<int>({} != 0)"),
    "__syncthreads_and": ("== 0", "static_cast<int>({} == 0)"),
}
WAITS = frozenset([*BARRIERS, *SHUFFLES, *VOTES])
ALL_LANES = ("0xffffffff", "4294967295", "~0", "-1")
BLOCK = "this_thread_block"  # what gives the group of the whole block
TAKEN = "(taken)"  # stands for the value of a shuffle
# Programs wait by them for other threads of their block: for a lock, for a flag.
SPINNING = ("atomicCAS", "atomicExch")
# Behind these the word of a cast ends: no variable has such a name.
TYPE_WORDS = word_set("int unsigned signed char short long float double bool const void")
SPINNING_CALL = "::mxmaca::spinning();"
NO_QUALIFIER = ("asm", "__asm__", "__asm")


class Unfit(Exception):
    """The kernel keeps its threads' stacks.

    Args:
        why: what is not understood, as the end of a sentence about the kernel.
        token: where.
    """

    def __init__(self, why: str, token: Optional[Token] = None) -> None:
        super().__init__(why)
        self.why, self.token = why, token


# ---- Statements ------------------------------------------------------------------------------------------------------


def semicolon(tokens: Tokens, at: int) -> int:
    """The semicolon behind, outside of brackets."""
    while at < len(tokens) and tokens[at].text != ";":
        at = ex.closing(tokens, at) + 1 if tokens[at].text in CLOSERS else at + 1
    return at


def statement_end(tokens: Tokens, at: int) -> int:
    """Where the statement that begins there is over.

    Raises:
        Unfit: it is not understood.
    """
    word = tokens[at].text if at < len(tokens) else ""
    if word == "{":
        return ex.closing(tokens, at) + 1
    if word == "do":
        return semicolon(tokens, statement_end(tokens, at + 1)) + 1
    if word not in ("if", "for", "while"):
        return semicolon(tokens, at) + 1
    if ex.texts(tokens[at + 1 : at + 2]) != ["("]:
        raise Unfit(f"'{word}' without a condition in parentheses", tokens[at])
    end = statement_end(tokens, ex.closing(tokens, at + 1) + 1)
    return statement_end(tokens, end + 1) if word == "if" and ex.texts(tokens[end : end + 1]) == ["else"] else end


def is_whole(word: str, behind: Tokens) -> bool:
    """Whether a barrier is one of all threads, or of all lanes of a warp."""
    mask = "".join(ex.without(behind, "(", ")", ";")).lower().rstrip("ul")
    return not mask or (word == "__syncwarp" and mask in ALL_LANES)


def spin(tokens: Tokens) -> Optional[Token]:
    """The first loop that may go round until another thread of the block has done something, by SPINNING.

    Not among them are loops that count to an end, and those that try an exchange again with the value that they found.
    """
    return next(_spins(tokens), None) if ex.has(tokens, *SPINNING) else None


def _spins(tokens: Tokens) -> Iterator[Token]:
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("for", "while", "do"):
            continue
        loop = tokens[at : statement_end(tokens, at)]
        if not ex.has(loop, *SPINNING):
            continue
        if not (counts(loop) if token.text == "for" else token.text == "do" and _tries_again(loop)):
            yield token


def counts(loop: Tokens) -> bool:
    """Whether a `for` ends whatever memory holds: nothing in its body changes what its end depends on."""
    close = ex.closing(loop, 1)
    header, body = loop[2:close], loop[close + 1 :]
    pieces = ex.split(header, ";")
    if len(pieces) == 1:
        return True
    if len(pieces) != 3 or not pieces[1] or not pieces[2] or ex.has(header, *SPINNING):
        return False
    deciding = ex.names(pieces[1]) | ex.names(pieces[2])
    return not any(ex.modified(name, body) for name in deciding)


def _tries_again(loop: Tokens) -> bool:
    """Whether it is `do { a = b; b = atomicCAS(p, a, …); } while (a != b);`: it is over unless p has changed."""
    words = ex.texts(loop)
    at = next(place for place, word in enumerate(words) if word in SPINNING)
    arguments = ex.split(loop[at + 2 : ex.closing(loop, at + 1)])
    if words[at] != "atomicCAS" or words[at - 1] != "=" or len(arguments) != 3 or len(arguments[1]) != 1:
        return False
    found, assumed = words[at - 2], arguments[1][0].text
    if any(word in SPINNING for word in words[at + 1 :]) or ex.has(loop, "continue"):
        return False
    takes = any(words[start : start + 4] == [assumed, "=", found, ";"] for start in range(2, at))
    ends = [["while", "(", a, "!=", b, ")", ";"] for a, b in ((found, assumed), (assumed, found))]
    return takes and words[-7:] in ends


# ---- Shuffles --------------------------------------------------------------------------------------------------------


class Shuffle:
    """The one shuffle of a statement, or its one vote.

    Its value is computed in one loop over the threads, the rest of the statement in the next one. So nothing of the
    statement may change what the value is computed from, and no thread may change in the second loop what another one
    reads there for its lane.

    Attributes:
        kind: "index", "up", "down" or "xor"; "ballot", "any" or "all", which have a value alone; a vote of the block by
            its name.
        call, value, lane, width: the shuffle and its arguments; no width is an empty one.
        rest: the statement, with a number in the place of the shuffle.

    Raises:
        Unfit: the statement is not understood.
    """

    def __init__(self, source: Source, statement: Tokens) -> None:
        found = [at for at, token in enumerate(statement) if token.text in SHUFFLES or token.text in VOTES]
        # What may not be reached at all must not be computed beforehand.
        if len(found) != 1 or statement[found[0] + 1].text != "(" or ex.has(statement[: found[0]], "?", "&&", "||"):
            raise Unfit("a statement with two shuffles, or one that may not be reached", statement[0])
        start, end = found[0], ex.closing(statement, found[0] + 1)
        if len(ex.split(statement[:start])) > 1 or _changes_in_brackets(statement[:start]):
            raise Unfit("a statement that changes something before it comes to a shuffle", statement[0])
        if is_overloaded(source, statement[start].text):
            raise Unfit(f"a '{statement[start].text}' of the program's own", statement[start])
        name = statement[start].text
        self.kind = SHUFFLES.get(name, name)
        arguments = ex.split(statement[start + 2 : end])
        if name in VOTES:
            arguments = [[statement[start]._replace(text=ALL_LANES[0], kind=NUMBER)], *arguments]
        counts = (2,) if name in VOTES or self.kind in OF_VOTES else (3, 4)
        if len(arguments) not in counts or not all(arguments):
            raise Unfit("a shuffle whose arguments are not understood", statement[start])
        if "".join(ex.without(arguments[0], "(", ")")).lower().rstrip("ul") not in ALL_LANES:
            raise Unfit("a shuffle that is not of all lanes", statement[start])
        if ex.changes(statement[start:end]) or not all(_is_lane(argument) for argument in arguments[1:2]):
            raise Unfit("a shuffle whose value is not a plain expression", statement[start])
        if not all(_is_lane(argument) and not _reads_memory(argument) for argument in arguments[2:]):
            raise Unfit("a shuffle whose lane is not a plain expression", statement[start])
        self.call = statement[start : end + 1]
        self.value: Tokens = arguments[1]
        self.lane: Tokens = arguments[2] if len(arguments) > 2 else ()
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


def is_overloaded(source: Source, name: str) -> bool:
    """Whether the program defines a function of the name: its values may be larger than a lane's, or mean another."""
    if name not in source.overloaded:
        source.overloaded[name] = _is_defined(source, name)
    return source.overloaded[name]


def _is_defined(source: Source, name: str) -> bool:
    for token in source.find(name):
        opener = source.token(token.end)
        if opener.text != "(" or source.is_system(token.start):
            continue
        if source.token(source.closing(opener.start) + 1).text == "{":
            return True
    return False


# ---- Cooperative groups ----------------------------------------------------------------------------------------------


def blocks(tokens: Tokens) -> Set[str]:
    """The variables whose declarations end with `= cooperative_groups::this_thread_block();`."""
    found = set()
    for at, token in enumerate(tokens):
        if token.text != BLOCK or ex.texts(tokens[at + 1 : at + 4]) != ["(", ")", ";"]:
            continue
        while at >= 2 and tokens[at - 1].text == "::":
            at -= 2
        if at >= 3 and tokens[at - 1].text == "=" and tokens[at - 3].text in ("thread_block", "auto", "const"):
            found.add(tokens[at - 2].text)
    return found


def with_barriers(tokens: Tokens, groups: Set[str]) -> List[Token]:
    """The tokens, with `__syncthreads();` for `group.sync();` and `sync(group);`."""
    made: List[Token] = []
    at = 0
    while at < len(tokens):
        end = _sync_end(tokens, at, groups)
        if end == at:
            made.append(tokens[at])
            at += 1
            continue
        while len(made) >= 2 and made[-1].text == "::" and made[-2].kind == WORD:
            del made[-2:]
        # Each stands at the place of the call: what is said of it names the line.
        start, stop = tokens[at].start, tokens[end - 1].end
        made.append(Token("__syncthreads", start, stop, WORD))
        made += [Token(text, start, stop, OTHER) for text in "();"]
        at = end
    return made


def _sync_end(tokens: Tokens, at: int, groups: Set[str]) -> int:
    """The end of a barrier that begins there, or that place."""
    words = ex.texts(tokens[at : at + 6])
    if words[1:] == [".", "sync", "(", ")", ";"] and words[0] in groups:
        return at + 6
    if words[:2] == ["sync", "("] and words[3:5] == [")", ";"] and words[2] in groups:
        return at + 5
    return at


# ---- Constants -------------------------------------------------------------------------------------------------------


def with_constants(source: Source, tokens: Tokens, own: AbstractSet[str]) -> List[Token]:
    """The tokens, with numbers for the names of constants where a mask may stand, or the size of a warp.

    Args:
        source: the program.
        own: names that mean something else.
    """
    made: List[Token] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        warp = before == "(" and at > 1 and tokens[at - 2].text in WAITS
        if token.kind == WORD and token.text not in own and (warp or before in ("/", "%", "<", ">=", ">")):
            value = _constant(source, token.text)
            token = Token(value, token.start, token.end, NUMBER) if value else token
        made.append(token)
    return made


def template_words(source: Source, place: int) -> List[str]:
    """The words of the template parameters of a kernel."""
    start = source.declaration_start(place)
    angle = source.before(start)
    return source.words(source.opening_angle(angle.start), angle.start) if angle.text == ">" else []


def _constant(source: Source, name: str) -> str:
    """The value of a constant of the program; empty where there may be others of the name."""
    if name not in source.constants:
        found = [token for token in source.find(name) if _is_declared(source, token)]
        value = ""
        if len(found) == 1:
            head = source.words(source.declaration_start(found[0].start), found[0].start)
            number = source.token(source.token(found[0].end).end)
            plain = source.token(found[0].end).text == "=" and source.token(number.end).text == ";"
            constant = plain and number.kind == NUMBER and ("const" in head or "constexpr" in head)
            if constant and at_namespace_scope(source, found[0].start):
                value = number.text
        source.constants[name] = value
    return source.constants[name]


def _is_declared(source: Source, token: Token) -> bool:
    before, behind = source.before(token.start), source.token(token.end)
    return (before.kind == WORD and before.text not in ex.NO_TYPES) or (
        before.text in ("{", ",", "*", "&", ">") and behind.text in ("=", ";", "{")
    )


# ---- Conditions of warps ---------------------------------------------------------------------------------------------


class Warps:
    """Variables by which a kernel asks for the thread's warp, in blocks whose rows are whole warps."""

    def __init__(self) -> None:
        self.threads: Set[str] = set()  # `threadIdx.x` by another name
        self.whole: Set[str] = set()  # the same for all threads of a warp

    def declare(self, name: str, value: Tokens, known: AbstractSet[str]) -> None:
        """Note a variable that never changes."""
        if self._thread_end(value, 0, known) == len(value) or "".join(ex.texts(value)) in RANKS_IN_ROWS:
            self.threads.add(name)

    def replaced(self, value: Tokens, known: AbstractSet[str]) -> List[Token]:
        """The expression with a number in the place of what is the same for all threads of a warp.

        That is the thread's index over a multiple of 32, and whether it is less than one.
        """
        made: List[Token] = []
        at = 0
        while at < len(value):
            end = self._thread_end(value, at, known)
            end = _warp_end(value, at, end) if end > at else at
            if end > at:
                made.append(Token("1", value[at].start, value[end - 1].end, NUMBER))
                at = end
            else:
                made.append(value[at])
                at += 1
        return made

    def _thread_end(self, value: Tokens, at: int, known: AbstractSet[str]) -> int:
        """The end of a thread's index that begins there, or that place."""
        words = ex.texts(value[at : at + 3])
        if words == ["threadIdx", ".", "x"]:
            return at + 3
        if ex.texts(value[at : at + len(WORDS_OF_RANK)]) == WORDS_OF_RANK:
            return at + len(WORDS_OF_RANK)
        return at + 1 if words and words[0] in self.threads and words[0] in known else at


# A thread's rank in its block, as groups.py writes it: where rows are whole warps, it counts them as the index does.
RANK = "( ( threadIdx . z * blockDim . y + threadIdx . y ) * blockDim . x + threadIdx . x )"
WORDS_OF_RANK = RANK.split()
# The same of a block of two dimensions, as programs write it.
RANKS_IN_ROWS = frozenset(
    text
    for row in ("threadIdx.y*blockDim.x", "blockDim.x*threadIdx.y")
    for text in (f"{row}+threadIdx.x", f"threadIdx.x+{row}")
)
# What may stand before and behind, so that no operator takes a part of it.
BEFORE = frozenset(["(", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "=", "+", ",", "?", ":"])
BEHIND = frozenset([")", "==", "!=", "&&", "||", ",", ";", "?", ":"])


def _warp_end(value: Tokens, at: int, end: int) -> int:
    """The end of what is the same for all threads of a warp and begins with a thread's index, or `at`."""
    before = value[at - 1].text if at else "("
    words = ex.texts(value[end : end + 3])
    if before not in BEFORE or len(words) < 2:
        return at
    if words[0] == "/" and _is_of_warp(words[1]):
        return end + 2
    behind = end + 2
    if words[:2] == [">", ">"] and len(words) == 3 and value[end].end == value[end + 1].start:
        behind += 1
        if not (words[2].isdigit() and int(words[2]) >= 5) or before == "+":
            return at
    elif not (words[0] in ("<", ">=") and _is_of_warp(words[1])) or before not in ("(", "&&", "||", "?", ":"):
        return at
    return behind if behind >= len(value) or value[behind].text in BEHIND else at


def _is_of_warp(text: str) -> bool:
    digits = text.rstrip("uU")
    return text == "warpSize" or (digits.isdigit() and not digits.startswith("0") and int(digits) % 32 == 0)


# ---- Loops that read volatile memory --------------------------------------------------------------------------------


def spin_edits(source: Source, outer: AbstractSet[str] = frozenset()) -> Iterator[Edit]:
    """Calls in loops that read volatile memory, which let other threads run.

    On hardware the warps of a block proceed side by side, and so do blocks; here a thread runs until it waits. A loop
    that goes round until another thread has stored something must say so. In CUDA such a loop reads memory that is
    `volatile`, or else compilers move the load out of it. So each loop of a function that mentions such memory, but for
    those that count to an end, calls `mxmaca::spinning`.

    Args:
        outer: volatile variables that the text does not declare.
    """
    bodies: Dict[int, Set[str]] = {}
    for token in source.find("volatile"):
        body = function_around(source, token.start) if is_qualifier(source, token) else None
        if body is not None:
            bodies.setdefault(body, {"volatile"}).add(declared_name(source, token))
    for name in outer | volatile_variables(source):
        for use in source.find(name):
            # Headers mean variables of their own.
            body = None if source.is_system(use.start) else function_around(source, use.start)
            if body is not None:
                bodies.setdefault(body, {"volatile"}).add(name)
    for body, names in bodies.items():
        yield from _volatile_loops(list(source.tokens(body, source.closing(body) + 1)), names - {""})


def volatile_variables(source: Source) -> Set[str]:
    """The names of variables outside of functions that are volatile."""
    mentions = [token for token in source.find("volatile") if is_qualifier(source, token)]
    outside = [token for token in mentions if function_around(source, token.start) is None]
    return {declared_name(source, token) for token in outside if _is_variable(source, token)} - {""}


def is_qualifier(source: Source, token: Token) -> bool:
    return not source.is_system(token.start) and source.before(token.start).text not in NO_QUALIFIER


def function_around(source: Source, place: int) -> Optional[int]:
    """The brace of the outermost body or class around the place, or of the function whose parameters it is among."""
    brace = -1
    while not at_namespace_scope(source, place):
        place = brace = source.enclosing_brace(place)
    if brace >= 0:
        return brace
    # Among parameters a parenthesis closes before any semicolon; a body follows it, or a constructor's initialisers.
    depth = 0
    for token in source.tokens(place):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == ";" or not token.text:
            return None
        if token.text == "{":
            return token.start if depth < 0 else None
    return None


def _is_variable(source: Source, token: Token) -> bool:
    """Whether what is declared at namespace scope is not a parameter of a function without a body."""
    depth = 0
    for following in source.tokens(token.end):
        depth += (following.text == "(") - (following.text == ")")
        if depth < 0 or following.text in (";", "=", "[", "{", ""):
            return depth == 0
    return False


def declared_name(source: Source, token: Token) -> str:
    """The name that the declaration gives which the word `volatile` belongs to; empty for a cast."""
    name = ""
    for following in source.tokens(token.end):
        if following.text in (",", ")", ";", "=", "[", "(", "{", ""):
            return name
        if following.kind == WORD:
            name = "" if following.text in TYPE_WORDS else following.text
    return name


def _volatile_loops(tokens: Tokens, names: Set[str]) -> Iterator[Edit]:
    over: List[int] = []  # the `while` of a `do`
    for at, token in enumerate(tokens):
        if token.kind != WORD or token.text not in ("for", "while", "do") or at in over:
            continue
        try:
            end = statement_end(tokens, at)
            if token.text == "do":
                over.append(statement_end(tokens, at + 1))
            loop = tokens[at:end]
            if not names.isdisjoint(ex.texts(loop)) and not (token.text == "for" and counts(loop)):
                yield from _call_in(tokens, at, end)
        except (Unfit, IndexError):
            continue


def _call_in(tokens: Tokens, at: int, end: int) -> Tuple[Edit, ...]:
    """The call at the beginning of the loop's body."""
    body = at + 1 if tokens[at].text == "do" else ex.closing(tokens, at + 1) + 1
    first = tokens[body]
    if first.text == "{":
        return (Edit(first.end, first.end, f" {SPINNING_CALL}"),)
    if first.text == ";":
        return (Edit(first.start, first.end, f" {SPINNING_CALL}"),)
    last = tokens[(statement_end(tokens, body) if tokens[at].text == "do" else end) - 1]
    return (Edit(first.start, first.start, f"{{ {SPINNING_CALL} "), Edit(last.end, last.end, " }"))
