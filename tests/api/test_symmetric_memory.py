"""Symmetric memory: memory of the device that all ranks of a group read and write, its signals, and its collectives."""

from typing import Callable

import pytest
import release_facts
import torch

if not torch.distributed.is_nccl_available():
    pytest.skip("this build has no NCCL", allow_module_level=True)

pytestmark = release_facts.wants("symmetric_memory")

Run = Callable[..., str]

# Every rank has `world`, a symmetric tensor of any dtype by `symmetric`, and what all ranks have of a tensor.
SETUP = """
import torch.distributed._symmetric_memory as symm_mem

world = int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
group = dist.group.WORLD
name = group.group_name
ops = torch.ops.symm_mem
torch.manual_seed(rank)

def symmetric(size, dtype):
    tensor = symm_mem.empty(size, dtype=dtype, device="cuda")
    return tensor, symm_mem.rendezvous(tensor, group)

def of_all(tensor):
    parts = [torch.empty_like(tensor) for _ in range(world)]
    dist.all_gather(parts, tensor)
    return parts

def summed(parts):
    # In the order of the ranks, in float, rounded once.
    total = parts[0].float()
    for part in parts[1:]:
        total = total + part.float()
    return total.to(parts[0].dtype)
"""


def test_all_reduces_add_in_the_order_of_the_ranks(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
for dtype in (torch.float32, torch.bfloat16):
    for count in (2, 4096, 10002):
        whole, _ = symmetric(count + 64, dtype)
        whole.zero_()
        part = whole[8 : 8 + count]
        for operator in ("one_shot_all_reduce", "multimem_one_shot_all_reduce"):
            part.normal_()
            before = part.clone()
            expected = summed(of_all(part))
            found = getattr(ops, operator)(part, "sum", name)
            assert torch.equal(found, expected), (operator, dtype, count)
            assert torch.equal(part, before), operator
            out = torch.empty_like(part)
            assert getattr(ops, operator + "_out")(part, "sum", name, out) is out and torch.equal(out, expected)
        for operator in ("two_shot_all_reduce_", "multimem_all_reduce_"):
            part.normal_()
            expected = summed(of_all(part))
            assert getattr(ops, operator)(part, "sum", name).data_ptr() == part.data_ptr()
            assert torch.equal(part, expected), (operator, dtype, count)
            assert not whole[:8].any() and not whole[8 + count :].any(), operator
dist.destroy_process_group()
""",
        ranks=3,
    )


def test_collectives_that_follow_each_other_do_not_mix(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
tensor, _ = symmetric(5000, torch.float32)
sums = []
for number in range(60):
    tensor.fill_(rank + number)
    sums.append(ops.one_shot_all_reduce(tensor, "sum", name))
    tensor.fill_(number if rank == 0 else -1)
    ops.two_shot_all_reduce_(tensor, "sum", name)
    sums.append(tensor.clone())
for number in range(60):
    assert sums[2 * number].eq(3 + 3 * number).all() and sums[2 * number + 1].eq(number - 2).all(), number
dist.destroy_process_group()
""",
        ranks=3,
    )


