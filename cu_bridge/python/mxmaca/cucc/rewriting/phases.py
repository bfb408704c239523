"""A kernel's body as loops over the threads, one for each phase between two waits.

Note: phases
~~~~~~~~~~~~
A thread that waits at a barrier costs a switch of stacks. Where every thread of a block meets the same waits in the
same order, the block can instead run one loop over its threads for each stretch between two waits, and variables that
live across a wait become arrays with an element for each thread:

    int t = threadIdx.x; float v = x[t];         phase([&](unsigned i) { … v[i] = x[t]; … });
    __syncthreads();                          →
    for (int k = 128; k > 0; k >>= 1) {          for (int k = 128; k > 0; k >>= 1) {
      if (t < k) s[t] += s[t + k];                 phase([&](unsigned i) { if (t < k) s[t] += s[t + k]; });
      __syncthreads();                           }
    }

A shuffle is such a wait as well: one loop puts the lanes' values into an array, the next takes them from there.

No types are known here (expressions.py), so only what is understood in full is taken: everything else is `Unfit`, and
the kernel keeps its threads' stacks. Wanted are: waits as statements of their own, or in `for` and `if` whose
conditions are the same for all threads (constants, parameters, block indices); no `return` before the last wait;
variables that live across a wait of arithmetic, vector or pointer type; and calls only of functions that are known not
to wait.
"""

from typing import AbstractSet, Dict, List, NamedTuple, Optional, Sequence, Set

from ..errors import CuccError
from . import expressions as ex
from .expressions import ASSIGNMENTS, CASTS, INTEGERS, STEPS, Tokens
from .kernels import Kernel, default
from .source import CLOSERS, NUMBER, WORD, Edit, Source, Token, word_set

BARRIERS = ("__syncthreads", "__syncwarp")
SHUFFLES = {
    "__shfl_sync": "index",
    "__shfl_up_sync": "up",
    "__shfl_down_sync": "down",
    "__shfl_xor_sync": "xor",
}
WAITS = frozenset([*BARRIERS, *SHUFFLES])
ALL_LANES = ("0xffffffff", "4294967295", "~0", "-1")
KEYWORDS = word_set("if for while do else return sizeof break continue")
INDICES = word_set("blockIdx blockDim gridDim warpSize")
WORDS = INTEGERS | word_set("float double const true false sizeof min max")
SHARED = "__mxmaca_shared__"
TAKEN = "(taken)"  # stands for the value of a shuffle
# An element for each thread takes room on one stack.
MOST_VARIABLES = 8


class Unfit(Exception):
    """The kernel keeps its threads' stacks."""


class Variable(NamedTuple):
    """A variable that regions behind its own see: what brings it into their scope, and the names in that."""

    name: str
    text: str
    uses: Set[str]


class Piece(NamedTuple):
    """A part of a region."""

    text: str
    uses: Set[str]
    declares: Optional[Variable] = None


def generate(source: Source, kernel: Kernel, edits: Sequence[Edit], variable_words: AbstractSet[str]) -> Optional[str]:
    """The kernel's body as a lambda's body in phases, or None.

    Args:
        edits: of other passes.
        variable_words: the words of the declarations of device variables.
    """
    if not any(source.text.find(wait, kernel.body, kernel.end) >= 0 for wait in WAITS):
        return None
    try:
        return Phases(source, kernel, edits, variable_words).generate()
    except (Unfit, CuccError):
        return None


