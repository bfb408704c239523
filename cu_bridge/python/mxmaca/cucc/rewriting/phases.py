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
conditions are the same for all threads (constants, parameters, block indices); no `return` before the last wait but
those behind such conditions; variables that live across a wait of arithmetic, vector or pointer type; and calls only of
functions that do not wait, which are listed or defined in the same text (callees.py): those that wait have been taken
into the kernel (inlining.py). A block of cooperative groups is one with its `sync`. Shuffles may stand in an `if` that
whole warps take: each loop then asks its condition.
"""

from typing import AbstractSet, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import block_atomics, inlining, shared_memory
from . import expressions as ex
from .callees import Callee, Callees, calls, changed
from .expressions import ASSIGNMENTS, CASTS, INTEGERS, STEPS, Tokens
from .kernels import Kernel, default
from .source import WORD, Edit, Source, Token, word_set
from .types import Kept
from .waits import (
    ALL_LANES,
    BARRIERS,
    TAKEN,
    WAITS,
    Shuffle,
    Unfit,
    Warps,
    blocks,
    semicolon,
    spin,
    spin_edits,
    statement_end,
    template_words,
    volatile_variables,
    with_barriers,
    with_constants,
)

KEYWORDS = word_set("if for while do else return sizeof break continue")
INDICES = word_set("blockIdx blockDim gridDim warpSize")
WORDS = INTEGERS | word_set("float double const true false sizeof min max")
SHARED = "__mxmaca_shared__"


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


class Phases:
    """One kernel."""

    def __init__(
        self,
        source: Source,
        kernel: Kernel,
        edits: Sequence[Edit],
        variable_words: AbstractSet[str],
        callees: Optional[Callees],
        expanded: Optional[inlining.Expanded] = None,
        named: bool = True,
    ) -> None:
        self.program, self.callees = source, callees
        program_start = kernel.start
        if expanded is not None:
            source, kernel = expanded.source, expanded.kernel
            spins = spin_edits(source, volatile_variables(self.program))
            edits = [*shared_memory.edits(source), *block_atomics.edits(source), *spins]
        self.source = source
        self.edits = [edit for edit in edits if kernel.body < edit.start and edit.end < kernel.end]
        tokens = list(source.tokens(kernel.body + 1, kernel.end - 1))
        parameters = {word for start, end in kernel.parameters for word in source.words(start, end)}
        words = template_words(self.program, program_start)
        tokens = with_constants(self.program, tokens, parameters | ex.declared(tokens) | set(words))
        types = {name for before, name in zip(words, words[1:]) if before in ("class", "typename")}
        self.tokens: Tokens = with_barriers(tokens, blocks(tokens))
        self.types = types  # of the template's parameters
        self.output: List[str] = []
        self.region: List[Piece] = []
        self.visible: List[Variable] = []
        self.uniform: Set[str] = set()
        self.pure: Set[str] = set()
        self.varying: Set[str] = {"threadIdx"}
        self.kinds: Dict[str, List[str]] = {}  # each variable's type; none where it is not understood
        self.lanes = 0
        self.guards: List[Tuple[str, Set[str]]] = []  # conditions of whole warps around the place, and their names
        self.guarded = 0
        self.rows = False
        self.kept = Kept(self.program, types, named)
        self.warps = Warps()
        self.taken = ""  # the value of the shuffle in the statement that is looked at, and the names in it
        self.taken_uses: Set[str] = set()
        self.shared: List[Token] = []  # the declarations of shared memory
        for at, token in enumerate(self.tokens):
            if token.text == SHARED:
                self.shared += self.tokens[at + 1 : semicolon(self.tokens, at)]
        # What stands in an array's brackets is a constant.
        outer = [token for at, token in enumerate(self.shared) if not ex.in_brackets(self.shared, at)]
        self.memory = ex.names(outer).union(variable_words)
        if ex.calls_unnamed(self.tokens):
            raise Unfit("something is called that is no function of a name")
        # Threads take turns only where they wait, and within a phase they do not.
        spinning = spin(self.tokens)
        if spinning is not None:
            raise Unfit("a loop may wait for another thread by an atomic function", spinning)
        # What `modified` does not see: `(a ? b : c) = d`, `int& r = a ? b : c`.
        if ex.binds_to_a_choice(self.tokens) or ex.assigns_to_a_choice(self.tokens):
            raise Unfit("a reference or an assignment may be to one of several variables")
        # Names that a call may change. None of them is the same for all threads.
        self.handed: Set[str] = ex.listed(self.tokens)
        for of in calls(self.tokens):
            callee = self._callee(self.tokens[of].text)
            if callee is not None:
                self.handed |= changed(self.tokens, of, callee)
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
            raise Unfit("a parameter is no plain variable", declared[0])
        name = [token.text for token in declared if token.kind == WORD][-1]
        if self._changes(name, is_object=ex.may_be_object(ex.texts(declared[:-1]))):
            self._own_parameter(name, [token for token in declared if token.text != name])
            return
        # `(a) * p` is taken for `(A) *p`, so that no value of the device's memory is kept for a constant.
        for at in range(2, len(self.tokens) if ex.has(declared, "*") else 0):
            may_cast = ex.texts(self.tokens[at - 2 : at + 1]) == [")", "*", name] and ex.may_be_type(
                self.tokens, at - 2
            )
            if may_cast and self._text(at + 1) not in ASSIGNMENTS:
                raise Unfit(f"`(…) * {name}` may read memory", self.tokens[at])
        self.uniform.add(name)

    def _own_parameter(self, name: str, kind: Tokens) -> None:
        """A parameter that the threads change: each has its own, which begins with the launch's value."""
        kept = self.kept.type_of(kind)
        array = self.kept.array(name, kept, self._first(name))
        self.output.append(
            f" {kept} {array}[::mxmaca::most_threads];"
            f" __mxmaca_phase([&](int __mxmaca_thread) {{ {array}[__mxmaca_thread] = {name}; }});"
        )
        self.varying.add(name)
        self.kinds[name] = ex.texts(kind)
        self.visible.append(Variable(name, f"{kept}& {name} = {array}[__mxmaca_thread];", set()))

    def _callee(self, name: str) -> Optional[Callee]:
        taken = name in self.kinds or name in self.uniform or name in self.varying or name in self.pure
        return self.callees.of(name) if self.callees is not None and not taken else None

    def _changes(self, name: str, declared: int = -1, is_object: bool = False) -> bool:
        return name in self.handed or ex.modified(name, self.tokens, declared, is_object)

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
                raise Unfit(f"the address of '{name}' is taken", tokens[of])
        for at, token in enumerate(tokens):
            if token.text in pointers:
                behind = at + 1
                while self._text(behind) == ")":
                    behind += 1
                value = tokens[behind : semicolon(self.tokens, behind)] if self._text(behind) in ASSIGNMENTS else []
                if objects.intersection(ex.names(value)):
                    raise Unfit(f"the pointer '{token.text}' may point at a variable of the body", token)
            # Arrays of the body, where they stand for their first element's address; objects that may hold one.
            arrays = token.text in objects and not self.kinds[token.text] and self._text(at - 1) != "."
            if arrays and self._text(at + 1)[:1] not in tuple("[.({="):
                raise Unfit(f"the array '{token.text}' of the body is handed on", token)
            if token.text == "*" and self._text(at + 1) == "*":
                raise Unfit("there is a pointer to a pointer", token)
        brackets = 0
        for token in self.shared:
            brackets += (token.text == "[") - (token.text == "]")
            if token.text == "*" and not brackets:
                raise Unfit("shared memory holds pointers", token)

    def _first(self, name: str) -> Optional[Token]:
        return next((token for token in self.tokens if token.text == name), None)

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

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

    def _block(self, at: int, end: int, top: bool = False) -> None:
        statements = []
        while at < end:
            stop = statement_end(self.tokens, at)
            statements.append((at, stop, ex.has(self.tokens[at:stop], *WAITS)))
            at = stop
        outer, known = len(self.visible), (set(self.uniform), set(self.varying), set(self.pure))
        for position, (at, stop, waits) in enumerate(statements):
            if top and self._ends(at, stop) and any(waiting for _, _, waiting in statements[position:]):
                self._rest(at, stop, end)
                break
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
        self.uniform, self.varying, self.pure = known

    def _waiting(self, at: int, stop: int, behind: Set[str]) -> None:
        word = self._text(at)
        if word in BARRIERS and self._is_whole(word, self.tokens[at + 1 : stop]):
            if self.guards and word == "__syncthreads":
                raise Unfit("a barrier within an `if` whose condition may differ between warps", self.tokens[at])
            self._close()
        elif word == "{":
            self._close()
            self._nested("", at, stop)
        elif word == "for":
            self._for(at, stop)
        elif word == "if":
            self._if(at, stop)
        elif word in ("while", "do", "switch", "else", "return"):
            raise Unfit(f"a wait within '{word}'", self.tokens[at])
        else:
            self._shuffle(self.tokens[at:stop], behind)

    def _is_whole(self, word: str, behind: Tokens) -> bool:
        """Whether a barrier is one of all threads, or of all lanes of a warp."""
        mask = "".join(ex.without(behind, "(", ")", ";")).lower().rstrip("ul")
        return not mask or (word == "__syncwarp" and mask in ALL_LANES)

    def _nested(self, head: str, at: int, stop: int) -> None:
        """A block, or the statement behind `for (…)` or `if (…)`."""
        self.output.append(head + "{")
        braces = self._text(at) == "{"
        self._block(at + braces, stop - braces)
        self.output.append("}")

    def _for(self, at: int, stop: int) -> None:
        body = ex.closing(self.tokens, at + 1) + 1
        pieces = ex.split(self.tokens[at + 2 : body - 1], ";")
        if len(pieces) != 3:
            raise Unfit("a wait within a `for` over a range", self.tokens[at])
        start, condition, steps = pieces
        known = set(self.uniform)
        counters = self._counters(start, self.tokens[at])
        self.uniform.update(counters)
        if not all(self._counts(step, counters) for step in ex.split(steps)) or not self._is_uniform(condition):
            raise Unfit("a wait within a `for` whose rounds may differ between threads", self.tokens[at])
        if any(name in self.handed or ex.modified(name, self.tokens[body:stop]) for name in counters):
            raise Unfit("a wait within a `for` whose counter changes in its body", self.tokens[at])
        self._close()
        header = self.source.flat(self.tokens[at + 1].start, self.tokens[body - 1].end)
        self._nested(f"{self._marker(at)}for {header} ", body, stop)
        self.uniform = known

    def _counters(self, start: Tokens, where: Token) -> List[str]:
        """The variables that a loop's head declares: integers with the same value in all threads.

        Raises:
            Unfit: there are others.
        """
        declarators = ex.split(start)
        first = declarators[0]
        equals = ex.texts(first).index("=") if ex.has(first, "=") else 0
        if equals < 2 or not ex.is_integer(ex.texts(first[: equals - 1])):
            raise Unfit("a wait within a `for` that declares no integer", where)
        counters = []
        for one in [first[equals - 1 :], *declarators[1:]]:
            if ex.texts(one[1:2]) != ["="] or one[0].kind != WORD or not self._is_uniform(one[2:]):
                raise Unfit("a wait within a `for` whose beginning may differ between threads", where)
            if self._is_taken(one[0].text):
                raise Unfit(f"the counter '{one[0].text}' of a `for` that waits hides another variable", where)
            counters.append(one[0].text)
        return counters

    def _counts(self, step: Tokens, counters: Sequence[str]) -> bool:
        """Whether a step of a loop changes one of its counters, and in all threads alike."""
        words = ex.texts(step)
        if len(words) == 2:
            return bool(STEPS.intersection(words)) and bool(set(words).intersection(counters))
        return len(words) > 2 and words[0] in counters and words[1] in ASSIGNMENTS and self._is_uniform(step[2:])

    def _if(self, at: int, stop: int) -> None:
        body = ex.closing(self.tokens, at + 1) + 1
        self._close()
        end = statement_end(self.tokens, body)
        condition = self.source.flat(self.tokens[at + 1].start, self.tokens[body - 1].end)
        if not self._is_uniform(self.tokens[at + 2 : body - 1]):
            used = self.tokens[at + 2 : body - 1]
            if not self._is_of_warps(used):
                raise Unfit("a wait within an `if` whose condition may differ between threads", self.tokens[at])
            self._guarded(at, condition, ex.names(used), body, end)
            if end < stop:
                self._guarded(at, f"(!{condition})", ex.names(used), end + 1, stop)
            return
        self._nested(f"{self._marker(at)}if {condition} ", body, end)
        if end < stop:
            self._nested(" else ", end + 1, stop)

    def _ends(self, at: int, stop: int) -> bool:
        """Whether the statement is `if (…) return;`."""
        if self._text(at) != "if":
            return False
        behind = ex.texts(self.tokens[ex.closing(self.tokens, at + 1) + 1 : stop])
        return behind in (["return", ";"], ["{", "return", ";", "}"])

    def _rest(self, at: int, stop: int, end: int) -> None:
        """What follows `if (…) return;` to the kernel's end: the other threads do it."""
        body = ex.closing(self.tokens, at + 1) + 1
        condition, used = self.tokens[at + 2 : body - 1], ex.names(self.tokens[at + 2 : body - 1])
        text = f"(!{self.source.flat(self.tokens[at + 1].start, self.tokens[body - 1].end)})"
        self._close()
        if self._is_uniform(condition):
            self.output.append(f"{self._marker(at)}if {text} {{")
            self._block(stop, end, top=True)
            self.output.append("}")
        elif self._is_of_warps(condition):
            self._guarded(at, text, used, stop, end, top=True)
        else:
            raise Unfit("`return` before the last wait", self.tokens[at])

    def _guarded(self, at: int, condition: str, used: Set[str], start: int, stop: int, top: bool = False) -> None:
        """What some warps do and others do not: each loop asks the condition, which stays as it is meanwhile.

        Where no warp does it nothing of it runs: what is the same for all threads may be wrong to compute then.
        """
        self.rows = True
        self.guarded += 1
        some = f"__mxmaca_some_{self.guarded}"
        self.output.append(f"{self._marker(at)}{{ bool {some} = false;")
        self.region.append(Piece(f" {some} |= {condition};", used))
        self._close()
        self.guards.append((condition, used))
        self.output.append(f" if ({some}) {{")
        braces = not top and self._text(start) == "{"
        self._block(start + braces, stop - braces, top)
        self.guards.pop()
        self.output.append("}}")

    def _shuffle(self, statement: Tokens, behind: Set[str]) -> None:
        shuffle = Shuffle(self.program, statement)
        call = f"decltype({self._spell(shuffle.call)})"
        value, lane = self._spell(shuffle.value), self._spell(shuffle.lane)
        width = self._spell(shuffle.width) if shuffle.width else "32"
        lanes = f"__mxmaca_lanes_{self.lanes % 2}"
        self.lanes += 1
        marker = self.source.marker(statement[0].start)
        used = ex.names(shuffle.call)
        self.region.append(Piece(f"{marker}::mxmaca::put_lane<{call}>({lanes}, __mxmaca_thread, {value});", used))
        self._close()
        self.taken = f"::mxmaca::lane_{shuffle.kind}<{call}>({lanes}, __mxmaca_thread, {lane}, {width})"
        self.taken_uses = used
        rest = shuffle.rest
        self._plain(rest, self._spell(rest), behind, False)
        self.taken, self.taken_uses = "", set()

    def _plain(self, statement: Tokens, text: str, behind: Set[str], last: bool) -> None:
        marker = self.source.marker(statement[0].start)
        first = statement[0].text
        if ex.has(statement, SHARED) and first != "{" and first not in KEYWORDS:
            # The block's memory: seen by all that follows.
            self.output.append(marker + text)
            return
        if blocks(statement):
            self._group(marker, statement)
            return
        returns = any(ex.texts(statement[at : at + 2]) == ["return", ";"] for at in range(len(statement)))
        if ex.has(statement, "return") and not (last and returns):
            raise Unfit("`return` before the last wait", statement[0])
        called = {statement[of].text for of in calls(statement)}
        harmless = {
            name for name in called if self._callee(name) is not None or (name in self.types and self.kept.named)
        }
        # A cast to a template's type waits for nothing if that is a number.
        self.kept.numbers |= called & self.types
        if not ex.is_known(statement, ex.PURE | ex.EFFECTS | harmless):
            raise Unfit(_unknown(statement, harmless), statement[0])
        if ex.has(statement, "break", "continue") and first not in ("for", "while", "do"):
            raise Unfit("`break` or `continue` of a loop that waits", statement[0])
        if first not in KEYWORDS and ex.is_declaration(statement):
            self._declaration(marker, statement, behind)
            return
        if first in WORDS or first == "auto" or not (statement[0].kind == WORD or first in "*({;++--"):
            raise Unfit("a statement that is not understood", statement[0])
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
                raise Unfit("a variable that cannot be kept over a wait", statement[0])
            self.varying.add(name)
            self._set_kind(next(token for token in first if token.text == name), [])
            self.region.append(Piece(marker + self._spell(statement), ex.names(statement) | self.taken_uses))
            return
        several = [first[equals - 1 :], *declarators[1:]]
        for one in several[1:]:
            if ex.texts(one[1:2]) not in ([], ["="]) or ex.has(kind, "*", "&", "&&"):
                raise Unfit("a declaration that is not understood", statement[0])
        # One of an enclosing scope or of a parameter is too easily mistaken.
        if any(not one or one[0].kind != WORD or self._is_taken(one[0].text) for one in several):
            raise Unfit("a variable hides another one", statement[0])
        for one in several:
            self._variable(marker, kind, one[0], one[2:], behind)

    def _group(self, marker: str, statement: Tokens) -> None:
        """A variable that stands for the block: each loop that asks it for something makes its own."""
        name = next(iter(blocks(statement)))
        if self._is_taken(name) or ex.has(statement, ","):
            raise Unfit(f"'{name}' hides another variable", statement[0])
        self.pure.add(name)
        self.kinds[name] = ["int"]
        self.visible.append(Variable(name, marker + self._spell(statement), set()))
        self.region.append(Piece(self.visible[-1].text, set(), self.visible[-1]))

    def _set_kind(self, name: Token, kind: List[str]) -> None:
        """Note a variable's type: one of another scope with its name is taken for the same."""
        if self.kinds.setdefault(name.text, kind) != kind:
            raise Unfit(f"there are variables '{name.text}' of two types", name)

    def _is_taken(self, name: str) -> bool:
        return name in self.uniform or name in self.varying or name in self.pure

    def _variable(self, marker: str, kind: Tokens, name_token: Token, value: Tokens, behind: Set[str]) -> None:
        name, spelled = name_token.text, self._spell(kind)
        declared = f"{spelled} {name} = {self._spell(value)};" if value else f"{spelled} {name};"
        used = ex.names(value) | self.taken_uses | ex.names(kind)
        words = ex.without(kind, "const")
        self._set_kind(name_token, self._deduced(value) if words == ["auto"] else ex.texts(kind))
        reference = ex.has(kind, "&", "&&")
        is_object = ex.may_be_object(self.kinds[name])
        if value and not reference and not self.taken and not self._changes(name, name_token.start, is_object):
            # Behind a `return` it is computed by the threads that come there alone: it may divide by what is 0.
            if self._is_uniform(value) and not any("return" in piece.uses for piece in self.region):
                self.uniform.add(name)
                self.output.append(marker + declared)
                return
            if self._is_uniform(value, self.pure | {"threadIdx"}):
                # Cheaper computed again than kept.
                self.pure.add(name)
                self.visible.append(Variable(name, declared, used))
                self.region.append(Piece(marker + declared, used, self.visible[-1]))
                self.warps.declare(name, value, self.pure)
                if self._is_of_warps(value):
                    self.warps.whole.add(name)
                return
        self.varying.add(name)
        if name not in behind:
            if reference and self.uniform.intersection(ex.names(value)) and not ex.has(value, "["):
                raise Unfit("a reference to a variable", name_token)
            self.region.append(Piece(marker + declared, used))
            return
        if ex.texts(value[:1]) == ["{"]:
            raise Unfit(f"'{name}' cannot be kept over a wait: it begins with a list", name_token)
        kept = self.kept.type_of(kind)
        array = self.kept.array(name, kept, name_token)
        self.output.append(f" {kept} {array}[::mxmaca::most_threads];")
        alias = f"{kept}& {name} = {array}[__mxmaca_thread];"
        self.visible.append(Variable(name, alias, set()))
        assigned = f" {name} = {self._spell(value)};" if value else ""
        self.region.append(Piece(f"{marker}{alias}{assigned}", used, self.visible[-1]))

    def _is_of_warps(self, value: Tokens) -> bool:
        """Whether the expression has one value for all threads of a warp, in blocks whose rows are whole warps."""
        whole = self.warps.whole & self.pure
        return self._is_uniform(self.warps.replaced(value, self.pure), whole)

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
            if name in self.varying or name in self.pure or name in self.memory or self._changes(name):
                return False
        return True

    # ---- Regions ----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The end of a loop over the threads."""
        if not self.region:
            return
        wanted: Set[str] = set().union(*(piece.uses for piece in self.region))
        text = self._needed(wanted) + "".join(piece.text for piece in self.region)
        if self.guards:
            asked: Set[str] = set().union(*(used for _, used in self.guards))
            conditions = " && ".join(condition for condition, _ in self.guards)
            text = f"{self._needed(asked)} if ({conditions}) {{ {text}\n}}"
        self.output.append(f" __mxmaca_phase([&](int __mxmaca_thread) __attribute__((always_inline)) {{ {text}\n}});")
        self.region = []

    def _needed(self, wanted: Set[str]) -> str:
        """What brings variables of earlier regions into a loop's scope."""
        declared = [piece.declares for piece in self.region]
        wanted = set(wanted)
        needed: List[str] = []
        for variable in reversed(self.visible):
            if variable.name in wanted and not any(one is variable for one in declared):
                needed.insert(0, variable.text)
                wanted |= variable.uses
        return " ".join(needed)


def _unknown(statement: Tokens, harmless: AbstractSet[str]) -> str:
    """Why the statement is none of those that are known to wait for nothing, and to hide nothing."""
    called = sorted({statement[of].text for of in calls(statement)} - ex.PURE - ex.EFFECTS - CASTS - harmless)
    words = sorted(ex.FORBIDDEN.intersection(ex.texts(statement)))
    if called:
        return f"'{called[0]}' is called, which may wait"
    return f"'{words[0]}' is not understood" if words else "a statement that is not understood"
