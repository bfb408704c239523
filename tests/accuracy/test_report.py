"""The report: verdicts, alignment, formats, bad input."""

import csv
import json
import os
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from maca_tools import accuracy
from maca_tools.accuracy.__main__ import main
from maca_tools.accuracy.compare import report


def _run(folder: Path, extra: bool = False, factor: float = 1.0) -> None:
    x = torch.linspace(0, 1, 64)
    with accuracy.record(output_dir=str(folder)):
        y = torch.relu(x)
        if extra:
            y = y.reshape(64)
        z = torch.sigmoid(y)
        (z * 1.0).sum()
    if factor != 1.0:
        # A wrong product, as if the kernel had made it: the inputs stay equal.
        path = folder / "torch.Tensor.mul.2.fwd.output.pt"
        content = torch.load(path, weights_only=True)
        content["values"]["result"] *= factor
        torch.save(content, path)


def test_an_error_that_is_passed_on_has_one_culprit(tmp_path: Path) -> None:
    _run(tmp_path / "a")
    x = torch.linspace(0, 1, 64)
    with accuracy.record(output_dir=str(tmp_path / "b")):
        y = torch.relu(x)
        z = torch.sigmoid(y)
        (z * 1.0).sum()
    path = tmp_path / "b" / "torch.sigmoid.1.fwd.output.pt"
    content = torch.load(path, weights_only=True)
    content["values"]["result"] *= 1.01
    torch.save(content, path)
    for later, part in (("torch.Tensor.mul.2.fwd", "input"), ("torch.Tensor.mul.2.fwd", "output")):
        path = tmp_path / "b" / f"{later}.{part}.pt"
        content = torch.load(path, weights_only=True)
        if part == "input":
            content["values"]["args"][0] *= 1.01
        else:
            content["values"]["result"] *= 1.01
        torch.save(content, path)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert result.culprit is not None and result.culprit.name0 == "torch.sigmoid.1.fwd"
    assert result.counts["wrong"] == 1 and result.counts["passed on"] == 1


def test_an_operator_more_on_one_side_is_said_and_the_rest_is_matched(tmp_path: Path) -> None:
    _run(tmp_path / "a")
    _run(tmp_path / "b", extra=True)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert result.culprit is None and result.counts["not compared"] == 1 and result.counts["same"] == 4
    with open(tmp_path / "out" / "accuracy_report.csv", encoding="utf-8") as file:
        assert "torch.Tensor.reshape.1.fwd" in file.read()


def test_the_csv_has_the_specified_columns(tmp_path: Path) -> None:
    _run(tmp_path / "a")
    accuracy.gen_report(str(tmp_path / "a"), str(tmp_path / "a"), str(tmp_path / "out"))
    with open(tmp_path / "out" / "accuracy_report.csv", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    for column in (
        "dtype0",
        "shape1",
        "stride0",
        "stride1",
        "max0",
        "min1",
        "diff1",
        "diff2",
        "cosine",
        "pcc",
        "ulp",
        "crc_equal",
        "strides_equal",
        "verdict",
        "stack0",
        "stack1",
    ):
        assert column in lines[0]
    assert {line[lines[0].index("verdict")] for line in lines[1:]} == {"same"}


def test_the_first_line_of_the_csv_is_its_header(tmp_path: Path) -> None:
    from maca_tools.accuracy.compare import sheet

    _run(tmp_path / "a")
    _run(tmp_path / "b", factor=1.1)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    path = tmp_path / "out" / "accuracy_report.csv"
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(report.COLUMNS)
    assert {
        row["verdict"] for row in rows if row["operator0"] == "torch.Tensor.mul.2.fwd" and row["part"] == "output"
    } == {"wrong"}
    # What stood above it is in a file beside it.
    with open(tmp_path / "out" / "accuracy_report.json", encoding="utf-8") as file:
        head = json.load(file)
    assert head["headline"] == result.headline() and head["counts"] == result.counts
    assert (head["dir0"], head["dir1"]) == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert {str(path), str(tmp_path / "out" / "accuracy_report.json")} <= set(result.files)
    # The project's reader takes a report of an earlier version, too.
    assert sheet.read_csv(str(path)) == rows
    earlier = tmp_path / "earlier.csv"
    with open(path, newline="", encoding="utf-8") as file:
        earlier.write_bytes(b"# First culprit: x\n# side 0: a   side 1: b\n" + file.read().encode())
    assert sheet.read_csv(str(earlier)) == rows


def test_pandas_reads_the_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    _run(tmp_path / "a")
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "a"), str(tmp_path / "out"))
    table = pandas.read_csv(tmp_path / "out" / "accuracy_report.csv")
    assert list(table.columns) == list(report.COLUMNS)
    assert table["operator0"].nunique() == sum(result.counts.values())
    assert (table["diff2"] == 0).all() and set(table["verdict"]) == {"same"}


