"""Every answer that the compatibility promise gives for torch.cuda, in the order of its list."""

import ctypes
import re
import sys
from pathlib import Path

import pytest
import release_facts
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_install_check_prints_a_cuda_tensor(script):
    assert script("import torch; print(torch.ones(2).cuda())") == "tensor([1., 1.], device='cuda:0')"


# Devices


def test_is_available_and_initialised_by_use(script):
    code = """
        import torch
        print(torch.cuda.is_available(), torch.cuda.is_initialized())
        torch.zeros(1).cuda()
        print(torch.cuda.is_initialized())
    """
    assert script(code).split() == ["True", "False", "True"]


def test_init_initialises(script):
    assert script("import torch; torch.cuda.init(); print(torch.cuda.is_initialized())") == "True"


def test_one_device_by_default(script):
    assert script("import torch; print(torch.cuda.device_count())") == "1"


@pytest.mark.parametrize(
    ("env", "count"),
    [
        ({"MACA_DEVICE_COUNT": "3"}, 3),
        ({"MACA_DEVICE_COUNT": "3", "CUDA_VISIBLE_DEVICES": "2,0"}, 2),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
    ],
)
def test_as_many_devices_as_asked_for(script, env, count):
    code = "import torch; print(torch.cuda.device_count(), torch.cuda.is_available())"
    assert script(code, env) == f"{count} {count > 0}"


def test_device_count_agrees_with_nvml(script):
    code = """
        import torch
        print(torch.cuda.device_count(), torch.cuda._device_count_nvml())
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}) == "2 2"


def test_device_switching(script):
    code = """
        import torch
        assert torch.cuda.current_device() == 0
        torch.cuda.set_device(1)
        assert torch.cuda.current_device() == 1
        with torch.cuda.device(0):
            assert torch.cuda.current_device() == 0
            assert torch.ones(1, device="cuda").device == torch.device("cuda:0")
        assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
        assert torch.ones(1).cuda().device == torch.device("cuda:1")
        x = torch.arange(5., device="cuda:1")
        assert torch.equal(x.to("cuda:0").cpu(), x.cpu())
        assert torch.cuda.can_device_access_peer(0, 1)
        print("ok")
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2"}) == "ok"


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(RuntimeError, match="^CUDA error: invalid device ordinal"):
        torch.ones(1).to(f"cuda:{torch.cuda.device_count()}")
    assert torch.ones(1).cuda().item() == 1


def test_arch_list_names_one_architecture():
    assert torch.cuda.get_arch_list() == ["sm_80"]


def test_gencode_flags_name_one_architecture():
    assert torch.cuda.get_gencode_flags() == "-gencode compute=compute_80,code=sm_80"


def test_capability_is_eight_zero():
    assert torch.cuda.get_device_capability() == (8, 0)


def test_the_device_has_its_own_name():
    name = torch.cuda.get_device_name()
    assert name
    assert not re.search("nvidia|geforce|tesla|quadro|rtx|a100", name, re.IGNORECASE)


def test_properties_describe_the_device_in_cuda_terms():
    properties = torch.cuda.get_device_properties(0)
    assert properties.name == torch.cuda.get_device_name()
    assert (properties.major, properties.minor) == (8, 0)
    assert properties.multi_processor_count > 0
    assert properties.total_memory == torch.cuda.mem_get_info()[1]
    assert not properties.is_integrated
    assert getattr(properties, "warp_size", 32) in (32, 64)  # has no such attribute up to torch 2.4
    assert properties.max_threads_per_multi_processor >= 1024


def test_current_blas_handle_is_one_per_stream_and_device():
    assert torch.cuda.current_blas_handle() != 0
    assert torch.cuda.current_blas_handle() == torch.cuda.current_blas_handle()


def test_ipc_collect_returns():
    torch.cuda.ipc_collect()


def test_cudart_answers():
    runtime = torch.cuda.cudart()
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"


# Streams and events


def test_streams():
    default = torch.cuda.default_stream()
    assert torch.cuda.current_stream() == default
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        x = torch.ones(1000, device="cuda") * 2
    assert torch.cuda.current_stream() == default
    default.wait_stream(side)
    assert x.sum().item() == 2000
    with torch.cuda.StreamContext(side):
        assert torch.cuda.current_stream() == side
    torch.cuda.set_stream(side)
    assert torch.cuda.current_stream() == side
    torch.cuda.set_stream(default)
    side.synchronize()
    assert side.query()
    assert torch.cuda.Stream(priority=-1).priority == -1
    x.record_stream(side)
    external = torch.cuda.ExternalStream(side.cuda_stream)
    assert external.cuda_stream == side.cuda_stream


