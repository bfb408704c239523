"""operators.toml for one torch release: the rows that speak about an operator, checked against each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

try:
    import tomllib
except ModuleNotFoundError:  # Python < 3.11
    import tomli as tomllib  # type: ignore[no-redef]

STRIDED = "Strided"
TREATMENTS = ("host", "cpu", "adapted", "own", "composite")
POLICIES = ("waits", "iterator", "unboxed", "widen", "dense_inputs", "devices", "results", "nondeterministic", "refuse")
DETAILS = (
    *("treatment", "reason", "layouts", "library", "source", "function", "functions", "operators"),
    *("message", "when", "since", "until"),
)
TABLE_DETAILS = ("treatment", "reason", "source", "functions", "tables", "promotes", "apart")


class TableError(SystemExit):
    """What is wrong with operators.toml, in words."""


class Function(NamedTuple):
    """A function of ours: the file of csrc/ops without its suffix, and the C++ expression with {op}, {spec} in it."""

    source: str
    expression: str
    treatment: str


def numbers(version: str) -> Tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _checked(row: Dict[str, Any], known: Iterable[str]) -> None:
    said = f"operators.toml, the row {row}"
    if row.get("treatment") not in TREATMENTS or not row.get("reason"):
        raise TableError(f"{said}: a treatment ({', '.join(TREATMENTS)}) and a reason are wanted")
    unknown = set(row) - set(known)
    if unknown:
        raise TableError(f"{said}: what is {', '.join(sorted(unknown))}?")
    has_function = "functions" in row or "function" in row
    if has_function != ("source" in row) and "tables" not in row:
        raise TableError(f"{said}: a function and its source belong together")
    if has_function and row["treatment"] not in ("own", "adapted"):
        raise TableError(f"{said}: only what is own or adapted has a function")
    if row["treatment"] == "own" and not has_function:
        raise TableError(f"{said}: an operator of our own needs a function")
    if "library" in row and ("functions" not in row or row["treatment"] != "own" or "layouts" in row):
        raise TableError(f"{said}: for operators beside aten's there are only functions of our own")


def _holds(row: Dict[str, Any], release: Tuple[int, ...]) -> bool:
    first, last = (numbers(row[key]) if key in row else release for key in ("since", "until"))
    return first <= release <= last


class Table:
    """The rows of operators.toml that hold for a release."""

    def __init__(self, path: Path, release: Sequence[int]) -> None:
        content: Dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        for row in content["row"]:
            _checked(row, (*DETAILS, *POLICIES, "kernels"))
            if sum(policy in row for policy in POLICIES) > 1:
                raise TableError(f"operators.toml, the row {row}: one policy a row")
        for row in content["table"]:
            _checked(row, TABLE_DETAILS)
        # What is written in csrc/ops is compiled for every release, also where no row of the release uses it.
        self._written = content["row"]
        rows = [row for row in self._written if _holds(row, tuple(release))]
        self._rows = [row for row in rows if "library" not in row]
        self._beside = [row for row in rows if "library" in row]
        self.tables: List[Dict[str, Any]] = content["table"]
        self._by_name: Dict[Tuple[str, str], List[Dict[str, Any]]] = {}
        for row in self._rows:
            for layout in row.get("layouts", [STRIDED]):
                for pattern in self.patterns(row):
                    self._by_name.setdefault((layout, pattern), []).append(row)

    @staticmethod
    def patterns(row: Dict[str, Any]) -> List[str]:
        return [*row.get("operators", ()), *row.get("functions", ()), *row.get("kernels", ())]

    def rows(self, name: str, layout: str = STRIDED) -> List[Dict[str, Any]]:
        """The rows about an overload, in the order of the file."""
        every = self._by_name.get((layout, f"{name.split('.', 1)[0]}.*"), [])
        return [*self._by_name.get((layout, name), []), *every]

    def policy(self, name: str, key: str, layout: str = STRIDED) -> Optional[Dict[str, Any]]:
        return next((row for row in self.rows(name, layout) if key in row), None)

    def has(self, name: str, key: str, layout: str = STRIDED) -> bool:
        return self.policy(name, key, layout) is not None

    @staticmethod
    def kernel(row: Dict[str, Any], name: str) -> str:
        """The name of CUDA's kernel in upstream's message."""
        kernels: Dict[str, str] = row["kernels"]
        return kernels.get(name) or kernels[f"{name.split('.', 1)[0]}.*"]

    def is_treated(self, name: str, treatment: str, layout: str = STRIDED) -> bool:
        return any(row["treatment"] == treatment for row in self.rows(name, layout))

    def function(self, name: str, layout: str = STRIDED) -> Optional[Function]:
        """The function of ours for an overload. No other row may decide what is registered for it."""
        rows = self.rows(name, layout)
        found = [row for row in rows if "source" in row]
        if not found:
            return None
        others = [row for row in rows if row["treatment"] == "host" or "unboxed" in row]
        if len(found) + len(others) > 1:
            raise TableError(f"operators.toml: {name} is registered by several rows: {[*found, *others]}")
        row = found[0]
        expression = row["functions"][name] if "functions" in row else row["function"]
        return Function(row["source"], expression, row["treatment"])

    def beside(self, source: Optional[str] = None) -> List[Tuple[str, str, Function]]:
        """Library, name and function of the operators beside aten's: all of them, or those of a file of csrc/ops."""
        return [
            (row["library"], name, Function(row["source"], expression, row["treatment"]))
            for row in self._beside
            for name, expression in row["functions"].items()
            if source in (None, row["source"])
        ]

    def expressions(self, source: str) -> List[str]:
        """The functions of a file of csrc/ops, each of them once."""
        rows = [row for row in self._written if row.get("source") == source]
        found = [e for row in rows for e in (row["functions"].values() if "functions" in row else [row["function"]])]
        return sorted(set(found))

    def sources(self) -> List[str]:
        """The files of csrc/ops that have functions, without their suffix."""
        return sorted({row["source"] for row in [*self._written, *self.tables] if "source" in row})

    def missing(self, known: Set[str]) -> List[str]:
        """Names in the table that no operator of the release has."""
        bases = {name.split(".", 1)[0] for name in known}
        patterns = {pattern for row in self._rows for pattern in self.patterns(row)}
        return sorted(p for p in patterns if (p[:-2] not in bases if p.endswith(".*") else p not in known))