@pytest.mark.parametrize("level", [1, 2])
def test_equal_values_in_other_strides_are_said_and_no_error(level: int, tmp_path: Path) -> None:
    # What a port does whose kernel gives another layout from the same input; one element's stride means nothing.
    def run(folder: Path, transposed: bool) -> None:
        x = torch.arange(24.0).reshape(2, 3, 2, 2)
        with accuracy.record(output_dir=str(folder), record_level=level, record_stack=False):
            torch.sigmoid(x)
            y = x.clone(memory_format=torch.channels_last if transposed else torch.contiguous_format)
            y * 2
            torch.empty_strided((1, 4), (7 if transposed else 4, 1)).fill_(3)

    for folder, transposed in ((tmp_path / "a", False), (tmp_path / "b", True)):
        run(folder, transposed)
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert result.culprit is None and result.counts["wrong"] == 0
    notes = [note for note in result.notes if "strides" in note]
    with open(tmp_path / "out" / "accuracy_report.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    outputs = {row["operator0"]: row for row in rows if row["part"] == "output" and row["tensor"] == "result"}
    product = outputs["torch.Tensor.mul.2.fwd"]
    assert (product["crc_equal"], product["strides_equal"]) == ("yes", "no")
    assert (product["stride0"], product["stride1"]) == ("12x4x2x1", "12x1x6x3")
    assert outputs["torch.Tensor.fill_.4.fwd"]["strides_equal"] == "yes"
    # The product only lies as its input does.
    assert len(notes) == 1 and notes[0].startswith("1 operators give other strides"), result.notes
    assert "first torch.Tensor.clone.1.fwd (result has the strides 12x4x2x1 and 12x1x6x3)" in notes[0]


def test_a_file_whose_layouts_do_not_fit_is_damaged_not_equal(tmp_path: Path) -> None:
    for number, damage in enumerate(
        (lambda c: c.pop("tensors"), lambda c: c.update(tensors="[{"), lambda c: c.update(tensors="[]"))
    ):
        _run(tmp_path / "a")
        path = tmp_path / "a" / "torch.relu.0.fwd.output.pt"
        shutil.copytree(tmp_path / "a", tmp_path / f"b{number}")
        content = torch.load(path, weights_only=True)
        damage(content)
        torch.save(content, tmp_path / f"b{number}" / path.name)
        result = report.generate(str(tmp_path / "a"), str(tmp_path / f"b{number}"), str(tmp_path / "out"))
        text = (tmp_path / "out" / "accuracy_report.csv").read_text()
        assert result.counts["not compared"] == 1 and f"{path.name} is damaged" in text, number


def test_inspect_lists_a_record_and_one_operator_of_it(tmp_path: Path, capsys: Any) -> None:
    for level in (1, 2):
        folder = tmp_path / str(level)
        x = torch.tensor([1.0, 4.0], requires_grad=True)
        with accuracy.record(output_dir=str(folder), record_level=level):
            torch.sqrt(x).sum().backward()
        assert main(["inspect", str(folder)]) == 0
        listed = capsys.readouterr().out
        assert f"level {level}" in listed and f"torch {torch.__version__}" in listed and "4 operators" in listed
        assert "torch.sqrt.0.fwd  float32[2] -> float32[2]" in listed
        assert "torch.Tensor.sum.1.bwd" in listed
        assert main(["inspect", str(folder), "torch.sqrt.0.bwd"]) == 0
        one = capsys.readouterr().out
        gradient = next(line for line in one.splitlines() if line.strip().startswith("grad_in"))
        # d sqrt(x) / dx at 1 and 4.
        assert "0.25" in gradient and "0.5" in gradient and "test_report.py" in one
    assert main(["inspect", str(folder), "torch.sqrt.7.fwd"]) == 2
    assert "holds no operator torch.sqrt.7.fwd" in capsys.readouterr().err
    (folder / "torch.sqrt.0.fwd.output.pt").write_bytes(b"half")
    assert main(["inspect", str(folder), "torch.sqrt.0.fwd"]) == 0
    assert "sqrt.0.fwd.output.pt is damaged" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path)]) == 0
    assert "1: level 1" in capsys.readouterr().out


