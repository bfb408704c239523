"""Calls of CUDA's libraries are captured and queued; what a capture refuses is known, function by function."""

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Callable, Dict

import pytest
from library_calls import find_openblas

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse")
# What of each file's calls gives its result to the host, or waits to know how large it is; and how many functions the
# file captures at least.
REFUSED = {
    "cublas": (r"I?[sdcz]{0,2}(asum|nrm2|dot[uc]?|amax|amin|rotm?g)_v2(_64)?|(Dotc?|Nrm2)Ex", 100),
    "cublas_types": (r"DotEx|DotcEx|Nrm2Ex|AsumEx|Iam(ax|in)Ex|GemmGroupedBatchedEx", 5),
    "cublaslt": (r"", 2),
    "cudnn": (r"FindConvolution.*|SetDropoutDescriptor|RestoreDropoutDescriptor", 20),
    "cufft": (r"(Xt)?MakePlan.*", 7),
    "curand": (r"GenerateSeeds", 8),
    "cusolver": (r"Dn[SDCZ]gesvdaStridedBatched", 50),
    "cusolver_eigen": (r"Dn[SDCZ](sy|he)(ev|gv)dx|DnXsyevdx", 20),
    "cusolver_sparse": (r"Sp.*", 0),
    "cusparse": (r"DenseToSparse_analysis|SpGEMM_(compute|copy)|SpVV|Xcsrgeam2Nnz|[SDCZ]nnz_compress", 15),
    "cusparse_blocks": (r"[SDCZ]((csr|bsr)\w+2_analysis|nnz)|X\w+(_zeroPivot|Nnz)", 30),
    "cusparse_tridiagonal": (r"", 16),
}


def test_a_program_captures_calls_of_the_libraries_and_queues_them(run_program: Callable[..., object]) -> None:
    run_program("libraries/captured.cpp", "libcudart", *LIBRARIES, MACA_BLAS_LIBRARY=find_openblas())


@pytest.mark.parametrize("name", REFUSED)
def test_a_launch_computes_what_the_call_computes(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path, name: str
) -> None:
    report = tmp_path / "functions.json"
    folders = [str(HERE), str(HERE.parent), *environment["PYTHONPATH"].split(os.pathsep)]
    variables = {**environment, "CAPTURED_CALLS": str(report), "MXMACA_PREFIX": str(sdk.parent)}
    variables.update(PYTHONPATH=os.pathsep.join(folders), MACA_BLAS_LIBRARY=find_openblas())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "captured_calls", "-p", "no:cacheprovider"]
    command.append(str(HERE / f"test_libraries_{name}.py"))
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    known, least = REFUSED[name]
    pattern = re.compile(f"cu(blas|dnn|fft|rand|solver|sparse)({known})", re.IGNORECASE)
    assert [each for each in found["refused"] if not pattern.fullmatch(each)] == []
    assert len(found["captured"]) >= least
