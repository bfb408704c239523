"""What `make test` takes of the sweep: values and gradients in float32, one in CONFORMITY_SAMPLE of all the rest."""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
import torch

HERE = Path(__file__).resolve().parent
# The sweep's modules are no package: `make conformity` runs them with this folder as its root.
sys.path.insert(0, str(HERE))

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from recorder import device_error, matches, quicken_test_tools  # noqa: E402

PARTS = int(os.environ.get("CONFORMITY_SAMPLE", "25"))
WHOLE = ("test_values", "test_gradients")


def in_sample(name: str) -> bool:
    test, _, case = name.partition("[")
    if test in WHOLE and case.endswith("-float32]"):
        return True
    return zlib.crc32(name.encode()) % PARTS == 0


def expected_failures() -> List[Dict[str, Any]]:
    release = torch.__version__.split("+")[0]
    rows = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8")).get("expected", [])
    return [row for row in rows if release in row["releases"]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: List[Any]) -> None:
    quicken_test_tools()
    expected = expected_failures()
    kept, left = [], []
    for item in items:
        if item.path.name != "test_sweep_sample.py":
            kept.append(item)
        elif in_sample(item.name):
            for row in expected:
                if any(matches(f"sweep.py::{item.name}", pattern) for pattern in row["tests"]):
                    reason = f"{row['class']}: {row['sentence']}"
                    # One that passes is a failure: its entry has to go.
                    item.add_marker(
                        pytest.mark.skip(reason=reason)
                        if row.get("skip")
                        else pytest.mark.xfail(reason=reason, strict=True)
                    )
            kept.append(item)
        else:
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> None:
    assert torch.cuda.is_available(), "no simulated device: is the vendor wheel installed in this environment?"
    wanted = os.environ.get("CONFORMITY_FAST_PARTS")
    if wanted is not None:
        library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libmacatorch.so"))
        library.macatorch_fast_parts.restype = ctypes.c_char_p
        assert library.macatorch_fast_parts().decode().split() == wanted.split()


@pytest.fixture(autouse=True)
def healthy_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the session with the test that left the device with an error: it would fail every test that follows."""
    yield
    error = device_error(failed=False)
    if error is not None:
        request.session.shouldstop = f"{request.node.name} left the device with an error"
        pytest.fail(error)