@pytest.mark.skipif(
    not hasattr(torch.ops.symm_mem, "reduce_scatter_out"), reason="this release has fewer collectives of this kind"
)
def test_the_other_collectives_give_what_their_names_say(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
for dtype in (torch.float32, torch.bfloat16):
    tensor, _ = symmetric((8, 24), dtype)
    local = torch.randn(8, 24, device="cuda").to(dtype)
    expected = summed(of_all(local))
    assert torch.equal(ops.one_shot_all_reduce_copy(tensor, local, "sum", name), expected)
    short = local[:2]
    out = torch.empty_like(short)
    ops.one_shot_all_reduce_copy_out(tensor, short, "sum", name, out)
    assert torch.equal(out, expected[:2])

    tensor.copy_(local)
    whole = torch.empty_like(local)
    assert torch.equal(ops.two_shot_all_reduce_out(tensor, "sum", name, whole), expected)

    tensor.copy_(local)
    rows = torch.empty(4, 24, dtype=dtype, device="cuda")
    ops.reduce_scatter_out(tensor, name, False, rows)
    assert torch.equal(rows, expected[4 * rank : 4 * rank + 4])
    columns = torch.empty(8, 12, dtype=dtype, device="cuda")
    ops.reduce_scatter_out(tensor, name, True, columns)
    assert torch.equal(columns, expected[:, 12 * rank : 12 * rank + 12])
    assert torch.equal(tensor, local)

    root = torch.full_like(local, 7)
    ops.multimem_one_shot_reduce_out(tensor, "sum", 1, name, root)
    torch.cuda.synchronize()
    assert torch.equal(root, expected if rank == 1 else torch.full_like(local, 7))

    gathered, _ = symmetric((16, 24), dtype)
    ops.multimem_all_gather_out(local, name, gathered)
    assert torch.equal(gathered, torch.cat(of_all(local)))
dist.destroy_process_group()
""",
    )


def test_signals_reach_the_word_of_their_rank_and_channel(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
tensor, memory = symmetric(16, torch.float32)
pad = memory.get_signal_pad(rank)
peer = 1 - rank
memory.put_signal(dst_rank=peer, channel=3)
torch.cuda.synchronize()
dist.barrier()
word = 3 * world + peer
assert pad[word].item() == 1 and pad.to(torch.int64).sum().item() == 1
memory.wait_signal(src_rank=peer, channel=3)
torch.cuda.synchronize()
assert not pad.to(torch.int64).any()
dist.barrier()
torch.cuda.synchronize()

# What a rank has written before it puts a signal is there when the other has taken it.
for number in range(50):
    if rank == 0:
        memory.get_buffer(1, (16,), torch.float32).fill_(number)
        memory.put_signal(dst_rank=1, channel=1)
        memory.wait_signal(src_rank=1, channel=2)
    else:
        memory.wait_signal(src_rank=0, channel=1)
        assert tensor.eq(number).all()
        memory.put_signal(dst_rank=0, channel=2)
torch.cuda.synchronize()
dist.destroy_process_group()
""",
    )


def test_what_waits_for_peers_holds_up_its_stream_alone(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
tensor, memory = symmetric(1024, torch.float32)
store = dist.distributed_c10d._get_default_store()
waiting, other = torch.cuda.Stream(), torch.cuda.Stream()
for number in range(3):
    tensor.fill_(rank)
    torch.cuda.synchronize()
    if rank == 0:
        with torch.cuda.stream(waiting):
            found = ops.one_shot_all_reduce(tensor, "sum", name)
            memory.barrier(channel=1)
            done = torch.cuda.Event()
            done.record()
        assert not done.query()
        with torch.cuda.stream(other):
            assert (tensor + 1).sum().item() == 1024
        assert not done.query()
        store.set(f"go{number}", "1")
    else:
        store.wait([f"go{number}"])
        found = ops.one_shot_all_reduce(tensor, "sum", name)
        memory.barrier(channel=1)
    torch.cuda.synchronize()
    assert found.eq(1).all()
dist.destroy_process_group()
""",
    )


def test_a_captured_collective_runs_at_each_launch(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
tensor, memory = symmetric(1024, torch.float32)
graph = torch.cuda.CUDAGraph()
tensor.fill_(0)
with torch.cuda.graph(graph):
    found = ops.one_shot_all_reduce(tensor, "sum", name)
    twice = found * 2
    memory.barrier(channel=1)
for number in range(4):
    tensor.fill_(rank + number)
    graph.replay()
    assert found.eq(1 + 2 * number).all() and twice.eq(2 + 4 * number).all()
    memory.barrier()
torch.cuda.synchronize()
dist.destroy_process_group()
""",
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("barrier(channel=2, timeout_ms=300)", "barrier: rank 0 has had no signal of rank 1 on channel 2 for 300 ms"),
        (
            "wait_signal(src_rank=1, channel=5, timeout_ms=300)",
            "wait_signal: rank 0 has had no signal of rank 1 on channel 5 for 300 ms",
        ),
        (
            "put_signal(dst_rank=1, channel=4, timeout_ms=300)",
            "put_signal: rank 0 has put a signal that rank 1 did not take on channel 4 for 300 ms",
        ),
    ],
)
def test_a_signal_that_does_not_come_is_an_error_that_names_it(run_ranks: Run, call: str, told: str) -> None:
    said = run_ranks(
        SETUP
        + f"""
tensor, memory = symmetric(16, torch.float32)
dist.barrier()
torch.cuda.synchronize()
if rank == 0:
    memory.put_signal(dst_rank=1, channel=4)
    try:
        memory.{call}
        torch.cuda.synchronize()
    except RuntimeError as error:
        print("error:", error)
    else:
        raise SystemExit("no error")
import sys
sys.stdout.flush()
os._exit(0)
""",
    )
    assert f"SymmetricMemory::{told}" in said
    assert "error: CUDA error: unspecified launch failure" in said


