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

This file works on text and knows no types, so it takes only what it understands in full: everything else is `Unfit`,
and the kernel keeps its threads' stacks. It wants: waits as statements of their own, or in `for` and `if` whose
conditions are the same for all threads (constants, parameters, block indices); no `return` before the last wait;
variables that live across a wait of arithmetic, vector or pointer type; and calls only of functions that are known not
to wait.
"""

import re
from typing import TYPE_CHECKING, AbstractSet, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from .errors import CuccError

if TYPE_CHECKING:
    from .rewrite import Rewriter

WAIT = re.compile(r"\b(?:__syncthreads|__syncwarp|__shfl_sync|__shfl_(?:up|down|xor)_sync)\b")
BARRIER = re.compile(r"__sync(?:threads|warp)\s*\(\s*\)\s*;")
SHUFFLE = re.compile(r"\b__shfl(?P<kind>|_up|_down|_xor)_sync\s*\(")
SHUFFLES = {"": "index", "_up": "up", "_down": "down", "_xor": "xor"}
ALL_LANES = re.compile(r"\(*\s*(?:0[xX][fF]{8}[uU]?[lL]{0,2}|4294967295[uU]?|~\s*0[uU]?|-\s*1)\s*\)*")
FORBIDDEN = re.compile(
    r"\b(?:goto|switch|case|asm|__asm__|__asm|try|catch|throw|new|delete|static|thread_local|typedef|using|struct|class"
    r"|union|enum|template|operator|extern|volatile|register|this|decltype|alignas|__attribute__|__mxmaca_\w+)\b"
    r"|<<<|\[\s*[&=\]]|[\"'\\]"
)
IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
TEMPLATE_CALL = re.compile(r"(\w+)\s*<[\w\s*:]*>\s*\(|>\s*\(")
NUMBER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)[uUlLfF]*")
INTEGERS = "unsigned|signed|short|long|int|char|bool|size_t|uint|u?int(?:8|16|32|64)_t"
BUILTIN = re.compile(
    rf"(?:{INTEGERS}|float|double)(?:\s+(?:{INTEGERS}|double))*|(?:float|double|int|uint|short|ushort|char|uchar)[1-4]"
)
INTEGER = re.compile(rf"(?:{INTEGERS})(?:\s+(?:{INTEGERS}))*")
# Of these types no member is an array, and none becomes a pointer.
VALUE = re.compile(rf"{BUILTIN.pattern}|[\w:]*_t")
DECLARATION = re.compile(
    r"[A-Za-z_][\w:]*(?:\s*<[^;=]*>)?(?:\s+const\b)?[\s*&]+(?:(?:const|__restrict(?:__)?)\s+)*[A-Za-z_]"
)
KEYWORDS = frozenset(["if", "for", "while", "do", "else", "return", "sizeof", "break", "continue", "const", "auto"])
CASTS = frozenset(["static_cast", "reinterpret_cast", "const_cast"])
INDICES = frozenset(["blockIdx", "blockDim", "gridDim", "warpSize"])


def _words(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


WORDS = _words(
    """unsigned signed short long int char bool float double size_t uint int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t const true false sizeof min max"""
)
# Functions without an effect, then those that have one; none of them waits.
MATHEMATICS = _words(
    """abs fabs fmax fmin exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan atan2
    sinh cosh tanh pow fma floor ceil round trunc rint fmod erf erfc tgamma lgamma copysign hypot"""
)
PURE = (
    MATHEMATICS
    | {name + "f" for name in MATHEMATICS}
    | CASTS
    | _words(
        """min max isnan isinf isfinite __expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __powf __fdividef
        __saturatef __fmaf_rn __fadd_rn __fsub_rn __fmul_rn __fdiv_rn __frcp_rn __fsqrt_rn __frsqrt_rn __ldg __ldcg
        __ldca __ldcs __popc __popcll __clz __clzll __ffs __ffsll __brev __mul24 __umul24 __mulhi __umulhi
        __float2int_rn __float2int_rz __float2int_rd __int2float_rn __float_as_int __int_as_float __float_as_uint
        __uint_as_float make_float2 make_float3 make_float4 make_int2 make_int3 make_int4 make_double2 sizeof unsigned
        int float double long short char bool size_t __half2float __float2half"""
    )
)
EFFECTS = _words(
    """atomicAdd atomicSub atomicMax atomicMin atomicExch atomicCAS atomicAnd atomicOr atomicXor atomicInc atomicDec
    __threadfence __threadfence_block __threadfence_system sincosf sincos __sincosf if for while return"""
)
ASSIGNED = r"(?:[-+*/%&|^]|<<|>>)?=(?!=)"
DEREFERENCED = re.compile(rf"(?:^|[=(,?:+\-*/%<>&|!~])\s*\*|\(\s*(?:const\s+)?(?:{BUILTIN.pattern})[\s*]*\)\s*\*")
# A reference that is bound to one of several variables, or to each of a range.
CHOSEN = re.compile(
    rf"(?<!&)&\s*\w+\s*=(?!=)[^;]*(?:\?|,|\w\s*\()|\b(?:auto|{BUILTIN.pattern})\s*&\s*\w+\s*[({{][^;]*(?:\?|,|\w\s*\()"
    r"|\bfor\s*\([^;()]*&\s*\w+\s*:"
)
# An address: what it is of. Behind a name, a number or a bracket `&` is arithmetic, but not behind `return` or a cast.
ADDRESS = re.compile(
    r"(?:(?<![&\w\])\s])|(?<=\breturn)|\((?:[\w\s:<>]+\*[\s*]*(?:const\s*)?|[\w\s:]+)\))\s*&(?!&)[\s(]*([A-Za-z_]\w*)"
)
RESULTS = re.compile(r"\b(?:__)?sincosf?\s*\((?:[^();]|\([^()]*\))*$")
MEMORY = re.compile(r"\[|->|\+\+|--|(?<![=!<>])=(?!=)|\{|(?<!&)&(?!&)")  # or an effect
# An element for each thread takes room on one stack.
MOST_VARIABLES = 8


class Unfit(Exception):
    """The kernel keeps its threads' stacks."""


