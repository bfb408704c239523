"""Several wrong arguments at once crash no library: no check may rely on one that a wrong argument has left out."""

import datetime
import os
import pathlib
import random
from typing import Dict, List

import pytest
from bad_arguments import engine
from library_calls import find_openblas

CALLS = 300
# Two wrong arguments may be right together (two tensors of another type), so every status is allowed.
ANY = list(range(-6000, 6000))
FOLDERS = [
    "cublas",
    "cublasLt",
    "cuda",
    "cudart",
    "cudnn",
    "cufft",
    "cufile",
    "cupti",
    "curand",
    "cusolver",
    "cusparse",
]
FOLDERS += ["cusparseLt", "nccl", "nvml", "nvrtc"]


def random_calls(table: engine.Table, functions: List[str], seed: int) -> List[engine.Call]:
    """Calls with two to four wrong arguments each."""
    chance = random.Random(seed)
    calls = []
    for name in chance.choices(functions, k=CALLS):
        row = table.rows[name]
        passed = list(row["arguments"])
        places = [place for place, one in enumerate(passed) if table.is_kind(one)]
        wrong = chance.sample(places, min(len(places), chance.randint(2, 4)))
        labels = []
        for place in places:
            kind = table.kinds[passed[place]]
            passed[place] = kind["good"]
            if place in wrong:
                label, passed[place], _ = chance.choice(list(table.bad_values(kind)))
                labels.append(f"{place}.{label}")
        calls.append(engine.Call(name, " ".join(labels), passed, list(ANY), "status"))
    return calls


@pytest.mark.parametrize("folder", FOLDERS)
def test_several_bad_arguments_do_not_crash(
    sdk: pathlib.Path, major: int, folder: str, tmp_path: pathlib.Path, environment: Dict[str, str]
) -> None:
    if not any((row.folder, row.major) == (folder, major) for row in engine.libraries()):
        pytest.skip(f"{folder} is a library of the other CUDA major alone")
    seed = datetime.date.today().toordinal()
    row = engine.library(folder, major)
    own, _ = engine.exported(sdk / "lib" / f"cuda{major}" / row.soname)
    table = engine.Table(folder, major, own)
    with_kinds = [
        name
        for name in sorted(own & set(table.rows))
        if sum(table.is_kind(one) for one in table.rows[name].get("arguments", [])) > 1
    ]
    variables = {**environment, "MACA_BLAS_LIBRARY": os.environ.get("MACA_BLAS_LIBRARY", find_openblas())}
    variables["MACA_DEVICE_COUNT"] = "2"
    calls = random_calls(table, with_kinds, seed)
    problems = engine.run_calls(sdk, row, table.handles, calls, tmp_path, variables, table.setup, table.beside)
    assert problems == [], f"seed {seed}:\n" + "\n".join(problems)
