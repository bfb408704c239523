"""A package of CUDA operators, built by its own setup.py, computes what torch computes, forward and backward."""

import subprocess
import sys
from pathlib import Path

import pytest
import release_facts
import torch
from torch.autograd import gradcheck

FLOATING = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def random(*shape, dtype=torch.float64, grad=False):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to("cuda", dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("size", [1, 1000])
def test_an_elementwise_operator_is_right_in_every_dtype(proofs, dtype, size):
    x = random(size, dtype=dtype, grad=True)
    y = proofs.ops.swish(x)
    expected = torch.nn.functional.silu(x.detach().double())
    torch.testing.assert_close(y.double(), expected, atol=1e-6, rtol=torch.finfo(dtype).eps)
    (grad,) = torch.autograd.grad(y.sum(), x)
    wide = x.detach().double().requires_grad_()
    (expected_grad,) = torch.autograd.grad(torch.nn.functional.silu(wide).sum(), wide)
    torch.testing.assert_close(grad.double(), expected_grad, atol=1e-6, rtol=2 * torch.finfo(dtype).eps)


def test_gradients_pass_gradcheck(proofs):
    assert gradcheck(proofs.ops.swish, (random(7, grad=True),))
    assert gradcheck(proofs.Lltm.apply, (random(2, 3, 5, grad=True), random(2, 5, grad=True)))
    assert gradcheck(proofs.RowSum.apply, (random(3, 40, grad=True),))
    assert gradcheck(proofs.Softmax.apply, (random(2, 9, grad=True),))
    assert gradcheck(proofs.TiledMatmul.apply, (random(3, 10, grad=True), random(10, 4, grad=True)))


@release_facts.wants("opcheck")
def test_the_operator_passes_opcheck(proofs):
    """Schema, autograd registration, fake tensors and tracing."""
    for sample in (random(8), random(3, 4, dtype=torch.float32, grad=True)):
        torch.library.opcheck(proofs.ops.swish.default, (sample,))


def test_torch_compile_takes_the_operator(proofs):
    compiled = torch.compile(lambda x: proofs.ops.swish(x) * 2, backend="eager", fullgraph=True)
    x = random(16)
    torch.testing.assert_close(compiled(x), torch.nn.functional.silu(x) * 2)


def test_its_kernels_are_captured_in_a_graph(proofs):
    x = random(300, dtype=torch.float32, grad=True)

    def both():
        y = proofs.ops.swish(x)
        return y, *torch.autograd.grad((y * y).sum(), x), proofs.ops.row_sum(x.detach().view(3, 100))

    both()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = both()
    for _ in range(2):
        with torch.no_grad():
            x.mul_(-1.5)
        graph.replay()
        assert all(torch.equal(result, expected) for result, expected in zip(results, both()))


def test_a_fused_recurrent_cell_trains_like_its_operators(proofs):
    def by_operators(gates, cell):
        i, o, z = gates.unbind(1)
        cell = cell + torch.sigmoid(i) * torch.nn.functional.elu(z)
        return torch.tanh(cell) * torch.sigmoid(o), cell

    inputs = random(5, 3, 130, dtype=torch.float32, grad=True), random(5, 130, dtype=torch.float32, grad=True)
    results = []
    for cell in (proofs.Lltm.apply, by_operators):
        h, c = cell(*inputs)
        results.append((h, c, *torch.autograd.grad((h * c.cos()).sum(), inputs)))
    for ours, expected in zip(*results):
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_a_reduction_by_warp_shuffles_is_right(proofs, dtype):
    x = random(3, 1000, dtype=dtype)
    wide = x.double().sum(1)
    torch.testing.assert_close(proofs.ops.row_sum(x).double(), wide, atol=1e-4, rtol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_a_softmax_in_dynamic_shared_memory_is_right(proofs, dtype):
    x = random(4, 333, dtype=dtype) * 30
    torch.testing.assert_close(proofs.ops.softmax(x), torch.softmax(x.double(), 1).to(dtype))


@pytest.mark.parametrize("shape", [(8, 8, 8), (17, 5, 23), (1, 70, 1)])
def test_a_tiled_product_equals_torch_mm(proofs, shape):
    rows, inner, columns = shape
    for dtype in (torch.float64, torch.float32, torch.float16):
        a, b = random(rows, inner, dtype=dtype), random(inner, columns, dtype=dtype)
        torch.testing.assert_close(proofs.ops.tiled_mm(a, b), torch.mm(a.double(), b.double()).to(dtype))


def test_a_direct_call_of_cublas_equals_torch_mm(proofs):
    a, b = random(9, 20, dtype=torch.float32), random(20, 6, dtype=torch.float32)
    torch.testing.assert_close(proofs.ops.blas_mm(a, b), torch.mm(a, b))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64], ids=str)
def test_a_block_radix_sort_is_stable(proofs, dtype):
    keys = (random(3, 200) * 20).to(dtype)
    if dtype.is_floating_point:
        keys = keys.floor()  # ties
    expected = torch.sort(keys, dim=1, stable=True)
    values, places = proofs.ops.block_sort(keys)
    assert torch.equal(values, expected.values) and torch.equal(places, expected.indices)


