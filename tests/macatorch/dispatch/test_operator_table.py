"""operators.toml is the one table of operators: the dispatcher of the process holds what it says, and nothing else."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
import release_facts
import torch

SITE = Path(torch.__file__).parents[1]
MACATORCH = Path(__file__).resolve().parents[3] / "macatorch"
TABLE = MACATORCH / "operators.toml"
OURS = re.compile(r"^(\w+)( \(inactive\))?: (registered at macatorch/(?:operators\.toml|csrc/ops/\S+) \(\w+\))", re.M)

sys.path.insert(0, str(MACATORCH / "codegen"))
import operators  # noqa: E402
import table as operator_table  # noqa: E402


@functools.lru_cache(maxsize=None)
def entries() -> List[operators.Entry]:
    release = operators.torch_release(SITE)
    return operators.resolve(operator_table.Table(TABLE, release), operators.Upstream(SITE))


@functools.lru_cache(maxsize=None)
def registered() -> List[Tuple[str, str, bool, str]]:
    """Our kernels for operators of aten: dispatch key, name, whether another one has its place, where it comes from."""
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::"):
            dump = torch._C._dispatch_dump(name)
            found += [(key, name[6:], bool(inactive), origin) for key, inactive, origin in OURS.findall(dump)]
    return found


def test_the_dispatcher_holds_what_the_table_says() -> None:
    wanted = {(entry.key("CUDA"), entry.name): entry.origin() for entry in entries()}
    assert len(wanted) > 1200
    assert {(key, name): origin for key, name, _, origin in registered()} == wanted


def test_nothing_is_registered_twice() -> None:
    places = [(key, name) for key, name, _, _ in registered()]
    assert len(places) == len(set(places))
    assert [(key, name) for key, name, inactive, _ in registered() if inactive] == []


def test_rows_beside_aten_are_held_where_the_release_has_the_operator() -> None:
    known = set(torch._C._dispatch_get_all_op_names())
    beside = operator_table.Table(TABLE, operators.torch_release(SITE)).beside()
    held = [(library, name, f) for library, name, f in beside if f"{library}::{name}" in known]
    assert len(held) >= (7 if release_facts.has("operators_beside_aten") else 0)
    for library, name, function in held:
        found = OURS.findall(torch._C._dispatch_dump(f"{library}::{name}"))
        assert found == [("CUDA", "", operators.origin_of(function))], name


def test_every_row_names_an_operator_of_some_release() -> None:
    release = operators.torch_release(SITE)
    known = set(operators.Upstream(SITE).by_name)
    missing = set(operator_table.Table(TABLE, release).missing(known))
    # What this release lacks has come with a later one: products of a dtype, philox, fused norms, cuDNN's attention. Or
    # an earlier one had it last: cholesky.
    later = r"dtype|philox|rms_norm|_attention_|_scaled_grouped|^cholesky\."
    # With 2.3 and 2.4: jagged tensors, packed weights, both layouts of semi-structured matrices, copies on write.
    later += r"|jagged|nested_get|pack|semi_structured|_cslt|_lazy|_linalg_eigvals|_mixed_dtypes|batch_norm_(with|back)"
    later += r"|_foreach_(add|div)_?\.Tensor|cudnn_attention$|_fused_(sgd|adagrad)_"
    assert all(re.search(later, name) for name in missing), missing


def site_with(folder: Path, operator: str) -> Path:
    """A site whose release has one operator more."""
    native = Path("torchgen/packaged/ATen/native")
    (folder / native).mkdir(parents=True)
    (folder / "torch").symlink_to(SITE / "torch")
    for parent in (Path("torchgen"), *list(native.parents)[-3::-1], native):
        for path in (SITE / parent).iterdir():
            if not (folder / parent / path.name).exists() and path.name != "native_functions.yaml":
                (folder / parent / path.name).symlink_to(path)
    text = (SITE / native / "native_functions.yaml").read_text()
    (folder / native / "native_functions.yaml").write_text(text + operator)
    return folder


def generate(site: Path, table: Path, out: Path, *options: str) -> Dict[str, str]:
    command = [sys.executable, str(MACATORCH / "codegen" / "operators.py"), "--site", str(site), "--table", str(table)]
    command += ["--library", str(SITE / "torch" / "lib" / "libtorch_cuda.so"), "--out", str(out)]
    subprocess.run([*command, "--cpu-dtypes", str(MACATORCH / "cpu_dtypes"), *options], check=True)
    return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}


ROW = """
[[row]]
treatment = "own"
reason = "it exists in no release"
source = "example/Nowhere"
functions = { made_for_this_test = "made_for_this_test" }
"""
OPERATOR = """
- func: made_for_this_test(Tensor self, int n) -> Tensor
  dispatch:
    CUDA: made_for_this_test_cuda
