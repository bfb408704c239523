"""Differences that have a reason: fuzz_expected.toml."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Pattern, Tuple

import torch

from .comparison import Difference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).resolve().parents[1] / "fuzz_expected.toml"
# cuda: CUDA's own operator does so; documented: docs/compatibility.md says so; undefined: no result is promised;
# upstream: the CPU is wrong, the device is not.
CLASSES = ("cuda", "documented", "undefined", "upstream")
KEYS = {"class", "sentence", "kinds", "callees", "step", "cpu", "cuda", "dtypes", "where", "layouts", "releases"}


@dataclass(frozen=True)
class Expected:
    """All that is given has to hold: ``kinds`` and ``callees`` name the difference's, the rest are regular expressions,
    ``callees`` for the whole name, the others for a part."""

    reason: str
    sentence: str
    kinds: Tuple[str, ...]
    callees: Tuple[Pattern[str], ...]
    patterns: Tuple[Tuple[str, Pattern[str]], ...]

    def covers(self, found: Difference) -> bool:
        if found.kind not in self.kinds:
            return False
        if self.callees and not any(pattern.fullmatch(found.step.callee) for pattern in self.callees):
            return False
        texts = {
            "step": found.step.text,
            "cpu": found.cpu,
            "cuda": found.cuda,
            "dtypes": found.dtypes,
            "where": found.where,
            "layouts": found.layouts,
        }
        return all(pattern.search(texts[key]) for key, pattern in self.patterns)


def entry(row: Dict[str, Any]) -> Expected:
    """An entry of the file. Raises ValueError for one that is not whole, or that would cover too much."""
    unknown = set(row) - KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)} in {row}")
    if row.get("class") not in CLASSES or len(row.get("sentence", "")) < 20 or not row.get("kinds"):
        raise ValueError(f"an entry needs a class of {CLASSES}, a sentence and kinds: {row}")
    narrow = [key for key in ("callees", "step", "cpu", "cuda") if row.get(key)]
    if not narrow:
        raise ValueError(f"an entry needs callees, step, cpu or cuda: {row}")
    patterns = tuple(
        (key, re.compile(row[key], re.S)) for key in ("step", "cpu", "cuda", "dtypes", "where", "layouts") if key in row
    )
    callees = tuple(re.compile(name, re.S) for name in row.get("callees", ()))
    return Expected(row["class"], row["sentence"], tuple(row["kinds"]), callees, patterns)


def load(path: Path = FILE, release: Optional[str] = None) -> List[Expected]:
    release = release or torch.__version__.split("+")[0]
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("expected", [])
    return [entry(row) for row in rows if release in row.get("releases", [release])]
