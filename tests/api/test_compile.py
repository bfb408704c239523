"""torch.compile's default path for CUDA, unmodified: Triton code for the device, with the values of eager."""

import shutil

import pytest
import release_facts

PROLOGUE = """
    import torch
    import torch._dynamo, torch._inductor.utils, torch.utils._triton
    from torch.nn import functional as F

    torch.manual_seed(0)

    def check(function, *arguments, tolerance=1e-4, **options):
        torch._dynamo.reset()
        wanted = function(*arguments)
        compiled = torch.compile(function, fullgraph=True, **options)
        for _ in range(3):
            got = compiled(*arguments)
        torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)

    x = torch.randn(67, 130, device="cuda")
    w = torch.randn(130, 40, device="cuda")
"""


@pytest.fixture
def compiled(process, tmp_path):
    """Return a function that runs code behind the prologue, with caches of its own."""
    release_facts.need("triton_of_ours")
    folder = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}

    def run(code, threads="1", **variables):
        return process(PROLOGUE + code, {**folder, **variables, "TORCHINDUCTOR_COMPILE_THREADS": threads}).stdout

    return run


def test_the_default_path_is_triton_for_the_device(compiled):
    """Pointwise code, reductions, gathers and matrix products give eager's values, and the code is Triton's."""
    compiled(
        """
    assert torch.utils._triton.has_triton()
    from torch._inductor.utils import run_and_get_code
    _, (code,) = run_and_get_code(torch.compile(lambda a: (a.sin() * 2).sum(1)), x)
    assert "@triton.jit" in code and "async_compile.cpp" not in code
    check(lambda a: (torch.softmax(a, 1), a.amax(0), a.argmin(1), a.var(0)), x)
    check(lambda a, i: (a[i], torch.where(a > 0, a, -a).half(), F.embedding(i, a)), x, torch.tensor([3, 0, 66]).cuda())
    check(lambda a: F.gelu(a @ w) + 1, x)
    check(lambda a: (a * 2).sum(-1) + a.shape[0], x, dynamic=True)
"""
    )


def test_training_code_has_eagers_gradients(compiled):
    """A compiled module's losses and gradients are those of eager, and its optimizer may be compiled too."""
    compiled(
        """
    import copy
    model = torch.nn.Sequential(torch.nn.Linear(130, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 5)).cuda()
    other = copy.deepcopy(model)
    labels = torch.randint(0, 5, (67,), device="cuda")
    step = torch.compile(lambda m: F.cross_entropy(m(x), labels))
    one, two = torch.optim.AdamW(model.parameters()), torch.optim.AdamW(other.parameters())
    update = torch.compile(one.step)
    for _ in range(3):
        for optimizer in (one, two):
            optimizer.zero_grad()
        loss, wanted = step(model), F.cross_entropy(other(x), labels)
        loss.backward()
        wanted.backward()
        torch.testing.assert_close(loss, wanted, atol=1e-4, rtol=1e-4)
        for a, b in zip(model.parameters(), other.parameters()):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-3)
        update()
        two.step()
"""
    )


@release_facts.wants("flex_attention")
def test_flex_attention_and_graphs(compiled):
    """Attention from a template, and compiled regions that are captured as graphs: kernels, and a library's product."""
    compiled(
        """
    from torch.nn.attention.flex_attention import flex_attention
    q, k, v = (torch.randn(1, 2, 128, 64, device="cuda") for _ in range(3))
    causal = lambda score, batch, head, i, j: torch.where(i >= j, score, -float("inf"))
    check(lambda q, k, v: flex_attention(q, k, v, score_mod=causal), q, k, v, tolerance=1e-3)
    check(lambda a: a.cos() * 2 + 1, x, mode="reduce-overhead")
    check(lambda a: F.gelu(a @ w) + 1, x, mode="reduce-overhead")
"""
    )


def test_an_output_that_a_graph_has_overwritten_cannot_be_read(compiled):
    """Every operator raises upstream's words for it, and what the tensor would have been stays unread."""
    compiled(
        """
    function = torch.compile(lambda a: a * a * a, mode="reduce-overhead")
    a = torch.rand(4, device="cuda")
    out = [function(a), function(a)][0]
    for use in (
        lambda: out + out, lambda: out.add_(1), lambda: out.sum(), lambda: out.cpu(), lambda: out @ out,
        lambda: torch.cat([a, out]), lambda: torch.sort(out), lambda: out[0].item(), lambda: out.half() + 1,
        lambda: a.copy_(out), lambda: torch.add(a, a, out=out), lambda: torch._foreach_add([out], 1),
        lambda: out[out > 0], lambda: function(out),
    ):
        try:
            use()
        except RuntimeError as error:
            assert "overwritten by a subsequent run" in str(error), error
        else:
            raise AssertionError("an output without memory was read")
    """
    )