"""


def test_an_operator_is_one_row_and_one_function(tmp_path: Path) -> None:
    table = tmp_path / "operators.toml"
    table.write_text(TABLE.read_text() + ROW)
    made = generate(site_with(tmp_path / "site", OPERATOR), table, tmp_path / "out")
    header = made["registered/example/Nowhere.h"]
    assert 'DispatchKey::CUDA).impl("made_for_this_test", kernel_of<&made_for_this_test>(' in header
    assert "register_example_Nowhere();" in made["operators.cpp"]


def test_a_row_waits_where_the_release_has_no_cuda_kernel(tmp_path: Path) -> None:
    table = tmp_path / "operators.toml"
    table.write_text(TABLE.read_text() + ROW.replace('"own"', '"adapted"'))
    made = generate(site_with(tmp_path / "site", OPERATOR.replace("CUDA", "CPU")), table, tmp_path / "out")
    header = made["registered/example/Nowhere.h"]
    assert "impl(" not in header and "&made_for_this_test" in header  # a function that nothing uses is a warning


def test_a_row_of_older_releases_leaves_the_function_unregistered(tmp_path: Path) -> None:
    table = tmp_path / "operators.toml"
    table.write_text(TABLE.read_text() + ROW + 'until = "1.0.0"\n')
    made = generate(site_with(tmp_path / "site", OPERATOR), table, tmp_path / "out")
    header = made["registered/example/Nowhere.h"]
    assert "impl(" not in header and "&made_for_this_test" in header


def test_another_backend_is_another_run(tmp_path: Path) -> None:
    made = "".join(generate(SITE, TABLE, tmp_path, "--device", "PrivateUse1").values())
    keys = set(re.findall(r"operators_at\(c10::DispatchKey::(\w+)\)", made))
    layouts = ("", "Sparse", "SparseCsr", "NestedTensor", "Quantized", "Autocast")
    assert keys == {f"{layout}PrivateUse1" for layout in layouts}
    assert "set_privateuse1_dispatch_ptr" in made and "set_cuda_dispatch_ptr" not in made


@pytest.mark.parametrize(
    "row, words",
    [
        ('treatment = "magic"\nreason = "x"\noperators = ["mm"]', "a treatment"),
        ('treatment = "host"\noperators = ["mm"]', "a reason"),
        ('treatment = "own"\nreason = "x"\noperators = ["mm"]', "needs a function"),
        ('treatment = "own"\nreason = "x"\nsource = "y"\nfunctions = { mm = "f" }', "several rows"),
        ('treatment = "host"\nreason = "x"\noperators = ["mm"]', "several rows"),
        ('treatment = "cpu"\nreason = "x"\nwaits = true\nwiden = true\noperators = ["mm"]', "one policy"),
        ('treatment = "cpu"\nreason = "x"\nlibrary = "symm_mem"\noperators = ["mm"]', "functions of our own"),
        ('treatment = "cpu"\nreason = "x"\ncolour = "red"\noperators = ["mm"]', "what is colour"),
    ],
)
def test_a_row_that_cannot_be_right_is_refused(tmp_path: Path, row: str, words: str) -> None:
    path = tmp_path / "operators.toml"
    path.write_text(f"{TABLE.read_text()}\n[[row]]\n{row}\n")
    with pytest.raises(SystemExit, match=words):
        operator_table.Table(path, (2, 6, 0)).function("mm")
