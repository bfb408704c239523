"""Triton's own tests of its language and its runtime: where they lie, and how they are run."""

import os
from pathlib import Path
from typing import Dict, List, Optional

from ..errors import FactoryError
from ..releases import CHECKOUT

NAME = "triton"
TESTS = CHECKOUT / "tests" / "conformity"
EXPECTED = TESTS / "triton_expected.toml"
FOLDERS = ("language", "runtime")
# Fills in what the package lacks of what tests of a commit near the release import.
PLUGIN = "triton_names"


def folder(given: Optional[Path], version: str) -> Path:
    """The folder ``python/test`` of Triton's sources, which PATH or its ``triton-<minor release>`` holds.

    Raises:
        FactoryError: there is none.
    """
    minor = ".".join(version.split(".")[:2])
    for root in [] if given is None else [given, given / f"triton-{minor}"]:
        tests = root.resolve() / "python" / "test"
        if all((tests / "unit" / name).is_dir() for name in FOLDERS):
            return tests
    raise FactoryError(
        f"{given} holds no python/test/unit of Triton." if given else "Triton's tests are in no wheel.",
        f"Name Triton's sources near release {version}, a folder, with --tests PATH.",
    )


def files(tests: Path) -> List[str]:
    """The test files below the folder, as pytest names them."""
    found = [path for name in FOLDERS for path in sorted((tests / "unit" / name).glob("test_*.py"))]
    return [str(path.relative_to(tests)) for path in found]


def variables(results: Path, first: int, kernels: int) -> Dict[str, str]:
    """What the tests' processes get of environment variables; ``first`` and ``kernels`` are for the random ones."""
    own = {"PYTEST_PLUGINS": PLUGIN, "TRITON_CACHE_DIR": str(results / "triton-cache")}
    # As for upstream's other tests, which know upstream's layout only.
    own["PYTORCH_DEFAULT_NCHW"] = "1"
    random = {"FUZZ_FIRST": str(first), "FUZZ_COUNT": str(kernels)}
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), **own, **random}