def test_eager_results_need_no_code_of_their_own(compiled):
    """A guard compares dispatch keys: they are CUDA's alone, whichever function has made the tensor."""
    compiled(
        """
    made = torch.empty(4, device="cuda")
    for result in (made + 1, made.sum(0, keepdim=True), torch.sort(made)[0], made.clone(), made[1:], made @ x[:4, :4]):
        keys, wanted = (torch._C._dispatch_keys(each) for each in (result, made))
        # Identities are what torch 2.6 compares; up to 2.4 the sets have words alone.
        said, meant = (getattr(each, "raw_repr", each.__repr__)() for each in (keys, wanted))
        assert said == meant, keys
    """
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's C++ code wants a C++ compiler")
def test_the_code_may_be_cpp_instead(compiled):
    """MACA_INDUCTOR=cpp: C++ code with eager's values, in its stream's order, and in no graph."""
    compiled(
        """
    from torch._inductor.utils import run_and_get_code
    function = lambda a, i: (torch.softmax(a, 1)[i], a.var(0), F.gelu(a @ w) + 1, a.sort(1)[0].cumsum(1))
    i = torch.tensor([3, 0, 66], device="cuda")
    got, (code,) = run_and_get_code(torch.compile(function), x, i)
    assert "@triton.jit" not in code and "cpp_pybinding" in code
    torch.testing.assert_close(got, function(x, i), atol=1e-4, rtol=1e-4)

    plus = torch.compile(lambda a: a + 1, mode="reduce-overhead")
    assert torch.equal(plus(x), x + 1)
    late = torch.zeros(3, device="cuda")
    torch.cuda._sleep(200_000_000)
    late.fill_(2)
    assert torch.equal(torch.compile(lambda a: a * 3)(late), torch.full((3,), 6.0, device="cuda"))
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            plus(x)
    except RuntimeError as error:
        assert "captur" in str(error), error
    else:
        raise AssertionError("a graph was captured without the code")
""",
        MACA_INDUCTOR="cpp",
    )


@pytest.mark.skipif(release_facts.has("triton_of_ours"), reason="there is a Triton beside this release")
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's C++ code wants a C++ compiler")
def test_without_triton_there_is_cpp_and_a_hint(process, tmp_path):
    code = """
    import torch
    x = torch.randn(67, 130, device="cuda")
    try:
        got = torch.compile(lambda a: torch.softmax(a, 1).cumsum(1))(x)
    except Exception as error:
        print("Triton" in str(error) and "MACA_INDUCTOR=cpp" in str(error))
    else:
        torch.testing.assert_close(got, torch.softmax(x, 1).cumsum(1))
        print("compiled")
    """
    for choice, said in (("", "True"), ("cpp", "compiled")):
        variables = {"MACA_INDUCTOR": choice, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
        assert process(code, variables).stdout.split() == [said]


def test_a_generator_that_is_not_there_is_refused_by_name(compiled):
    compiled(
        """
    try:
        torch.compile(lambda a: a + 1)(x)
    except Exception as error:
        assert "MACA_INDUCTOR=fortran names no generator of code: say triton" in str(error), error
    else:
        raise AssertionError("it compiled")
""",
        MACA_INDUCTOR="fortran",
    )


def test_a_program_that_compiles_ends(compiled):
    """With worker processes, as by default, nothing keeps the interpreter from its end."""
    assert compiled("    check(lambda a: a + 1, x)\n    print('done')", threads="2").strip() == "done"


@release_facts.wants("triton_of_ours")
def test_asking_for_triton_leaves_the_device_alone(script):
    """Asking whether there is Triton does not touch the device."""
    code = "import torch, torch.utils._triton as t; print(t.has_triton_package(), torch.cuda.is_initialized())"
    assert script(code) == "True False"


@release_facts.wants("generated_sums_take_whole_rows")
def test_sums_over_rows_take_whole_rows(compiled):
    """A batch norm over a channels-last image reads rows of 256 channels as a whole; other sums keep their tiles."""
    compiled(
        """
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    blocks, run = [], CachingAutotuner.run
    def watch(kernel, *arguments, **options):
        launched = run(kernel, *arguments, **options)
        if "_red_" in kernel.fn.__name__:
            blocks.extend(launcher.config.kwargs["XBLOCK"] for launcher in kernel.launchers)
        return launched
    CachingAutotuner.run = watch

    def norm(image, factor):
        mean, variance = image.mean((0, 2, 3)), image.var((0, 2, 3))
        return mean, variance, (image * factor).sum((0, 2, 3))

    def largest(channels):
        blocks.clear()
        image = torch.randn(8, channels, 40, 40, device="cuda").to(memory_format=torch.channels_last)
        check(norm, image, image.new_tensor(3.0), tolerance=2e-2)
        return max(blocks)

    assert largest(256) == 256, blocks
    # A row of 192 is three times the usual 64 columns.
    assert largest(192) == 64, blocks
"""
    )
