"""Images arrive in channels-last, and no program that upstream's layout allows has to know of it."""

import json

import pytest
import release_facts
import torch
from torch import nn
from torch.nn import functional as F


def image(*shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def test_a_view_of_what_arrived_shares_its_memory():
    """As upstream: the storage is reordered where it is, so the address stays, and both sides see a write."""
    x = image(2, 3, 4, 5)
    y = x.cuda()
    assert y.stride() == (60, 1, 15, 3)
    address = y.data_ptr()
    flat = y.view(2, -1)
    assert torch.equal(flat.cpu(), x.view(2, -1))
    assert y.data_ptr() == flat.data_ptr() == address and y.stride() == (60, 20, 5, 1)
    flat[1, 7] = -1.0
    y[0, 0, 0, 0] = -2.0
    assert y[1].view(-1)[7] == -1.0 and flat[0, 0] == -2.0


@pytest.mark.parametrize("holder", ["another tensor", "its storage", "autograd"])
def test_a_view_of_what_somebody_else_holds_tells_no_lie(holder):
    """It is a copy: a write to either side, which the other could not see, raises for as long as both live."""
    x = image(2, 3, 4, 5).cuda().requires_grad_(holder == "autograd")
    y = x.exp() if holder == "autograd" else x
    held = {"another tensor": lambda: y[:, 1], "its storage": y.untyped_storage, "autograd": lambda: None}[holder]()
    flat = y.view(2, -1)
    assert torch.equal(flat.cpu(), y.cpu().view(2, -1))
    for side in (y, flat, y[:1], flat[1], *([held] if holder == "another tensor" else [])):
        with pytest.raises(RuntimeError, match="cannot be seen in both.*PYTORCH_DEFAULT_NCHW=1"):
            side.detach().mul_(2)
    assert torch.equal(flat.cpu(), y.cpu().view(2, -1))
    del flat, side
    y.detach().mul_(2)
    assert torch.equal(y.detach().cpu(), (image(2, 3, 4, 5).exp() if holder == "autograd" else image(2, 3, 4, 5)) * 2)


@pytest.mark.filterwarnings("ignore:a view of a tensor")
@pytest.mark.parametrize("take", [lambda x: x[0], lambda x: x[:, :2], lambda x: x[:1], lambda x: x[:, 1:, :, :]])
def test_parts_of_an_image_are_viewed_as_upstreams_are(take):
    x = image(2, 3, 4, 5)
    y = x.cuda()
    part = take(x)
    assert torch.equal(take(y).view(part.shape[0], -1).cpu(), part.view(part.shape[0], -1))


@pytest.mark.parametrize("take", [lambda x: x[..., 1:], lambda x: x.transpose(1, 2), lambda x: x[:, ::2]])
def test_what_upstream_cannot_view_stays_its_error(take):
    x = image(2, 4, 4, 5)
    with pytest.raises(RuntimeError, match="view size is not compatible") as wanted:
        take(x).view(2, -1)
    with pytest.raises(RuntimeError, match="view size is not compatible") as caught:
        take(x.cuda()).view(2, -1)
    assert str(caught.value).splitlines()[0] == str(wanted.value).splitlines()[0]
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        x.cuda().view(7, 5)


@pytest.mark.parametrize("part", [slice(None), slice(1, 4)], ids=["whole", "part"])
def test_the_loss_of_every_pixel_takes_scores_that_arrived(part):
    """Its gradient has the order of the scores, of which upstream takes rows alone: these count as such."""
    scores = image(2, 5, 4, 3)
    classes = torch.arange(24).reshape(2, 4, 3) % 3
    gradients = []
    for device in ("cpu", "cuda"):
        here = scores.to(device, copy=True).requires_grad_()
        F.nll_loss(here[:, part], classes.to(device), ignore_index=1).backward()
        gradients.append(here.grad.cpu())
    assert torch.equal(*gradients)
    for device in ("cpu", "cuda"):
        turned = image(3, 4, 5, 2).to(device).permute(3, 2, 1, 0).requires_grad_()
        with pytest.raises(RuntimeError, match="grad_input must be contiguous"):
            F.nll_loss(turned, classes.to(device)).backward()


def test_the_copy_is_told_of_once(script):
    code = """
        import torch, warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x = torch.rand(2, 3, 4, 5).cuda().requires_grad_()
            for _ in range(3):
                x.relu().view(2, -1).sum().backward()
        print(len(seen), "is a copy here" in str(seen[0].message), "PYTORCH_DEFAULT_NCHW=1" in str(seen[0].message))
    """
    assert script(code) == "1 True True"


def test_other_views_and_sizes():
    x = image(2, 3, 4, 2)
    assert torch.equal(torch.view_as_complex(x.cuda()).cpu(), torch.view_as_complex(x))
    assert torch.equal(x.cuda().view(torch.int16).cpu(), x.view(torch.int16))
    assert torch.equal(x.cuda().resize_(6, 8).cpu(), x.reshape(6, 8))
    assert torch.equal(x.cuda().resize_(3, 5).cpu(), x.reshape(-1)[:15].view(3, 5))


def test_strides_that_were_worked_out_for_a_contiguous_image_are_told_of(script):
    code = """
        import torch, warnings
        x = torch.rand(2, 3, 4, 5).cuda()
        warnings.simplefilter("error")
        s = x.stride()
        x.as_strided((2, 3, 3, 4, 2, 2), (s[0], s[1], s[2], s[3], s[2], s[3]))  # the tensor's own
        x.as_strided((2, 60), (60, 1))
        try:
            x.as_strided((2, 3, 20), (60, 20, 1))
        except UserWarning as warning:
            print(warning)
    """
    said = script(code)
    assert "(60, 1, 15, 3)" in said.replace("[", "(").replace("]", ")") and "PYTORCH_DEFAULT_NCHW=1" in said


def test_what_arrived_goes_home_contiguous():
    x = image(2, 3, 4, 5)
    y = x.cuda()
    for part in (y, y.double(), y[0], y[:, :2], y[1:], y.relu()):
        assert part.cpu().is_contiguous() and part.to("cpu", torch.float16).is_contiguous()
    assert torch.equal(y[:, :2].cpu(), x[:, :2]) and torch.equal(y.double().cpu(), x.double())
    assert y.to("cpu", memory_format=torch.preserve_format).stride() == (60, 1, 15, 3)
    assert y.to("cpu", memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    large = torch.rand(2, 8, 512, 512)
    home = large.cuda().cpu()
    assert home.is_contiguous() and torch.equal(home, large)


def test_a_captured_graph_keeps_the_order_of_its_capture():
    x = image(2, 3, 4, 5).cuda()
    x.mul(2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.view(2, -1) * 2
        z = x + 1
    assert torch.equal(x.view(2, -1).cpu(), image(2, 60))
    graph.replay()
    assert torch.equal(y.cpu(), image(2, 60) * 2) and torch.equal(z.cpu(), image(2, 3, 4, 5) + 1)


def test_transforms_of_functions():
    x, w = image(2, 3, 4, 5), torch.rand(60)
    for device in ("cpu", "cuda"):
        grad = torch.func.vmap(torch.func.grad(lambda a, b: (a.sin().view(-1) * b).sum()), in_dims=(0, None))
        result = grad(x.to(device), w.to(device)).cpu()
        wanted = result if device == "cpu" else wanted  # noqa: F821
    torch.testing.assert_close(result, wanted)


class LeNet(nn.Module):
    def __init__(self, relu_last: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(16 * 5 * 5, 32), nn.Linear(32, 10)
        self.relu_last = relu_last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = self.conv2(x)
        x = F.relu(F.max_pool2d(x, 2)) if self.relu_last else F.max_pool2d(F.relu(x), 2)
        x = x.view(-1, 16 * 5 * 5)
        return self.fc2(F.relu(self.fc1(x)))


def digits(device: str):
    torch.manual_seed(0)
    return torch.rand(8, 1, 28, 28).to(device), torch.randint(10, (8,)).to(device)


def lenet(device: str, relu_last: bool = False):
    x, y = digits(device)
    model = LeNet(relu_last).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def lbfgs(device: str):
    x, y = digits(device)
    model = LeNet(False).to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        yield optimizer.step(closure).item()
    vector = nn.utils.parameters_to_vector(model.parameters())
    yield vector.sum().item()
    nn.utils.vector_to_parameters(vector * 0.5, model.parameters())
    yield F.cross_entropy(model(x), y).item()


def style(device: str):
    """Gram matrices, and the gradient of an image."""
    torch.manual_seed(0)
    layer, x = nn.Conv2d(3, 8, 3).to(device), torch.rand(2, 3, 12, 12).to(device).requires_grad_()
    for activation in (torch.relu, lambda t: t):
        features = activation(layer(x))
        n, c, h, w = features.shape
        rows = features.view(n * c, h * w)
        loss = (rows @ rows.t() / rows.numel()).square().sum()
        yield loss.item()
        yield torch.autograd.grad(loss, x)[0].view(n, -1).norm(2, 1).sum().item()


def penalty(device: str):
    """The gradient penalty of WGAN-GP."""
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Conv2d(3, 8, 4, 2), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4)).to(device)
    x = torch.rand(4, 3, 16, 16).to(device).requires_grad_()
    scores = critic(x)
    grad = torch.autograd.grad(scores, x, torch.ones_like(scores), create_graph=True, retain_graph=True)[0]
    loss = ((grad.view(grad.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
    loss.backward()
    yield loss.item()
    for parameter in critic.parameters():
        yield 0.0 if parameter.grad is None else parameter.grad.view(-1).double().square().sum().item()


@pytest.mark.filterwarnings("ignore:a view of a tensor")
@pytest.mark.parametrize("program", [lenet, lambda d: lenet(d, True), lbfgs, style, penalty])
def test_programs_for_upstreams_layout_run_unmodified(program):
    # LBFGS steps by differences of gradients, which carry the rounding of each processor's convolutions further.
    precision = 5e-3 if program is lbfgs else 2e-4
    assert list(program("cuda")) == pytest.approx(list(program("cpu")), rel=precision, abs=1e-6)


def test_upstreams_layout_changes_nothing(script):
    code = """
        import json, torch
        x = torch.rand(2, 3, 4, 5).cuda()
        explicit = x.contiguous(memory_format=torch.channels_last)
        try:
            explicit.view(2, -1)
        except RuntimeError as error:
            print(json.dumps([x.stride(), explicit.cpu().stride(), "PYTORCH" in str(error)]))
    """
    assert json.loads(script(code, {"PYTORCH_DEFAULT_NCHW": "1"})) == [[60, 20, 5, 1], [60, 1, 15, 3], False]


# ---- Kernels in Triton that work out places from sizes ---------------------------------------------------------------

KERNELS = """
import torch, triton
import triton.language as tl

SHAPE = (2, 3, 4, 5)

@triton.jit
def copy(source, target, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)

@triton.jit
def add_places(values, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(values + at, tl.load(values + at, mask=at < count) + at, mask=at < count)

@triton.jit
def copy_strided(source, target, s0, s1, s2, s3, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < 120
    place = at // 60 * s0 + at // 20 % 3 * s1 + at // 5 % 4 * s2 + at % 5 * s3
    tl.store(target + at, tl.load(source + place, mask=mask), mask=mask)

@triton.jit
def copy_known(source, target, s0: tl.constexpr, s1: tl.constexpr, s2: tl.constexpr, s3: tl.constexpr,
               BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < 120
    place = at // 60 * s0 + at // 20 % 3 * s1 + at // 5 % 4 * s2 + at % 5 * s3
    tl.store(target + at, tl.load(source + place, mask=mask), mask=mask)

def image():
    moved = torch.arange(120.).reshape(SHAPE).cuda()
    assert moved.stride() == (60, 1, 15, 3)
    return moved

flat = torch.arange(120., device="cuda")
"""


@pytest.fixture
def kernels(process, tmp_path):
    """Return a function that runs code behind the kernels above."""
    release_facts.need("triton_of_ours")

    def run(code):
        program = tmp_path / "program.py"
        program.write_text(KERNELS + code, encoding="utf-8")
        variables = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
        return process(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", variables).stdout

    return run


def test_an_image_is_read_in_upstreams_order(kernels):
    """It is reordered in place: the same memory, contiguous from then on, and the same values."""
    kernels(
        """
x, target = image(), torch.empty(120, device="cuda")
address = x.data_ptr()
copy[(1,)](x, target, 120, BLOCK=128)
assert torch.equal(target, flat) and x.is_contiguous() and x.data_ptr() == address
assert torch.equal(x.flatten(), flat)
x = image()
add_places[(1,)](x, 120, BLOCK=128)
assert torch.equal(x.flatten(), 2 * flat)
"""
    )


def test_a_kernel_that_is_told_the_strides_gets_the_image_as_it_is(kernels):
    """Strides as numbers, and as constants of the compilation."""
    kernels(
        """
for kernel in (copy_strided, copy_known):
    x, target = image(), torch.empty(120, device="cuda")
    kernel[(1,)](x, target, *x.stride(), BLOCK=128)
    assert torch.equal(target, flat) and x.stride() == (60, 1, 15, 3)
"""
    )


def test_what_somebody_else_holds_is_copied_there_and_back(kernels):
    """A view sees the kernel's writes, and so does autograd, for which they do not count, as upstream."""
    kernels(
        """
x, target = image(), torch.empty(120, device="cuda")
other = x[1]
add_places[(1,)](x, 120, BLOCK=128)
assert torch.equal(other.flatten(), 2 * flat[60:]) and x.stride() == (60, 1, 15, 3)

x = image().requires_grad_()
result = (x * x).sum()
copy[(1,)](x, target, 120, BLOCK=128)
assert torch.equal(target, flat)
result.backward()
assert torch.equal(x.grad.flatten(), 2 * flat)

y = x.detach().relu_()
result = (x * y).sum()
version, other = y._version, y[1]
add_places[(1,)](y, 120, BLOCK=128)
assert torch.equal(other.flatten(), 2 * flat[60:]) and y._version == version
x.grad = None
result.backward()
assert torch.equal(x.grad.flatten(), 2 * flat)
"""
    )


def test_images_of_one_launch_keep_one_order(kernels):
    """One that is held and one that is not: element i of the one belongs to element i of the other."""
    kernels(
        """
x = image()
held, target = x[0], torch.empty_like(x)
assert target.stride() == x.stride()
copy[(1,)](x, target, 120, BLOCK=128)
assert torch.equal(target, x) and torch.equal(target.flatten(), flat)
copy[(1,)](x, x, 120, BLOCK=128)
assert torch.equal(x.flatten(), flat)
"""
    )


def test_two_tensors_of_one_image_see_each_others_writes(kernels):
    """Another view of its memory, which a copy would part from it, is refused."""
    kernels(
        """
@triton.jit
def add_through_both(one, other, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(one + at, tl.load(one + at, mask=at < count) + at, mask=at < count)
    tl.debug_barrier()
    tl.store(other + at, tl.load(other + at, mask=at < count) + at, mask=at < count)

x = image()
add_through_both[(1,)](x, x.detach(), 120, BLOCK=128)
assert torch.equal(x.flatten(), 3 * flat)
try:
    add_through_both[(1,)](x, x[1], 60, BLOCK=128)
    raise SystemExit("a view of another order")
except RuntimeError as error:
    assert "another view of its memory" in str(error)
"""
    )


def test_in_a_graph_each_launch_reads_the_image(kernels):
    """The copies are nodes of the graph."""
    kernels(
        """
x, target = image(), torch.empty(120, device="cuda")
copy[(1,)](x[:, :, :1].contiguous(), target, 24, BLOCK=128)
x, graph = image(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    add_places[(1,)](x, 120, BLOCK=128)
    copy[(1,)](x, target, 120, BLOCK=128)
graph.replay()
assert torch.equal(x.flatten(), 2 * flat) and torch.equal(target, 2 * flat)
graph.replay()
assert torch.equal(x.flatten(), 3 * flat) and torch.equal(target, 3 * flat)
"""
    )


def test_in_compiled_code(kernels):
    """Compiled code counts on the strides of its tensors, so the kernel of the program's gets a copy."""
    kernels(
        """
@torch.compile(fullgraph=True)
def compiled(x):
    target = torch.empty(120, device="cuda")
    copy[(1,)](x, target, 120, BLOCK=128)
    return target, x.sin()

x = image()
target, sines = compiled(x)
assert torch.equal(target, flat) and x.stride() == (60, 1, 15, 3)
torch.testing.assert_close(sines.flatten(), flat.sin())
"""
    )


@release_facts.wants("triton_descriptors_of_the_host")
def test_descriptors_of_the_host(kernels):
    """What the program says of the image is upstream's order; also where descriptors are members of a tuple."""
    kernels(
        """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def rows(source, target):
    tile = source.load([8, 0])
    tl.store(target + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], tile)

@triton.jit
def sums(sources, target):
    tile = sources[0].load([sources[2], 0]) + sources[1].load([sources[2], 0])
    tl.store(target + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], tile)

x, target = torch.arange(256.).reshape(2, 4, 4, 8).cuda(), torch.empty(64, device="cuda")
assert not x.is_contiguous()
rows[(1,)](TensorDescriptor(x, [32, 8], [8, 1], [8, 8]), target)
expected = torch.arange(64., 128., device="cuda")
assert torch.equal(target, expected)
x, y = x.cpu().cuda(), torch.arange(256., device="cuda").reshape(32, 8)
whole = TensorDescriptor(x, [32, 8], [8, 1], [8, 8]), TensorDescriptor.from_tensor(y, [8, 8])
sums[(1,)]((*whole, 8), target)
assert torch.equal(target, 2 * expected)
"""
    )
