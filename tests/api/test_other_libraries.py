"""Libraries that bring their own CUDA kernels: what cannot run is computed by their CPU kernels, what can run runs."""

import copy
import importlib
import importlib.util
import re
import subprocess

import pytest
import release_facts
import torch
from torch.utils import cpp_extension

torchvision = pytest.importorskip("torchvision")
from torchvision import io, ops  # noqa: E402

RECTANGLES = torch.tensor([[0, 1.0, 1.0, 9.0, 9.0], [1, 3.0, 2.0, 12.0, 14.0]])


def test_nms_equals_the_cpus():
    torch.manual_seed(0)
    boxes, scores = torch.rand(50, 4) * 50, torch.rand(50)
    boxes[:, 2:] += boxes[:, :2]
    kept = ops.nms(boxes.cuda(), scores.cuda(), 0.3)
    assert kept.is_cuda and torch.equal(kept.cpu(), ops.nms(boxes, scores, 0.3))


def inputs():
    torch.manual_seed(0)
    x, offset = torch.randn(2, 3, 16, 16), torch.randn(2, 18, 16, 16)
    return {"x": x, "offset": offset, "weight": torch.randn(4, 3, 3, 3), "mask": torch.rand(2, 9, 16, 16)}


CALLS = {
    "roi_align": lambda x, **_: ops.roi_align(x, RECTANGLES.to(x.device), 5),
    "roi_pool": lambda x, **_: ops.roi_pool(x, RECTANGLES.to(x.device), 5),
    "ps_roi_align": lambda x, **_: ops.ps_roi_align(x, RECTANGLES.to(x.device), 1),
    "ps_roi_pool": lambda x, **_: ops.ps_roi_pool(x, RECTANGLES.to(x.device), 1),
    "deform_conv2d": lambda x, offset, weight, mask: ops.deform_conv2d(x, offset, weight, padding=1, mask=mask),
}


@pytest.mark.parametrize("name", CALLS)
def test_operator_and_its_gradient_equal_the_cpus(name):
    results = []
    for device in ("cpu", "cuda"):
        given = {key: value.clone().to(device).requires_grad_() for key, value in inputs().items()}
        out = CALLS[name](**given)
        assert out.device.type == device
        out.square().sum().backward()
        results.append([out.detach().cpu(), *(value.grad for value in given.values())])
    for want, got in zip(*results):
        assert (want is None) == (got is None)
        if want is not None:
            torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-4)


def test_half_precision_goes_the_same_way():
    x = inputs()["x"]
    got = ops.roi_align(x.half().cuda(), RECTANGLES.half().cuda(), 5)
    want = ops.roi_align(x.half().float(), RECTANGLES, 5)
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.cpu().float(), want, rtol=1e-2, atol=1e-2)


def test_mixed_devices_stay_the_librarys_own_error():
    x = inputs()["x"]
    with pytest.raises(RuntimeError):
        ops.roi_align(x.cuda(), RECTANGLES, 5)
    torch.cuda.synchronize()


SOURCE = """
#include <ATen/ops/add.h>
#include <torch/library.h>
at::Tensor on_cpu(const at::Tensor& x) { return at::add(x, 1); }
at::Tensor on_cuda(const at::Tensor& x) { return at::add(x, 2); }
at::Tensor strict(const at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  return at::add(x, 3);
}
void strict_(at::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  x.add_(3);
}
TORCH_LIBRARY(guarded, m) {
  m.def("plus(Tensor x) -> Tensor");
  m.def("strict(Tensor x) -> Tensor");
  m.def("strict_(Tensor(a!) x) -> ()");
}
TORCH_LIBRARY_IMPL(guarded, CPU, m) { m.impl("plus", on_cpu); }
TORCH_LIBRARY_IMPL(guarded, CUDA, m) {
  m.impl("plus", on_cuda);
  m.impl("strict", strict);
  m.impl("strict_", strict_);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A shared library that registers the operators of SOURCE."""
    folder = tmp_path_factory.mktemp("guarded")
    source, library = folder / "guarded.cpp", folder / "guarded.so"
    source.write_text(SOURCE)
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    command = ["g++", "-shared", "-fPIC", release_facts.cpp_standard(), "-O0", "-w", abi, *include]
    command += [str(source), "-o", str(library)]
    command += [f"-L{path}" for path in cpp_extension.library_paths()] + ["-lc10", "-ltorch_cpu"]
    subprocess.run(command, check=True)
    return library


def test_a_kernel_that_can_run_is_left_alone(script, library):
    code = f"""
        import torch
        torch.ops.load_library({str(library)!r})
        x = torch.zeros(2)
        print(torch.ops.guarded.plus(x).tolist(), torch.ops.guarded.plus(x.cuda()).tolist())
    """
    assert script(code) == "[1.0, 1.0] [2.0, 2.0]"