def test_events_measure_time_and_order_streams():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    x = torch.randn(256, 256, device="cuda")
    (x @ x).sum()
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) > 0
    side = torch.cuda.Stream()
    side.wait_event(end)
    assert side.record_event().query()


def test_synchronize():
    torch.cuda.synchronize()
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(torch.device("cuda"))


def test_sync_debug_mode_warns_and_raises():
    assert torch.cuda.get_sync_debug_mode() == 0
    x = torch.ones(1, device="cuda")
    try:
        torch.cuda.set_sync_debug_mode("error")
        assert torch.cuda.get_sync_debug_mode() == 2
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            x.item()
        torch.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            x.item()
    finally:
        torch.cuda.set_sync_debug_mode("default")


# Random numbers


def test_manual_seed_repeats():
    torch.cuda.manual_seed(3)
    first = torch.rand(8, device="cuda")
    second = torch.rand(8, device="cuda")
    torch.cuda.manual_seed(3)
    assert torch.equal(first, torch.rand(8, device="cuda"))
    assert not torch.equal(first, second)
    assert torch.cuda.initial_seed() == 3


def test_rng_state_restores():
    state = torch.cuda.get_rng_state()
    assert state.device.type == "cpu"
    first = torch.randn(8, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.randn(8, device="cuda"))


def test_seeds_and_states_of_all_devices(script):
    code = """
        import torch
        torch.cuda.manual_seed_all(5)
        a = [torch.rand(4, device=f"cuda:{i}").cpu() for i in range(2)]
        assert torch.equal(a[0], a[1])
        states = torch.cuda.get_rng_state_all()
        b = [torch.rand(4, device=f"cuda:{i}") for i in range(2)]
        torch.cuda.set_rng_state_all(states)
        assert all(torch.equal(x, torch.rand(4, device=x.device)) for x in b)
        torch.cuda.seed_all()
        assert torch.cuda.initial_seed() != 5
        torch.cuda.seed()
        print(len(states))
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2"}) == "2"


def test_a_seed_before_the_first_use_counts(script):
    code = """
        import torch
        torch.cuda.manual_seed(9)
        a = torch.rand(4, device="cuda")
        torch.cuda.manual_seed(9)
        print(torch.equal(a, torch.rand(4, device="cuda")))
    """
    assert script(code) == "True"


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(64, device="cuda", generator=g),
        lambda g: torch.randn(64, device="cuda", generator=g),
        lambda g: torch.randint(1000, (64,), device="cuda", generator=g),
        lambda g: torch.randperm(64, device="cuda", generator=g),
        lambda g: torch.bernoulli(torch.full((64,), 0.5, device="cuda"), generator=g),
        lambda g: torch.multinomial(torch.ones(64, device="cuda"), 32, generator=g),
        lambda g: torch.normal(torch.zeros(64, device="cuda"), 1.0, generator=g),
        lambda g: torch.poisson(torch.full((64,), 4.0, device="cuda"), generator=g),
        lambda g: torch.empty(64, device="cuda").uniform_(generator=g),
        lambda g: torch.empty(64, device="cuda").normal_(generator=g),
        lambda g: torch.empty(64, device="cuda").exponential_(generator=g),
        lambda g: torch.empty(64, device="cuda").cauchy_(generator=g),
        lambda g: torch.empty(64, device="cuda").log_normal_(generator=g),
        lambda g: torch.empty(64, device="cuda").geometric_(0.3, generator=g),
        lambda g: torch.empty(64, device="cuda").random_(generator=g),
        lambda g: torch.empty(64, device="cuda").bernoulli_(0.5, generator=g),
    ],
)
def test_a_generator_repeats_and_moves_on(draw):
    generator = torch.Generator("cuda").manual_seed(1)
    first, second = draw(generator), draw(generator)
    assert not torch.equal(first, second)
    generator.manual_seed(1)
    assert torch.equal(first, draw(generator))


# Communication


def test_comm_between_devices(script):
    code = """
        import torch
        from torch.cuda import comm
        x = torch.arange(8.)
        copies = comm.broadcast(x.cuda(), [0, 1])
        assert [c.device.index for c in copies] == [0, 1] and all(torch.equal(c.cpu(), x) for c in copies)
        (a, b), (c, d) = comm.broadcast_coalesced([x.cuda(), x.cuda() * 2], [0, 1])
        assert torch.equal(d.cpu(), x * 2) and d.device.index == 1
        assert torch.equal(comm.reduce_add(copies, 0).cpu(), x * 2)
        parts = comm.scatter(x.cuda(), [0, 1])
        assert [p.numel() for p in parts] == [4, 4]
        assert torch.equal(comm.gather(parts, dim=0, destination=0).cpu(), x)
        print("ok")
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2"}) == "ok"