class Variable(NamedTuple):
    """A variable that regions behind its own see: what brings it into their scope."""

    name: str
    text: str


def generate(rewriter: "Rewriter", body: int, body_end: int, parameters: Sequence[Tuple[int, int]]) -> Optional[str]:
    """The body between these braces as a lambda's body in phases, or None. Other places are edited already."""
    if WAIT.search(rewriter.text, body, body_end) is None:
        return None
    try:
        return Phases(rewriter, body, body_end, parameters).generate()
    except (Unfit, CuccError):
        return None


def modified(name: str, text: str) -> bool:
    """Whether the text may change the variable or a part of it, or let something else do so."""
    part = r"(?:\s*\.\s*\w+|\s*\[[^;]*?\])*"
    member = rf"\b{name}(?:\s*\.\s*\w+{part})?\s*\)*\s*"
    # What a pointer points to is no part of it.
    assigned = rf"(?<!\*)(?<!\*\s){member}{ASSIGNED}"
    other = rf"(?:\+\+|--)[\s(]*{name}\b|{member}(?:\+\+|--)|(?<!&)&[\s(]*{name}\b|&\s*\w+\s*[=({{]+\s*{name}\b"
    return re.search(rf"{assigned}|{other}", text) is not None


def uses(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


def parts(text: str) -> List[str]:
    """What commas separate outside of brackets."""
    found, depth, begin = [], 0, 0
    for place, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            found.append(text[begin:place])
            begin = place + 1
    return [*found, text[begin:]]


class Phases:
    """One kernel."""

    def __init__(self, rewriter: "Rewriter", body: int, body_end: int, parameters: Sequence[Tuple[int, int]]) -> None:
        self.rewriter, self.body, self.body_end = rewriter, body, body_end
        self.output: List[str] = []
        self.region: List[str] = []
        self.visible: List[Variable] = []
        self.uniform: Set[str] = set()
        self.pure: Set[str] = set()
        self.varying: Set[str] = {"threadIdx"}
        self.kinds: Dict[str, str] = {}  # the type of each variable of the body; "" where it is not understood
        self.expanded = 0
        self.lanes = 0
        self.flat = rewriter._flat(body + 1, body_end)
        self.shared = set(IDENTIFIER.findall(" ".join(re.findall(r"__mxmaca_shared__([^;]*);", self.flat))))
        # What `modified` does not see: `(a ? b : c) = d`, `int& r = a ? b : c`.
        if CHOSEN.search(self.flat) or self._assigns_to_a_choice():
            raise Unfit
        for start, end in parameters:
            text = rewriter._flat(start, rewriter._default(start, end)).strip()
            names = re.findall(r"[A-Za-z_]\w*", text)
            if text in ("", "void"):
                continue
            if "..." in text or "(" in text or "[" in text or len(names) < 2 or modified(names[-1], self.flat):
                raise Unfit
            # `(a) * p` is taken for `(A) *p`, so that no value of the device's memory is kept for a constant.
            if "*" in text and re.search(rf"\)\s*\*\s*{names[-1]}\b(?!\s*{ASSIGNED})", self.flat):
                raise Unfit
            self.uniform.add(names[-1])

    def generate(self) -> str:
        self._block(self.body + 1, self.body_end, top=True)
        self._close()
        self._check_pointers()
        lanes = "".join(
            f" alignas(64) char __mxmaca_lanes_{i}[::mxmaca::lanes_bytes];" for i in range(min(self.lanes, 2))
        )
        return "{" + lanes + "".join(self.output) + "\n}"

    def _assigns_to_a_choice(self) -> bool:
        """Whether brackets with a `?` in them stand where something is changed."""
        opened: List[int] = []
        for place, char in enumerate(self.flat):
            if char == "(":
                opened.append(place)
            elif char == ")" and opened:
                start = opened.pop()
                if "?" not in self.flat[start:place]:
                    continue
                behind, before = self.flat[place + 1 :].lstrip(), self.flat[:start].rstrip()
                address = re.search(r"(?:^|[^&\w\])\s]|\breturn)\s*&$", before)
                if re.match(rf"{ASSIGNED}|\+\+|--|\.", behind) or before.endswith(("++", "--")) or address:
                    return True
        return False

    def _deduced(self, value: str) -> str:
        """A type for a variable of deduced type: it is no pointer to a variable if nothing in its value can be one."""
        names = set(IDENTIFIER.findall(value)).intersection(self.kinds)
        return (
            "int"
            if all(VALUE.fullmatch(re.sub(r"\bconst\b", "", self.kinds[one]).strip()) for one in names)
            else "auto"
        )

    def _check_pointers(self) -> None:
        """A variable of one phase is gone in the next, so nothing may point at one.

        Raises:
            Unfit: something may.
        """
        flat = self.flat
        pointers = {name for name, kind in self.kinds.items() if "*" in kind}
        others = {name for name, kind in self.kinds.items() if "*" not in kind}
        for match in ADDRESS.finditer(flat):
            name, behind = match.group(1), flat[match.end() :]
            # The address of an element that a pointer leads to is none of the pointer's.
            leads = name in pointers and re.match(r"\s*(?:\[|->)", behind) is not None
            if name in self.kinds and not leads and not RESULTS.search(flat[: match.start() + 1]):
                raise Unfit
        values = {name for name in others if VALUE.fullmatch(re.sub(r"\bconst\b", "", self.kinds[name]).strip())}
        for name in pointers:
            for match in re.finditer(rf"(?<![\w.]){name}\b\s*\)*\s*{ASSIGNED}([^;]*)", flat):
                if (others - values).intersection(IDENTIFIER.findall(match.group(1))):
                    raise Unfit
        # Arrays of the body, where they stand for their first element's address; objects that may hold one.
        for name in others - values:
            if not self.kinds[name] and re.search(rf"(?<![\w.]){name}\b(?!\s*[\[.({{=])", flat):
                raise Unfit
        shared = " ".join(re.findall(r"__mxmaca_shared__([^;]*);", flat))
        if "*" in re.sub(r"\[[^\]]*\]", "", shared) or re.search(r"\*\s*\*", flat):
            raise Unfit

    # ---- Statements -------------------------------------------------------------------------------------------------

    def _statement_end(self, at: int) -> int:
        rewriter, text = self.rewriter, self.rewriter.text
        if text[at] == "{":
            return rewriter.closing(at) + 1
        word = re.compile(r"[A-Za-z_]\w*").match(text, at)
        if word is None or word.group() not in ("if", "for", "while", "do"):
            return rewriter._declaration_end(at) + 1
        if word.group() == "do":
            end = self._statement_end(rewriter.skip_space(word.end()))
            return rewriter._declaration_end(end) + 1
        header = rewriter.skip_space(word.end())
        if text[header] != "(":
            raise Unfit
        end = self._statement_end(rewriter.skip_space(rewriter.closing(header) + 1))
        if word.group() == "if":
            other = rewriter.skip_space(end)
            if re.compile(r"else\b").match(text, other):
                end = self._statement_end(rewriter.skip_space(other + 4))
        return end

    def _block(self, at: int, end: int, top: bool = False) -> None:
        statements = []
        at = self.rewriter.skip_space(at)
        while at < end:
            stop = self._statement_end(at)
            statements.append((at, stop, WAIT.search(self.rewriter.text, at, stop) is not None))
            at = self.rewriter.skip_space(stop)
        outer = len(self.visible)
        for position, (at, stop, waits) in enumerate(statements):
            later = next((start for start, _, waiting in statements[position + 1 :] if waiting), None)
            behind = self.rewriter._flat(later, end) if later is not None else ""
            if waits:
                self._waiting(at, stop, behind)
            else:
                self._plain(at, self.rewriter.edited(at, stop), behind, top and later is None)
        self._close()
        del self.visible[outer:]

    def _waiting(self, at: int, stop: int, behind: str) -> None:
        rewriter, text = self.rewriter, self.rewriter.text
        flat = rewriter._flat(at, stop).strip()
        if BARRIER.fullmatch(flat):
            self._close()
        elif text[at] == "{":
            self._close()
            self.output.append("{")
            self._block(at + 1, stop - 1)
            self.output.append("}")
        elif re.match(r"for\b", flat):
            header = rewriter.skip_space(at + 3)
            close = rewriter.closing(header)
            self._for(at, rewriter._flat(header + 1, close), rewriter.skip_space(close + 1), stop)
        elif re.match(r"if\b", flat):
            self._if(at, stop)
        elif re.match(r"(?:while|do|switch|else|return)\b", flat):
            raise Unfit
        else:
            self._shuffle(at, flat, behind)

    def _nested(self, at: int, stop: int) -> None:
        """What stands behind `for (…)` or `if (…)`."""
        self.output.append("{")
        if self.rewriter.text[at] == "{":
            self._block(at + 1, self.rewriter.closing(at))
        else:
            self._block(at, stop)
        self.output.append("}")

    def _for(self, at: int, header: str, body: int, stop: int) -> None:
        pieces = header.split(";")
        start = re.fullmatch(rf"\s*({INTEGER.pattern})\s+(\w+)\s*=(.*)", pieces[0]) if len(pieces) == 3 else None
        if start is None or len(parts(pieces[0])) != 1 or len(parts(pieces[2])) != 1:
            raise Unfit
        name = start.group(2)
        known = set(self.uniform)
        step = re.fullmatch(
            rf"\s*(?:{name}\s*(?:\+\+|--)|(?:\+\+|--)\s*{name}|{name}\s*(?:[-+*/%&|^]|<<|>>)?=([^=].*))\s*", pieces[2]
        )
        if step is None or not self._is_uniform(start.group(3)):
            raise Unfit
        self.uniform.add(name)
        if not self._is_uniform(pieces[1]) or not self._is_uniform(step.group(1) or "0"):
            raise Unfit
        if modified(name, self.rewriter._flat(body, stop)):
            raise Unfit
        self._close()
        self.output.append(self.rewriter.marker(at) + f"for ({header}) ")
        self._nested(body, stop)
        self.uniform = known

    def _if(self, at: int, stop: int) -> None:
        rewriter = self.rewriter
        header = rewriter.skip_space(at + 2)
        close = rewriter.closing(header)
        condition = rewriter._flat(header + 1, close)
        if not self._is_uniform(condition):
            raise Unfit
        self._close()
        body = rewriter.skip_space(close + 1)
        end = self._statement_end(body)
        self.output.append(rewriter.marker(at) + f"if ({condition}) ")
        self._nested(body, end)
        other = rewriter.skip_space(end)
        if other < stop:
            self.output.append(" else ")
            body = rewriter.skip_space(other + 4)
            self._nested(body, stop)

    def _shuffle(self, at: int, flat: str, behind: str) -> None:
        found = list(SHUFFLE.finditer(flat))
        # What may not be reached at all must not be computed beforehand.
        if len(found) != 1 or re.search(r"\?|&&|\|\|", flat[: found[0].start()]):
            raise Unfit
        start, depth, end = found[0].start(), 0, found[0].end()
        for end in range(found[0].end() - 1, len(flat)):
            depth += (flat[end] in "([{") - (flat[end] in ")]}")
            if depth == 0:
                break
        call = flat[start : end + 1]
        arguments = [part.strip() for part in parts(flat[found[0].end() : end])]
        if not 3 <= len(arguments) <= 4 or not ALL_LANES.fullmatch(arguments[0]):
            raise Unfit
        for argument in arguments[1:]:
            # It is computed in another loop than the rest of the statement.
            self._check(argument, PURE)
            if re.search(r"\+\+|--|(?<![=!<>])=(?!=)", argument):
                raise Unfit
        width = arguments[3] if len(arguments) == 4 else "32"
        kind = SHUFFLES[found[0].group("kind")]
        lanes = f"__mxmaca_lanes_{self.lanes % 2}"
        self.lanes += 1
        self.region.append(
            self.rewriter.marker(at)
            + f"::mxmaca::put_lane<decltype({call})>({lanes}, __mxmaca_thread, {arguments[1]});"
        )
        self._close()
        taken = f"::mxmaca::lane_{kind}<decltype({call})>({lanes}, __mxmaca_thread, {arguments[2]}, {width})"
        # A name takes the call's place where the statement is looked at.
        self._plain(at, flat[:start] + "__mxmaca_taken" + flat[end + 1 :], behind, False, taken)

    def _plain(self, at: int, text: str, behind: str, last: bool, taken: str = "") -> None:
        flat = " ".join(re.sub(r"^#[^\n]*$", " ", text, flags=re.MULTILINE).split("\n")).strip()
        marker = self.rewriter.marker(at)
        if re.match(r"\bstatic thread_local\b|.*\*(?:static|reinterpret)_cast<.*::mxmaca::dynamic_shared\(\)", flat):
            # The block's memory: seen by all that follows.
            self.output.append(marker + text)
            return
        word = re.match(r"[A-Za-z_]\w*", flat)
        first = word.group() if word else ""
        self._check(flat.replace("__mxmaca_taken", "0"), PURE | EFFECTS)
        if re.search(r"\breturn\b", flat) and not (last and re.search(r"\breturn\s*;", flat)):
            raise Unfit
        if re.search(r"\b(?:break|continue)\b", flat) and first not in ("for", "while", "do"):
            raise Unfit
        if first not in KEYWORDS - {"const", "auto"} and DECLARATION.match(flat):
            self._declaration(marker, flat, behind, taken)
            return
        if (first in WORDS or first == "auto") or not re.match(r"[A-Za-z_*({;+-]", flat):
            raise Unfit
        self.region.append(marker + text.replace("__mxmaca_taken", taken))

    # ---- Variables --------------------------------------------------------------------------------------------------

    def _declaration(self, marker: str, flat: str, behind: str, taken: str) -> None:
        declarators = parts(flat.rstrip("; "))
        head = re.match(r"(.*?[\s*&>])([A-Za-z_]\w*)\s*(=.*|)$", declarators[0], re.DOTALL)
        if head is None or "(" in head.group(1) or "=" in head.group(1) or "[" in head.group(1):
            # An array, or one that a constructor makes: fit where nothing behind a wait needs it.
            names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]|\(.*|=.*|\{.*", "", declarators[0]))
            if len(declarators) > 1 or not names or names[-1] in WORDS or uses(names[-1], behind):
                raise Unfit
            if names[-1] in self.uniform | self.varying | self.pure:
                raise Unfit
            self.varying.add(names[-1])
            self.kinds[names[-1]] = ""
            self.region.append(marker + flat.replace("__mxmaca_taken", taken))
            return
        kind = head.group(1).strip()
        several = [(head.group(2), head.group(3))]
        for more in declarators[1:]:
            match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(=.*|)", more, re.DOTALL)
            if match is None or "*" in kind or "&" in kind:
                raise Unfit
            several.append((match.group(1), match.group(2)))
        for name, value in several:
            if name in self.uniform or name in self.varying or name in self.pure:
                raise Unfit  # of an enclosing scope or of a parameter: too easily mistaken
            self._variable(marker, kind, name, value[1:].strip(), behind, taken)

    def _variable(self, marker: str, kind: str, name: str, value: str, behind: str, taken: str) -> None:
        declared = f"{kind} {name} = {value};" if value else f"{kind} {name};"
        self.kinds[name] = self._deduced(value) if re.fullmatch(r"(?:const\s+)?auto(?:\s+const)?", kind) else kind
        constant = bool(value) and "&" not in kind and not taken and not modified(name, self._without(declared))
        if constant and self._is_uniform(value):
            self.uniform.add(name)
            self.output.append(marker + declared)
            return
        if constant and self._is_uniform(value, self.pure | {"threadIdx"}):
            # Cheaper computed again than kept.
            self.pure.add(name)
            self.region.append(marker + declared)
            self.visible.append(Variable(name, declared))
            return
        self.varying.add(name)
        if not uses(name, behind):
            if "&" in kind and any(uses(one, value) for one in self.uniform) and "[" not in value:
                raise Unfit
            self.region.append(marker + declared.replace("__mxmaca_taken", taken))
            return
        plain = re.sub(r"\b(?:__restrict(?:__)?)\b", "", kind)
        pointer = re.fullmatch(r"([\w\s:]+\*)\s*(?:const)?\s*", plain)
        scalar = re.sub(r"\bconst\b", "", plain).strip()
        if pointer and not re.search(r"\bauto\b", kind):
            kind = pointer.group(1)
        elif BUILTIN.fullmatch(scalar):
            kind = scalar
        else:
            raise Unfit
        if value.startswith("{") or self.expanded == MOST_VARIABLES:
            raise Unfit
        self.expanded += 1
        self.output.append(f" {kind} __mxmaca_of_{name}_{self.expanded}[::mxmaca::most_threads];")
        alias = f"{kind}& {name} = __mxmaca_of_{name}_{self.expanded}[__mxmaca_thread];"
        self.visible.append(Variable(name, alias))
        assigned = f" {name} = {value};".replace("__mxmaca_taken", taken) if value else ""
        self.region.append(f"{marker}{alias}{assigned}")

    def _without(self, declared: str) -> str:
        """The body without this declaration, which is no change of its variable."""
        name = declared.rstrip(";").split("=")[0].split()[-1].lstrip("*&")
        return re.sub(rf"\b{name}\s*=(?!=)", f"{name} ", self.flat, count=1)

    def _is_uniform(self, text: str, more: AbstractSet[str] = frozenset()) -> bool:
        """Whether the expression has one value for all threads of a block, and no effect."""
        text = text.strip()
        if (
            FORBIDDEN.search(text)
            or DEREFERENCED.search(text)
            or re.search(r"\[|->|\+\+|--|(?<![=!<>])=(?!=)|\{|&(?!&)(?<!&&)", text)
        ):
            return False
        if any(name not in WORDS and name not in CASTS for name in CALL.findall(text)):
            return False
        for name in IDENTIFIER.findall(NUMBER.sub("0", text)):
            if name in more or name in self.uniform or name in INDICES or name in WORDS or name in CASTS:
                continue
            # Constants and template parameters of outside; nothing that the body declares or changes, no memory.
            outside = name not in self.varying and name not in self.pure and not modified(name, self.flat)
            if not outside or name in self.rewriter.variable_words or name in self.shared:
                return False
        return True

    def _check(self, text: str, known: AbstractSet[str]) -> None:
        if FORBIDDEN.search(text):
            raise Unfit
        if any(name not in known for name in CALL.findall(text)):
            raise Unfit
        for match in TEMPLATE_CALL.finditer(text):
            if match.group(1) not in CASTS:
                raise Unfit

    # ---- Regions ----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The end of a loop over the threads."""
        if not self.region:
            return
        text = "".join(self.region)
        self.region = []
        own = set(re.findall(r"__mxmaca_of_\w+", text))
        needed: List[str] = []
        wanted = text
        for variable in reversed(self.visible):
            declared_here = variable.text in text or any(name in variable.text for name in own)
            if not declared_here and uses(variable.name, wanted):
                needed.insert(0, variable.text)
                wanted += variable.text
        self.output.append(
            " __mxmaca_phase([&](int __mxmaca_thread) __attribute__((always_inline)) { "
            + " ".join(needed)
            + text
            + "\n});"
        )
