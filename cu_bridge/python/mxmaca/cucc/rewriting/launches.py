"""`kernel<<<grid, block>>>(x)` becomes `(__cudaPushCallConfiguration(grid, block) ? (void)0 : kernel(x))`.

In device code that may launch it is `__cudaPushChildConfiguration`; kernels.py has what the kernel then does.
"""

from typing import List, NamedTuple, Sequence, Tuple

from .declarations import Warned
from .source import CLOSERS, OPENERS, WORD, Edit, Source, word_set

# A parenthesis behind them is an expression of its own, not a call.
KEYWORDS = word_set("return else do case co_yield and or")
# A statement follows the parenthesis behind them.
CONDITIONS = word_set("if constexpr while for switch")


class Launches(NamedTuple):
    """The launches of a text."""

    edits: List[Edit]
    warnings: List[Warned]
    places: List[int]


def rewrite(source: Source, kernels: Sequence[Tuple[int, int]], children: bool) -> Launches:
    """Rewrite all launches.

    Args:
        kernels: between these places device code stands.
        children: device code may launch.

    Raises:
        CuccError: device code launches and may not, or a launch cannot be understood.
    """
    edits: List[Edit] = []
    warnings: List[Warned] = []
    places: List[int] = []
    behind = 0
    push = "__cudaPushChildConfiguration" if children else "__cudaPushCallConfiguration"
    for token in source.find("<<<"):
        place = token.start
        if place < behind:
            continue
        if not children and any(start < place < end for start, end in kernels):
            raise source.error(place, "a launch from device code (dynamic parallelism) needs -rdc=true")
        places.append(place)
        end = _configuration_end(source, token.end)
        behind = end + 3
        parts = source.split(token.end, end)
        if not 1 < len(parts) < 5:
            raise source.error(place, "a launch has 2 to 4 values between '<<<' and '>>>'")
        call = source.token(behind)
        if call.text != "(":
            raise source.error(end, "'(' expected behind '>>>'")
        if len(parts) < 4:
            warnings.append(
                Warned("default-stream-launch", place, "explicit stream argument not provided in kernel launch")
            )
        values = [source.flat(*part) for part in parts] + ["0", "0"][len(parts) - 2 :]
        called = f"(::{push}({{}}, {{}}, {{}}, (::cudaStream_t)({{}})) ? (void)0 : (void)".format(*values)
        start, close = _callee(source, place), source.closing(call.start) + 1
        edits.append(Edit(start, start, called))
        # The configuration has gone to the front; its line ends stay.
        edits.append(Edit(place, behind, source.line_ends(place, behind) or " "))
        edits.append(Edit(close, close, ")"))
    return Launches(edits, warnings, places)


def _configuration_end(source: Source, place: int) -> int:
    """The `>>>` that closes the configuration."""
    token = source.token(place)
    while token.text not in ("", ";", "}"):
        # dim3<…>>>>: the last three close the launch.
        if source.text.startswith(">>>", token.start) and not source.text.startswith(">>>", token.start + 1):
            return token.start
        token = source.token(source.closing(token.start) + 1 if token.text in CLOSERS else token.end)
    raise source.error(place, "'<<<' is never closed by '>>>'")


def _callee(source: Source, end: int) -> int:
    """Where the expression begins that ends before `end` and is launched."""
    place = end
    while True:
        token = source.before(place)
        if token.text == ">":
            place = source.opening_angle(token.start)
            continue
        if token.text in OPENERS:
            opener = source.opening(token.start)
            before = source.before(opener)
            if before.text in CONDITIONS:
                return place
            place = opener
            # A call or a subscript goes on with what is called; a parenthesis alone is the whole expression.
            if (before.kind == WORD and before.text not in KEYWORDS) or before.text in (">", ")", "]"):
                continue
            return place
        if token.kind != WORD:
            raise source.error(end, "nothing to launch before '<<<'")
        place = token.start
        before = source.before(place)
        if before.text == "::":
            place = before.start
            before = source.before(place)
            if before.text != ">" and (before.kind != WORD or before.text in KEYWORDS):
                return place
        elif before.text in (".", "->"):
            place = before.start
        elif before.text != "template":
            return place