# Memory


def test_memory_counts_follow_allocations(script):
    code = """
        import torch
        assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0
        x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_allocated() == 1 << 20
        assert torch.cuda.memory_reserved() >= 1 << 20
        y = x + 1
        assert torch.cuda.memory_allocated() == 2 << 20
        del y
        assert torch.cuda.memory_allocated() == 1 << 20
        # An operator may take a few small temporaries.
        assert 2 << 20 <= torch.cuda.max_memory_allocated() < (2 << 20) + (1 << 16)
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == 1 << 20
        del x
        torch.cuda.empty_cache()
        assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0
        assert torch.cuda.max_memory_reserved() > 0
        assert torch.cuda.memory_stats()["allocation.all.allocated"] >= 2
        print("ok")
    """
    assert script(code) == "ok"


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_old_names_of_memory_counts():
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.reset_max_memory_allocated()
    torch.cuda.reset_max_memory_cached()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated() >= x.nbytes
    assert torch.cuda.memory_cached() == torch.cuda.memory_reserved()
    assert torch.cuda.max_memory_cached() == torch.cuda.max_memory_reserved()


def test_memory_reports():
    x = torch.ones(1 << 20, device="cuda")
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    assert "Allocated memory" in torch.cuda.memory_summary(abbreviated=True)
    segments = torch.cuda.memory_snapshot()
    assert any(s["address"] <= x.data_ptr() < s["address"] + s["total_size"] for s in segments)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total


def test_list_gpu_processes_shows_this_process():
    pytest.importorskip("pynvml", reason="upstream asks for nvidia-ml-py")
    x = torch.ones(1 << 20, device="cuda")
    report = torch.cuda.list_gpu_processes()
    assert report.startswith("GPU:0")
    assert re.search(r"process +\d+ uses +\d+\.\d+ MB GPU memory", report), report
    del x


def test_sensors_have_simulated_readings(script, tmp_path):
    pytest.importorskip("pynvml", reason="upstream asks for nvidia-ml-py")
    code = """
        import torch
        cuda = torch.cuda
        assert cuda.clock_rate() == 300
        x = torch.ones(1 << 20, device="cuda")
        assert 35 <= cuda.temperature() <= 75 and 60_000 <= cuda.power_draw() <= 350_000 and cuda.clock_rate() == 1600
        assert 0 <= cuda.utilization() <= 100 and 0 <= cuda.memory_usage() <= 100
        print("read")
    """
    assert script(code, {"MACA_STATE_DIR": str(tmp_path)}) == "read"  # idle: no other process's device


def test_per_process_memory_fraction_limits(script):
    code = """
        import torch
        torch.cuda.set_per_process_memory_fraction(0.001)
        total = torch.cuda.get_device_properties(0).total_memory
        try:
            torch.empty(total // 100, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            print(str(error).split(".")[0])
    """
    assert script(code) == "CUDA out of memory"


def test_too_much_is_out_of_memory_and_leaves_the_device_usable():
    with pytest.raises(torch.cuda.OutOfMemoryError, match="^CUDA out of memory. Tried to allocate"):
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert torch.ones(2, device="cuda").sum().item() == 2


def test_raw_allocation():
    before = torch.cuda.memory_allocated()
    pointer = torch.cuda.caching_allocator_alloc(4096)
    assert torch.cuda.memory_allocated() == before + 4096
    torch.cuda.caching_allocator_delete(pointer)
    assert torch.cuda.memory_allocated() == before


