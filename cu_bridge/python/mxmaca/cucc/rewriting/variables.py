"""`__device__`, `__constant__` and `__managed__` variables, and the marks of functions.

A variable gets a section of its own, by which it is found in the object file. In relocatable code a function that other
files' device code may call does as well. From other functions the marks go away.
"""

from heapq import merge
from itertools import count
from typing import List, NamedTuple, Set

from .declarations import PREFIX, Declarator, alignment, declarator, template_parameters
from .source import Edit, Source, Token, word_set

FUNCTION_SECTION = ".text.mxmaca."
# The device's versions of functions that host code has as well.
BOTH_SECTION = ".text.mxmaca_both."
TEMPLATE = "template "
# How a compiler is told that a variable may need no code to start with, by the word in execution.h that says it can be.
CONSTANT_INITIALISERS = {
    "has_require_constant_initialization": "__attribute__((require_constant_initialization)) ",
    "has_constinit": "__constinit ",
}
# What makes no section of its own for a function.
LOCAL = word_set("static inline template constexpr operator friend")


class Variable(NamedTuple):
    """A variable of device code, or a template of such variables: where it is found, and what it is."""

    section: str  # that holds it; of a template, none of whose variables can have one, TEMPLATE and its name
    kind: str  # device, constant or managed


class Variables(NamedTuple):
    """The device's variables and functions in a text."""

    edits: List[Edit]
    found: List[Variable]
    words: Set[str]  # of the declarations of variables
    functions: Set[str]  # unqualified names
    declared_both: Set[str]  # unqualified names of __host__ __device__ functions of other files


def rewrite(source: Source, device: bool, relocatable: bool, hidden: bool) -> Variables:
    """Rewrite variables and functions.

    Args:
        hidden: no other library sees the host's variables.
    """
    result = Variables([], [], set(), set(), set())
    numbers = count(1)
    more = ', visibility("hidden")' if hidden and not device else ""
    constant = ""
    if device:
        # Start-up code of the device pass does not run, so an initialiser that needs some must be an error.
        constant = next((mark for word, mark in CONSTANT_INITIALISERS.items() if word in source.text), "")
    mark = f'__attribute__((section("{{}}"), used{more})) {{}} {constant}'
    kinds = [source.find(f"{PREFIX}{kind}__") for kind in ("device", "constant", "managed")]
    for token in merge(*kinds, key=lambda token: token.start):
        text = ""
        if source.before(token.start).text != "]":  # no lambda
            declared = declarator(source, token.end)
            head = source.words(source.declaration_start(token.start), token.start)
            alias = "typedef" in declared.words or "using" in declared.words
            if declared.behind in ("(", ")", ",", "") or alias:
                if declared.behind == "(":
                    result.functions.add(declared.name)
                    section = _function_section(source, head, declared, device, result) if relocatable else ""
                    text = section and f'__attribute__((section("{section}{next(numbers)}"), used)) '
            else:
                text = _variable(source, token, head, declared, mark, more, device, relocatable, result)
        result.edits.append(Edit(token.start, token.end, text))
    for token in source.find(PREFIX + "host__"):
        result.edits.append(Edit(token.start, token.end, ""))
    for token in source.find("__noinline__"):
        # A macro of that name would break __attribute__((__noinline__)) in system headers.
        if source.before(token.start).text not in ("(", ","):
            result.edits.append(Edit(token.start, token.end, "__attribute__((noinline))"))
    return result


def _function_section(source: Source, head: List[str], declared: Declarator, device: bool, result: Variables) -> str:
    """The section of a function that other files' device code may call, without its number."""
    words = head + declared.words
    if LOCAL.intersection(words) or source.text[declared.place] != "(":
        return ""
    # Constructors and destructors, which have no type, are two functions in one: they have no section of their own.
    if all(word in ("explicit", "virtual") or word.startswith(PREFIX) for word in words[:-1]):
        return ""
    both = PREFIX + "host__" in words
    if both and not device:
        return ""
    behind = source.token(source.closing(declared.place) + 1)
    while behind.text in ("const", "volatile", "noexcept"):
        behind = source.token(behind.end)
    if behind.text == "{":
        return BOTH_SECTION if both else FUNCTION_SECTION
    if both:
        result.declared_both.add(declared.name)
    return ""


def _variable(
    source: Source,
    token: Token,
    head: List[str],
    declared: Declarator,
    mark: str,
    more: str,
    device: bool,
    relocatable: bool,
    result: Variables,
) -> str:
    """What stands in the place of the mark of a variable."""
    kind = token.text[len(PREFIX) : -2]
    stop = source.declaration_end(token.end)
    result.words.update(source.words(token.end, stop))
    words = head + declared.words
    aligned = alignment(source, token.end, stop)
    if "extern" in words:
        return ""
    if "constexpr" in words or ("static" in words and "const" in words and declared.behind == "="):  # of a class
        return aligned
    if kind == "device" and (PREFIX + "constant__" in words or PREFIX + "managed__" in words):
        return ""  # __device__ __constant__: the other word does it
    parameters = template_parameters(source, token.start)
    member = source.before(source.before(declared.place).start).text == "::"  # of a class
    if parameters is not None and not member:
        # Of this file alone, as nvcc has them: of two in a group that is linked once, one would be missing. No storage
        # class may stand in a specialisation.
        result.found.append(Variable(TEMPLATE + declared.name, kind))
        own = parameters and "static" not in words and not relocatable
        # Used: the compiler sees nobody write what the host writes.
        return f"{'static ' if own else ''}__attribute__((used{more})) {aligned}"
    initialised = source.before(stop).text in ("}", ")") or any(
        one.text in ("=", "{") for one in source.outer(declared.place, stop)
    )
    if kind == "managed" and device:
        # Both passes share it, so it needs a name that the linker sees.
        for one in source.tokens(source.declaration_start(token.start), declared.place):
            if one.text == "static":
                result.edits.append(Edit(one.start, one.end, ""))
    section = f".{'data' if initialised else 'bss'}.mxmaca.{len(result.found)}"
    result.found.append(Variable(section, kind))
    return mark.format(section, aligned)
