"""From preprocessed CUDA C++ to ordinary C++, for the device pass or the host pass.

Note: what is rewritten
~~~~~~~~~~~~~~~~~~~~~~~
The text comes from the preprocessor, so macros are gone, and line markers stand in it. Only a few words need a change,
and each kind of them has a file: launches.py, kernels.py and phases.py, shared_memory.py, variables.py, inline_ptx.py.
Such a pass reads the text as source.py has it and returns edits; none sees another one's text. Here they are applied.

The rest of the file is not looked at. No line is added or removed, so that the compiler's messages, debuggers and
sanitizers speak of the user's lines.
"""

from typing import AbstractSet, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import CuccError
from . import (
    block_atomics,
    callees,
    declarations,
    expressions,
    functions,
    inline_ptx,
    inlining,
    kernels,
    launches,
    phases,
    shared_memory,
    variables,
    waits,
)
from .arithmetic import find as find_arithmetic
from .arithmetic import type_names
from .scopes import redeclared, standard
from .source import Edit, Source
from .waiting import lockstep, outside


class Warned(NamedTuple):
    """One of nvcc's own warnings."""

    kind: str
    where: str
    text: str


class Choices(NamedTuple):
    """What the command line says of the rewriting."""

    relocatable: bool = False  # device code of this file and of others calls each other
    static_stubs: bool = False  # templates' stubs belong to this object alone
    hidden: bool = False  # no other library sees stubs and variables
    at_run_time: bool = False  # compiled by NVRTC's interface
    named: bool = False  # for debuggers: a thread's code is a function of the kernel's name
    warn: FrozenSet[str] = frozenset()  # the kinds of nvcc's own warnings that are asked for
    phases: bool = True  # kernels may become loops between their waits (phases.py)
    bold: bool = True  # with the functions in them that wait (inlining.py), and of types known by name alone


class Result(NamedTuple):
    """Rewritten text and what the linking of the two passes wants to know."""

    text: str
    variables: List[variables.Variable]
    device_functions: Set[str]  # unqualified names
    warnings: List[Warned]
    declared_both: Set[str]  # unqualified names of __host__ __device__ functions of other files
    bold: bool  # something in it may not compile, without which it would (Choices.bold)
    named_casts: bool  # to types that are known by their names alone: part of what is bold


class Generated(NamedTuple):
    """A kernel as a lambda's body in phases, or why there is none and where."""

    text: Optional[str]
    why: str = ""
    place: int = 0
    bold: bool = False  # with functions that wait, or types that are known by their names alone
    rows: bool = False  # for blocks whose rows are whole warps
    numbers: Sequence[str] = ()  # the types that must be numbers


def rewrite(source: Source, device: bool, choices: Choices) -> Result:
    """Rewrite preprocessed CUDA C++ for one of the two passes.

    Raises:
        CuccError: the text cannot be understood; the message names file and line.
    """
    source = shared_memory.without_reinterpretation(source)
    if device:
        source = lockstep.written_out(source)
    found = kernels.rewrite(source)
    bodies = [(kernel.body, kernel.end) for kernel in found.kernels] if device else []
    # As with nvcc, device code launches in relocatable code only.
    children = device and choices.relocatable and next(iter(source.find("<<<")), None) is not None
    launched = launches.rewrite(source, bodies, children)
    data = variables.rewrite(source, device, choices.relocatable, choices.hidden)
    shared = shared_memory.edits(source)
    bold = named_casts = False
    edits = [*found.edits, *launched.edits, *data.edits, *shared, *inline_ptx.edits(source, device)]
    edits += redeclared.edits(source)
    if choices.at_run_time:
        edits += standard.edits(source)
    if device:
        of_arithmetic = find_arithmetic(source, type_names(source) if choices.bold else None)
        bold = named_casts = of_arithmetic.named
        edits += [*block_atomics.edits(source), *of_arithmetic.edits]
        edits += waits.spin_edits(source)
        for kernel in found.kernels:
            edits += kernels.device_edits(source, kernel, choices.named, children)
        if choices.named:
            for kernel in found.kernels:
                run = f"::mxmaca::run_named(&__mxmaca_threads::{kernels.named_thread(source, kernel)})"
                end = f" }}{kernels.device_end(source, kernel, run, children)}"
                edits.append(Edit(kernel.end, kernel.end, end))
        else:
            known = expressions.PURE | expressions.EFFECTS
            # In relocatable code a function of the name may stand in another file.
            called = None if choices.relocatable else callees.Callees(source, {*waits.WAITS, waits.BLOCK}, known)
            waiting = None
            if choices.phases and not choices.relocatable:
                waiting = functions.Functions(source, found.kernels)
            loops = []
            for kernel in found.kernels:
                launching = any(kernel.body < place < kernel.end for place in launched.places)
                fit = choices.phases and not launching
                generated = Generated(None)
                if fit:
                    words = data.words
                    generated = _phases(source, kernel, edits, words, called, waiting, choices.bold)
                bold = bold or generated.bold
                loops.append(_loops(source, kernel, generated, children))
            edits += [edit for edit, _ in loops]
            found.warnings.extend(warned for _, warned in loops if warned is not None)
    else:
        static = choices.static_stubs and not choices.relocatable
        waiting_outside = outside.waiting_kernels(source, found.kernels)
        edits += kernels.host_edits(source, found.kernels, waiting_outside, static, choices.hidden)
    warnings = []
    for kind, place, text in sorted(found.warnings + launched.warnings, key=lambda warned: warned.place):
        if kind in choices.warn and not source.is_system(place):
            warnings.append(Warned(kind, source.where(place), text))
    return Result(source.edited(edits), data.found, data.functions, warnings, data.declared_both, bold, named_casts)