def test_products_overlap_with_gathers_and_scatters(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
from torch.distributed._symmetric_memory import (
    _fused_all_gather_matmul_fallback, _fused_all_gather_matmul_native, _fused_matmul_reduce_scatter_fallback)
symm_mem.enable_symm_mem_for_group(name)
shard = torch.rand(8, 16, 32, device="cuda")
factors = [torch.rand(32, 16, device="cuda") for _ in range(2)]
for dim in (0, 1):
    gathered, products = ops.fused_all_gather_matmul(shard, factors, gather_dim=dim, group_name=name)
    expected, others = _fused_all_gather_matmul_fallback(shard, factors, gather_dim=dim, group_name=name)
    assert torch.equal(gathered, expected)
    for product, other in zip(products, others):
        torch.testing.assert_close(product, other)
    found = ops.fused_matmul_reduce_scatter(shard, factors[0], "avg", scatter_dim=dim, group_name=name)
    expected = _fused_matmul_reduce_scatter_fallback(shard, factors[0], "avg", scatter_dim=dim, group_name=name)
    torch.testing.assert_close(found, expected)

# The product is on its stream before most of what it multiplies has arrived.
left = torch.rand(64, 32, device="cuda").bfloat16()
right = torch.rand(32, 48, device="cuda").bfloat16()
for _ in range(5):
    gathered, product = _fused_all_gather_matmul_native(left, right, name)
    assert torch.equal(gathered, torch.cat(of_all(left)))
    torch.testing.assert_close(product, gathered @ right)
dist.destroy_process_group()
""",
    )


def test_what_cannot_be_is_refused_by_name(run_ranks: Run) -> None:
    run_ranks(
        SETUP
        + """
def refused(words, call, *arguments):
    try:
        call(*arguments)
    except (RuntimeError, NotImplementedError) as error:
        assert words in str(error), error
    else:
        raise SystemExit(f"{words}: not refused")

tensor, _ = symmetric(64, torch.float32)
refused("only sum is supported", ops.one_shot_all_reduce, tensor, "avg", name)
refused("must be allocated with empty_strided_p2p", ops.one_shot_all_reduce, torch.ones(8, device="cuda"), "sum", name)
refused("must be contiguous", ops.two_shot_all_reduce_, tensor[::2], "sum", name)
refused("size mismatch", ops.multimem_one_shot_all_reduce_out, tensor, "sum", name, torch.ones(8, device="cuda"))
half, _ = symmetric(64, torch.float16)
refused("not implemented for 'Half'", ops.one_shot_all_reduce, half, "sum", name)
odd, _ = symmetric(63, torch.bfloat16)
refused("4-byte aligned", ops.one_shot_all_reduce, odd, "sum", name)
assert not torch._C._distributed_c10d._SymmetricMemory.has_multicast_support(torch._C._autograd.DeviceType.CUDA, rank)
dist.barrier()
dist.destroy_process_group()
""",
    )


def test_checked_memory_knows_what_collectives_touch(run_ranks: Run) -> None:
    said = run_ranks(
        SETUP
        + """
tensor, _ = symmetric(1024, torch.float32)
tensor.fill_(rank + 1)
assert ops.one_shot_all_reduce(tensor, "sum", name).eq(3).all()
ops.two_shot_all_reduce_(tensor, "sum", name)
assert tensor.eq(3).all()
dist.destroy_process_group()
""",
        env={"MACA_CHECK": "memory"},
    )
    assert "MACA_CHECK=memory" not in said
