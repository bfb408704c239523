"""Arrays that each thread has of its own, where they are needed behind a wait.

Note: arrays over waits
~~~~~~~~~~~~~~~~~~~~~~~
A product of tiles adds up in registers: `float sum[4][4]` lives through all barriers of its loop. Such an array is one
for each thread in memory that is there as long as the variable would be (PerThread in phase_lanes.h), so pointers to it
stay right as well:

    float sum[4][4] = {};           →    PerThread<kind> of_sum(threads);  // float[4][4]
                                         phase([&](int i) { auto& sum = of_sum[i]; start(sum, {}); });

One that never changes, and that is the same for all threads, is one for all of them.
"""

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from .. import expressions as ex
from ..expressions import Tokens
from ..source import WORD, Token

NO_KINDS = ("*", "&", "&&", "auto", "static", "volatile", "extern")


class Array(NamedTuple):
    """A declared array."""

    kind: Tokens  # of its elements
    name: Token
    dimensions: List[Tokens]
    brackets: Tokens  # the dimensions with their brackets
    value: Tokens  # behind `=`, in braces; nothing where it begins with nothing


def declared(declarators: Sequence[Tokens]) -> List[Array]:
    """The arrays that a declaration makes; none if it makes anything else."""
    found: List[Array] = []
    kind: Tokens = ()
    for position, one in enumerate(declarators):
        opener = next((at for at, token in enumerate(one) if token.text in ("[", "(", "=", "{")), len(one))
        named = 0 < opener < len(one) and one[opener].text == "[" and one[opener - 1].kind == WORD
        if not named or (position and opener != 1):
            return []
        kind = kind if position else one[: opener - 1]
        dimensions: List[Tokens] = []
        at = opener
        while ex.texts(one[at : at + 1]) == ["["]:
            close = ex.closing(one, at)
            dimensions.append(one[at + 1 : close])
            at = close + 1
        value = one[at + 1 :] if ex.texts(one[at : at + 1]) == ["="] else one[at:]
        if value and (value[0].text != "{" or ex.closing(value, 0) != len(value) - 1):
            return []
        found.append(Array(kind, one[opener - 1], dimensions, one[opener:at], value))
    return [] if not kind or ex.has(kind, *NO_KINDS) else found


def is_constant(array: Array, is_uniform: Callable[[Tokens], bool]) -> bool:
    """Whether the array never changes, and has the same elements for all threads."""
    return ex.has(array.kind, "const", "constexpr") and bool(array.value) and _all(array.value, is_uniform)


def has_sizes(array: Array, constant: bool, is_uniform: Callable[[Tokens], bool]) -> bool:
    """Whether the dimensions are constants; that of an array which never changes may be left out."""
    return all(is_uniform(size) if size else constant for size in array.dimensions)


def _all(value: Tokens, is_uniform: Callable[[Tokens], bool]) -> bool:
    """Whether the values in a list in braces, and in lists in it, are the same for all threads."""
    for part in ex.split(value[1:-1]):
        inner = bool(part) and part[0].text == "{"
        if part and not (_all(part, is_uniform) if inner else is_uniform(part)):
            return False
    return True


def per_thread(name: str, kept: str, made: str, brackets: str, value: Optional[str]) -> Tuple[str, str, str]:
    """What makes the arrays of all threads, by the name `made`; what names a thread's; what gives it its values."""
    kind = f"{made}_type"
    arrays = (
        f" typedef {kept} {kind}{brackets}; ::mxmaca::PerThread<{kind}> {made}(blockDim.x * blockDim.y * blockDim.z);"
    )
    first = f"__mxmaca_first_of_{name}"
    start = f" {{ const {kept} {first}{brackets} = {value}; ::mxmaca::start_array({name}, {first}); }}"
    return arrays, f"auto& {name} = {made}[__mxmaca_thread];", "" if value is None else start
