"""torch.cuda.tunable chooses between kernels for products of matrices, and remembers what it chose."""

import pathlib

import pytest

tunable = pytest.importorskip("torch.cuda.tunable")

# `result` is the table's row of the one product that was tuned.
TUNE = """
import torch
from torch.cuda import tunable
tunable.enable()
tunable.set_max_tuning_duration(5)
def results():
    return {(row[0], row[1]): (row[2], row[3]) for row in tunable.get_results()}
KERNELS = {"Default", "Maca_Cpu", "Maca_OneDnn", "Maca_Panels"}
a = torch.randn(48, 32, device="cuda")
b = torch.randn(32, 40, device="cuda")
"""


def test_each_layout_shape_and_dtype_is_tuned_once(script, tmp_path: pathlib.Path) -> None:
    code = (
        TUNE
        + """
for turn in range(2):
    assert torch.allclose((a @ b).cpu(), a.cpu() @ b.cpu(), atol=1e-4)
    (a.double() @ b.double()), a.t() @ a, torch.bmm(a[None], b[None]), torch.addmm(torch.zeros(40, device="cuda"), a, b)
    assert len(results()) == 5, results()
names = {name for name, _ in results()}
assert names == {"GemmTunableOp_float_NN", "GemmTunableOp_double_NN", "GemmTunableOp_float_NT",
                 "GemmStridedBatchedTunableOp_float_NN", "GemmAndBiasTunableOp_float_NN"}, names
assert any(shape.startswith("nn_40_48_32") for _, shape in results())
assert all(kernel in KERNELS and time > 0 for kernel, time in results().values())
print("tuned")
"""
    )
    assert script(code, {"PYTORCH_TUNABLEOP_FILENAME": str(tmp_path / "results.csv")}) == "tuned"


def test_the_fastest_kernel_is_chosen_and_computes(script, tmp_path: pathlib.Path) -> None:
    """A table that names each kernel in turn: the kernel that it names computes, and values agree."""
    file = tmp_path / "results.csv"
    code = (
        TUNE
        + f"""
import pathlib
tunable.set_filename({str(file)!r})
x, y = torch.randn(512, 256, device="cuda"), torch.randn(256, 384, device="cuda")
expected = x.cpu() @ y.cpu()
assert torch.allclose((x @ y).cpu(), expected, atol=1e-3)
((operation, shape), (kernel, time)), = results().items()
assert kernel in KERNELS and time > 0
validators = "".join(f"Validator,{{name}},{{value}}\\n" for name, value in tunable.get_validators())
tunable.tuning_enable(False)
path = pathlib.Path({str(tmp_path / "given.csv")!r})
path.write_text(validators + f"{{operation}},{{shape.replace('512', '513')}},Maca_Cpu,1.5\\n")
assert tunable.read_file(str(path))
wider = torch.randn(513, 256, device="cuda")
assert torch.allclose((wider @ y).cpu(), wider.cpu() @ y.cpu(), atol=1e-3)
assert len(results()) == 2 and ("Maca_Cpu", 1.5) in results().values()
if hasattr(tunable, "write_file"):  # later releases write at once
    assert tunable.write_file() and "Maca_Cpu" in path.read_text()
print("read")
"""
    )
    assert script(code, {"PYTORCH_TUNABLEOP_FILENAME": str(tmp_path / "at_first.csv")}) == "read"
    assert "GemmTunableOp_float_NN" in file.read_text(encoding="utf-8")


def test_errors_and_written_operands_are_the_operators_own(script, tmp_path: pathlib.Path) -> None:
    code = (
        TUNE
        + """
try:
    a @ a
    print("no error")
except RuntimeError as error:
    assert "cannot be multiplied" in str(error), error
out = torch.zeros(48, 40, device="cuda")
out.addmm_(a, b)
assert torch.allclose(out.cpu(), a.cpu() @ b.cpu(), atol=1e-4)
torch.mm(a, b, out=out)
x = a.clone().requires_grad_()
(x @ b).sum().backward()
assert torch.allclose(x.grad.cpu(), b.cpu().sum(1).expand(48, 32), atol=1e-4)
print(len(torch.empty(0, 3, device="cuda") @ torch.empty(3, 2, device="cuda")))
"""
    )
    assert script(code, {"PYTORCH_TUNABLEOP_FILENAME": str(tmp_path / "results.csv")}) == "0"


def test_nothing_is_tuned_unless_it_is_asked_for(script, tmp_path: pathlib.Path) -> None:
    code = "import torch; x = torch.ones(4, 4).cuda(); x @ x; print(torch.cuda.tunable.get_results())"
    assert script(code, {"PYTORCH_TUNABLEOP_FILENAME": str(tmp_path / "results.csv")}) == "()"