def test_the_sheet_names_the_culprit_on_top_and_has_filters(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    _run(tmp_path / "a")
    _run(tmp_path / "b", factor=1.5)
    report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    sheet = openpyxl.load_workbook(tmp_path / "out" / "accuracy_report.xlsx").active
    assert sheet["A1"].value.startswith("First culprit: torch.Tensor.mul.2.fwd")
    assert sheet.freeze_panes == "E4" and sheet.auto_filter.ref.startswith("A3:")


def test_metrics_are_those_of_their_definitions() -> None:
    from maca_tools.accuracy.compare import metrics

    a, b = torch.tensor([1.0, -2.0, 4.0]), torch.tensor([1.0, -2.5, 4.0])
    found = metrics.of_tensors(a, b)
    assert found.diff1 == pytest.approx(0.5 / 7) and found.diff2 == pytest.approx((0.25 / 21) ** 0.5)
    assert found.max_abs == 0.5 and found.max_rel == 0.25 and found.within_5e3 == pytest.approx(2 / 3)
    one = torch.tensor([1.0])
    assert metrics.of_tensors(one, torch.nextafter(one, one * 2)).ulp == 1
    assert metrics.of_tensors(torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 2.0])).max_abs == 1
    assert metrics.of_tensors(torch.tensor([float("nan")]), one).diff2 == float("inf")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64", "int32"])
@pytest.mark.parametrize("noise", [1e-6, 1e-2, 1.0])
def test_metrics_of_many_elements_are_those_of_double_precision_in_one_piece(dtype: str, noise: float) -> None:
    from maca_tools.accuracy.compare import metrics

    # More than one piece, the last one not whole; neighbours of zero, equal NaN and Inf; strides that differ.
    kind = getattr(torch, dtype)
    a = torch.randn(401, 503, dtype=torch.complex64 if kind.is_complex else torch.float32) * 50
    b = (a * (1 + noise * torch.randn(401, 503))).t().contiguous().t()
    a[0, :5] = 0
    a, b = a.to(kind), b.to(kind)
    x, y = (torch.view_as_real(part) if kind.is_complex else part for part in (a, b))
    x, y = x.double().flatten(), y.double().flatten()
    gap = (x - y).abs()
    relative = torch.where(gap == 0, gap, gap / x.abs())
    found = metrics.of_tensors(a, b)
    expected = {
        "diff1": gap.sum() / x.abs().sum(), "diff2": gap.norm() / x.norm(), "norm": x.norm(), "max_abs": gap.max(),
        "max_rel": relative.max(), "max0": x.max(), "min1": y.min(), "pcc": torch.corrcoef(torch.stack([x, y]))[0, 1],
        "cosine": x.dot(y) / x.norm() / y.norm(), "within_1e3": (relative <= 1e-3).double().mean(),
        "within_5e3": (relative <= 5e-3).double().mean(),
    }  # fmt: skip
    for name, value in expected.items():
        room = 1e-4 if name.startswith("within") else 1e-7
        assert getattr(found, name) == pytest.approx(float(value), rel=2e-6, abs=room), name
    assert found.crc_equal == torch.equal(a, b)
    if found.histogram is not None:
        # The edges are exact to an eighth of a power of two.
        scale, tail = float(x.norm()) / len(x) ** 0.5, len(x)
        assert sum(found.histogram) == len(x)
        for power, count in zip(range(metrics.HISTOGRAM_LOW, 1), found.histogram):
            tail -= count
            low, high = ((gap >= scale * 10.0**power * edge).sum() for edge in (1.001, 0.88))
            assert low <= tail <= high, power


