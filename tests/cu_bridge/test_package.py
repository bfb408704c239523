"""The Python package: paths, laziness, mx-smi."""

import json
import pathlib
import subprocess
import sys
from typing import Dict


def run(code: str, environment: Dict[str, str], **variables: str) -> str:
    """Run Python code and return its output."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**environment, **variables}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_importing_the_package_loads_no_cffi(environment: Dict[str, str]) -> None:
    code = "import mxmaca, mxmaca.runtime, sys; print('cffi' in sys.modules, mxmaca.__version__)"
    assert run(code, environment).split() == ["False", "1.0.0"]


def test_maca_path_points_at_another_copy(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path
) -> None:
    code = "import mxmaca; print(mxmaca.root(), mxmaca.lib_dir(12), mxmaca.include_dir(), sep='\\n')"
    assert run(code, environment).splitlines()[0] == str(sdk)
    (tmp_path / "lib" / "cuda12").mkdir(parents=True)
    assert run(code, environment, MACA_PATH=str(tmp_path)).splitlines()[0] == str(sdk)  # no SDK there
    (tmp_path / "lib" / "libmcruntime.so").touch()
    assert run(code, environment, MACA_PATH=str(tmp_path)).splitlines() == [
        str(tmp_path),
        str(tmp_path / "lib" / "cuda12"),
        str(tmp_path / "include"),
    ]


def test_mx_smi_shows_devices_and_processes(environment: Dict[str, str]) -> None:
    code = """
import os, sys
from mxmaca import runtime, smi
runtime.check(runtime.lib().mcMalloc(runtime.ffi().new("void **"), 5 << 20))
sys.exit(smi.main(sys.argv[1:]) or print(os.getpid()))
"""
    text = run(code, environment, MACA_DEVICE_COUNT="2")
    pid = text.split()[-1]
    assert "MXC500" in text and "5MiB / 65536MiB" in text and f" {pid} " in text
    assert len({len(line) for line in text.splitlines()[:-1]}) == 1  # a straight table
    facts = json.loads(run("from mxmaca import smi; smi.main(['--json'])", environment))
    assert facts[0]["memory_total"] == 64 << 30 and facts[0]["processes"] == []


def test_mx_smi_says_what_is_wrong(environment: Dict[str, str]) -> None:
    command = [sys.executable, "-m", "mxmaca.smi"]
    variables = {**environment, "MACA_DEVICE_PROFILE": "nothing"}
    done = subprocess.run(command, env=variables, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "'nothing'" in done.stderr
