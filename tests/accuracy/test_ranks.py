"""Distributed runs: each rank into its folder, collectives and the exchange of gradients."""

import csv
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from .conftest import load


def _run_ranks(code: str, count: int, folder: Path) -> None:
    """Run code in a process for each rank, over the loopback interface; one that hangs tells where.

    Where gloo's own connections fail while the ranks meet, at files of that name in `folder`, as now and then happens
    on a loaded machine, they meet once more.
    """
    watch = "import faulthandler; faulthandler.dump_traceback_later(120, exit=True)\n"
    command = [sys.executable, "-c", watch + textwrap.dedent(code)]
    variables = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    for attempts_left in (2, 1, 0):
        for meeting in folder.glob("meet*"):
            meeting.unlink()
        with tempfile.TemporaryFile("w+") as said:
            ranks = [subprocess.Popen([*command, str(rank)], env=variables, stderr=said) for rank in range(count)]
            while all(child.poll() in (None, 0) for child in ranks) and any(child.poll() is None for child in ranks):
                time.sleep(0.1)
            if any(child.poll() for child in ranks):
                time.sleep(1.0)  # for the others' own words
                for child in ranks:
                    child.kill()
            codes = [child.wait() for child in ranks]
            said.seek(0)
            words = said.read()
        if attempts_left and any(codes) and "connectFullMesh failed" in words:
            continue
        assert codes == [0] * count, words
        return


def test_gloo_ranks_record_into_their_folders(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    code = f"""
        import sys, torch, torch.distributed as dist
        from torch.distributed import all_reduce
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        accuracy.start_record(output_dir="{tmp_path}/rec")
        x = torch.ones(3) * (rank + 1)
        all_reduce(x)
        accuracy.start_record(enabled=False)
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    for rank in range(2):
        assert "torch.distributed.all_reduce.2.fwd" in operators(tmp_path / "rec", f"rank{rank}")
        content = load(tmp_path / "rec" / f"rank{rank}" / "torch.distributed.all_reduce.2.fwd.output.pt")
        assert content["values"]["after"]["args[0]"].tolist() == [3, 3, 3]
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "rec"), str(tmp_path / "rec"), str(tmp_path))
    assert result.culprit is None and result.counts["same"] == 6


def test_a_group_can_be_destroyed_at_once_after_a_record_and_in_it(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    # gloo's threads get a core only while this one waits: what they hold when work is done, they hold for long.
    # Upstream's destructor of the group waits for them with Python's lock, which they need to let the recorder go.
    code = f"""
        import os, sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, [cores[rank % len(cores)]])
        model = torch.nn.Linear(3, 2)
        for number in range(6):
            before = set(os.listdir("/proc/self/task"))
            dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet{{number}}", rank=rank, world_size=2)
            for thread in set(os.listdir("/proc/self/task")) - before:
                os.setpriority(os.PRIO_PROCESS, int(thread), 19)
            accuracy.start_record(output_dir="{tmp_path}/rec", record_level=1)
            if number % 3 == 0:
                torch.nn.parallel.DistributedDataParallel(model)(torch.ones(4, 3)).sum().backward()
            else:
                # Held: a tensor that only gloo's thread holds waits for the same lock, with a recorder or without.
                x = torch.ones(3)
                dist.all_reduce(x)
            if number % 2:
                accuracy.start_record(enabled=False)
            dist.destroy_process_group()
        accuracy.start_record(enabled=False)
    """
    _run_ranks(code, 2, tmp_path)


def test_a_merged_report_names_the_rank_that_parts(device: str, tmp_path: Path) -> None:
    if device == "cpu" or not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs a device and gloo")
    # Twice the same step on two ranks, tensors on the device, gradients exchanged by gloo; the second time one kernel
    # of rank 1 is wrong, whose error reaches rank 0 with the next exchange.
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        for folder, level, factor in (("a", 2, 1.0), ("b", 2, 1.01), ("a", 1, 1.0), ("b", 1, 1.01)):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).cuda()
            if rank == 1:
                forward = model[1].forward
                model[1].forward = lambda x, forward=forward, factor=factor: forward(x) * factor
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x = torch.randn(4, 8).cuda() + rank
            with accuracy.record(output_dir="{tmp_path}/" + folder + str(level), record_level=level):
                for _ in range(2):
                    optimizer.zero_grad()
                    model(x).pow(2).sum().backward()
                    for param in model.parameters():
                        dist.all_reduce(param.grad)
                    optimizer.step()
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    from maca_tools.accuracy.compare import report

    for level in (2, 1):
        result = report.generate(str(tmp_path / f"a{level}"), str(tmp_path / f"b{level}"), str(tmp_path))
        assert result.culprit is not None and result.text().startswith("First culprit: rank1/torch.nn.Tanh.1.fwd")
        assert result.counts["not compared"] == 0
        # Each exchange passes the error on, to rank 0 as well, whose own gradients agreed before it.
        with open(tmp_path / "accuracy_report.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["part"] == "output"]
        exchanges = [row for row in rows if row["operator0"].startswith("torch.distributed.all_reduce")]
        assert {row["stream"] for row in exchanges} == {"rank0", "rank1"}
        assert {row["verdict"] for row in exchanges} == {"passed on"}
        assert any("inputs of rank1 differ" in row["reason"] for row in exchanges if row["stream"] == "rank0")
        assert {row["stream"] for row in rows if row["verdict"] == "wrong"} == {"rank1"}


def test_process_group_and_ranks_choose_who_records(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    # Of the group of processes 1 and 2, only its second member, and once more with a wrong value there.
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=3)
        group = dist.new_group([1, 2])
        for folder, factor in (("a", 2.0), ("b", 2.0 if rank < 2 else 3.0)):
            with accuracy.record(output_dir="{tmp_path}/" + folder, process_group=group, ranks=[1]):
                torch.ones(3) * 1
            with accuracy.record(output_dir="{tmp_path}/" + folder + "all", process_group=group):
                torch.ones(3) * rank
                torch.sigmoid(torch.ones(3)) if factor == 2.0 else torch.sigmoid(torch.ones(3)).mul_(2)
        dist.destroy_process_group()
    """
    _run_ranks(code, 3, tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["rank1"]
    assert operators(tmp_path / "a", "rank1") == ["torch.ones.0.fwd", "torch.Tensor.mul.1.fwd"]
    assert sorted(path.name for path in (tmp_path / "aall").iterdir()) == ["rank0", "rank1"]
    # Numbers within the group: its member 0 is the process 1.
    factor = load(tmp_path / "aall" / "rank0" / "torch.Tensor.mul.1.fwd.input.pt")["values"]["args"][1]
    assert factor == 1
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "aall"), str(tmp_path / "ball"), str(tmp_path))
    # One report of both: rank0 agrees, rank1 has an operator more on one side.
    assert result.counts["same"] == 8 and result.counts["not compared"] == 1
    assert any(note.startswith("rank1: 1 operators are on one side only") for note in result.notes), result.notes
    text = (tmp_path / "accuracy_report.csv").read_text()
    assert ",rank0," in text and ",rank1," in text