def test_dropout_repeats_with_the_seed_and_moves_with_the_generator(proofs):
    x = torch.ones(10_000, device="cuda", requires_grad=True)

    def draw():
        return proofs.Dropout.apply(x, 0.3)

    torch.cuda.manual_seed(5)
    first, second = draw(), draw()
    torch.cuda.manual_seed(5)
    again = draw()
    assert torch.equal(first, again) and not torch.equal(first, second)
    assert abs((first == 0).float().mean().item() - 0.3) < 0.02
    assert torch.equal(first.unique(), torch.tensor([0.0, 1 / 0.7], device="cuda"))
    (grad,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(grad, first.detach())


def test_the_stream_of_random_numbers_is_philox(proofs):
    """The first four numbers of seed 0, by the definition of Philox4x32-10."""
    torch.cuda.manual_seed(0)

    def philox(counter, key):
        for _ in range(10):
            low, high = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
            counter = [
                high >> 32 ^ counter[1] ^ key[0],
                high & 0xFFFFFFFF,
                low >> 32 ^ counter[3] ^ key[1],
                low & 0xFFFFFFFF,
            ]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return counter

    _, kept = proofs.ops.philox_dropout(torch.ones(4, device="cuda"), 0.5)
    uniform = [(word + 0.5) / 2**32 for word in philox([0, 0, 0, 0], [0, 0])]
    assert kept.tolist() == [value <= 0.5 for value in uniform]


@pytest.mark.parametrize("steps", [0, 1, 6])
def test_blocks_meet_between_the_steps_of_a_cooperative_stencil(proofs, steps):
    x = random(301)
    expected = x.clone()
    for _ in range(steps):
        padded = torch.cat([expected[:1], expected, expected[-1:]])
        expected = (padded[:-2] + 2 * expected + padded[2:]) / 4
    torch.testing.assert_close(proofs.ops.grid_stencil(x, steps), expected)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_atomics_add_every_weight_once(proofs, dtype):
    places = torch.arange(1000, device="cuda") % 7
    weights = torch.ones(1000, device="cuda", dtype=dtype)
    counted = proofs.ops.weighted_count(places, weights, 7)
    assert torch.equal(counted, torch.bincount(places).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_atens_elementwise_kernels_take_a_lambda_of_the_extension(proofs, dtype):
    """`at::native::gpu_kernel`: contiguous, broadcast, strided."""
    a, b = random(5, 300, dtype=dtype), random(300, 5, dtype=dtype)
    for x, y in ((a, a + 1), (a, b.t()), (a[:, ::3], a[:1, ::3]), (a, b[7, 0])):
        torch.testing.assert_close(proofs.ops.scaled_product(x, y, 0.5), 0.5 * x * y + x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_one_launch_works_on_many_tensors(proofs, dtype):
    """Addresses in a parameter of some kilobytes; more tensors and more chunks than one launch takes."""
    source = [random(size, dtype=dtype) for size in (1, 255, 256, 257, 5000, *range(3, 60), 50000)]
    target = [torch.zeros_like(x) for x in source]
    assert proofs.ops.scale_all(source, target, 0.5).item() == 0
    assert all(torch.equal(y, x * 0.5) for x, y in zip(source, target))
    source[3][17] = float("inf")
    assert proofs.ops.scale_all(source, target, 2.0).item() == 1


def test_columns_of_a_deformable_convolution(proofs):
    """Without offsets they are unfold's, with whole ones shifted; the gradient is the transpose of a linear map."""
    image = random(3, 6, 7)
    offsets = torch.zeros(18, 6, 7, dtype=torch.float64, device="cuda")
    unfolded = torch.nn.functional.unfold(image[None], 3, padding=1).view(3, 9, 6, 7)
    torch.testing.assert_close(proofs.ops.deform_columns(image, offsets, 3), unfolded)
    shifted = proofs.ops.deform_columns(image, offsets + 1, 3)[:, 4, :5, :6]
    torch.testing.assert_close(shifted, image[:, 1:, 1:])
    offsets = random(18, 6, 7)
    grad = random(3, 9, 6, 7).contiguous()  # a tensor of four dimensions arrives channels last
    forward = (proofs.ops.deform_columns(image, offsets, 3) * grad).sum()
    backward = (proofs.ops.deform_columns_backward(grad, offsets, 3) * image).sum()
    torch.testing.assert_close(forward, backward)


def test_a_kernel_that_crashes_leaves_a_lasting_error_and_a_living_program(package: Path):
    code = """
import torch, proofs
try:
    proofs.ops.trespass()
    torch.cuda.synchronize()
except RuntimeError as error:
    print("first:", error)
try:
    torch.ones(2, device="cuda")
except RuntimeError as error:
    print("then:", error)
print(torch.ones(2).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("first:") and "illegal memory access" in line for line in lines), done.stdout
    assert any(line.startswith("then:") and "illegal memory access" in line for line in lines), done.stdout
    assert "trespass_kernel" in done.stdout + done.stderr and lines[-1] == "2.0"


def test_wrong_arguments_raise_the_authors_message(proofs):
    with pytest.raises(RuntimeError, match="x must be contiguous"):
        proofs.ops.swish(random(4, 4).t())
    with pytest.raises(RuntimeError, match="matrices that fit"):
        proofs.ops.tiled_mm(random(2, 3), random(2, 3))
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        proofs.ops.swish(torch.ones(3))