def test_metrics_of_broken_and_extreme_values() -> None:
    from maca_tools.accuracy.compare import metrics

    a = torch.full((70_000,), 2.0)
    a[3], a[5], a[69_000] = float("nan"), float("inf"), 1.0
    b = a.clone()
    assert metrics.of_tensors(a, b).crc_equal and metrics.of_tensors(a, b).min0 == 1.0
    b[69_000] = 1.5
    found = metrics.of_tensors(a, b)
    assert (found.max_abs, found.crc_equal, found.ulp) == (0.5, False, 1 << 22) and sum(found.histogram or []) == 70_000
    b[3] = 2.0
    assert metrics.of_tensors(a, b).diff2 == float("inf")
    large, small = torch.tensor([3e38, 1.0]), torch.tensor([1e-30, -2e-30])
    assert metrics.of_tensors(large, -large).max_abs == pytest.approx(6e38)
    assert metrics.of_tensors(small, -small).diff2 == pytest.approx(2.0)
    assert metrics.of_tensors(torch.tensor([1e-45]), torch.tensor([-1e-45])).ulp == 2


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


def test_bad_files_are_rows_that_say_so_and_a_malicious_one_does_not_run(tmp_path: Path) -> None:
    _run(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "torch.relu.0.fwd.output.pt").unlink()
    cut = tmp_path / "b" / "torch.sigmoid.1.fwd.output.pt"
    cut.write_bytes(cut.read_bytes()[:300])
    trap = tmp_path / "trap"
    torch.save({"values": {"result": _Evil(trap)}}, tmp_path / "b" / "torch.Tensor.mul.2.fwd.output.pt")
    (tmp_path / "b" / "torch.Tensor.sum.3.fwd.output.pt").write_bytes(pickle.dumps(_Evil(trap)))
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    text = (tmp_path / "out" / "accuracy_report.csv").read_text()
    assert result.counts["not compared"] == 4
    assert not trap.exists(), "a pickle of the record was run"
    for said in (
        "relu.0.fwd.output.pt is missing",
        "sigmoid.1.fwd.output.pt is damaged",
        "mul.2.fwd.output.pt is refused",
    ):
        assert said in text


def test_what_is_no_record_or_no_place_is_one_clear_error(tmp_path: Path, capsys: Any) -> None:
    _run(tmp_path / "a")
    (tmp_path / "file").write_text("")
    for dir0, output, said in (
        (tmp_path / "missing", tmp_path, "is not a folder"),
        (tmp_path / "file", tmp_path, "is not a folder"),
        (tmp_path / "a", tmp_path / "file", "cannot be written"),
    ):
        assert main(["report", str(dir0), str(tmp_path / "a"), "-o", str(output)]) == 2
        printed = capsys.readouterr().err
        assert printed.startswith("error: ") and said in printed
    (tmp_path / "foreign").mkdir()
    with pytest.raises(accuracy.AccuracyError, match="holds no record"):
        accuracy.gen_report(str(tmp_path / "foreign"), str(tmp_path / "a"), str(tmp_path))


def test_a_record_cannot_name_code_to_run(tmp_path: Path) -> None:
    # gen_report runs suspects again; a record may be anybody's.
    trap = tmp_path / "trap"
    for side, factor in (("a", 1.0), ("b", 1.5)):
        x = torch.linspace(0, 1, 64)
        with accuracy.record(output_dir=str(tmp_path / side)):
            torch.relu(x)
        folder = tmp_path / side
        for part in ("input", "output"):
            content = torch.load(folder / f"torch.relu.0.fwd.{part}.pt", weights_only=True)
            if part == "input":
                content["values"] = {"args": [f"mkdir {trap}"], "kwargs": {}}
            else:
                content["values"]["result"] *= factor
            torch.save(content, folder / f"torch.os.system.0.fwd.{part}.pt")
        order = folder / "order.jsonl"
        order.write_text(order.read_text().replace("torch.relu.0", "torch.os.system.0"))
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert result.culprit is not None and result.culprit.name0 == "torch.os.system.0.fwd"
    assert not trap.exists(), "the report ran what the record named"