def test_collectives_of_the_device_are_recorded(device: str, tmp_path: Path, operators: Any) -> None:
    if device == "cpu" or not torch.distributed.is_nccl_available():
        pytest.skip("needs a device with collectives of its own")
    # The simulated device has them within a process; between processes gloo carries its tensors.
    code = f"""
        import torch, torch.distributed as dist
        from maca_tools import accuracy
        dist.init_process_group("nccl", init_method="file://{tmp_path}/meet", rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).cuda())
        for level in (2, 1, 0):
            with accuracy.record(output_dir="{tmp_path}/rec" + str(level), record_level=level, ranks=[0]):
                x = torch.full((4,), 2.0, device="cuda")
                dist.all_reduce(x)
                work = dist.all_reduce(x, async_op=True)
                work.wait()
                dist.broadcast(x, 0)
                dist.all_gather_into_tensor(torch.empty_like(x), x)
                dist.reduce_scatter_tensor(torch.empty_like(x), x)
                dist.all_to_all_single(torch.empty_like(x), x)
                model(torch.ones(4, 3, device="cuda")).sum().backward()
        dist.destroy_process_group()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
    for level in (2, 1):
        found = [name.rsplit(".", 2)[0].rpartition(".")[2] for name in operators(tmp_path / f"rec{level}", "rank0")]
        collectives = [name for name in found if name.startswith(("all_", "broadcast", "reduce_"))]
        assert collectives == [
            "all_reduce", "all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor",
            "all_to_all_single", "all_reduce",
        ]  # fmt: skip
    content = load(tmp_path / "rec2" / "rank0" / "torch.distributed.all_reduce.2.fwd.output.pt")
    assert content["values"]["after"]["args[0]"].tolist() == [2, 2, 2, 2]
    from maca_tools.accuracy.compare import report

    result = report.generate(str(tmp_path / "rec2"), str(tmp_path / "rec2"), str(tmp_path))
    assert result.culprit is None and result.counts["same"] == len(operators(tmp_path / "rec2", "rank0"))


def test_the_gradient_exchange_of_ddp_is_an_operator(tmp_path: Path, operators: Any) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    code = f"""
        import sys, torch, torch.distributed as dist
        from maca_tools import accuracy
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
        x = torch.ones(4, 3) * (rank + 1)
        def run():
            model.zero_grad()
            with model.no_sync():
                model(x).sum().backward()
            model(x).sum().backward()
            return [p.grad.clone() for p in model.parameters()]
        plain = run()
        with accuracy.record(output_dir="{tmp_path}/rec"):
            recorded = run()
        assert all(torch.equal(a, b) for a, b in zip(plain, recorded))
        dist.destroy_process_group()
    """
    _run_ranks(code, 2, tmp_path)
    for rank in range(2):
        folder = tmp_path / "rec" / f"rank{rank}"
        found = [name for name in operators(tmp_path / "rec", f"rank{rank}") if "DistributedDataParallel" in name]
        assert len(found) == 1, "under no_sync there is no exchange"
        before, after = (load(folder / f"{found[0]}.{part}.pt")["values"]["grads"] for part in ("input", "output"))
        # Both backward passes of this rank, and the mean over the ranks.
        assert before["weight"].tolist() == [[8.0 * (rank + 1)] * 3] * 2
        assert after["weight"].tolist() == [[12.0] * 3] * 2 and after["bias"].tolist() == [8.0, 8.0]