def test_allocator_backend(script):
    assert torch.cuda.get_allocator_backend() == "native"
    code = "import torch; torch.ones(3).cuda().sum().item(); print(torch.cuda.get_allocator_backend())"
    assert script(code, {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}) == "cudaMallocAsync"


def test_change_current_allocator_calls_the_given_one(script, tmp_path):
    import os
    import shutil
    import subprocess

    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("the user's allocator has to be compiled")
    source = tmp_path / "allocator.c"
    source.write_text(
        "#include <stdlib.h>\n#include <stddef.h>\nstatic int calls;\n"
        "void* my_malloc(ptrdiff_t size, int device, void* stream) { ++calls; return malloc(size); }\n"
        "void my_free(void* p, ptrdiff_t size, int device, void* stream) { free(p); }\n"
        "int my_calls(void) { return calls; }\n"
    )
    library = tmp_path / "liballocator.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", os.fspath(library), os.fspath(source)], check=True)
    code = f"""
        import ctypes, torch
        torch.cuda.memory.change_current_allocator(
            torch.cuda.memory.CUDAPluggableAllocator("{library}", "my_malloc", "my_free"))
        x = torch.ones(3).cuda() + 1
        print(x.tolist(), ctypes.CDLL("{library}").my_calls() > 0)
    """
    assert script(code) == "[2.0, 2.0, 2.0] True"


# The rest


def test_nvtx_ranges():
    torch.cuda.nvtx.mark("mark")
    depths = [torch.cuda.nvtx.range_push("outer"), torch.cuda.nvtx.range_push("inner")]
    depths += [torch.cuda.nvtx.range_pop(), torch.cuda.nvtx.range_pop()]
    assert depths == [0, 1, 1, 0] and torch.cuda.nvtx.range_pop() == -1
    with torch.cuda.nvtx.range("block"):
        assert torch.cuda.nvtx.range_push("within") == 1
        torch.cuda.nvtx.range_pop()
    started = [torch.cuda.nvtx.range_start("one"), torch.cuda.nvtx.range_start("two")]
    assert len(set(started)) == 2 and min(started) > 0
    for number in started:
        torch.cuda.nvtx.range_end(number)


@release_facts.wants("nvtx_without_library")
def test_another_nvtx_tool_of_the_users_is_left_alone(script):
    code = "import os, torch; print(torch.cuda.nvtx.range_push('a'), os.environ['NVTX_INJECTION64_PATH'])"
    assert script(code, {"NVTX_INJECTION64_PATH": "/nowhere/libtool.so"}) == "-2 /nowhere/libtool.so"


def test_jiterator_computes_with_broadcasting_promotion_and_further_arguments():
    source = "template <typename T> T scaled(T x, T y, T factor) { return factor * x + y; }"
    function = torch.cuda.jiterator._create_jit_fn(source, factor=1.0)
    x = torch.arange(6, device="cuda", dtype=torch.float16).view(2, 3).t()
    y = torch.tensor([0.5, 1.5], device="cuda", dtype=torch.float32)
    result = function(x, y, factor=3)
    assert result.dtype == torch.float32 and torch.equal(result, 3 * x + y)
    assert function(x, x[0, 0]).stride() == x.stride(), "the layout is the argument's"
    with pytest.raises(KeyError, match="not declared"):
        function(x, y, other=1)
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        function(x, y.cpu())


def test_jiterator_gives_several_results():
    source = "template <typename T> void both(T x, T& sine, T& next) { sine = ::sin(x); next = x + T(1); }"
    function = torch.cuda.jiterator._create_multi_output_jit_fn(source, num_outputs=2)
    x = torch.linspace(0, 1, 1000, device="cuda")
    sine, following = function(x)
    assert torch.allclose(sine, x.sin()) and torch.equal(following, x + 1)


@release_facts.wants("jagged_layout")
def test_jiterator_refuses_sparse_and_nested_tensors():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T same(T x) { return x; }")
    ones = torch.ones(2, 2, device="cuda")
    nested = torch.nested.nested_tensor([ones, ones[:1]], layout=torch.jagged)
    for given, layout in ((ones.to_sparse(), "sparse_coo"), (nested, "jagged")):
        with pytest.raises(RuntimeError, match=f"unsupported tensor layout: .*{layout}"):
            function(given)


