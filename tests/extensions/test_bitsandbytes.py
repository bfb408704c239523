"""bitsandbytes: the library of its device code is compiled from the SDK's source, and agrees with its CPU backend."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import mxmaca

INSTALLED = importlib.util.find_spec("bitsandbytes") is not None
# A part of what the package's backends/cuda/ops.py looks up when it is imported: a missing one is an error there.
NAMES = [
    *(f"c{w}quantize_blockwise_{t}{q}" for w in ("", "de") for t in ("fp32", "bf16") for q in ("", "_fp4", "_nf4")),
    *(f"cgemm_4bit{form}_{t}" for form in ("", "_inference_naive") for t in ("fp32", "fp16", "bf16")),
    *("cigemmlt_32", "cdequant_mm_int32_fp16", "cint8_vector_quant", "get_context", "cget_managed_ptr", "cprefetch"),
    *(f"c{o}32bit_grad_{t}" for o in ("adam", "lion", "ademamix") for t in ("fp32", "fp16", "bf16")),
    *(f"c{o}32bit_grad_{t}" for o in ("momentum", "rmsprop", "adagrad") for t in ("32", "16")),
]  # fmt: skip


def test_the_library_compiles_and_has_what_the_package_looks_up(tmp_path: Path) -> None:
    source = mxmaca.root() / "device_code" / "bitsandbytes.cu"
    library = tmp_path / "library.so"
    command = ["-m", "mxmaca.cucc", "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([sys.executable, *command], check=True)
    said = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, stdout=subprocess.PIPE, text=True)
    there = {line.split()[-1] for line in said.stdout.splitlines()}
    assert [name for name in NAMES if name not in there] == []


@pytest.mark.skipif(INSTALLED, reason="bitsandbytes is installed")
def test_the_command_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mxmaca", "bitsandbytes"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1
    assert "bitsandbytes is not installed" in done.stderr


@pytest.mark.skipif(not INSTALLED, reason="bitsandbytes is not installed")
@pytest.mark.parametrize("part", ["quantisation", "products", "int8", "optimizers", "training"])
def test_the_device_agrees_with_the_packages_cpu_backend(part: str) -> None:
    subprocess.run([sys.executable, "-m", "mxmaca", "bitsandbytes"], check=True)
    checks = Path(__file__).with_name("bitsandbytes_checks.py")
    subprocess.run([sys.executable, str(checks), part], check=True, timeout=300)