def test_images_come_to_kernels_of_others_in_upstreams_order(script, library):
    """Reordered in place, so that what a kernel writes is there; to read, a copy where somebody else has the memory."""
    code = f"""
        import torch
        torch.ops.load_library({str(library)!r})
        image = torch.rand(2, 3, 4, 5)
        on_device = image.cuda()
        assert not on_device.is_contiguous()
        torch.ops.guarded.strict_(on_device)
        assert torch.equal(on_device.cpu(), image + 3)
        on_device = image.cuda()
        part = on_device[:, 1:]
        assert torch.equal(torch.ops.guarded.strict(on_device).cpu(), image + 3)
        assert not on_device.is_contiguous() and torch.equal(part.cpu(), image[:, 1:])
        for operator, x in ((torch.ops.guarded.strict_, on_device), (torch.ops.guarded.strict, on_device[..., 1:])):
            try:
                operator(x)
            except RuntimeError as error:
                print(str(error).splitlines()[0])
        assert torch.equal(on_device.cpu(), image)
    """
    assert script(code).splitlines() == ["x must be contiguous"] * 2


def sound():
    torch.manual_seed(0)
    return torch.randn(2, 400)


def transducer_loss(functional, device):
    torch.manual_seed(0)
    logits = torch.randn(2, 10, 6, 8).to(device).requires_grad_()
    targets, frames, symbols = torch.randint(1, 8, (2, 5)), torch.tensor([10, 8]), torch.tensor([5, 4])
    given = [x.to(device, torch.int32) for x in (targets, frames, symbols)]
    loss = functional.rnnt_loss(logits, *given, blank=0)
    return [loss.detach(), *torch.autograd.grad(loss, logits)]


def recursive_filter(functional, device):
    given = [sound(), torch.tensor([1.0, -0.5, 0.2]), torch.tensor([0.3, 0.2, 0.1])]
    given = [x.to(device).requires_grad_() for x in given]
    y = functional.lfilter(*given)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), given)]


def filter_of_inference(functional, device):
    with torch.inference_mode():
        return [functional.lowpass_biquad(sound().to(device), 16000, 2000.0)]


def alignment(functional, device):
    torch.manual_seed(0)
    scores, targets = torch.randn(1, 50, 20).log_softmax(-1), torch.randint(1, 20, (1, 12))
    return list(functional.forced_align(scores.to(device), targets.to(device, torch.int32), blank=0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("work", [transducer_loss, recursive_filter, filter_of_inference, alignment])
def test_torchaudio_equals_the_cpus(work):
    functional = pytest.importorskip("torchaudio").functional
    for want, got in zip(work(functional, "cpu"), work(functional, "cuda")):
        assert got.is_cuda
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)


def test_a_conformer_trains_as_on_the_cpu():
    models = pytest.importorskip("torchaudio").models
    torch.manual_seed(0)
    model = models.Conformer(32, 4, 64, 2, 15, dropout=0.0).double()
    frames, wanted = torch.randn(3, 40, 32).double(), torch.randn(3, 40, 32).double()
    lengths, losses = torch.tensor([40, 33, 21]), {}
    for device in ("cpu", "cuda"):
        trained = copy.deepcopy(model).to(device)
        optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            result, _lengths = trained(frames.to(device), lengths.to(device))
            loss = (result - wanted.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["cpu"][-1] < losses["cpu"][0]
    torch.testing.assert_close(torch.tensor(losses["cuda"]), torch.tensor(losses["cpu"]), rtol=1e-9, atol=0)


def test_jpeg_on_the_device_is_refused_by_the_name_of_nvjpegs_function():
    image = (torch.rand(3, 16, 16) * 255).to(torch.uint8)
    data = io.encode_jpeg(image)
    assert io.decode_jpeg(data).shape == image.shape
    with pytest.raises(RuntimeError, match="nvjpeg"):
        io.decode_jpeg(data, device="cuda")
    refused = "nvjpeg" if release_facts.has("jpeg_encoded_on_the_device") else "should be on CPU"
    with pytest.raises(RuntimeError, match=refused):
        io.encode_jpeg(image.cuda())
    assert torch.ones(2).cuda().sum().item() == 2


def test_the_companions_are_ours_and_bring_no_library_of_nvidias():
    # torchaudio may be left out of an environment.
    for name in filter(importlib.util.find_spec, ("torchvision", "torchaudio")):
        module = importlib.import_module(name)
        assert f"+maca{torch.version.maca}" in module.__version__
    with open("/proc/self/maps") as file:
        loaded = {line.split()[-1] for line in file if re.search(r"lib(cudart|nvjpeg)", line)}
    assert loaded and all("/mxmaca/lib/cuda" in path for path in loaded), loaded


@pytest.mark.filterwarnings("ignore")
def test_backward_passes_of_a_filter_repeat_bit_for_bit():
    """Gradients of several coefficients meet in the frequency that they are made of, in the same order each time."""
    functional = pytest.importorskip("torchaudio").functional
    frequency, quality = (torch.tensor(x, dtype=torch.float64, device="cuda").requires_grad_() for x in (800.0, 0.7))
    waves = sound().double().cuda().requires_grad_()
    y = functional.allpass_biquad(waves, 16000, frequency, quality)
    assert y.grad_fn is not None and y.is_cuda
    given = torch.cos(torch.arange(float(y.numel()), device="cuda").view_as(y)).double()
    passes = [torch.autograd.grad(y, (waves, frequency, quality), given, retain_graph=True) for _ in range(50)]
    assert all(torch.equal(one, first) for each in passes for one, first in zip(each, passes[0]))
