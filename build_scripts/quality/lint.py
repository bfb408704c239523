"""The linters, as pyproject.toml and .clang-format configure them."""

import subprocess
import sys
from typing import Dict, List, Sequence

from .. import children
from ..progress import note
from ..releases import CHECKOUT
from . import tidy
from .limits import Limits

SOURCES = {"c++": (".cpp", ".h", ".cuh"), "shell": (".sh",)}
# Shell scripts whose names do not say so.
SCRIPTS = (".ci/run",)
# mypy looks at each of these by itself: two of them may hold modules of the same name.
TYPED = (
    "build_scripts",
    "macatorch/macatorch",
    "macatorch/maca_tools",
    "cu_bridge/python/mxmaca",
    "macatorch/companions/flash_attn/flash_attn_2_cuda",
)


def tracked(suffixes: Sequence[str]) -> List[str]:
    """Files of the checkout with those suffixes that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=str(CHECKOUT), stdout=subprocess.PIPE, text=True, check=False)
    files = done.stdout.splitlines() or [
        str(path.relative_to(CHECKOUT)) for path in CHECKOUT.rglob("*") if path.is_file()
    ]
    return sorted(f for f in set(files) if f.endswith(tuple(suffixes)) and (CHECKOUT / f).is_file())


def commands() -> Dict[str, List[str]]:
    """Each linter's command, for those that have something to read."""
    shell = tracked(SOURCES["shell"]) + [s for s in SCRIPTS if (CHECKOUT / s).is_file()]
    result = {
        "ruff check": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
    }
    for place in TYPED:
        if (CHECKOUT / place / "__init__.py").is_file():
            result[f"mypy {place}"] = ["mypy", place]
    if shell:
        result["shellcheck"] = ["shellcheck", *shell]
    return result


def run() -> List[str]:
    """Run all linters. Returns the names of those that found something; what they found is on the terminal."""
    failed = []
    for name, command in commands().items():
        program = children.program(command[0])
        if program is None:
            failed.append(f"{name}: {command[0]} is missing (python -m pip install -r requirements/dev.txt)")
            continue
        note(f"== {name}")
        sys.stdout.flush()
        if subprocess.run([program, *command[1:]], cwd=str(CHECKOUT), check=False).returncode:
            failed.append(f"{name} has findings")
    note("== limits")
    failed += Limits(tracked([""])).failures()
    failed += _badly_formatted(tracked(SOURCES["c++"]))
    note("== clang-tidy")
    return failed + tidy.run()


def _badly_formatted(files: Sequence[str]) -> List[str]:
    """clang-format says each place three times; the names of the files are enough."""
    program = children.program("clang-format")
    if program is None or not files:
        return [] if not files else ["clang-format is missing (python -m pip install -r requirements/dev.txt)"]
    note("== clang-format")
    bad = []
    for file in files:
        done = subprocess.run([program, file], cwd=str(CHECKOUT), stdout=subprocess.PIPE, check=False)
        if done.stdout != (CHECKOUT / file).read_bytes():
            bad.append(f"clang-format would change {file}")
    return bad


def reformat() -> None:
    """Let ruff and clang-format rewrite the sources, and wrap paragraphs and comments that are too long."""
    Limits(tracked([""])).rewrap()
    files = tracked(SOURCES["c++"])
    for command in (
        ["ruff", "check", "--fix", "--quiet", "."],
        ["ruff", "format", "."],
        ["clang-format", "-i", *files],
    ):
        program = children.program(command[0])
        if program is not None:
            subprocess.run([program, *command[1:]], cwd=str(CHECKOUT), check=False)
