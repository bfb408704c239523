"""A program that mixes devices gets the exception that a machine with a GPU gives: this is what many users come for."""

import numpy
import pytest
import release_facts
import torch
from torch.nn import functional as F

CPU, CUDA = "cpu", "cuda:0"


def by_iterator(first: str = CUDA, other: str = CPU) -> str:
    """The check of element-wise operators."""
    return f"Expected all tensors to be on the same device, but found at least two devices, {first} and {other}!"


def by_wrapper(first: str, other: str, argument: str, operator: str) -> str:
    """The check of all others: `argument` of `operator` is on `other`, those before it on `first`."""
    if not release_facts.has("devices_are_checked_in_new_words"):
        detail = f" (when checking argument for argument {argument} in method wrapper_CUDA_{operator})"
        return by_iterator(first, other) + detail
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {other}, different from other "
        f"tensors on {first} (when checking argument in method wrapper_CUDA_{operator})"
    )


c = torch.ones(2, 2)
index = torch.tensor([0, 1])


@pytest.fixture(scope="module")
def g() -> torch.Tensor:
    return torch.ones(2, 2, device="cuda")


CASES = {
    "add": (lambda g: c + g, by_iterator()),
    "add reversed": (lambda g: g + c, by_iterator()),
    "add in place": (lambda g: g.add_(c), by_iterator()),
    "mul": (lambda g: c * g, by_iterator()),
    "comparison": (lambda g: c > g, by_iterator()),
    "where": (lambda g: torch.where(g > 0, g, c), by_iterator()),
    "masked_fill": (
        lambda g: g.masked_fill(c > 0, 1.0),
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
    ),
    "masked_fill, value on the device": (
        lambda g: c.masked_fill(c > 0, g[0, 0]),
        "masked_fill_: Expected inputs to be on same device",
    ),
    "masked_fill in place, mask and value on the device": (
        lambda g: c.masked_fill_(g > 0, g[0, 0]),
        "masked_fill_: Expected inputs to be on same device",
    ),
    "masked_fill, mask on the device": (
        lambda g: c.masked_fill(g > 0, 1.0),
        "expected self and mask to be on the same device, but got mask on cuda:0 and self on cpu",
    ),
    "mse_loss": (lambda g: F.mse_loss(g, c), by_iterator()),
    "mm": (lambda g: torch.mm(c, g), by_wrapper(CPU, CUDA, "mat2", "mm")),
    "mm reversed": (lambda g: g @ c, by_wrapper(CUDA, CPU, "mat2", "mm")),
    "bmm": (lambda g: torch.bmm(c[None], g[None]), by_wrapper(CPU, CUDA, "mat2", "bmm")),
    "addmm": (lambda g: torch.addmm(g, c, g), by_wrapper(CUDA, CPU, "mat1", "addmm")),
    "linear, input left on the CPU": (
        lambda g: torch.nn.Linear(2, 2).cuda()(c),
        by_wrapper(CUDA, CPU, "mat1", "addmm"),
    ),
    "linear, module left on the CPU": (
        lambda g: torch.nn.Linear(2, 2)(g),
        by_wrapper(CPU, CUDA, "mat1", "addmm"),
    ),
    "linear without bias": (lambda g: F.linear(c, g), by_wrapper(CPU, CUDA, "mat2", "mm")),
    "cat": (lambda g: torch.cat([c, g]), by_wrapper(CPU, CUDA, "tensors", "cat")),
    "stack": (lambda g: torch.stack([g, c]), by_wrapper(CUDA, CPU, "tensors", "cat")),
    "embedding, index left on the CPU": (
        lambda g: F.embedding(index, g),
        by_wrapper(CUDA, CPU, "index", "_index_select"),
    ),
    "embedding, module left on the CPU": (
        lambda g: F.embedding(index.cuda(), c),
        by_wrapper(CPU, CUDA, "index", "_index_select"),
    ),
    "index_select": (lambda g: torch.index_select(g, 0, index), by_wrapper(CUDA, CPU, "index", "_index_select")),
    "gather": (lambda g: torch.gather(g, 0, index[None]), by_wrapper(CUDA, CPU, "index", "gather")),
    "scatter": (lambda g: g.scatter(0, index[None].cuda(), c), by_wrapper(CUDA, CPU, "src", "scatter_src")),
    "index_add_": (lambda g: g.index_add_(0, index, g), by_wrapper(CUDA, CPU, "index", "index_add_")),
    "masked_select": (lambda g: torch.masked_select(g, c > 0), by_wrapper(CUDA, CPU, "mask", "_masked_select")),
    "cross_entropy": (lambda g: F.cross_entropy(g, index), by_wrapper(CUDA, CPU, "target", "nll_loss_forward")),
    "layer_norm": (
        lambda g: F.layer_norm(g, (2,), torch.ones(2)),
        by_wrapper(CUDA, CPU, "weight", "_native_layer_norm"),
    ),
    "indexing a CPU tensor": (
        lambda g: c[index.cuda()],
        "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
    ),
    "convolution, input left on the CPU": (
        lambda g: torch.nn.Conv2d(1, 1, 1).cuda()(c[None, None]),
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    ),
    "convolution, module left on the CPU": (
        lambda g: torch.nn.Conv2d(1, 1, 1)(g[None, None]),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    "lstm": (
        lambda g: torch.nn.LSTM(2, 2).cuda()(c[None]),
        "Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor "
        "at cuda:0",
    ),
    "attention": (
        lambda g: F.scaled_dot_product_attention(g[None], c[None], g[None]),
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: cpu "
        "and value.device: cuda:0 instead.",
    ),
    "dense plus coordinate list": (
        lambda g: c + g.to_sparse(),
        "add: expected 'self' to be a CUDA tensor, but got a CPU tensor",
    ),
    "coordinate lists": (
        lambda g: g.to_sparse() + c.to_sparse(),
        "add: expected 'other' to be CUDA, but got CPU",
    ),
    "product of coordinate lists": (
        lambda g: c.to_sparse() * g.to_sparse(),
        "mul: expected 'self' to be CUDA, but got CPU",
    ),
    "product of a dense tensor and a coordinate list": (lambda g: c * g.to_sparse(), by_iterator()),
    "compressed matrices": (
        lambda g: g.to_sparse_csr() + c.to_sparse_csr(),
        "add: expected 'other' to be CUDA tensor, but got tensor on device: cpu",
    ),
    "CPU generator": (
        lambda g: torch.rand(2, device="cuda", generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    "CPU generator, in place": (
        lambda g: g.normal_(generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    "CUDA generator": (
        lambda g: c.clone().normal_(generator=torch.Generator("cuda")),
        "Expected a 'cpu' device type for generator but found 'cuda'",
    ),
    "pin_memory": (
        lambda g: g.pin_memory(),
        "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_mixed_devices_raise_upstreams_error(name, g):
    call, message = CASES[name]
    with pytest.raises(RuntimeError) as caught:
        call(g)
    assert type(caught.value) is RuntimeError
    assert str(caught.value) == message


TO_NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."


@pytest.mark.parametrize("convert", [lambda g: g.numpy(), numpy.asarray])
def test_numpy_wants_host_memory(convert, g):
    with pytest.raises(TypeError) as caught:
        convert(g)
    assert str(caught.value) == TO_NUMPY


def test_what_upstream_allows_works(g):
    scalar = torch.tensor(2.0)
    assert (g * scalar).tolist() == (scalar * g).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert g[index].device.type == "cuda"
    g.clone()[index] = 1.0
    assert torch.where(g > 0, g, scalar).device.type == "cuda"
    assert c.copy_(g).device.type == "cpu"
    assert g.clone().copy_(c).device.type == "cuda"
    assert torch.equal(c.cuda(), g)
    assert torch.addmm(g, g, g, beta=0.5).device.type == "cuda"


def test_two_cuda_devices_raise_as_well(script):
    code = """
        import torch
        a, b = torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device="cuda:1")
        for call in (lambda: a + b, lambda: b + a, lambda: a @ b, lambda: torch.cat([a, b])):
            try:
                call()
                print("went on")
            except RuntimeError as error:
                print(error)
    """
    assert script(code, {"MACA_DEVICE_COUNT": "2"}).splitlines() == [
        by_iterator("cuda:0", "cuda:1"),
        by_iterator("cuda:1", "cuda:0"),
        by_wrapper("cuda:0", "cuda:1", "mat2", "mm"),
        by_wrapper("cuda:0", "cuda:1", "tensors", "cat"),
    ]
