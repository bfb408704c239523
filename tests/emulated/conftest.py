"""What is built for aarch64, run by the emulator qemu. Skipped, with the reason, where that cannot be."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests" / "cu_bridge"), str(CHECKOUT / "tests" / "cu_bridge" / "runtime")]

from build_scripts import platforms, releases  # noqa: E402
from build_scripts.errors import FactoryError  # noqa: E402
from build_scripts.factory import native  # noqa: E402
from build_scripts.quality import emulation  # noqa: E402

# The emulator takes ten times as long as the processor, and more.
TIMEOUT = 1800
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def aarch64() -> platforms.Architecture:
    """The architecture, where programs for it can be built and run."""
    architecture = platforms.architecture("aarch64")
    if not architecture.is_foreign:
        pytest.skip("this machine is an aarch64: the other tests are about it")
    try:
        native.compiler(architecture)
        emulation.emulator(architecture)
        emulation.system(architecture)
    except FactoryError as error:
        pytest.skip(str(error))
    return architecture


@pytest.fixture(scope="session")
def sdk(aarch64: platforms.Architecture) -> Path:
    """The SDK for aarch64: the folder ``mxmaca``, from the cache or built now."""
    return native.sdk(releases.sdk_version(), architecture=aarch64) / "mxmaca"


@pytest.fixture(scope="session")
def cross_compiler(aarch64: platforms.Architecture) -> str:
    return native.compiler(aarch64)


def _run(command: List[str], environment: "dict[str, str]") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)


@pytest.fixture
def run(aarch64: platforms.Architecture, tmp_path: Path) -> Run:
    """`run(program, *arguments, **variables)`: a program that was built; it must end with status 0."""

    def run_program(program: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        environment = {**emulation.variables(tmp_path, tmp_path), **variables}
        done = _run(emulation.command(aarch64, str(program), *arguments), environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nexit status {done.returncode}"
        return done

    return run_program


@pytest.fixture
def run_python(aarch64: platforms.Architecture, tmp_path: Path) -> Run:
    """`run_python(site, code, **variables)`: code in an emulated Python that finds the packages in `site`."""

    def run_code(site: Path, code: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        environment = {**emulation.variables(site, tmp_path), **variables}
        done = _run(emulation.python(aarch64, "-c", code), environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nexit status {done.returncode}"
        return done

    return run_code


@pytest.fixture(scope="session")
def wheels(aarch64: platforms.Architecture) -> List[Path]:
    """The newest release's wheels for aarch64 that lie in wheels/, the SDK's first."""
    folder = Path(os.environ.get("MACATORCH_WHEELS", CHECKOUT / "wheels"))
    tag = "cp" + emulation.PYTHON.replace(".", "")
    found = sorted(folder.glob(f"torch-*-{tag}-{tag}-linux_{aarch64.name}.whl"))
    if not found:
        pytest.skip(f"no wheel of torch for {aarch64.name} in {folder}: make wheels ARCH={aarch64.name}")
    release = next(r for r in releases.load().releases if found[-1].name.startswith(f"torch-{r.torch}+"))
    others = [f"mxmaca-*-linux_{aarch64.name}.whl", f"triton-{release.companions['triton']}+*-linux_{aarch64.name}.whl"]
    return [path for pattern in others for path in sorted(folder.glob(pattern))] + found[-1:]


@pytest.fixture(scope="session")
def site(aarch64: platforms.Architecture, wheels: List[Path]) -> Path:
    """A folder with those wheels and what they require, unpacked."""
    return emulation.site(aarch64, wheels, releases.load())
