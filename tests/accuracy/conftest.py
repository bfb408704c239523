"""What the tests of maca_tools.accuracy share. They need the vendor wheel, or any torch for what needs no device."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest
import torch

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, os.path.join(_FOLDER, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load(path: Path) -> Any:
    return torch.load(path, weights_only=True)


def whole_record(folder: Path, key: str = "") -> List[str]:
    """The names of all files of one stream: each must load, and be in the order file with its size."""
    place = folder / key
    with open(place / "order.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    promised = {f"{line['name']}.{line['part']}.pt": line["bytes"] for line in lines}
    assert len(promised) == len(lines)
    present = {entry.name: entry.stat().st_size for entry in os.scandir(place) if entry.is_file()}
    del present["record.json"], present["order.jsonl"]
    assert present == promised
    for name in present:
        load(place / name)
    return sorted(present)


@pytest.fixture(scope="session")
def planted() -> Any:
    """The transformer with places for planted errors."""
    return _beside("planted")


@pytest.fixture(scope="session")
def sweep(planted: Any) -> Any:
    """Planting at random places, as the sweep over many of them does it."""
    return _beside("planted_sweep")


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """Each test starts and ends without a recorder in torch."""
    from maca_tools import accuracy

    torch.manual_seed(0)
    before = torch.nn.Module.__call__
    yield
    accuracy.start_record(enabled=False)
    assert torch.nn.Module.__call__ is before, "the recorder was left in torch"


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def operators() -> Callable[[Any], List[Any]]:
    """The full names in a record, in the order of their output files."""
    from maca_tools.accuracy.data import record_dir

    def names(folder: Any, key: str = "") -> List[Any]:
        return [str(entry.name) for entry in record_dir.streams(str(folder))[key].entries]

    return names
