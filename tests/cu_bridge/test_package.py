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


def surroundings(call: str, environment: Dict[str, str], **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", f"import sys; from mxmaca import surroundings; sys.exit(surroundings.{call})"]
    return subprocess.run(
        command, env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_printed_variables_make_a_shell_find_the_libraries(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path
) -> None:
    """Also where the path has a space, and where something was there before."""
    place = tmp_path / "a place"
    place.symlink_to(sdk)
    environment = {**environment, "LD_LIBRARY_PATH": "/before", "MACA_PATH": str(place)}
    for major in (12, 13):
        printed = surroundings(f"main(['env', '--cuda', '{major}'])", environment).stdout
        done = subprocess.run(
            [
                "sh",
                "-c",
                f'{printed}\necho "$LD_LIBRARY_PATH"; echo "$CUDA_HOME"; command -v nvidia-smi; command -v nvcc',
            ],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        library_path, home, smi, nvcc = done.stdout.splitlines()
        assert library_path == f"{place}/lib/cuda{major}:/before"
        assert home == f"{place}/cuda{major}" and smi == f"{place}/tools/nvidia/nvidia-smi"
        assert nvcc == f"{home}/bin/nvcc"
        again = surroundings(f"main(['env', '--cuda', '{major}'])", {**environment, "LD_LIBRARY_PATH": library_path})
        assert again.stdout == printed


def test_a_command_sees_the_devices_by_nvidias_names(environment: Dict[str, str]) -> None:
    """As monitors do: by the bare names of libraries, in a process that knows nothing of the SDK."""
    code = """
import ctypes
nvml, cuda, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1"), ctypes.c_uint(0)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and cuda.cuInit(0) == 0
print(count.value)
"""
    done = surroundings(f"run([{sys.executable!r}, '-c', {code!r}])", environment, MACA_DEVICE_COUNT="3")
    assert done.stdout.split() == ["3"], done.stderr


def test_a_command_that_cannot_be_run_ends_as_in_a_shell(environment: Dict[str, str], tmp_path: pathlib.Path) -> None:
    assert surroundings("run(['sh', '-c', 'exit 7'])", environment).returncode == 7
    done = surroundings("run(['no-such-command'])", environment)
    assert done.returncode == 127 and "no-such-command" in done.stderr
    assert surroundings(f"run([{str(tmp_path)!r}])", environment).returncode == 126
    assert surroundings("run([])", environment).returncode == 2


def test_the_installed_torch_chooses_the_release(environment: Dict[str, str], tmp_path: pathlib.Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('torch was imported')")
    environment = {**environment, "PYTHONPATH": f"{tmp_path}:{environment['PYTHONPATH']}"}
    for text, major in (("cuda: Optional[str] = '12.4'", 12), ("cuda = '13.0'", 13), ("cuda = None", 13), ("", 13)):
        (package / "version.py").write_text(f"__version__ = '0'\n{text}\n")
        done = surroundings("main(['env'])", environment)
        assert f"/lib/cuda{major}" in done.stdout, done.stderr
