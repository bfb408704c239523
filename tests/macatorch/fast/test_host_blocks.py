"""Large results fetched by ``.cpu()`` lie in host blocks that are used again (csrc/memory/HostBlocks.h)."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import List

import pytest
import torch

MIB = 1 << 20


def fetched(value: float, nbytes: int = 16 * MIB) -> torch.Tensor:
    return torch.full((nbytes // 4,), value, device="cuda").cpu()


def resident() -> int:
    """Bytes of this process in memory that are its own and not marked as free."""
    lines = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return 1024 * (int(lines["Anonymous"].split()[0]) - int(lines["LazyFree"].split()[0]))


def test_a_block_is_used_again_and_never_by_two_tensors() -> None:
    first = fetched(1)
    address = first.data_ptr()
    second = fetched(2)
    assert second.data_ptr() != address
    del first
    third = fetched(3)
    assert third.data_ptr() == address
    assert bool((second == 2).all()) and bool((third == 3).all())


def test_a_view_keeps_its_block() -> None:
    view = fetched(4)[100:200]
    others = [fetched(float(i)) for i in range(5, 8)]
    assert view.tolist() == [4.0] * 100
    assert [float(other[0]) for other in others] == [5.0, 6.0, 7.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.complex64, torch.bool, torch.int8])
def test_values_strides_and_dtype_are_those_that_were_asked_for(dtype: torch.dtype) -> None:
    source = torch.randn(8, 16, 64, 1024).to(dtype)  # at least 8 MiB
    layouts = [
        source.cuda(),
        source.cuda().permute(3, 1, 0, 2),
        source.cuda()[:, ::2],
        source.to(memory_format=torch.channels_last).cuda(),
        source.cuda()[2:],
    ]
    # An image in channels-last comes home contiguous: nothing tells whether the layout rule made it so. Other views of
    # it keep their strides.
    expected = [source, *layouts[1:3], source, source[2:]]
    wider = dtype if dtype.is_complex else torch.float32
    for tensor, like in zip(layouts, expected):
        result = tensor.cpu()
        assert result.stride() == torch.empty_like(like, device="cpu").stride()
        assert result.storage_offset() == 0
        assert torch.equal(result.cuda(), tensor)
        assert torch.equal(tensor.to("cpu", wider), result.to(wider))
    assert torch.equal(layouts[0].cpu(), source)


def test_conjugate_and_negative_views_are_resolved_or_kept_as_upstream_does() -> None:
    z = torch.randn(1 << 20, dtype=torch.complex64)
    assert torch.equal(z.cuda().conj().cpu(), z.conj())
    assert torch.equal(z.cuda().conj().imag.cpu(), z.conj().imag)


def test_gradients_pass() -> None:
    x = torch.ones(2 * MIB, device="cuda", requires_grad=True)
    (x.cpu() * 3).sum().backward()
    assert x.grad is not None and x.grad.is_cuda and bool((x.grad == 3).all())


def test_a_storage_can_be_resized_shared_and_pickled(tmp_path: os.PathLike[str]) -> None:
    tensor = fetched(9)
    tensor.resize_(10 * MIB)
    assert bool((tensor[: 4 * MIB] == 9).all())
    tensor.untyped_storage().resize_(40)
    assert tensor.untyped_storage().nbytes() == 40
    shared = fetched(10).share_memory_()
    assert shared.is_shared() and bool((shared == 10).all())
    torch.save(fetched(11), os.path.join(tmp_path, "t.pt"))
    assert bool((torch.load(os.path.join(tmp_path, "t.pt"), weights_only=True) == 11).all())


def test_what_is_kept_is_free_for_the_system_and_bounded() -> None:
    before = resident()
    for _ in range(2):
        kept: List[torch.Tensor] = [fetched(1, 100 * MIB) for _ in range(7)]
        assert resident() - before > 600 * MIB
        del kept
        torch.cuda.empty_cache()
        assert resident() - before < 100 * MIB
    mapped = [line for line in pathlib.Path("/proc/self/smaps").read_text().splitlines() if line.startswith("LazyFree")]
    assert sum(1024 * int(line.split()[1]) for line in mapped) <= 512 * MIB


def test_threads_get_blocks_of_their_own() -> None:
    problems: List[str] = []

    def work(number: int) -> None:
        for turn in range(20):
            values = [fetched(float(100 * number + i), (5 + i) * MIB) for i in range(turn % 3 + 1)]
            problems.extend(f"{number} {turn}" for i, v in enumerate(values) if not bool((v == 100 * number + i).all()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_the_profiler_counts_them_as_memory_of_the_cpu() -> None:
    x = torch.ones(4 * MIB, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        y = x.cpu()
        del y
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in events if event.device_type() == torch.autograd.DeviceType.CPU]
    assert 16 * MIB in sizes and -16 * MIB in sizes
