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
waiting/__init__.py says what is taken.
"""

from typing import AbstractSet, Callable, Dict, List, Optional, Sequence, Set, Tuple

from . import block_atomics, inlining, shared_memory
from . import expressions as ex
from .arithmetic import find as find_arithmetic
from .arithmetic import type_names
from .callees import Callee, Callees, calls, changed, unknown
from .expressions import CASTS, INTEGERS, Tokens
from .kernels import Kernel, default
from .source import OTHER, WORD, Edit, Source, Token, word_set
from .types import Kept, declarations, declarators_of, deduced
from .waiting import arrays, common, loops, pointers
from .waiting.exchanges import exchange
from .waiting.regions import Piece, Regions, Variable
from .waits import (
    BARRIERS,
    OF_VOTES,
    TAKEN,
    VOTES,
    WAITS,
    Shuffle,
    Unfit,
    Warps,
    blocks,
    is_whole,
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


class Phases(Regions):
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
        super().__init__()
        self.program, self.callees = source, callees
        program_start = kernel.start
        if expanded is not None:
            source, kernel = expanded.source, expanded.kernel
            spins = spin_edits(source, volatile_variables(self.program))
            # Functions are taken in where names of types may be trusted, too.
            of_arithmetic = find_arithmetic(source, type_names(self.program)).edits
            edits = [*shared_memory.edits(source), *block_atomics.edits(source), *of_arithmetic, *spins]
        self.source = source
        self.edits = [edit for edit in edits if kernel.body < edit.start and edit.end < kernel.end]
        tokens = list(source.tokens(kernel.body + 1, kernel.end - 1))
        parameters = {word for start, end in kernel.parameters for word in source.words(start, end)}
        words = template_words(self.program, program_start)
        tokens = with_constants(self.program, tokens, parameters | ex.declared(tokens) | set(words))
        types = {name for before, name in zip(words, words[1:]) if before in ("class", "typename")}
        self.tokens: Tokens = with_barriers(tokens, blocks(tokens))
        self.types = types  # of the template's parameters
        self.uniform: Set[str] = set()
        self.pure: Set[str] = set()
        self.varying: Set[str] = {"threadIdx"}
        self.kinds: Dict[str, List[str]] = {}  # each variable's type; none where it is not understood
        self.lanes = self.asked = self.guarded = 0
        self.rows = False
        self.kept = Kept(self.program, types, named)
        self.pointers: Dict[str, bool] = {}  # parameters that do not change, and whether they lead to constants
        self.lasting: Set[str] = set()  # arrays that are there behind the waits, too
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
        numbers = {name: ex.ARITHMETIC.issuperset(kind) for name, kind in self.kinds.items()}
        memory = common.Memory(self.memory, self.pointers)
        self.common = common.Common(self.program, self.tokens, set(self.uniform), numbers, memory, self.handed)

    def generate(self) -> str:
        """The lambda's body.

        Raises:
            Unfit: there is none.
        """
        self._block(0, len(self.tokens), top=True)
        self._close()
        pointers.check(self.tokens, self.kinds, self.shared, self.lasting)
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
        if ex.has(declared, "*"):
            pointers.check_parameter(self.tokens, name)
            if not ex.has(declared, "volatile"):
                self.pointers[name] = common.leads_to_constants(declared)
        self.uniform.add(name)

    def _own_parameter(self, name: str, kind: Tokens) -> None:
        """A parameter that the threads change: each has its own, which begins with the launch's value."""
        kept = self.kept.type_of(kind)
        array = self.kept.array(name, kept, next((one for one in self.tokens if one.text == name), None))
        self.output.append(
            f" {kept} {array}[::mxmaca::most_threads];"
            f" __mxmaca_phase([&](int __mxmaca_thread) {{ {array}[__mxmaca_thread] = {name}; }});"
        )
        self.varying.add(name)
        self.kinds[name] = ex.texts(kind)
        self.visible.append(Variable(name, f"{kept}& {name} = {array}[__mxmaca_thread];", set()))

    def _callee(self, name: str) -> Optional[Callee]:
        taken = name in self.kinds or self._is_taken(name)
        return self.callees.of(name) if self.callees is not None and not taken else None

    def _changes(self, name: str, declared: int = -1, is_object: bool = False) -> bool:
        return name in self.handed or ex.modified(name, self.tokens, declared, is_object)

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _marker(self, at: int) -> str:
        return self.source.marker(self.tokens[at].start)

    def _flat(self, start: int, end: int) -> str:
        return self.source.flat(start, end, self.edits)

    def _spell(self, tokens: Tokens) -> str:
        """The tokens, which follow each other in the source, on one line."""
        start, end = tokens[0].start, tokens[-1].end
        for token in tokens:
            if token.text == TAKEN:
                return f"{self._flat(start, token.start)} {self.taken} {self._flat(token.end, end)}"
        return self._flat(start, end)

    # ---- Statements -------------------------------------------------------------------------------------------------

    def _block(self, at: int, end: int, top: bool = False, last: Optional[Callable[[], None]] = None) -> None:
        statements = loops.statements(self.tokens, at, end)
        outer, known = len(self.visible), (set(self.uniform), set(self.varying), set(self.pure))
        for position, (at, stop, waits) in enumerate(statements):
            waiting = any(later for _, _, later in statements[position:])
            if top and waiting and at < stop and loops.is_return(self.tokens[at:stop]):
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
        if last is not None:
            last()
        self._close()
        del self.visible[outer:]
        self.uniform, self.varying, self.pure = known

    def _waiting(self, at: int, stop: int, behind: Set[str]) -> None:
        word = self._text(at)
        if at == stop:
            self._close()
        elif word in BARRIERS and is_whole(word, self.tokens[at + 1 : stop]):
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
        elif word in ("while", "do"):
            self._loop(at, stop)
        elif word in loops.JUMPS:
            if self.guards:
                raise Unfit(f"`{word}` within an `if` whose condition may differ between warps", self.tokens[at])
            self._close()
            self.output.append(f"{self._marker(at)}{word};")
        elif word in ("switch", "else", "return"):
            raise Unfit(f"a wait within '{word}'", self.tokens[at])
        else:
            self._shuffle(self.tokens[at:stop], behind)

    def _nested(self, head: str, at: int, stop: int) -> None:
        """A block, or the statement behind `for (…)` or `if (…)`."""
        self.output.append(head + "{")
        braces = self._text(at) == "{"
        self._block(at + braces, stop - braces)
        self.output.append("}")

    def _for(self, at: int, stop: int) -> None:
        loop, known = loops.parts(self.tokens, at, stop), set(self.uniform)
        if not self._is_counted(loop):
            self.uniform = known
            self._loop(at, stop)
            return
        self._close()
        header = self._flat(self.tokens[at + 1].start, self.tokens[loop.body - 1].end)
        self._nested(f"{self._marker(at)}for {header} ", loop.body, stop)
        self.uniform = known

    def _is_counted(self, loop: loops.Loop) -> bool:
        """Whether a `for` counts variables of its own, which nothing else changes, in all threads alike."""
        try:
            counters = loops.counters(loop, self._is_uniform, self._is_taken)
        except Unfit:
            return False
        self.uniform.update(counters)
        body = self.tokens[loop.body : loop.end]
        return (
            all(loops.counts(step, counters, self._is_uniform) for step in ex.split(loop.steps))
            and self._is_uniform(loop.condition)
            and not any(name in self.handed or ex.modified(name, body) for name in counters)
        )

    def _loop(self, at: int, stop: int) -> None:
        """A loop whose threads count for themselves, and go round together."""
        loop, where = loops.parts(self.tokens, at, stop), self.tokens[at]
        self._close()
        outer, known = len(self.visible), (set(self.uniform), set(self.varying), set(self.pure))
        self.output.append(f"{self._marker(at)}{{")
        if len(loop.start) > 1:
            text = self.source.edited(self.edits, loop.start[0].start, loop.start[-1].end)
            self._plain(loop.start, text, ex.names(self.tokens[at:stop]), False)
        what = f"a wait within a `{loop.word}` whose rounds"
        body = self.tokens[loop.body : loop.end]
        braces = body[0].text == "{"
        if ex.has(loop.condition, *VOTES) or "continue" in loops.jumps(body[braces : len(body) - braces]):
            self._close()
            self.asked += 1
            again = f"__mxmaca_again_{self.asked}"
            self.output.append(f" for (bool {again} = false;; {again} = true) {{")
            self._steps(loop.steps, f"if ({again}) ")
            self.output.append(f" if ({again}) {{" if loop.word == "do" else " {")
            self.output.append(f" if (!{self._answer(loop.condition, where, what)}) break;}}")
            self._nested("", loop.body, loop.end)
            self.output.append("}")
        else:
            heads = ex.names([*loop.condition, *loop.steps])
            if any(one.name in heads for one in declarations(body)):
                raise Unfit(f"the body of a `{loop.word}` hides what its head names", where)
            asked, ask = self._question(loop.condition, where, what)
            if loop.word != "do":
                ask()
            self._close()

            def next_round() -> None:
                self._steps(loop.steps, "")
                ask()

            self.output.append(" do {" if loop.word == "do" else f" while ({asked}) {{")
            self._block(loop.body + braces, loop.end - braces, last=next_round)
            self.output.append(f"}} while ({asked});" if loop.word == "do" else "}")
        self.output.append("}")
        del self.visible[outer:]
        self.uniform, self.varying, self.pure = known

    def _steps(self, steps: Tokens, condition: str) -> None:
        """What a `for` does between two rounds."""
        if steps:
            text = self.source.edited(self.edits, steps[0].start, steps[-1].end)
            self._plain([*steps, steps[-1]._replace(text=";", kind=OTHER)], f"{condition}{{ {text}; }}", set(), False)

    def _answer(self, condition: Tokens, where: Token, what: str) -> str:
        """What tells the answer of all threads to a condition, which may be a vote, at the end of a loop over them."""
        if ex.has(condition, *VOTES):
            condition = self._put(condition).rest
        asked, ask = self._question(condition, where, what)
        self.taken = ""
        ask()
        self._close()
        return asked

    def _question(self, condition: Tokens, where: Token, what: str) -> Tuple[str, Callable[[], None]]:
        """What tells the answer of all threads to a condition, and what asks them in the next loop over them.

        Raises:
            Unfit: they may answer differently.
        """
        if self._is_uniform(condition):
            return f"({self._spell(condition)})" if condition else "true", lambda: None
        if self.guards or not self.common.has(condition):
            raise Unfit(f"{what} may differ between threads", where)
        self.asked += 1
        name = f"__mxmaca_asked_{self.asked}"
        self.output.append(f" ::mxmaca::Agreed {name};")
        piece = f"{self.source.marker(condition[0].start)}{name}.say({self._spell(condition)});"

        def ask() -> None:
            if self.common.reads(condition):
                self._close()  # whoever stores there has done so, and nobody does while they are asked
            self.region.append(Piece(piece, ex.names(condition)))

        return f"{name}.yes()", ask

    def _if(self, at: int, stop: int) -> None:
        body = ex.closing(self.tokens, at + 1) + 1
        end = statement_end(self.tokens, body)
        used = self.tokens[at + 2 : body - 1]
        if not self._is_uniform(used) and self._is_of_warps(used):
            self._close()
            condition = self._flat(self.tokens[at + 1].start, self.tokens[body - 1].end)
            self._guarded(at, condition, ex.names(used), body, end)
            if end < stop:
                self._guarded(at, f"(!{condition})", ex.names(used), end + 1, stop)
            return
        waits = ex.has(self.tokens[body:stop], *WAITS)
        if not waits and not loops.jumps(self.tokens[body:stop]):
            self._shuffle(self.tokens[at:stop], set())
            return
        what = f"{'a wait' if waits else '`break` or `continue` of a loop that waits'} within an `if` whose condition"
        answer = self._answer(used, self.tokens[at], what)
        self._nested(f"{self._marker(at)}if ({answer}) ", body, end)
        if end < stop:
            self._nested(" else ", end + 1, stop)

    def _rest(self, at: int, stop: int, end: int) -> None:
        """What follows `if (…) return;` to the kernel's end: the other threads do it."""
        body = ex.closing(self.tokens, at + 1) + 1
        condition = self.tokens[at + 2 : body - 1]
        self._close()
        if not self._is_uniform(condition) and self._is_of_warps(condition):
            text = f"(!{self._flat(self.tokens[at + 1].start, self.tokens[body - 1].end)})"
            self._guarded(at, text, ex.names(condition), stop, end, top=True)
            return
        answer = self._answer(condition, self.tokens[at], "`return` before the last wait, whose condition")
        self.output.append(f"{self._marker(at)}if (!({answer})) {{")
        self._block(stop, end, top=True)
        self.output.append("}")

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
        rest = self._put(statement).rest
        self._plain(rest, self._spell(rest), behind, False)
        self.taken, self.taken_uses = "", set()

    def _put(self, statement: Tokens) -> Shuffle:
        """The end of the loop over the threads in which they give what a shuffle takes, or vote."""
        shuffle = Shuffle(self.program, statement)
        value, used = self._spell(shuffle.value), ex.names(shuffle.call)
        lanes = f"__mxmaca_lanes_{self.lanes % 2}"
        self.lanes += shuffle.kind not in VOTES
        if shuffle.kind in VOTES:
            if self.guards:
                raise Unfit("a vote within an `if` whose condition may differ between warps", statement[0])
            self.asked += 1
            votes, (counted, said) = f"__mxmaca_votes_{self.asked}", VOTES[shuffle.kind]
            self.output.append(f" int {votes} = 0;")
            put, self.taken = f"{votes} += static_cast<int>({value}) {counted};", said.format(votes)
            between = ""
        else:
            put, between, self.taken = exchange(shuffle, lanes, value, self._spell)
            self.taken_uses = used if shuffle.kind not in OF_VOTES else set()
        self.region.append(Piece(self.source.marker(statement[0].start) + put, used))
        self._close()
        if between:
            self.region.append(Piece(between, used))
            self._close()
        return shuffle

    def _plain(self, statement: Tokens, text: str, behind: Set[str], last: bool) -> None:
        marker = self.source.marker(statement[0].start)
        first = statement[0].text
        if ex.has(statement, SHARED) and first != "{" and first not in KEYWORDS:
            # The block's memory: seen by all that follows.
            self.output.append(marker + text)
            return
        if first in ("using", "typedef", "static_assert") and not ex.has(statement, "decltype", "auto"):
            # A name of a type, or for the compiler to check: it has none of the threads' variables in it.
            self.output.append(marker + text)
            return
        if blocks(statement):
            self._group(marker, statement)
            return
        if ex.has(statement, "return") and not (last and loops.returns(statement)):
            raise Unfit("`return` before the last wait", statement[0])
        called = {statement[of].text for of in calls(statement)}
        harmless = {
            name for name in called if self._callee(name) is not None or (name in self.types and self.kept.named)
        }
        # A cast to a template's type waits for nothing if that is a number.
        self.kept.numbers |= called & self.types
        if not ex.is_known(statement, ex.PURE | ex.EFFECTS | harmless):
            raise Unfit(unknown(statement, harmless), statement[0])
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
        declarators = declarators_of(statement[:-1])
        first = declarators[0]
        equals = ex.texts(first).index("=") if ex.has(first, "=") else len(first)
        kind = first[: equals - 1]
        made = arrays.declared(declarators)
        if any(array.name.text in behind for array in made):
            for array in made:
                self._array(marker, array)
            return
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

    def _array(self, marker: str, one: arrays.Array) -> None:
        """An array of a thread's own that is needed behind a wait."""
        name, constant = one.name.text, arrays.is_constant(one, self._is_uniform)
        if self._is_taken(name) or not arrays.has_sizes(one, constant, self._is_uniform):
            raise Unfit("an array that cannot be kept over a wait", one.name)
        self._set_kind(one.name, [])
        brackets, value = self._spell(one.brackets), self._spell(one.value) if one.value else None
        if constant:
            self.uniform.add(name)
            self.output.append(f"{marker}{self._spell(one.kind)} {name}{brackets} = {value};")
            return
        self.varying.add(name)
        self.lasting.add(name)
        kept, made = self.kept.type_of(one.kind), self.kept.name(name)
        memory, alias, first = arrays.per_thread(name, kept, made, brackets, value)
        self.output.append(memory)
        self.visible.append(Variable(name, alias, set()))
        used = ex.names(one.value) | ex.names(one.kind)
        self.region.append(Piece(f"{marker}{alias}{first}", used, self.visible[-1]))

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
        self._set_kind(name_token, deduced(value, self.kinds) if words == ["auto"] else ex.texts(kind))
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
        return self._is_uniform(self.warps.replaced(value, self.pure), self.warps.whole & self.pure)

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
