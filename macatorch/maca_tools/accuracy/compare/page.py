"""The report as one .html file that needs nothing else: data and program are inside."""

import html
import json
import math
import os
from typing import Any, Dict, Iterator, Optional

# Operators with all their tensors in the page; of a longer report the others appear in the plot alone.
_DETAILED = 5000


def write(path: str, operators: Iterator[Any], head: Dict[str, Any], culprit: Optional[Any]) -> str:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html"), encoding="utf-8") as file:
        before, after = file.read().split("/*DATA*/")
    before = before.replace("<!--HEADLINE-->", html.escape(head["headline"]))
    first = culprit.index if culprit is not None else -1
    with open(path, "w", encoding="utf-8") as file:
        file.write(before)
        file.write("const HEAD = " + _script(head) + ";\n")
        file.write(
            "const CULPRIT = "
            + _script(None if culprit is None else [culprit.stream, culprit.index])
            + ";\nconst OPERATORS = [\n"
        )
        for number, operator in enumerate(operators):
            detailed = (
                number < _DETAILED
                or (operator.verdict in ("wrong", "passed on") and number < 4 * _DETAILED)
                or operator.index == first
            )
            file.write(_script(_entry(operator, detailed)) + ",\n")
        file.write("];\n")
        file.write(after)
    return path


def _entry(operator: Any, detailed: bool) -> Dict[str, Any]:
    entry: Dict[str, Any] = {
        "i": operator.index, "s": operator.stream, "a": operator.name0, "b": operator.name1, "v": operator.verdict,
        "e": operator.error, "n": operator.input_error,
    }  # fmt: skip
    if detailed:
        entry.update(r=operator.reason, t=operator.rows, k=operator.stack0, l=operator.stack1)
    return entry


def _script(value: Any) -> str:
    """JSON that is safe inside a script element and has no NaN, which JSON lacks."""
    return json.dumps(_finite(value)).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value
