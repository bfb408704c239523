"""From preprocessed CUDA C++ to ordinary C++, for the device pass or the host pass.

Note: what is rewritten
~~~~~~~~~~~~~~~~~~~~~~~
The text comes from the preprocessor, so macros are gone, and line markers stand in it. Only a few words need a change:

    kernel<<<grid, block>>>(x)    (__cudaPushCallConfiguration(grid, block) ? (void)0 : kernel(x))
    __global__ void k(P) { B }    device: a loop over threads that has B inlined, B being a lambda with parameters P
                                  host: a stub that hands its parameters' addresses to the launch
    __shared__ T x[4];            static thread_local T x[4];    (the threads of a block run on one processor)
    extern __shared__ T x[];      a reference to the block's dynamic shared memory
    __device__ T x;               a variable in a section of its own, by which it is found in the object file

The rest of the file is not looked at. No line is added or removed, so that the compiler's messages, debuggers and
sanitizers speak of the user's lines.
"""

import bisect
import re
from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import phases, ptx
from .errors import CuccError

PREFIX = "__mxmaca_"
FUNCTION_SECTION = ".text.mxmaca."
# The device's versions of functions that host code has as well.
BOTH_SECTION = ".text.mxmaca_both."
# What host_defines.h turns CUDA's words into, and the few others that need a look.
WORDS = re.compile(
    r"\b__mxmaca_(global|shared|device|host|constant|managed|launch_bounds)__(?!\w)|<<<|\b__noinline__\b|\b(?:__asm__|__asm|asm)\b"
)
# How a compiler is told that a variable may need no code to start with, by the word in execution.h that says it can be.
CONSTANT_INITIALISERS = {
    "has_require_constant_initialization": "__attribute__((require_constant_initialization)) ",
    "has_constinit": "__constinit ",
}
RAW_STRING = re.compile(r'\b(?:u8|[uUL])?R"([^()\\\s]{0,16})\(')
LITERAL = re.compile(r'(?:\b(?:u8|[uUL]))?"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Za-z_])(?:u8|[uUL])?\'(?:[^\'\\\n]|\\.)+\'')
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
LINE_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"[^\n]*$', re.MULTILINE)
ATTRIBUTE = re.compile(r"\s*(?:__attribute__|__attribute|alignas|__declspec|__mxmaca_launch_bounds__)\s*(?=\()")
SPACE = re.compile(r"(?:\s|^#[^\n]*$)*", re.MULTILINE)
# Bytes. The largest vector type has 16; an array begins where dynamic shared memory does.
VECTOR_ALIGNMENT, ARRAY_ALIGNMENT = 16, 128
OPEN, CLOSE = "([{", ")]}"
PAIR = {"(": ")", "[": "]", "{": "}"}
STRUCTURE = re.compile(r'[()\[\]{}]|(?:\b(?:u8|[uUL]))?"|(?<![0-9A-Za-z_])(?:u8|[uUL])?\'|^#[^\n]*$', re.MULTILINE)
BUILTIN_TYPES = frozenset(
    ["void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "auto", "wchar_t"]
    + ["char8_t", "char16_t", "char32_t", "__int128"]
)
NO_NAMES = BUILTIN_TYPES | frozenset(
    ["const", "volatile", "typename", "class", "struct", "enum", "union", "template", "operator"]
    + ["__restrict", "__restrict__", "restrict"]
)

NO_TYPES = frozenset(["explicit", "virtual", "public", "private", "protected"])


class Variable(NamedTuple):
    """A variable of device code: the section that holds it, and what it is."""

    section: str
    kind: str  # device, constant or managed


class Warned(NamedTuple):
    """A place that one of nvcc's own warnings is about."""

    kind: str
    where: str
    text: str


class Choices(NamedTuple):
    """What the command line says of stubs and variables in the host pass."""

    static_stubs: bool = False  # templates' stubs belong to this object alone
    hidden: bool = False  # no other library sees stubs and variables
    named: bool = False  # for debuggers: a thread's code is a function of the kernel's name
    warn: FrozenSet[str] = frozenset()  # the kinds of nvcc's own warnings that are asked for
    phases: bool = True  # kernels may become loops between their waits (phases.py)


DEFAULT = Choices()


class Result(NamedTuple):
    """Rewritten text and what the linking of the two passes wants to know."""

    text: str
    variables: List[Variable]
    device_functions: Set[str]  # unqualified names
    has_cuda: bool
    warnings: List[Warned]
    declared_both: Set[str]  # unqualified names of __host__ __device__ functions of other files


class Rewriter:
    """One pass over one preprocessed text."""

    def __init__(self, text: str, device: bool, relocatable: bool = False, choices: Choices = DEFAULT) -> None:
        self.text, self.device, self.relocatable, self.choices = text, device, relocatable, choices
        self.warnings: List[Warned] = []
        self.edits: List[Tuple[int, int, str]] = []
        self.raw = self._raw_strings()
        self.raw_starts = [start for start, _ in self.raw]
        self.variables: List[Variable] = []
        self.device_functions: Set[str] = set()
        self.declared_both: Set[str] = set()
        self.counter = 0
        self.kernels: List[Tuple[int, int, int, int]] = []  # device pass: parameters' and body's brackets
        self.variable_words: Set[str] = set()  # of the declarations of device variables
        self.markers: Optional[List[Tuple[int, int, str]]] = None

    # ---- Reading ----------------------------------------------------------------------------------------------------

    def _raw_strings(self) -> List[Tuple[int, int]]:
        spans: List[Tuple[int, int]] = []
        place = 0
        while True:
            quote = self.text.find('R"', place)
            if quote < 0:
                return spans
            match = next(filter(None, (RAW_STRING.match(self.text, max(quote - back, 0)) for back in (2, 1, 0))), None)
            if match is None:
                place = quote + 2
                continue
            end = self.text.find(")" + match.group(1) + '"', match.end())
            if end < 0:
                return spans
            place = end + len(match.group(1)) + 2
            spans.append((match.start(), place))

    def in_literal(self, place: int) -> bool:
        """Whether the place lies within a string, a character or a line marker."""
        index = bisect.bisect_right(self.raw_starts, place) - 1
        if index >= 0 and place < self.raw[index][1]:
            return True
        start = self.text.rfind("\n", 0, place) + 1
        if self.text.startswith("#", start):
            return True
        line = self.text[start:place]
        if '"' not in line and "'" not in line:
            return False
        end = self.text.find("\n", place)
        whole = self.text[start : end if end >= 0 else len(self.text)]
        return any(m.start() < place - start < m.end() for m in LITERAL.finditer(whole))

    def where(self, place: int) -> str:
        """`file:line` of a place in the text."""
        markers = list(LINE_MARKER.finditer(self.text, 0, place))
        marker = markers[-1] if markers else None
        if marker is None:
            return f"line {self.text.count(chr(10), 0, place) + 1}"
        line = int(marker.group(1)) + self.text.count("\n", marker.end() + 1, place)
        return f"{marker.group(2)}:{line}"

    def _warn(self, kind: str, place: int, text: str) -> None:
        if kind not in self.choices.warn:
            return
        markers = list(LINE_MARKER.finditer(self.text, 0, place))
        if markers and markers[-1].group().endswith((" 3", " 3 4")):  # a system header
            return
        self.warnings.append(Warned(kind, self.where(place), text))

    def skip_space(self, place: int) -> int:
        match = SPACE.match(self.text, place)
        return match.end() if match else place

    def closing(self, place: int) -> int:
        """The place of the bracket that closes the one at `place`."""
        depth: List[str] = []
        text, at = self.text, place
        while True:
            match = STRUCTURE.search(text, at)
            if match is None:
                raise CuccError(f"{self.where(place)}: error: '{text[place]}' is never closed")
            word, at = match.group(), match.end()
            if word[0] == "#":
                continue
            if word in PAIR:
                depth.append(PAIR[word])
            elif word in CLOSE:
                if not depth or depth.pop() != word:
                    raise CuccError(f"{self.where(match.start())}: error: unexpected '{word}'")
                if not depth:
                    return match.start()
            else:
                index = bisect.bisect_right(self.raw_starts, match.start()) - 1
                if index >= 0 and match.start() < self.raw[index][1]:
                    at = self.raw[index][1]
                    continue
                literal = LITERAL.match(text, match.start())
                # A quote in a number (1'000) begins no character.
                at = literal.end() if literal else match.end()

    def closing_angle(self, place: int) -> Optional[int]:
        """The `>` for the `<` at `place`, if it is one that opens template arguments."""
        depth, at, text = 0, place, self.text
        while at < len(text):
            char = text[at]
            if char in OPEN:
                at = self.closing(at)
            elif char == "<":
                depth += 1
            elif char == ">" and text[at - 1] != "-":
                depth -= 1
                if depth == 0:
                    return at
            elif char in ";{}":
                return None
            at += 1
        return None

    def split(self, start: int, end: int) -> List[Tuple[int, int]]:
        """The parts of a list that commas separate outside of brackets of any kind."""
        parts, begin, at, angle = [], start, start, 0
        while at < end:
            char = self.text[at]
            if char in OPEN:
                at = self.closing(at)
            elif char in "\"'":
                literal = LITERAL.match(self.text, at)
                at = literal.end() - 1 if literal else at
            elif char == "<":
                angle += 1
            elif char == ">" and self.text[at - 1] not in "-=":
                angle -= 1
            elif char == "," and angle <= 0:
                parts.append((begin, at))
                begin = at + 1
            at += 1
        if self.text[begin:end].strip() or parts:
            parts.append((begin, end))
        return parts

    def replace(self, start: int, end: int, text: str) -> None:
        self.edits.append((start, end, text))

    def _flat(self, start: int, end: int) -> str:
        """A copy of the text on one line, without line markers."""
        return " ".join(re.sub(r"^#[^\n]*$", " ", self.text[start:end], flags=re.MULTILINE).split("\n"))

    # ---- The pass ---------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        handlers: Dict[str, Callable[[int, int], None]] = {
            "global": self._global,
            "shared": self._shared,
            "device": self._device,
            "host": self._host,
            "constant": self._device,
            "managed": self._device,
            "launch_bounds": self._launch_bounds,
        }
        seen = False
        for match in self._words():
            if self.in_literal(match.start()):
                continue
            word = match.group(1)
            if word:
                seen = seen or word != "device"
                handlers[word](match.start(), match.end())
            elif match.group() == "<<<":
                seen = True
                self._launch(match.start())
            elif match.group() == "__noinline__":
                # A macro of that name would break __attribute__((__noinline__)) in system headers.
                before = self._back_space(match.start())
                if self.text[before - 1 : before] not in ("(", ","):
                    self.replace(match.start(), match.end(), "__attribute__((noinline))")
            else:
                self._assembly(match.start(), match.end())
        self._finish_kernels()
        used = seen or bool(self.device_functions)
        return Result(self._apply(), self.variables, self.device_functions, used, self.warnings, self.declared_both)

    def _words(self) -> Iterator["re.Match[str]"]:
        """The places of WORDS in order. Searching for their parts is many times faster than for the pattern."""
        starts = set()
        for part, back in (("__mxmaca_", 0), ("<<<", 0), ("__noinline__", 0), ("asm", 2)):
            at = self.text.find(part)
            while at >= 0:
                starts.add(at - back if back and self.text.startswith("__", at - back) else at)
                at = self.text.find(part, at + len(part))
        end = 0
        for start in sorted(starts):
            match = WORDS.match(self.text, start) if start >= end else None
            if match is not None:
                end = match.end()
                yield match

    def _apply(self) -> str:
        # An edit inside another one's text has been taken into account by neither: the outer ones keep the text of
        # what they enclose, so they are zero-width or disjoint. Equal places keep their order.
        parts, at = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: (edit[0], edit[1])):
            if start < at:
                continue
            parts.append(self.text[at:start])
            parts.append(text)
            at = end
        parts.append(self.text[at:])
        return "".join(parts)

    # ---- Launches ---------------------------------------------------------------------------------------------------

    def _callee(self, end: int) -> int:
        """Where the expression begins that ends before `end` and is launched."""
        text, at = self.text, end
        while True:
            at = self._back_space(at)
            char = text[at - 1] if at else ""
            if char == ">":
                at = self._open_angle(at - 1)
                continue
            if char in ")]":
                at = self._opening(at - 1)
                before = self._back_space(at)
                # A call or a subscript goes on with what is called; a parenthesis alone is the whole expression.
                if before and (text[before - 1] in ">)]" or text[before - 1].isalnum() or text[before - 1] == "_"):
                    word = self._word_before(before)
                    if word in (
                        "return",
                        "else",
                        "do",
                        "case",
                        "if",
                        "while",
                        "for",
                        "switch",
                        "co_yield",
                        "and",
                        "or",
                    ):
                        return at
                    at = before
                    continue
                return at
            word = self._word_before(at)
            if not word:
                raise CuccError(f"{self.where(end)}: error: nothing to launch before '<<<'")
            at -= len(word)
            before = self._back_space(at)
            if text.endswith("::", 0, before) if before < 2 else text[before - 2 : before] == "::":
                at = before - 2
                outer = self._back_space(at)
                named = outer and (text[outer - 1] == ">" or text[outer - 1].isalnum() or text[outer - 1] == "_")
                if named and self._word_before(outer) not in ("return", "else", "do"):
                    at = outer
                    continue
                return at
            if word == "template":
                at = before
                if text[before - 2 : before] == "::" or text[before - 2 : before] == "->":
                    at = before - 2
                elif text[before - 1] == ".":
                    at = before - 1
                continue
            if self._word_before(before) == "template":
                at = before
                continue
            if text[before - 1 : before] == ".":
                at = before - 1
                continue
            if text[before - 2 : before] == "->":
                at = before - 2
                continue
            return at

    def _back_space(self, at: int) -> int:
        text = self.text
        while at > 0:
            if text[at - 1].isspace():
                at -= 1
                line = text.rfind("\n", 0, at) + 1
                if text[at] == "\n" and text.startswith("#", line) and at > line:
                    at = line
                continue
            return at
        return at

    def _word_before(self, at: int) -> str:
        start = at
        while start > 0 and (self.text[start - 1].isalnum() or self.text[start - 1] in "_$"):
            start -= 1
        return self.text[start:at]

    def _open_angle(self, at: int) -> int:
        depth, text, end = 0, self.text, at
        while at >= 0:
            char = text[at]
            if char == ">" and text[at - 1] != "-":
                depth += 1
            elif char == "<":
                depth -= 1
                if depth == 0:
                    return at
            elif char in CLOSE:
                at = self._opening(at)
            elif char in ";{":
                break
            at -= 1
        raise CuccError(f"{self.where(end)}: error: template arguments before '<<<' have no beginning")

    def _opening(self, at: int) -> int:
        depth, text, end = 0, self.text, at
        while at >= 0:
            char = text[at]
            if char in CLOSE:
                depth += 1
            elif char in OPEN:
                depth -= 1
                if depth == 0:
                    return at
            elif char in "\"'" and at:
                at = text.rfind(char, 0, at)
            at -= 1
        raise CuccError(f"{self.where(end)}: error: a bracket before '<<<' has no beginning")

    def _launch(self, place: int) -> None:
        if self.device and any(body < place < body_end for _, _, body, body_end in self.kernels):
            raise CuccError(
                f"{self.where(place)}: error: a launch from device code (dynamic parallelism) is not supported"
            )
        end = self._configuration_end(place + 3)
        parts = self.split(place + 3, end)
        if not 1 < len(parts) < 5:
            raise CuccError(f"{self.where(place)}: error: a launch has 2 to 4 values between '<<<' and '>>>'")
        call = self.skip_space(end + 3)
        if not self.text.startswith("(", call):
            raise CuccError(f"{self.where(end)}: error: '(' expected behind '>>>'")
        if len(parts) < 4:
            self._warn("default-stream-launch", place, "explicit stream argument not provided in kernel launch")
        start, close = self._callee(place), self.closing(call)
        configuration = [self._flat(a, b).strip() for a, b in parts] + ["0", "0"][len(parts) - 2 :]
        push = "(::__cudaPushCallConfiguration({}, {}, {}, (::cudaStream_t)({})) ? (void)0 : (void)".format(
            *configuration
        )
        self.replace(start, start, push)
        # The configuration has gone to the front; its line ends stay.
        self.replace(place, end + 3, self._line_ends(place, end + 3))
        self.replace(close + 1, close + 1, ")")

    def _configuration_end(self, at: int) -> int:
        text, begin = self.text, at
        while at < len(text):
            if text.startswith(">>>", at):
                # dim3<…>>>>: the last three close the launch.
                while text.startswith(">>>", at + 1):
                    at += 1
                return at
            if text[at] in OPEN:
                at = self.closing(at)
            elif text[at] in "\"'":
                literal = LITERAL.match(text, at)
                at = literal.end() - 1 if literal else at
            elif text[at] in ";}":
                break
            at += 1
        raise CuccError(f"{self.where(begin)}: error: '<<<' is never closed by '>>>'")

    def _line_ends(self, start: int, end: int) -> str:
        """What keeps the lines behind `end` where they are, if the text between goes away."""
        cut = self.text[start:end]
        markers = list(LINE_MARKER.finditer(cut))
        if not markers:
            return "\n" * cut.count("\n") or " "
        return "\n" + cut[markers[-1].start() : markers[-1].end()] + "\n" * max(1, cut.count("\n", markers[-1].end()))

    # ---- Kernels ----------------------------------------------------------------------------------------------------

    def _global(self, start: int, end: int) -> None:
        text = self.text
        at, name, bounds = end, "", ""
        while True:  # to the parameters
            at = self.skip_space(at)
            attribute = ATTRIBUTE.match(text, at)
            if attribute:
                close = self.closing(attribute.end())
                if "launch_bounds" in attribute.group():
                    bounds = self._flat(*self.split(attribute.end() + 1, close)[0])
                at = close + 1
                continue
            if at >= len(text):
                raise CuccError(f"{self.where(start)}: error: no function behind __global__")
            char = text[at]
            if char == "(":
                break
            if char == "<":
                close_angle = self.closing_angle(at)
                if close_angle is None:
                    raise CuccError(f"{self.where(at)}: error: '<' is never closed")
                at = close_angle + 1
                continue
            if char in ";{}=":
                raise CuccError(f"{self.where(start)}: error: __global__ stands before something that is no function")
            word = IDENTIFIER.match(text, at)
            if word and word.group() == "decltype":
                at = self.closing(self.skip_space(word.end())) + 1
                continue
            at = word.end() if word else at + 1
            name = word.group() if word else name
        close = self.closing(at)
        body = self.skip_space(close + 1)
        while True:
            attribute = ATTRIBUTE.match(text, body)
            word = IDENTIFIER.match(text, body)
            if attribute:
                body = self.skip_space(self.closing(attribute.end()) + 1)
            elif word and word.group() in ("noexcept", "const"):
                body = self.skip_space(word.end())
            else:
                break
        if not text.startswith("{", body):
            self.replace(start, end, "")  # a declaration or an explicit instantiation
            return
        body_end = self.closing(body)
        # Launch bounds may also stand before __global__.
        if not bounds:
            head = text[max(0, start - 400) : start]
            found = re.search(r"__mxmaca_launch_bounds__\s*\(([^;{}]*)\)\s*(?:\w|\s)*$", head)
            bounds = found.group(1).split(",")[0] if found else ""
        if not bounds:
            self._warn("missing-launch-bounds", start, "no __launch_bounds__ specified for __global__ function")
        if self.device:
            # The body reads its own copies of them.
            for a, b in self.split(at + 1, close):
                if self._flat(a, b).strip() not in ("void", "..."):
                    self.replace(self._default(a, b), self._default(a, b), " __attribute__((unused))")
            self._device_kernel(start, end, at, close, body, body_end, name)
        else:
            self._host_kernel(start, end, at, close, body, body_end, bounds)

    def _device_kernel(self, start: int, end: int, at: int, close: int, body: int, body_end: int, name: str) -> None:
        self.replace(start, end, "__attribute__((used, noipa, noinline)) ")
        self.kernels.append((at, close, body, body_end))
        parameters = ", ".join(self._flat(a, self._default(a, b)) for a, b in self.split(at + 1, close))
        parameters = re.sub(r"\b__mxmaca_\w+__", "", parameters)
        if self.choices.named:
            # A function of the kernel's name, in which debuggers find a thread's parameters and variables.
            self.replace(body, body, "{ struct __mxmaca_threads { static void " + name + "(" + parameters + ") ")
            self.replace(body_end + 1, body_end + 1, " }; ::mxmaca::run_named(&__mxmaca_threads::" + name + "); }")
            return
        self.replace(body, body, "{ const auto __mxmaca_body = [](" + parameters + ") __attribute__((always_inline)) ")

    def _finish_kernels(self) -> None:
        """The calls of the loops; what they need is edited by now."""
        for at, close, body, body_end in [] if self.choices.named else self.kernels:
            parameters = self.split(at + 1, close)
            text = phases.generate(self, body, body_end, parameters) if self.choices.phases else None
            call = "; ::mxmaca::run_kernel(__mxmaca_body, &decltype(__mxmaca_body)::operator()"
            if text is not None:
                flat = ", ".join(self._flat(a, self._default(a, b)) for a, b in parameters)
                flat = re.sub(r"\b__mxmaca_\w+__", "", flat)
                flat = "" if flat.strip() == "void" else flat
                first = "const ::mxmaca::Phase& __mxmaca_phase"
                call = (
                    f"; const auto __mxmaca_phases = []({first}{', ' if flat.strip() else ''}{flat}) "
                    f"__attribute__((always_inline)) {text}{self.marker(body_end, quiet=False)}{call}, "
                )
                shuffles = "__mxmaca_lanes_0" in text
                call += "::mxmaca::whole_warps(__mxmaca_phases)" if shuffles else "__mxmaca_phases"
            self.replace(body_end + 1, body_end + 1, call + "); }")

    def marker(self, place: int, quiet: bool = True) -> str:
        """A line marker for text from this place that is written elsewhere; quiet: without warnings."""
        if self.markers is None:
            self.markers = [(m.end(), int(m.group(1)), m.group(2)) for m in LINE_MARKER.finditer(self.text)]
        index = bisect.bisect_right(self.markers, (place,)) - 1
        if index < 0:
            return "\n"
        end, line, name = self.markers[index]
        line += self.text.count("\n", end + 1, place)
        return f'\n# {line} "{name}"{" 3" if quiet else ""}\n'

    def edited(self, start: int, stop: int) -> str:
        """The text between the places as the edits so far leave it."""
        inside = [edit for edit in self.edits if start <= edit[0] and edit[1] <= stop]
        parts, at = [], start
        for begin, end, text in sorted(inside, key=lambda edit: (edit[0], edit[1])):
            if begin < at:
                continue
            parts += [self.text[at:begin], text]
            at = end
        return "".join([*parts, self.text[at:stop]])

    def _host_kernel(self, start: int, end: int, at: int, close: int, body: int, body_end: int, bounds: str) -> None:
        text = self.text
        static = ""
        head = text[self._head_start(start) : start] if self.choices.static_stubs else ""
        if self.choices.static_stubs and not self.relocatable and self._is_template(start) and "static" not in head:
            static = "static "
        hidden = ', visibility("hidden")' if self.choices.hidden else ""
        self.replace(start, end, f"{static}__attribute__((noinline, noipa{hidden})) ")
        names = []
        for a, b in self.split(at + 1, close):
            if self._flat(a, b).strip() == "void":
                continue
            names.append(self._parameter_name(a, b))
        facts = "".join(f", sizeof({name}){dots}, alignof(decltype({name})){dots}" for name, dots in names)
        # A pack gives its sizes and its alignments one after the other: interleave by a helper.
        facts = "".join(
            f", ::mxmaca::fact<decltype({name})>(0){dots}" if not dots else f", ::mxmaca::fact<decltype({name})>(0)..."
            for name, dots in names
        )
        addresses = "".join(f"(void*)__builtin_addressof({name}){dots}, " for name, dots in names)
        stub = (
            "{ static const ::mxmaca::KernelFact __mxmaca_kernel[] __attribute__((used)) = { ::mxmaca::bound("
            + (bounds.strip() or "0")
            + ")"
            + facts
            + ", ::mxmaca::KernelFact{0, 0} }; void* __mxmaca_arguments[] = { "
            + addresses
            + "(void*)0 }; ::__cudaLaunchStub(__mxmaca_arguments); "
            + '__asm__ __volatile__("" : : "r"(__mxmaca_arguments) : "memory"); }'
        )
        self.replace(body, body_end + 1, stub + self._line_ends(body, body_end + 1))

    def _is_template(self, start: int) -> bool:
        """Whether `template <…>` stands before the declaration, and not the `template <>` of a specialisation."""
        at = self._head_start(start)
        at = self._back_space(at) if at else at
        if not at or self.text[at - 1] != ">":
            return False
        opening = self._open_angle(at - 1)
        return self._word_before(self._back_space(opening)) == "template" and bool(
            self.text[opening + 1 : at - 1].strip()
        )

    def _default(self, start: int, end: int) -> int:
        """Where the default value of a parameter begins, or its end."""
        at, angle = start, 0
        while at < end:
            char = self.text[at]
            if char in OPEN:
                at = self.closing(at)
            elif char == "<":
                angle += 1
            elif char == ">":
                angle -= 1
            elif char == "=" and angle <= 0:
                return at
            at += 1
        return end

    def _parameter_name(self, start: int, end: int) -> Tuple[str, str]:
        """A parameter's name, given to it if it has none, and `...` if it is a pack."""
        end = self._default(start, end)
        flat = self.text[start:end]
        pack = "..." if re.search(r"\.\.\.", re.sub(r"<[^<>]*>", "", flat)) else ""
        pointer = re.search(
            r"\(\s*(?:[\w:]+::)?\s*[*&]+\s*(?:const\s+|__restrict(?:__)?\s+)*([A-Za-z_]\w*)?\s*(?=[)\[])", flat
        )
        if pointer:
            if pointer.group(1):
                return pointer.group(1), pack
            name = self._new_name()
            self.replace(start + pointer.end(), start + pointer.end(), " " + name)
            return name, pack
        # The last word is the name if a type stands before it.
        trimmed = re.sub(r"(?:\[[^\]]*\]|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\s)+$", "", flat)
        word = re.search(r"([A-Za-z_$][\w$]*)$", trimmed)
        if word and word.group(1) not in NO_NAMES:
            before = trimmed[: word.start()].rstrip()
            rest = IDENTIFIER.findall(re.sub(r"<.*>", " T ", before, flags=re.DOTALL))
            types = [w for w in rest if w not in NO_NAMES or w in BUILTIN_TYPES]
            if types and not before.endswith("::") and not before.endswith("typename"):
                return word.group(1), pack
        name = self._new_name()
        place = start + len(trimmed)
        self.replace(place, place, " " + name)
        return name, pack

    def _new_name(self) -> str:
        self.counter += 1
        return f"__mxmaca_parameter_{self.counter}"

    def _launch_bounds(self, start: int, end: int) -> None:
        place = self.skip_space(end)
        self.replace(start, self.closing(place) + 1, self._line_ends(start, self.closing(place) + 1))

    # ---- Shared memory ----------------------------------------------------------------------------------------------

    def _shared(self, start: int, end: int) -> None:
        text = self.text
        head = text[max(0, start - 400) : start]
        before = re.search(
            r"\bextern(?:const|volatile|__attribute__\s*\(\([^;]*\)\)|\s|^#[^\n]*$)*\Z", head, re.MULTILINE
        )
        stop = self._declaration_end(end)
        behind = text[end:stop]
        # The standard's word may not stand in the middle of a declaration, where CUDA's users put it.
        for word in re.finditer(r"\balignas\s*(?=\()", behind):
            close = self.closing(end + word.end())
            self.replace(end + word.start(), end + word.end(), "__attribute__((aligned")
            self.replace(close + 1, close + 1, "))")
        if before:
            self._dynamic_shared(start - len(before.group(0)), start, end, stop)
            return
        if re.match(r"(?:\s|^#[^\n]*$)*extern\b", behind, re.MULTILINE):
            extern = end + behind.index("extern")
            self.replace(start, end, "")
            self._dynamic_shared(extern, extern, extern + 6, stop)
            return
        space = r"(?:\s|^#[^\n]*$)*"
        static = re.search(rf"\bstatic(?:const|volatile|{space})*\Z", head, re.MULTILINE) or re.match(
            space + r"static\b", behind, re.MULTILINE
        )
        self.replace(start, end, ("thread_local" if static else "static thread_local") + self._alignment(end, stop))

    def _alignment(self, at: int, stop: int) -> str:
        """An attribute for a variable of the device's: it begins where vectors may be read from it.

        On hardware shared memory and global variables begin at such places, and CUDA code counts on it. An alignment of
        the user's that is larger remains.
        """
        array = "[" in re.sub(r"<[^<>;]*>", "", self.text[at:stop].partition("=")[0])
        return f" __attribute__((aligned({ARRAY_ALIGNMENT if array else VECTOR_ALIGNMENT})))"

    def _declaration_end(self, at: int) -> int:
        text = self.text
        while at < len(text):
            if text[at] in OPEN:
                at = self.closing(at)
            elif text[at] == ";":
                return at
            at += 1
        raise CuccError(f"{self.where(at - 1)}: error: ';' expected")

    def _dynamic_shared(self, extern: int, start: int, end: int, stop: int) -> None:
        """`extern __shared__ T name[];` becomes a reference to where the block's dynamic shared memory is."""
        text = self.text
        self.replace(extern, end, re.sub(r"\bextern\b", "", text[extern:start]) if extern < start else "")
        declared = re.search(
            r"([A-Za-z_$][\w$]*)\s*((?:\[[^\]]*\]\s*)*)(?:__attribute__\s*\(\([^;]*\)\)\s*)?$", text[end:stop]
        )
        if declared is None:
            raise CuccError(f"{self.where(end)}: error: the name of the shared variable was not found")
        name, dimensions = declared.group(1), declared.group(2)
        place = end + declared.start(1)
        if self._at_namespace_scope(extern):
            type_text = self._flat(end, place).strip()
            if dimensions.count("[") != 1:
                raise CuccError(
                    f"{self.where(end)}: error: an extern __shared__ variable outside of functions has one dimension"
                )
            type_text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", type_text)
            self.replace(
                end,
                stop,
                f" static ::mxmaca::DynamicShared<{type_text}> {name}" + self._line_ends(end, stop).strip(" "),
            )
            return
        reference = f"(&{name})" if dimensions else f"&{name}"
        self.replace(place, place + len(name), reference)
        self.replace(
            stop,
            stop,
            f" = *static_cast<typename ::std::remove_reference<decltype({name})>::type*>(::mxmaca::dynamic_shared())"
            if not dimensions
            else f" = *reinterpret_cast<::mxmaca::pointee<decltype({name})>*>(::mxmaca::dynamic_shared())",
        )

    def _at_namespace_scope(self, place: int) -> bool:
        """Whether the innermost brace around the place, if any, is that of a namespace or a linkage block."""
        at, depth, text = place - 1, 0, self.text
        braces = list(re.finditer(r"[{}]", text[:place]))
        for match in reversed(braces):
            at = match.start()
            if self.in_literal(at):
                continue
            if match.group() == "}":
                depth += 1
            elif depth:
                depth -= 1
            else:
                head = text[max(0, at - 300) : at]
                return (
                    re.search(
                        r"(?:\bnamespace\b[\w:\s]*(?:__attribute__\s*\(\(.*\)\)\s*)?|\bextern\s*\"C(?:\+\+)?\"\s*)$",
                        head,
                    )
                    is not None
                )
        return True

    # ---- Device variables and functions -----------------------------------------------------------------------------

    def _device(self, start: int, end: int) -> None:
        text = self.text
        kind = text[start + len(PREFIX) : end - 2]
        before = self._back_space(start)
        if before and text[before - 1] == "]":  # a lambda
            self.replace(start, end, "")
            return
        at, structure, name = end, "", ""
        words: List[str] = []
        while at < len(text):
            at = self.skip_space(at)
            attribute = ATTRIBUTE.match(text, at)
            if attribute:
                at = self.closing(attribute.end()) + 1
                continue
            char = text[at : at + 1]
            if char in ("(", ";", "=", "{", "[", ",", ")", ""):
                structure = char
                break
            if char == "<":
                close = self.closing_angle(at)
                if close is None:
                    break
                at = close + 1
                continue
            word = IDENTIFIER.match(text, at)
            if word:
                name = word.group()
                at = word.end()
                words.append(name)
                if name == "operator":
                    structure = "("
                    break
                if name == "decltype":
                    at = self.closing(self.skip_space(at)) + 1
            else:
                at += 1
        if structure in ("(", ")", ",", "") or "typedef" in words or "using" in words:
            if structure == "(":
                self.device_functions.add(name)
            self.replace(start, end, self._function_mark(start, words, at) if structure == "(" else "")
            return
        self.variable_words.update(IDENTIFIER.findall(self.text[end : self._declaration_end(end)]))
        head = self._head(start)
        alignment = self._alignment(end, self._declaration_end(end)).strip()
        if "extern" in head + words or "constexpr" in head + words or self._in_class_constant(head + words, structure):
            self.replace(start, end, "" if "extern" in head + words else alignment)
            return
        initialised = (
            structure in ("=", "{") or text[self._declaration_end(end) - 1] in "})" or self._has_initialiser(at)
        )
        section = f".{'data' if initialised else 'bss'}.mxmaca.{len(self.variables)}"
        if kind == "device" and any(PREFIX + other + "__" in head + words for other in ("constant", "managed")):
            self.replace(start, end, "")  # __device__ __constant__: the other word does it
            return
        if kind == "managed" and self.device:
            # Both passes share it, so it needs a name that the linker sees.
            for word in re.finditer(r"\bstatic\b", text[max(0, start - 100) : at]):
                place = max(0, start - 100) + word.start()
                if place >= self._head_start(start):
                    self.replace(place, place + 6, "")
        self.variables.append(Variable(section, kind))
        # Start-up code of the device pass does not run, so an initialiser that needs some must be an error.
        words = [mark for word, mark in CONSTANT_INITIALISERS.items() if self.device and word in self.text]
        constant = words[0] if words else ""
        hidden = ', visibility("hidden")' if self.choices.hidden and not self.device else ""
        self.replace(start, end, f'__attribute__((section("{section}"), used{hidden})) {alignment} {constant}')

    def _host(self, start: int, end: int) -> None:
        self.replace(start, end, "")

    def _function_mark(self, start: int, words: List[str], parameters: int) -> str:
        """For relocatable code: a section of its own for a function that other files' device code may call."""
        words = self._head(start) + words
        local = {"static", "inline", "template", "constexpr", "operator", "friend"}
        if not self.relocatable or local.intersection(words) or not self.text.startswith("(", parameters):
            return ""
        # Constructors and destructors, which have no type, are two functions in one: they have no section of their own.
        if all(word in NO_TYPES or word.startswith(PREFIX) for word in words[:-1]):
            return ""
        both = PREFIX + "host__" in words
        if both and not self.device:
            return ""
        behind = self.skip_space(self.closing(parameters) + 1)
        while True:
            word = IDENTIFIER.match(self.text, behind)
            if word is None or word.group() not in ("const", "volatile", "noexcept"):
                break
            behind = self.skip_space(word.end())
        if not self.text.startswith("{", behind):
            if both:
                self.declared_both.add(words[-1])
            return ""
        self.counter += 1
        return f'__attribute__((section("{BOTH_SECTION if both else FUNCTION_SECTION}{self.counter}"), used)) '

    def _has_initialiser(self, at: int) -> bool:
        stop = self._declaration_end(at)
        return "=" in re.sub(r"\[[^\]]*\]", "", self.text[at:stop])

    def _head(self, start: int) -> List[str]:
        """The words of the declaration before the place."""
        return IDENTIFIER.findall(self.text[self._head_start(start) : start])

    def _head_start(self, start: int) -> int:
        return max(self.text.rfind(char, max(0, start - 300), start) for char in ";{}\n>") + 1

    @staticmethod
    def _in_class_constant(words: List[str], structure: str) -> bool:
        return "static" in words and "const" in words and structure == "="

    # ---- Inline assembly --------------------------------------------------------------------------------------------

    def _assembly(self, start: int, end: int) -> None:
        at = self.skip_space(end)
        while True:
            word = IDENTIFIER.match(self.text, at)
            if word is None or word.group() not in ("volatile", "__volatile__", "goto", "inline"):
                break
            at = self.skip_space(word.end())
        if not self.text.startswith("(", at):
            return
        close = self.closing(at)
        first = LITERAL.match(self.text, self.skip_space(at + 1))
        if first is None:
            return
        replacement = ptx.translate(self._flat(at + 1, close), self.device, lambda: self.where(start))
        if replacement is not None:
            stop = self.skip_space(close + 1)
            stop = stop + 1 if self.text.startswith(";", stop) else close + 1
            self.replace(start, stop, replacement + self._line_ends(start, stop).rstrip(" "))


def rewrite(text: str, device: bool, relocatable: bool = False, choices: Choices = DEFAULT) -> Result:
    """Rewrite preprocessed CUDA C++ for one of the two passes.

    Raises:
        CuccError: the text cannot be understood; the message names file and line.
    """
    return Rewriter(text, device, relocatable, choices).run()