class Phases:
    """One kernel."""

    def __init__(self, source: Source, kernel: Kernel, edits: Sequence[Edit], variable_words: AbstractSet[str]) -> None:
        self.source = source
        self.edits = [edit for edit in edits if kernel.body < edit.start and edit.end < kernel.end]
        self.tokens: Tokens = list(source.tokens(kernel.body + 1, kernel.end - 1))
        self.output: List[str] = []
        self.region: List[Piece] = []
        self.visible: List[Variable] = []
        self.uniform: Set[str] = set()
        self.pure: Set[str] = set()
        self.varying: Set[str] = {"threadIdx"}
        self.kinds: Dict[str, List[str]] = {}  # the type of each variable of the body; none where it is not understood
        self.expanded = 0
        self.lanes = 0
        self.taken = ""  # the value of the shuffle in the statement that is looked at, and the names in it
        self.taken_uses: Set[str] = set()
        self.shared: List[Token] = []  # the declarations of shared memory
        for at, token in enumerate(self.tokens):
            if token.text == SHARED:
                self.shared += self.tokens[at + 1 : self._semicolon(at)]
        self.memory = ex.names(self.shared).union(variable_words)
        # What `modified` does not see: `(a ? b : c) = d`, `int& r = a ? b : c`.
        if ex.binds_to_a_choice(self.tokens) or ex.assigns_to_a_choice(self.tokens):
            raise Unfit
        for start, end in kernel.parameters:
            self._parameter(list(source.tokens(start, default(source, start, end))))

    def generate(self) -> str:
        """The lambda's body.

        Raises:
            Unfit: there is none.
        """
        self._block(0, len(self.tokens), top=True)
        self._close()
        self._check_pointers()
        lanes = "".join(
            f" alignas(64) char __mxmaca_lanes_{i}[::mxmaca::lanes_bytes];" for i in range(min(self.lanes, 2))
        )
        return "{" + lanes + "".join(self.output) + "\n}"

    def _parameter(self, declared: Tokens) -> None:
        if ex.texts(declared) in ([], ["void"]):
            return
        if ex.has(declared, "...", "(", "[") or sum(token.kind == WORD for token in declared) < 2:
            raise Unfit
        name = [token.text for token in declared if token.kind == WORD][-1]
        if ex.modified(name, self.tokens):
            raise Unfit
        # `(a) * p` is taken for `(A) *p`, so that no value of the device's memory is kept for a constant.
        for at in range(2, len(self.tokens) if ex.has(declared, "*") else 0):
            if ex.texts(self.tokens[at - 2 : at + 1]) == [")", "*", name] and self._text(at + 1) not in ASSIGNMENTS:
                raise Unfit
        self.uniform.add(name)

    def _check_pointers(self) -> None:
        """A variable of one phase is gone in the next, so nothing may point at one.

        Raises:
            Unfit: something may.
        """
        tokens = self.tokens
        pointers = {name for name, kind in self.kinds.items() if "*" in kind}
        others = self.kinds.keys() - pointers
        objects = {name for name in others if not ex.is_value([part for part in self.kinds[name] if part != "const"])}
        for at, of in ex.addresses(tokens):
            name = tokens[of].text
            # The address of an element that a pointer leads to is none of the pointer's.
            leads = name in pointers and self._text(of + 1) in ("[", "->")
            if name in self.kinds and not leads and self._text(ex.opening(tokens, at) - 1) not in ex.RESULTS:
                raise Unfit
        for at, token in enumerate(tokens):
            if token.text in pointers:
                behind = at + 1
                while self._text(behind) == ")":
                    behind += 1
                value = tokens[behind : self._semicolon(behind)] if self._text(behind) in ASSIGNMENTS else []
                if objects.intersection(ex.names(value)):
                    raise Unfit
            # Arrays of the body, where they stand for their first element's address; objects that may hold one.
            arrays = token.text in objects and not self.kinds[token.text] and self._text(at - 1) != "."
            if arrays and self._text(at + 1)[:1] not in tuple("[.({="):
                raise Unfit
            if token.text == "*" and self._text(at + 1) == "*":
                raise Unfit
        brackets = 0
        for token in self.shared:
            brackets += (token.text == "[") - (token.text == "]")
            if token.text == "*" and not brackets:
                raise Unfit

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _semicolon(self, at: int) -> int:
        """The semicolon behind, outside of brackets."""
        while at < len(self.tokens) and self.tokens[at].text != ";":
            at = ex.closing(self.tokens, at) + 1 if self.tokens[at].text in CLOSERS else at + 1
        return at

    def _marker(self, at: int) -> str:
        return self.source.marker(self.tokens[at].start)

    def _spell(self, tokens: Tokens) -> str:
        """The tokens, which follow each other in the source, on one line."""
        start, end = tokens[0].start, tokens[-1].end
        for token in tokens:
            if token.text == TAKEN:
                return f"{self.source.flat(start, token.start)} {self.taken} {self.source.flat(token.end, end)}"
        return self.source.flat(start, end)

    # ---- Statements -------------------------------------------------------------------------------------------------

    def _statement_end(self, at: int) -> int:
        word = self._text(at)
        if word == "{":
            return ex.closing(self.tokens, at) + 1
        if word == "do":
            return self._semicolon(self._statement_end(at + 1)) + 1
        if word not in ("if", "for", "while"):
            return self._semicolon(at) + 1
        if self._text(at + 1) != "(":
            raise Unfit
        end = self._statement_end(ex.closing(self.tokens, at + 1) + 1)
        return self._statement_end(end + 1) if word == "if" and self._text(end) == "else" else end

    def _block(self, at: int, end: int, top: bool = False) -> None:
        statements = []
        while at < end:
            stop = self._statement_end(at)
            statements.append((at, stop, ex.has(self.tokens[at:stop], *WAITS)))
            at = stop
        outer = len(self.visible)
        for position, (at, stop, waits) in enumerate(statements):
            later = next((start for start, _, waiting in statements[position + 1 :] if waiting), None)
            behind = ex.names(self.tokens[later:end]) if later is not None else set()
            if waits:
                self._waiting(at, stop, behind)
            else:
                tokens = self.tokens[at:stop]
                text = self.source.edited(self.edits, tokens[0].start, tokens[-1].end)
                self._plain(tokens, text, behind, top and later is None)
        self._close()
        del self.visible[outer:]

    def _waiting(self, at: int, stop: int, behind: Set[str]) -> None:
        word = self._text(at)
        if word in BARRIERS and ex.texts(self.tokens[at + 1 : stop]) == ["(", ")", ";"]:
            self._close()
        elif word == "{":
            self._close()
            self._nested("", at, stop)
        elif word == "for":
            self._for(at, stop)
        elif word == "if":
            self._if(at, stop)
        elif word in ("while", "do", "switch", "else", "return"):
            raise Unfit
        else:
            self._shuffle(self.tokens[at:stop], behind)

    def _nested(self, head: str, at: int, stop: int) -> None:
        """A block, or the statement behind `for (…)` or `if (…)`."""
        self.output.append(head + "{")
        braces = self._text(at) == "{"
        self._block(at + braces, stop - braces)
        self.output.append("}")

    def _for(self, at: int, stop: int) -> None:
        body = ex.closing(self.tokens, at + 1) + 1
        pieces = ex.split(self.tokens[at + 2 : body - 1], ";")
        if len(pieces) != 3 or len(ex.split(pieces[0])) != 1 or len(ex.split(pieces[2])) != 1:
            raise Unfit
        start, condition, step = pieces
        equals = ex.texts(start).index("=") if ex.has(start, "=") else 0
        if equals < 2 or not ex.is_integer(ex.texts(start[: equals - 1])) or not self._is_uniform(start[equals + 1 :]):
            raise Unfit
        name = start[equals - 1].text
        known = set(self.uniform)
        self.uniform.add(name)
        words = ex.texts(step)
        steps = len(words) == 2 and name in words and STEPS.intersection(words)
        assigns = len(words) > 2 and words[0] == name and words[1] in ASSIGNMENTS and self._is_uniform(step[2:])
        if not (steps or assigns) or not self._is_uniform(condition) or ex.modified(name, self.tokens[body:stop]):
            raise Unfit
        self._close()
        header = self.source.flat(self.tokens[at + 1].start, self.tokens[body - 1].end)
        self._nested(f"{self._marker(at)}for {header} ", body, stop)
        self.uniform = known

    def _if(self, at: int, stop: int) -> None:
        body = ex.closing(self.tokens, at + 1) + 1
        if not self._is_uniform(self.tokens[at + 2 : body - 1]):
            raise Unfit
        self._close()
        end = self._statement_end(body)
        condition = self.source.flat(self.tokens[at + 1].start, self.tokens[body - 1].end)
        self._nested(f"{self._marker(at)}if {condition} ", body, end)
        if end < stop:
            self._nested(" else ", end + 1, stop)

    def _shuffle(self, statement: Tokens, behind: Set[str]) -> None:
        found = [at for at, token in enumerate(statement) if token.text in SHUFFLES]
        # What may not be reached at all must not be computed beforehand.
        if len(found) != 1 or statement[found[0] + 1].text != "(" or ex.has(statement[: found[0]], "?", "&&", "||"):
            raise Unfit
        start, end = found[0], ex.closing(statement, found[0] + 1)
        arguments = ex.split(statement[start + 2 : end])
        if not 3 <= len(arguments) <= 4 or not all(arguments):
            raise Unfit
        if "".join(ex.without(arguments[0], "(", ")")).lower().rstrip("ul") not in ALL_LANES:
            raise Unfit
        # They are computed in another loop than the rest of the statement.
        if ex.changes(statement[start:end]) or not all(ex.is_known(argument, ex.PURE) for argument in arguments[1:]):
            raise Unfit
        call = f"decltype({self._spell(statement[start : end + 1])})"
        value, lane, width = self._spell(arguments[1]), self._spell(arguments[2]), "32"
        if len(arguments) == 4:
            width = self._spell(arguments[3])
        lanes = f"__mxmaca_lanes_{self.lanes % 2}"
        self.lanes += 1
        marker = self.source.marker(statement[0].start)
        used = ex.names(statement[start : end + 1])
        self.region.append(Piece(f"{marker}::mxmaca::put_lane<{call}>({lanes}, __mxmaca_thread, {value});", used))
        self._close()
        kind = SHUFFLES[statement[start].text]
        self.taken = f"::mxmaca::lane_{kind}<{call}>({lanes}, __mxmaca_thread, {lane}, {width})"
        self.taken_uses = used
        # A number takes the call's place where the statement is looked at.
        number = Token(TAKEN, statement[start].start, statement[end].end, NUMBER)
        rest = [*statement[:start], number, *statement[end + 1 :]]
        self._plain(rest, self._spell(rest), behind, False)
        self.taken, self.taken_uses = "", set()

    def _plain(self, statement: Tokens, text: str, behind: Set[str], last: bool) -> None:
        marker = self.source.marker(statement[0].start)
        first = statement[0].text
        if ex.has(statement, SHARED) and first != "{" and first not in KEYWORDS:
            # The block's memory: seen by all that follows.
            self.output.append(marker + text)
            return
        returns = any(ex.texts(statement[at : at + 2]) == ["return", ";"] for at in range(len(statement)))
        if not ex.is_known(statement, ex.PURE | ex.EFFECTS) or (ex.has(statement, "return") and not (last and returns)):
            raise Unfit
        if ex.has(statement, "break", "continue") and first not in ("for", "while", "do"):
            raise Unfit
        if first not in KEYWORDS and _is_declaration(statement):
            self._declaration(marker, statement, behind)
            return
        if first in WORDS or first == "auto" or not (statement[0].kind == WORD or first in "*({;++--"):
            raise Unfit
        self.region.append(Piece(marker + text, ex.names(statement) | self.taken_uses))

    # ---- Variables --------------------------------------------------------------------------------------------------

    def _declaration(self, marker: str, statement: Tokens, behind: Set[str]) -> None:
        declarators = ex.split(statement[:-1])
        first = declarators[0]
        equals = ex.texts(first).index("=") if ex.has(first, "=") else len(first)
        kind = first[: equals - 1]
        if equals < 2 or first[equals - 1].kind != WORD or ex.has(kind, "(", "["):
            # An array, or one that a constructor makes: fit where nothing behind a wait needs it.
            end = next((at for at, token in enumerate(first) if token.text in ("[", "(", "=", "{")), len(first))
            name = next((token.text for token in reversed(first[:end]) if token.kind == WORD), "")
            if len(declarators) > 1 or not name or name in WORDS or name in behind or self._is_taken(name):
                raise Unfit
            self.varying.add(name)
            self.kinds[name] = []
            self.region.append(Piece(marker + self._spell(statement), ex.names(statement) | self.taken_uses))
            return
        several = [first[equals - 1 :], *declarators[1:]]
        for one in several[1:]:
            if ex.texts(one[1:2]) not in ([], ["="]) or ex.has(kind, "*", "&", "&&"):
                raise Unfit
        # One of an enclosing scope or of a parameter is too easily mistaken.
        if any(not one or one[0].kind != WORD or self._is_taken(one[0].text) for one in several):
            raise Unfit
        for one in several:
            self._variable(marker, kind, one[0], one[2:], behind)

    def _is_taken(self, name: str) -> bool:
        return name in self.uniform or name in self.varying or name in self.pure

    def _variable(self, marker: str, kind: Tokens, name_token: Token, value: Tokens, behind: Set[str]) -> None:
        name, spelled = name_token.text, self._spell(kind)
        declared = f"{spelled} {name} = {self._spell(value)};" if value else f"{spelled} {name};"
        used = ex.names(value) | self.taken_uses | ex.names(kind)
        words = ex.without(kind, "const")
        self.kinds[name] = self._deduced(value) if words == ["auto"] else ex.texts(kind)
        reference = ex.has(kind, "&", "&&")
        if value and not reference and not self.taken and not ex.modified(name, self.tokens, name_token.start):
            if self._is_uniform(value):
                self.uniform.add(name)
                self.output.append(marker + declared)
                return
            if self._is_uniform(value, self.pure | {"threadIdx"}):
                # Cheaper computed again than kept.
                self.pure.add(name)
                self.visible.append(Variable(name, declared, used))
                self.region.append(Piece(marker + declared, used, self.visible[-1]))
                return
        self.varying.add(name)
        if name not in behind:
            if reference and self.uniform.intersection(ex.names(value)) and not ex.has(value, "["):
                raise Unfit
            self.region.append(Piece(marker + declared, used))
            return
        if self.expanded == MOST_VARIABLES or ex.texts(value[:1]) == ["{"]:
            raise Unfit
        self.expanded += 1
        array = f"__mxmaca_of_{name}_{self.expanded}"
        kept = self._kept_type(kind)
        self.output.append(f" {kept} {array}[::mxmaca::most_threads];")
        alias = f"{kept}& {name} = {array}[__mxmaca_thread];"
        self.visible.append(Variable(name, alias, set()))
        assigned = f" {name} = {self._spell(value)};" if value else ""
        self.region.append(Piece(f"{marker}{alias}{assigned}", used, self.visible[-1]))

    def _kept_type(self, kind: Tokens) -> str:
        """The type of the elements of an array that keeps the variables of all threads.

        Raises:
            Unfit: such an array cannot be made, or be assigned to.
        """
        words = ex.without(kind, "const", "__restrict", "__restrict__")
        if ex.is_builtin(words):
            return " ".join(words)
        star = max((at for at, token in enumerate(kind) if token.text == "*"), default=0)
        named = all(token.kind == WORD or token.text == "::" for token in kind[:star])
        if not star or not named or "auto" in words or words[-1] != "*":
            raise Unfit
        return self._spell(kind[: star + 1])

    def _deduced(self, value: Tokens) -> List[str]:
        """A type for a variable of deduced type: it is no pointer to a variable if nothing in its value can be one."""
        kinds = (self.kinds[name] for name in ex.names(value).intersection(self.kinds))
        return ["int"] if all(ex.is_value([part for part in kind if part != "const"]) for kind in kinds) else ["auto"]

    def _is_uniform(self, value: Tokens, more: AbstractSet[str] = frozenset()) -> bool:
        """Whether the expression has one value for all threads of a block, and no effect."""
        if not ex.is_plain(value) or ex.dereferences(value) or ex.changes(value) or ex.has(value, "[", "->", "{", "&"):
            return False
        if not (WORDS | CASTS).issuperset(ex.calls(value)):
            return False
        for name in ex.names(value) - self.uniform - INDICES - WORDS - CASTS - more:
            # Constants and template parameters of outside; nothing that the body declares or changes, no memory.
            if name in self.varying or name in self.pure or name in self.memory or ex.modified(name, self.tokens):
                return False
        return True

    # ---- Regions ----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The end of a loop over the threads."""
        if not self.region:
            return
        declared = [piece.declares for piece in self.region]
        wanted: Set[str] = set().union(*(piece.uses for piece in self.region))
        needed: List[str] = []
        for variable in reversed(self.visible):
            if variable.name in wanted and not any(one is variable for one in declared):
                needed.insert(0, variable.text)
                wanted |= variable.uses
        self.output.append(
            " __mxmaca_phase([&](int __mxmaca_thread) __attribute__((always_inline)) { "
            + " ".join(needed)
            + "".join(piece.text for piece in self.region)
            + "\n});"
        )
        self.region = []


def _is_declaration(statement: Tokens) -> bool:
    """Whether it begins as a declaration does. `a * b` is taken for one."""
    if statement[0].kind != WORD:
        return False
    at, end = 1, len(statement) - 1
    while at < end and statement[at].text == "::":
        at += 2
    if at < end and statement[at].text == "<":
        depth, at = 1, at + 1
        while at < end and depth:
            depth += (statement[at].text == "<") - (statement[at].text == ">")
            at += 1
    while at < end and statement[at].text in ("const", "*", "&", "&&", "__restrict", "__restrict__"):
        at += 1
    return at < end and statement[at].kind == WORD
