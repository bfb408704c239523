"""`__global__` functions: for the device a loop over threads, for the host a stub that launches.

The device's has the kernel's body inlined, as a lambda with the kernel's parameters. The host's hands the addresses of
its parameters to the launch.
"""

from typing import AbstractSet, Iterator, List, NamedTuple, Optional, Tuple

from .declarations import PREFIX, Warned, behind_attributes, declarator, template_parameters
from .source import WORD, Edit, Source, Token, word_set

BUILTIN_TYPES = word_set(
    "void bool char short int long float double signed unsigned auto wchar_t char8_t char16_t char32_t __int128"
)
NO_NAMES = BUILTIN_TYPES | word_set(
    "const volatile typename class struct enum union template operator __restrict __restrict__ restrict"
)
STUB = (
    "{{ static const ::mxmaca::KernelFact __mxmaca_kernel[] __attribute__((used)) = {{ "
    "::mxmaca::bound({bound}{waits}){facts}, ::mxmaca::KernelFact{{0, 0}} }}; "
    "void* __mxmaca_arguments[] = {{ {addresses}(void*)0 }}; "
    '::__cudaLaunchStub(__mxmaca_arguments); __asm__ __volatile__("" : : "r"(__mxmaca_arguments) : "memory"); }}'
)
# A kernel's function that other device code may call, to launch it.
CHILD = (
    "; const auto __mxmaca_run = []() {{ {run}; }}; if (::__cudaChildWanted()) {{ static const ::mxmaca::KernelFact "
    "__mxmaca_facts[] = {{ ::mxmaca::bound({bound}){facts}, ::mxmaca::KernelFact{{0, 0}} }}; "
    "void* __mxmaca_arguments[] = {{ {addresses}(void*)0 }}; ::__cudaLaunchChild(__mxmaca_run, __PRETTY_FUNCTION__, "
    "(const unsigned*)__mxmaca_facts, __mxmaca_arguments); return; }} __mxmaca_run(); }}"
)


class Kernel(NamedTuple):
    """A kernel with a body."""

    start: int  # of __global__
    name: str
    parameters: List[Tuple[int, int]]
    body: int
    end: int  # of the body
    bound: str  # of its threads, as an expression


class Kernels(NamedTuple):
    """The kernels of a text."""

    kernels: List[Kernel]
    edits: List[Edit]
    warnings: List[Warned]


def rewrite(source: Source) -> Kernels:
    """Find the kernels. The edits are those of both passes: the words of CUDA's that go away."""
    result = Kernels([], [], [])
    for token in source.find(PREFIX + "global__"):
        function = declarator(source, token.end)
        if function.behind != "(":
            text = "__global__ stands before something that is no function"
            raise source.error(token.start, text if function.behind else "no function behind __global__")
        close = source.closing(function.place)
        body = source.token(behind_attributes(source, close + 1))
        while body.text in ("noexcept", "const"):
            body = source.token(behind_attributes(source, body.end))
        if body.text != "{":
            result.edits.append(Edit(token.start, token.end, ""))  # a declaration or an explicit instantiation
            continue
        bound = _bound(source, source.declaration_start(token.start), function.place)
        if not bound:
            text = "no __launch_bounds__ specified for __global__ function"
            result.warnings.append(Warned("missing-launch-bounds", token.start, text))
        parameters = source.split(function.place + 1, close)
        end = source.closing(body.start) + 1
        result.kernels.append(Kernel(token.start, function.name, parameters, body.start, end, bound))
    for token in source.find(PREFIX + "launch_bounds__"):
        end = source.closing(source.token(token.end).start) + 1
        result.edits.append(Edit(token.start, end, source.line_ends(token.start, end) or " "))
    return result


def _bound(source: Source, start: int, end: int) -> str:
    """The first value of the kernel's __launch_bounds__, which stand before or behind __global__."""
    for token in source.tokens(start, end):
        if token.text == PREFIX + "launch_bounds__":
            opener = source.token(token.end).start
            return source.flat(*source.split(opener + 1, source.closing(opener))[0])
    return ""


# ---- Device ----------------------------------------------------------------------------------------------------------


def parameter_list(source: Source, kernel: Kernel) -> str:
    """The parameters without default values."""
    return ", ".join(source.flat(start, default(source, start, end)) for start, end in kernel.parameters)


def device_edits(source: Source, kernel: Kernel, named: bool, children: bool) -> Iterator[Edit]:
    """The beginning of a loop over threads.

    Args:
        named: for debuggers a thread's code is a function of the kernel's name.
        children: device code may launch kernels.
    """
    yield Edit(kernel.start, kernel.start + len(PREFIX + "global__"), "__attribute__((used, noipa, noinline)) ")
    if children:
        yield from parameters(source, kernel).edits
    for start, end in kernel.parameters:
        # The body reads its own copies of them.
        if source.flat(start, end) not in ("void", "..."):
            place = default(source, start, end)
            yield Edit(place, place, " __attribute__((unused))")
    head = f"({parameter_list(source, kernel)}) "
    if named:
        # A function of the kernel's name, in which debuggers find a thread's parameters and variables.
        text = "{ struct __mxmaca_threads { static void " + named_thread(source, kernel) + head
    else:
        text = "{ " + body_type(children) + " __mxmaca_body = []" + head + "__attribute__((always_inline)) "
    yield Edit(kernel.body, kernel.body, text)


