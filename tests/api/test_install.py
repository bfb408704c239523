"""What installing, importing and removing the wheels does to an environment."""

import compileall
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest
import release_facts
import torch

CUDA_MAJOR = int(torch.version.cuda.split(".")[0])
SITE = Path(torch.__file__).resolve().parents[1]


def files_of(distribution: str):
    return [Path(f.locate()) for f in importlib.metadata.files(distribution) or []]


def loaded_libraries(process, code: str, **env: str):
    done = process(
        code + "\nprint(*{l.split(None, 5)[5].strip() for l in open('/proc/self/maps') if '.so' in l}, sep='\\n')", env
    )
    return done.stdout.split()


def test_import_prints_nothing(process):
    done = process("import torch")
    assert done.stdout == "" and done.stderr == ""


def test_first_use_prints_nothing(process):
    done = process(
        """
        import torch, warnings
        warnings.simplefilter("always")
        (torch.ones(2, 2).cuda() @ torch.ones(2, 2, device="cuda")).sum().item()
        layer = torch.nn.LSTM(2, 2).cuda()
        layer(torch.ones(1, 1, 2).cuda())[0].sum().backward()
        """
    )
    assert done.stdout == "" and done.stderr == ""


def test_import_does_not_touch_the_device_or_optional_packages(script):
    code = """
        import sys, torch
        print(torch.cuda.is_initialized(), [m for m in ("triton", "cffi", "torch._inductor") if m in sys.modules])
    """
    assert script(code) == "False []"


def test_no_requirement_of_nvidia_is_left():
    requirements = importlib.metadata.requires("torch") or []
    assert not [r for r in requirements if re.match("nvidia-|cuda-", r)]
    assert any(re.fullmatch(rf"mxmaca ?\(?=={torch.version.maca}\)?", r) for r in requirements)
    triton = [r for r in requirements if r.startswith("triton")]
    if not release_facts.has("triton_of_ours"):
        assert not triton
        return
    (triton,) = triton
    assert re.match(rf"triton==[\d.]+\+maca{re.escape(torch.version.maca)}\b", triton)


def test_versions_of_the_wheels_agree():
    assert importlib.metadata.version("torch") == torch.__version__
    assert importlib.metadata.version("mxmaca") == torch.version.maca


def test_no_variable_is_needed_and_maca_path_is_honoured(process, tmp_path):
    import mxmaca

    installed = Path(mxmaca.__file__).parent
    libraries = loaded_libraries(process, "import torch; torch.ones(2).cuda()", MACA_PATH="")
    assert any(path.startswith(str(installed / "lib")) for path in libraries)

    copy = tmp_path / "sdk"
    shutil.copytree(installed, copy, symlinks=False)
    libraries = loaded_libraries(process, "import torch; torch.ones(2).cuda()", MACA_PATH=str(copy))
    assert any(path.startswith(str(copy)) and "libcudart" in path for path in libraries)
    assert any(path.startswith(str(copy)) and "libmcruntime" in path for path in libraries)
    assert not [path for path in libraries if path.startswith(str(installed / "lib"))]


def test_nvidias_wheels_in_the_same_environment_are_never_loaded(process, tmp_path):
    """Their folders lie beside torch's, where upstream looks first; ours must be taken for every library.

    The copies are libraries that work, so that whoever loads one is found out by the path and not by a crash.
    """
    import mxmaca

    shims = Path(mxmaca.__file__).parent / "lib" / f"cuda{CUDA_MAJOR}"
    # The folder names of NVIDIA's wheels: one a library (CUDA 12), or one for all of them (CUDA 13).
    folders = ["cuda_runtime", "cublas", "cudnn", "cuda_nvrtc", "cufft", "cusparse", "cusolver", "nccl", "cuda_cupti"]
    folders += ["curand", "cusparselt", "nvjitlink", f"cu{CUDA_MAJOR}"]
    made = []
    nvidia = SITE / "nvidia"
    existed = nvidia.exists()
    try:
        for folder in folders:
            directory = nvidia / folder
            if directory.exists():
                continue
            made.append(directory)
            (directory / "lib").mkdir(parents=True)
            for library in shims.iterdir():
                if ".so" in library.name:
                    # Another file, under the same SONAME.
                    shutil.copyfile(library, directory / "lib" / library.name)
        code = """
            import ctypes, torch
            torch.nn.Conv2d(3, 4, 1).cuda()(torch.ones(1, 3, 2, 2).cuda())
            torch.linalg.qr(torch.ones(2, 2).cuda())
            ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
            """
        libraries = loaded_libraries(
            process, textwrap.dedent(code), LD_LIBRARY_PATH=os.pathsep.join(str(d / "lib") for d in made), PYTHONPATH=""
        )
    finally:
        for directory in made:
            shutil.rmtree(directory, ignore_errors=True)
        if not existed:
            shutil.rmtree(nvidia, ignore_errors=True)
    assert not [path for path in libraries if "/nvidia/" in path]
    assert [path for path in libraries if path.startswith(str(shims))]