def _phases(
    source: Source,
    kernel: kernels.Kernel,
    edits: Sequence[Edit],
    variable_words: AbstractSet[str],
    called: Optional[callees.Callees],
    waiting: Optional[functions.Functions],
    bold: bool,
) -> Generated:
    """The kernel's body as a lambda's body in phases. A kernel that does not wait has none, and no reason.

    Args:
        edits: of other passes.
        variable_words: the words of the declarations of device variables.
        called: functions of the text; none where there may be others of their names.
        waiting: those of them that wait.
        bold: they may be taken in, and types may be known by their names alone.
    """
    expanded: Optional[inlining.Expanded] = None
    try:
        if waiting is not None and bold:
            expanded = inlining.expand(source, kernel, waiting, called)
        elif waiting is not None:
            inlining.refuse(source, kernel, waiting)
        own = any(source.text.find(wait, kernel.body, kernel.end) >= 0 for wait in (*waits.WAITS, waits.BLOCK))
        if expanded is None and not own:
            return Generated(None)
        made = phases.Phases(source, kernel, edits, variable_words, called, expanded, bold)
        text = made.generate()
        numbers = sorted(made.kept.numbers)
        return Generated(text, "", 0, expanded is not None or bool(numbers), made.rows, numbers)
    except waits.Unfit as problem:
        why, place = problem.why, problem.token.start if problem.token else kernel.body
        if expanded is not None:
            # The variables of functions have numbers in their names.
            why, place = inlining.NUMBERED.sub("", why), expanded.place(place) if problem.token else place
        return Generated(None, why, place)
    except CuccError as problem:
        return Generated(None, str(problem), kernel.body)


def _loops(
    source: Source, kernel: kernels.Kernel, generated: Generated, children: bool
) -> Tuple[Edit, Optional[declarations.Warned]]:
    """The call of a kernel's loops over threads, behind its body as a lambda, and why these loops end at waits."""
    text, warned = generated.text, None
    if generated.why:
        sentence = f"the threads of kernel '{kernel.name}' run on stacks of their own: {generated.why}"
        warned = declarations.Warned("stacks", generated.place, sentence)
    run = "::mxmaca::run_kernel(__mxmaca_body, &decltype(__mxmaca_body)::operator()"
    lambdas = ""
    if text is not None:
        parameters = kernels.parameter_list(source, kernel)
        parameters = "" if parameters == "void" else parameters
        first = "const ::mxmaca::Phase& __mxmaca_phase" + (", " if parameters else "")
        lambdas = (
            f"; {kernels.body_type(children)} __mxmaca_phases = []({first}{parameters}) __attribute__((always_inline)) "
            f"{_of_numbers(text, generated.numbers)}{source.marker(kernel.end - 1, quiet=False)}"
        )
        loops = "__mxmaca_phases"
        if generated.rows:
            loops = f"::mxmaca::whole_rows({loops})"
        elif "__mxmaca_lanes_0" in text:
            loops = f"::mxmaca::whole_warps({loops})"
        if generated.numbers:
            loops = f"::mxmaca::where_numbers<{', '.join(generated.numbers)}>({loops})"
        run += ", " + loops
    return Edit(kernel.end, kernel.end, lambdas + kernels.device_end(source, kernel, run + ")", children)), warned


def _of_numbers(text: str, numbers: Sequence[str]) -> str:
    """A lambda's body that is empty, also for the compiler, where a template's types are no numbers."""
    return f"{{ if constexpr (::mxmaca::are_numbers<{', '.join(numbers)}>) {text} }}" if numbers else text