def named_thread(source: Source, kernel: Kernel) -> str:
    """What the function of a thread is called: as the kernel, unless that launches itself and means the kernel."""
    recursive = any(token.text == kernel.name for token in source.tokens(kernel.body, kernel.end))
    return kernel.name + ("_thread" if recursive else "")


def body_type(children: bool) -> str:
    """How the lambdas of a kernel are declared: a lambda beside them reaches them where they are static."""
    return "static const auto" if children else "const auto"


def device_end(source: Source, kernel: Kernel, run: str, children: bool) -> str:
    """What ends a kernel's function whose loop over threads is the expression `run`."""
    if not children:
        return f"; {run}; }}"
    _, facts, addresses = parameters(source, kernel)
    return CHILD.format(run=run, bound=kernel.bound or "0", facts=facts, addresses=addresses)


# ---- Host ------------------------------------------------------------------------------------------------------------


def host_edits(
    source: Source, kernels: List[Kernel], waiting: AbstractSet[int], static_templates: bool, hidden: bool
) -> Iterator[Edit]:
    """The stubs.

    Args:
        waiting: the bodies of kernels that may wait for something outside of their grid.
        static_templates: stubs of templates belong to this object alone.
        hidden: no other library sees stubs.
    """
    visibility = ', visibility("hidden")' if hidden else ""
    for kernel in kernels:
        static = "static " if static_templates and _is_template(source, kernel.start) else ""
        mark = f"{static}__attribute__((noinline, noipa{visibility})) "
        yield Edit(kernel.start, kernel.start + len(PREFIX + "global__"), mark)
        edits, facts, addresses = parameters(source, kernel)
        yield from edits
        waits = ", ::mxmaca::kMayWait" if kernel.body in waiting else ""
        stub = STUB.format(bound=kernel.bound or "0", waits=waits, facts=facts, addresses=addresses)
        yield Edit(kernel.body, kernel.end, stub + (source.line_ends(kernel.body, kernel.end) or " "))


class Parameters(NamedTuple):
    """A kernel's parameters, each of which has a name."""

    edits: List[Edit]  # that give names to those without one
    facts: str  # of each, with a comma in front
    addresses: str  # of each, with a comma behind


def parameters(source: Source, kernel: Kernel) -> Parameters:
    """What hands a kernel's parameters on says of them."""
    edits: List[Edit] = []
    facts = addresses = ""
    for number, (start, end) in enumerate(kernel.parameters, 1):
        if source.flat(start, end) == "void":
            continue
        tokens = list(source.outer(start, default(source, start, end)))
        name, place = _name(source, tokens)
        if not name:
            name = f"__mxmaca_parameter_{number}"
            edits.append(Edit(place, place, " " + name))
        dots = "..." if any(token.text == "..." for token in tokens) else ""
        facts += f", ::mxmaca::fact<decltype({name})>(0){dots}"
        addresses += f"(void*)__builtin_addressof({name}){dots}, "
    return Parameters(edits, facts, addresses)


def _is_template(source: Source, place: int) -> bool:
    """Whether `template <…>` stands before a function that is not static, and not the `<>` of a specialisation."""
    static = "static" in source.words(source.declaration_start(place), place)
    return not static and bool(template_parameters(source, place))


def default(source: Source, start: int, end: int) -> int:
    """Where the default value of a parameter begins, or its end."""
    return next((token.start for token in source.outer(start, end) if token.text == "="), end)


def _name(source: Source, tokens: List[Token]) -> Tuple[str, int]:
    """A parameter's name, if it has one, and where it would stand."""
    for token in tokens:
        if token.text == "(":
            inner = list(source.tokens(token.end, source.closing(token.start)))
            found = _declared_within(inner)
            if found is not None:
                return found
    # The last word is the name if a type stands before it.
    last = len(tokens) - 1
    while last > 0 and tokens[last].text in ("[", "("):  # of an array, of an attribute
        last -= 1 if tokens[last].text == "[" else 2
    token = tokens[last]
    before = tokens[last - 1].text if last else ""
    types = [one for one in tokens[:last] if one.kind == WORD and one.text not in NO_NAMES - BUILTIN_TYPES]
    if token.kind == WORD and token.text not in NO_NAMES and types and before not in ("::", "typename"):
        return token.text, token.end
    end = source.closing_angle(token.start) if token.text == "<" else None
    return "", token.end if end is None else end + 1


def _declared_within(tokens: List[Token]) -> Optional[Tuple[str, int]]:
    """The name between the parentheses of `int (*name)(int)` or `int (&name)[4]`, which may be left out."""
    at = 0
    while at + 1 < len(tokens) and tokens[at + 1].text == "::":
        at += 2
    if at >= len(tokens) or tokens[at].text not in ("*", "&", "&&"):
        return None
    while at < len(tokens) and tokens[at].text in ("*", "&", "&&", "const", "__restrict", "__restrict__"):
        at += 1
    name, end = "", tokens[at - 1].end
    if at < len(tokens) and tokens[at].kind == WORD:
        name, end, at = tokens[at].text, tokens[at].end, at + 1
    return (name, end) if at == len(tokens) or tokens[at].text == "[" else None
