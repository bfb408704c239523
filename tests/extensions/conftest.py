"""The extension package, built and imported once."""

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Iterator

import pytest

# The tests' own helpers lie beside them.
sys.path.insert(0, str(Path(__file__).resolve().parent))
from building import HERE, build_folder, run


@pytest.fixture(scope="session")
def package() -> Path:
    """The folder with the package `proofs`, built by its setup.py."""
    folder = build_folder("package", HERE / "package")
    if not (folder / ".complete").exists():
        shutil.copytree(HERE / "package", folder, dirs_exist_ok=True)
        done = run([sys.executable, "setup.py", "build_ext", "--inplace"], folder)
        assert done.returncode == 0, done.stdout
        (folder / "build.log").write_text(done.stdout)
        (folder / ".complete").touch()
    return folder


@pytest.fixture(scope="session")
def proofs(package: Path) -> Iterator[ModuleType]:
    """The package, imported."""
    sys.path.insert(0, str(package))
    yield importlib.import_module("proofs")
    sys.path.remove(str(package))