def test_modes_do_not_see_what_jiterator_does_and_fake_tensors_are_refused():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")
    x = torch.ones(3, device="cuda", dtype=torch.bfloat16)
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), named=None):
            seen.append(operator)
            return operator(*arguments, **(named or {}))

    with Mode():
        doubled = function(x)
    assert seen == [] and doubled.tolist() == [2.0] * 3
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
    with pytest.raises(RuntimeError, match="it takes no fake tensors"):
        function(fake)


def test_jiterator_passes_on_what_the_compiler_says():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T wrong(T x) { return unknown + x; }")
    with pytest.raises(RuntimeError, match="unknown.*was not declared"):
        function(torch.ones(2, device="cuda"))


def test_the_profiler_has_the_device_times_of_operators():
    activities = torch.profiler.ProfilerActivity
    assert activities.CUDA in torch.profiler.supported_activities()
    x = torch.ones(200, 200, device="cuda")
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profile:
        x @ x
    (product,) = (event for event in profile.key_averages() if event.key == "aten::mm")
    # Up to torch 2.2 the attribute is named after CUDA.
    assert (product.device_time_total if hasattr(product, "device_time_total") else product.cuda_time_total) > 0


def test_versions():
    upstream, _, local = torch.__version__.partition("+")
    assert re.fullmatch(r"\d+\.\d+\.\d+", upstream)
    assert local == "maca" + torch.version.maca
    assert torch.version.hip is None
    table = tomllib.loads((Path(__file__).parents[2] / "build_scripts" / "releases.toml").read_text(encoding="utf-8"))
    assert torch.version.cuda == {row["torch"]: row["cuda"] for row in table["release"]}[upstream]
    assert torch._C._cuda_getCompiledVersion() // 1000 == int(torch.version.cuda.split(".")[0])


def test_collect_env_names_the_device():
    from torch.utils import collect_env

    assert f"GPU 0: {torch.cuda.get_device_name()}" in collect_env.get_pretty_env_info()


def test_device_code_that_is_cut_out_fails_with_its_name_and_stays_failed(process):
    code = """
        import ctypes, torch

        class Dim3(ctypes.Structure):
            _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]

        x = torch.ones(2).cuda()
        # What a library does whose device code is not there: a kernel is registered by name, and launched.
        cudart = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
        register = getattr(cudart, "__cudaRegisterFatBinary")
        register.restype = ctypes.c_void_p
        cudart.cudaGetErrorString.restype = ctypes.c_char_p
        host, name, none = ctypes.c_void_p(0x1000), b"_Z10cut_kernelPfi", ctypes.c_void_p()
        module = ctypes.c_void_p(register(none))
        getattr(cudart, "__cudaRegisterFunction")(module, host, none, name, -1, none, none, none, none, none)
        error = cudart.cudaLaunchKernel(host, Dim3(1, 1, 1), Dim3(1, 1, 1), none, ctypes.c_size_t(0), none)
        print("first CUDA error:" if error else "NOT NOTICED", cudart.cudaGetErrorString(error).decode())
        for later in (lambda: torch.ones(2).cuda(), lambda: torch.cuda.synchronize(), lambda: x.cpu()):
            try:
                later()
                print("WENT ON")
            except RuntimeError as error:
                print("later", error)
    """
    done = process(code, check=False)
    printed = done.stdout
    assert "NOT NOTICED" not in printed and "WENT ON" not in printed, printed
    expected = r"first CUDA error: no kernel image is available.*cut_kernel\(float\*, int\)"
    assert re.search(expected, printed), printed
    assert printed.count("later CUDA error") == 3, printed


def test_shims_that_do_nothing_do_not_report_success():
    """cuSOLVER, cuSPARSE and the like are reached by no operator; who calls them learns that nothing happened."""
    major = int(torch.version.cuda.split(".")[0])
    library = ctypes.CDLL(f"libcublas.so.{major}")
    assert library.cublasSgemm_v2(None, 0, 0, 1, 1, 1, None, None, 1, None, 1, None, None, 1) != 0


def test_nothing_of_nvidia_is_loaded():
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
    assert any(p.endswith("/libmacatorch.so") for p in paths)
    assert any("/mxmaca/lib/" in p and "libcudart.so" in p for p in paths)
    assert not [p for p in paths if "/nvidia/" in p]
