"""The runtime under AddressSanitizer and UBSan, and under ThreadSanitizer: programs about streams and threads."""

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Dict, List, Tuple

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "cu_bridge"
PROGRAMS = HERE.parent / "programs"
RUNS: List[Tuple[str, List[str], Dict[str, str]]] = [
    ("pending.cpp", [], {}),
    ("streams.cpp", [], {"MACA_DEVICE_COUNT": "2"}),
    ("threads.cpp", [], {"MACA_DEVICE_COUNT": "2"}),
    ("stress.cpp", ["1"], {"MACA_DEVICE_COUNT": "8"}),
]


@pytest.fixture(scope="module", params=["thread", "address,undefined"])
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tuple[str, pathlib.Path]:
    """Return the sanitizers, and the folder of a build of the runtime and of CUDA's runtime on it with them."""
    tools = [shutil.which(name) for name in ("cmake", "ninja", "g++")]
    if None in tools:
        pytest.skip("needs cmake, ninja and g++")
    sanitizers = str(request.param)
    probe = tmp_path_factory.mktemp("probe") / "probe"
    made = subprocess.run(
        ["g++", f"-fsanitize={sanitizers}", "-x", "c++", "-", "-o", str(probe)],
        input="int main() {}",
        text=True,
        capture_output=True,
    )
    if made.returncode != 0 or subprocess.run([str(probe)], capture_output=True).returncode != 0:
        pytest.skip(f"the compiler has no -fsanitize={sanitizers} that runs here")
    folder = tmp_path_factory.mktemp("build")
    configure = ["cmake", "-S", str(SOURCE), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug"]
    configure += ["-DCMAKE_CXX_FLAGS=-O1", f"-DMXMACA_SANITIZE={sanitizers}", f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (configure, ["ninja", "-C", str(folder), "mcruntime", "shim_cudart_12"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
    return sanitizers, folder


@pytest.mark.parametrize(("name", "arguments", "variables"), RUNS, ids=[run[0] for run in RUNS])
def test_a_program_is_clean(
    build: Tuple[str, pathlib.Path], tmp_path: pathlib.Path, name: str, arguments: List[str], variables: Dict[str, str]
) -> None:
    sanitizers, folder = build
    program = tmp_path / "program"
    command = ["g++", "-std=c++17", "-O1", "-g", f"-fsanitize={sanitizers}", "-DMXMACA_CUDA_MAJOR=12", "-pthread"]
    command += [
        f"-I{SOURCE / 'include'}",
        f"-I{SOURCE / 'runtime' / 'include'}",
        f"-I{folder / 'generated' / 'public'}",
    ]
    command += [str(PROGRAMS / name), "-o", str(program), f"-L{folder / 'cuda12'}", "-l:libcudart.so.12"]
    command += [f"-Wl,-rpath,{folder / 'cuda12'}:{folder}", f"-Wl,-rpath-link,{folder}"]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert made.returncode == 0, made.stdout
    state = tmp_path / "state"
    state.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MACA_")}
    # What lives as long as the process is no leak.
    environment.update(variables, MACA_STATE_DIR=str(state), ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run(
        [str(program), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
