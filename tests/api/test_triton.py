"""Triton's kernels run on the device: launches, errors and caches as a program sees them, without any compiler."""

import re
from typing import List

import pytest
import release_facts

release_facts.need_for_module("triton_of_ours")
KERNELS = """
import os, pathlib, sys
import torch, triton
import triton.language as tl

@triton.jit
def softmax(source, target, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(target + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)

@triton.jit
def scale(values, factor, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + at, tl.load(values + at, mask=at < count) * factor, mask=at < count)

def run_softmax(rows=33, columns=77):
    source = torch.randn(rows, columns, device="cuda")
    target = torch.empty_like(source)
    kernel = softmax[(rows,)](source, target, columns, BLOCK=triton.next_power_of_2(columns))
    torch.testing.assert_close(target, torch.softmax(source, 1))
    return kernel
"""


@pytest.fixture
def kernels(process, tmp_path):
    """Return a function that runs code behind the kernels above, with a cache of its own; returns what it printed."""
    number = 0

    def run(code, **variables):
        nonlocal number
        number += 1
        program = tmp_path / f"program{number}.py"
        program.write_text(KERNELS + code, encoding="utf-8")
        variables = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), **variables}
        return process(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", variables).stdout

    return run


def test_a_kernel_needs_no_compiler_and_no_nvidia_tool(kernels, tmp_path):
    """A kernel is compiled and launched where PATH is empty, and answers what programs ask of it."""
    out = kernels(
        """
kernel = run_softmax()
target = triton.runtime.driver.active.get_current_target()
print(target.backend, target.arch, target.warp_size, sorted(set(kernel.asm) & {"ttir", "llir", "cubin"}))
print(kernel.n_spills, kernel.metadata.shared >= 0, kernel.n_regs > 0, kernel.metadata.num_warps)
""",
        PATH=str(tmp_path),
    )
    assert out.split() == ["cuda", "80", "32", "['cubin',", "'llir',", "'ttir']", "0", "True", "True", "4"]


def test_host_memory_is_refused_in_upstreams_words(kernels):
    """A tensor of the CPU, a wrong type and a missing argument raise, and the device goes on."""
    out = kernels(
        """
values = torch.ones(100)
for bad in (values, "text"):
    try:
        scale[(1,)](bad, 2.0, 100, BLOCK=128)
    except Exception as error:
        print(type(error).__name__, error, sep=": ")
values = values.cuda()
scale[(1,)](values, 2.0, 100, BLOCK=128)
print(values.sum().item())
"""
    )
    at = "" if release_facts.has("triton_words_of_pointers") else " (at 0)"
    assert f"ValueError: Pointer argument{at} cannot be accessed from Triton (cpu tensor?)" in out
    assert out.count("Error") >= 2 and out.split()[-1] == "200.0"


def test_a_kernel_out_of_bounds_is_a_cuda_error_with_its_name(kernels):
    """What leaves the device's memory is an illegal address that names the kernel and the program."""
    out = kernels(
        """
values = torch.ones(4096, device="cuda")
try:
    scale[(1 << 24,)](values, 2.0, 1 << 31, BLOCK=1024)
    torch.cuda.synchronize()  # as on hardware, the launch itself has succeeded
except RuntimeError as error:
    print(error)
"""
    )
    assert re.search(r"illegal memory access.*kernel scale, block \(\d+, 0, 0\)", out), out


def test_streams_graphs_and_grids_are_obeyed(kernels):
    """A captured launch runs at each replay; a grid without programs runs nothing; a grid may be a function."""
    kernels(
        """
values = torch.ones(1000, device="cuda")
scale[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](values, 3.0, 1000, BLOCK=128)
scale[(0,)](values, 5.0, 1000, BLOCK=128)
assert values.eq(3).all()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    scale[(8,)](values, 2.0, 1000, BLOCK=128)
assert values.eq(3).all()
graph.replay()
graph.replay()
assert values.eq(12).all()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    scale[(8,)](values, 0.5, 1000, BLOCK=128)
stream.synchronize()
assert values.eq(6).all()
"""
    )


def test_the_autotuner_and_do_bench_measure(kernels):
    """A kernel with configurations runs with one of them; do_bench gives milliseconds."""
    kernels(
        """
configurations = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, num_warps=8)]
tuned = triton.autotune(configurations, key=["count"])(scale)
values = torch.zeros(5000, device="cuda")
tuned[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](values, 2.0, 5000)
assert tuned.best_config.kwargs["BLOCK"] in (64, 256)
assert 0 < triton.testing.do_bench(lambda: scale[(1,)](values, 2.0, 128, BLOCK=128), warmup=1, rep=5) < 1000
"""
    )


def run_proton(kernels, tmp_path, code: str) -> List[str]:
    """Scopes and kernels, each with its count, that Triton's profiler found in code that it watches."""
    out = kernels(
        f"""
try:
    import triton.profiler as proton
except ImportError:
    print("there is no profiler")
    sys.exit()
import json
values = torch.ones(4096, device="cuda")
scale[(4,)](values, 2.0, 4096, BLOCK=1024)
proton.start({str(tmp_path / "profile")!r}, hook="triton")
{code}
torch.cuda.synchronize()
proton.finalize()
def show(node, path):
    name = node["frame"]["name"]
    for child in node["children"]:
        show(child, [*path, name])
    if node["metrics"].get("count", 0) > 0:
        assert node["metrics"]["time (ns)"] > 0
        print("/".join([*path, name]), node["metrics"]["count"])
show(json.load(open({str(tmp_path / "profile.hatchet")!r}))[0], [])
"""
    )
    if "there is no profiler" in out:
        pytest.skip("this release of Triton has no profiler")
    return sorted(line for line in out.splitlines() if line.startswith("ROOT"))


@release_facts.wants("triton_profiles_each_kernel")
def test_proton_counts_the_kernels_of_each_scope(kernels, tmp_path):
    """Triton's profiler gives a scope the kernels that ran in it, Triton's by name and PyTorch's as operators."""
    code = """
with proton.scope("outer"):
    for _ in range(3):
        scale[(4,)](values, 2.0, 4096, BLOCK=1024)
    with proton.scope("inner"):
        total = values.sum()
        scale[(4,)](values, 1.0, 4096, BLOCK=1024)
assert total.item() == 16 * 4096
"""
    rows = run_proton(kernels, tmp_path, code)
    assert rows == ["ROOT/outer/inner/maca::sum_kernel 1", "ROOT/outer/inner/scale 1", "ROOT/outer/scale 3"]


@release_facts.wants("triton_profiles_each_kernel")
def test_proton_counts_the_kernels_of_a_graph(kernels, tmp_path):
    """They count where the graph is launched; later releases name the scope that captured them as well."""
    code = """
graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.stream(stream):
    graph.capture_begin()
    with proton.scope("captured"):
        scale[(4,)](values, 2.0, 4096, BLOCK=1024)
        with proton.scope("inner"):
            scale[(4,)](values, 2.0, 4096, BLOCK=1024)
    graph.capture_end()
with proton.scope("replayed"):
    for _ in range(3):
        graph.replay()
assert values[0].item() == 2 * 4**3
"""
    rows = [row for row in run_proton(kernels, tmp_path, code) if "/scale " in row]
    captured = "ROOT/replayed/<captured_at>/captured"
    assert rows in (["ROOT/replayed/scale 6"], [f"{captured}/inner/scale 3", f"{captured}/scale 3"])


@pytest.mark.parametrize("file", ["cubin", "llir", "json", "ttir"])
def test_a_damaged_cache_entry_is_made_anew(kernels, tmp_path, file):
    """Whatever file of an entry was cut short, the kernel is compiled again and the entry is whole afterwards."""
    kernels("run_softmax()")
    [damaged] = (tmp_path / "cache").rglob(f"softmax.{file}")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    kernels("run_softmax()")
    assert len(damaged.read_bytes()) > len(whole) // 2


def test_a_whole_cache_entry_is_used(kernels, tmp_path):
    """The second process compiles nothing."""
    kernels("run_softmax()")
    [kept] = (tmp_path / "cache").rglob("softmax.cubin")
    before = kept.stat()
    kernels("run_softmax()")
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_two_processes_compile_one_kernel(kernels, tmp_path):
    """Processes that compile the same kernel at once all get it."""
    kernels(
        """
import multiprocessing
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=run_softmax) for _ in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert [worker.exitcode for worker in workers] == [0, 0]
"""
    )


def test_a_cache_that_cannot_be_written_costs_no_kernel(kernels, tmp_path):
    """Where no folder can be made, or no file of a kernel's size, the process warns and compiles for itself."""
    (tmp_path / "file").write_text("")
    code = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    run_softmax()
print(sum("Triton's cache cannot be written" in str(one.message) for one in caught) > 0)
"""
    assert kernels(code, TRITON_CACHE_DIR=str(tmp_path / "file" / "cache")).split() == ["True"]


def test_a_kernel_shows_what_it_is_on_a_gpu(kernels):
    """`ttgir` has layouts for warps, `ptx` is assembly for capability 8.0; both are made when they are asked for.

    So is `asm`, the text of the machine code that runs.
    """
    out = kernels(
        """
kernel = run_softmax()
assert "ptx" not in kernel.asm and "asm" not in kernel.asm
import pickle
copy = pickle.loads(pickle.dumps(kernel.asm))  # Inductor's compile workers send kernels
print("blocked<{sizePerThread" in copy["ttgir"])
layouts, assembly = kernel.asm["ttgir"], kernel.asm["ptx"]
print("blocked<{sizePerThread" in layouts, ".target sm_80" in assembly, "ex2.approx" in assembly)
print("softmax.chunk:" in kernel.asm["asm"] or "softmax.entry" in kernel.asm["asm"], "asm" in kernel.asm)
"""
    )
    assert out.split() == ["True"] * 6


@release_facts.wants("triton_dumps_where_told")
@pytest.mark.parametrize("stage", ["llir", "asm"])
def test_an_overridden_stage_is_used_or_refused(kernels, tmp_path, stage):
    """LLVM text that a user has changed is what runs; changed assembly is refused."""
    variables = {"TRITON_DUMP_DIR": str(tmp_path / "dump"), "TRITON_OVERRIDE_DIR": str(tmp_path / "dump")}
    code = """
values = torch.ones(100, device="cuda")
try:
    scale[(1,)](values, 2.0, 100, BLOCK=128)
    print(values.sum().item())
except NotImplementedError as error:
    print("refused", error)
"""
    dump = {"TRITON_KERNEL_DUMP": "1", "TRITON_ALWAYS_COMPILE": "1", **variables}
    assert kernels(code, **dump).split()[-1] == "200.0"
    [path] = (tmp_path / "dump").rglob(f"scale.{stage}")
    text = path.read_text()
    path.write_text(text.replace("fmul ", "fadd ") if stage == "llir" else text + "# changed\n")
    for other in path.parent.iterdir():
        if other != path:
            other.unlink()
    out = kernels(code, **{"TRITON_KERNEL_OVERRIDE": "1", "TRITON_ALWAYS_COMPILE": "1", **variables})
    assert "300.0" in out if stage == "llir" else "refused" in out


@release_facts.wants("triton_arguments_of_16_bits")
def test_an_argument_of_half_is_rounded_once(kernels):
    """Zeros of both signs, subnormal numbers, the largest, infinity and NaN arrive as torch rounds them."""
    out = kernels(
        """
def of_half(function):
    function.__annotations__["value"] = tl.float16
    return function

@triton.jit
@of_half
def put(target, value):
    tl.store(target, value)

for number in (0.0, -0.0, 3e-8, 6e-8, -1e-5, 0.1, 42.0, 2049.0, 65504.0, float("inf"), float("nan")):
    target = torch.full((1,), 7.0, dtype=torch.float16, device="cuda")
    put[(1,)](target, number)
    expected = torch.tensor([number], dtype=torch.float16)
    same = torch.equal(target.cpu().view(torch.int16), expected.view(torch.int16))
    print(same or (number != number and bool(target.isnan())))
"""
    )
    assert out.split() == ["True"] * 11


@release_facts.wants("triton_unloads_kernels")
def test_a_kernel_that_nobody_holds_is_unloaded_when_it_is_done(kernels):
    """Its code goes after the launches that wait for their turn, and a capture that is under way goes on."""
    out = kernels(
        """
import gc

values = torch.ones(100, device="cuda")
utilities = type(triton.runtime.driver.active.utils)
unload, gone = utilities.unload_module, []
utilities.unload_module = lambda self, module: (gone.append(module), unload(self, module))

def let_go():
    scale.device_caches.clear()
    gc.collect()

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    torch.cuda._sleep(100_000_000)
    for _ in range(3):
        scale[(1,)](values, 2.0, 100, BLOCK=128)
        let_go()
torch.cuda.synchronize()
print(values.sum().item(), len(gone))
scale[(1,)](values, 0.5, 100, BLOCK=128)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    values += 1
    let_go()
graph.replay()
print(values.sum().item(), len(gone))
"""
    )
    assert out.split() == ["800.0", "3", "500.0", "4"]