def test_an_ill_conditioned_operator_is_no_culprit_and_a_wrong_one_behind_it_is(tmp_path: Path) -> None:
    # exp at 60 makes an error of its input sixty times as large, far more than any rule of thumb allows.
    for side, noise, wrong in (("a", 0.0, 1.0), ("b", 1e-4, 1.0), ("c", 1e-4, 1.01)):
        x = torch.linspace(59, 61, 256) * (1 + noise)
        with accuracy.record(output_dir=str(tmp_path / side)):
            torch.cumsum(torch.exp(x), 0)
        if wrong != 1.0:
            path = tmp_path / side / "torch.cumsum.1.fwd.output.pt"
            content = torch.load(path, weights_only=True)
            content["values"]["result"] *= wrong
            torch.save(content, path)
    passed = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert passed.culprit is None and passed.counts["passed on"] == 2, passed.text()
    found = report.generate(str(tmp_path / "a"), str(tmp_path / "c"), str(tmp_path / "out"))
    assert found.culprit is not None and found.culprit.name0 == "torch.cumsum.1.fwd", found.text()


def test_another_form_of_the_same_operator_is_the_culprit(tmp_path: Path) -> None:
    x = torch.linspace(-3, 3, 256)
    for side, form in (("a", "none"), ("b", "tanh")):
        with accuracy.record(output_dir=str(tmp_path / side)):
            torch.nn.GELU(form)(x * 2) + 1
    result = report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    assert result.culprit is not None and result.culprit.name0 == "torch.nn.GELU.1.fwd", result.text()


def test_a_truncated_order_file_is_read_up_to_its_last_whole_line(tmp_path: Path, operators: Any) -> None:
    _run(tmp_path / "a")
    order = tmp_path / "a" / "order.jsonl"
    order.write_text(order.read_text()[:-20])
    assert len(operators(tmp_path / "a")) == 4


def test_a_stock_torch_records_with_the_copied_folder_and_both_are_compared(
    planted: Any, device: str, tmp_path: Path
) -> None:
    stock = os.environ.get("MACA_STOCK_TORCH_PYTHON")
    if not stock:
        pytest.skip("MACA_STOCK_TORCH_PYTHON names no Python with a stock torch")
    import maca_tools

    shutil.copytree(
        os.path.dirname(maca_tools.__file__),
        tmp_path / "copy" / "maca_tools",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(planted.__file__, tmp_path / "copy")
    code = (
        "import torch, planted; from maca_tools import accuracy\n"
        "model = planted.build('cpu', torch.float32, layers=2)\n"
        "with accuracy.record(output_dir='stock'): planted.train(model)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([stock, "-c", code], cwd=tmp_path / "copy", check=True, env=environment)
    model = planted.build(device, torch.float32, "fwd:9", layers=2)
    with accuracy.record(output_dir=str(tmp_path / "device")):
        planted.train(model)
    result = report.generate(str(tmp_path / "copy" / "stock"), str(tmp_path / "device"), str(tmp_path / "out"))
    assert result.culprit is not None and result.counts["wrong"] == 1, result.text()


def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium to look at the page with")
    _run(tmp_path / "a")
    _run(tmp_path / "b", factor=1.5)
    report.generate(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    page = (tmp_path / "out" / "accuracy_report.html").as_uri()
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
         "--virtual-time-budget=2000", "--dump-dom", page],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120,
    )  # fmt: skip
    assert 'data-ready="4"' in done.stdout, "the page's program did not run to its end"
    assert 'id="divergence"' in done.stdout and 'class="histogram"' in done.stdout
    assert "First culprit: torch.Tensor.mul.2.fwd" in done.stdout


def test_a_record_of_another_format_is_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        with accuracy.record(output_dir=str(tmp_path / folder)):
            torch.ones(2).exp()
    path = tmp_path / "b" / "record.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "format": meta["format"] - 1}))
    with pytest.raises(RuntimeError, match="record it again"):
        accuracy.gen_report(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