# The preload's own messages


def import_error(process, **env: str) -> str:
    done = process("import torch", env, check=False)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def sdk(tmp_path):
    import mxmaca

    copy = tmp_path / "sdk"
    shutil.copytree(Path(mxmaca.__file__).parent, copy)
    return copy


def test_a_missing_sdk_is_said_with_the_way_out(process, tmp_path):
    message = import_error(process, MACA_PATH=str(tmp_path / "nowhere"))
    assert message.startswith(f"ImportError: MACA_PATH is {tmp_path / 'nowhere'}, but no MXMACA SDK is there.")
    assert f"pip install mxmaca=={torch.version.maca}" in message and "unset MACA_PATH" in message


def test_an_sdk_of_another_version_is_refused(process, sdk):
    (sdk / "VERSION").write_text("0.9.0\n")
    message = import_error(process, MACA_PATH=str(sdk))
    assert f"built for MXMACA SDK {torch.version.maca}, but the one in {sdk} is 0.9.0" in message
    assert "unset MACA_PATH" in message


def test_an_sdk_without_this_cuda_release_is_refused(process, sdk):
    shutil.rmtree(sdk / "lib" / f"cuda{CUDA_MAJOR}")
    assert f"has no libraries for CUDA {torch.version.cuda}" in import_error(process, MACA_PATH=str(sdk))


def test_a_damaged_sdk_is_said_with_the_way_out(process, sdk):
    (sdk / "lib" / f"cuda{CUDA_MAJOR}" / f"libcudart.so.{CUDA_MAJOR}").write_bytes(b"\x7fELF")
    message = import_error(process, MACA_PATH=str(sdk))
    assert message.startswith("ImportError: The MXMACA SDK is damaged:") and "pip install mxmaca" in message


def test_a_foreign_library_that_came_first_is_an_error(process, sdk):
    foreign = sdk / "lib" / f"cuda{CUDA_MAJOR}" / f"libcudart.so.{CUDA_MAJOR}"
    done = process(f"import ctypes; ctypes.CDLL('{foreign}'); import torch", check=False)
    assert done.returncode != 0
    message = done.stderr.strip().splitlines()[-1]
    assert f"Another libcudart.so.{CUDA_MAJOR} than the MXMACA SDK's is already loaded" in message
    assert str(foreign) in message and "Import torch before" in message


def test_preload_is_fast(script):
    code = """
        import time, ctypes, importlib.util, torch.version  # torch is loaded: this times a second, cheaper call
        import macatorch
        start = time.perf_counter()
        macatorch.preload()
        print(time.perf_counter() - start)
    """
    assert float(script(code)) < 0.02


# Install and removal, in an environment of its own


@pytest.fixture(scope="module")
def wheels():
    """The wheels, where `make wheels` leaves them."""
    folder = Path(os.environ.get("MACATORCH_WHEELS", Path(__file__).resolve().parents[2] / "wheels"))
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = sorted(folder.glob(f"torch-{torch.__version__}-{tag}-*.whl")) + sorted(
        folder.glob(f"mxmaca-{torch.version.maca}-*.whl")
    )
    if len(found) != 2:
        pytest.fail(f"the two wheels of {torch.__version__} for {tag} are not in {folder}: run `make wheels` first")
    return found


def test_uninstall_leaves_nothing_behind(wheels, tmp_path):
    """Without requirements: what other packages leave is not ours. Compiled Python files count."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True, symlinks=True)
    python = str(home / "bin" / "python")

    def tree():
        return {str(p.relative_to(home)) for p in home.rglob("*")}

    def pip(*arguments: str) -> None:
        subprocess.run(
            [python, "-m", "pip", "--disable-pip-version-check", *arguments], check=True, stdout=subprocess.DEVNULL
        )

    pip("--version")
    before = tree()
    pip("install", "--no-deps", "--no-index", "--no-compile", *map(str, wheels))
    site = next((home / "lib").glob("python*/site-packages"))
    assert (site / "torch").is_dir() and (site / "mxmaca").is_dir() and (site / "macatorch").is_dir()
    compileall.compile_dir(str(site / "macatorch"), quiet=1)
    pip("uninstall", "--yes", "torch", "mxmaca")
    left = {path for path in tree() - before if "/pip/" not in path}
    assert not left
