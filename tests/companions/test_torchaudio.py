"""torchaudio's operators with CUDA kernels of their own, and a model that trains, against the CPU."""

import copy
import importlib.util

import pytest
import torch

if importlib.util.find_spec("torchaudio") is None:
    pytest.skip("torchaudio is not installed", allow_module_level=True)

import torchaudio
from torchaudio import functional as F


def test_the_wheel_is_the_one_that_was_built_for_this_torch() -> None:
    assert "+maca" in torchaudio.__version__


def test_a_recursive_filter_and_its_gradients_are_the_cpus() -> None:
    """Upstream launches its kernel by the tensor's device, without an operator."""
    wave = torch.randn(2, 400, dtype=torch.double)
    a, b = torch.tensor([1.0, -0.5, 0.2], dtype=torch.double), torch.tensor([0.3, 0.1, 0.05], dtype=torch.double)
    results = []
    for device in ("cpu", "cuda"):
        given = [each.to(device).requires_grad_() for each in (wave.clone(), a.clone(), b.clone())]
        result = F.lfilter(*given, clamp=False)
        assert result.device.type == device
        results.append([result, *torch.autograd.grad(result.square().sum(), given)])
    for want, got in zip(*results):
        torch.testing.assert_close(got.cpu(), want)


def test_a_transducers_loss_and_its_gradient_are_the_cpus() -> None:
    logits = torch.randn(2, 10, 6, 5)
    targets = torch.randint(1, 5, (2, 5), dtype=torch.int32)
    lengths = torch.tensor([10, 8], dtype=torch.int32), torch.tensor([5, 4], dtype=torch.int32)
    results = []
    for device in ("cpu", "cuda"):
        given = logits.to(device).requires_grad_()
        loss = F.rnnt_loss(given, targets.to(device), *(each.to(device) for each in lengths), blank=0)
        results.append([loss, *torch.autograd.grad(loss, [given])])
    for want, got in zip(*results):
        assert got.is_cuda
        torch.testing.assert_close(got.cpu(), want)


def test_an_alignment_is_the_cpus() -> None:
    emission = torch.randn(1, 20, 5).log_softmax(-1)
    targets = torch.randint(1, 5, (1, 6), dtype=torch.int32)
    want, got = F.forced_align(emission, targets), F.forced_align(emission.cuda(), targets.cuda())
    for each, other in zip(got, want):
        assert each.is_cuda
        torch.testing.assert_close(each.cpu(), other)


def test_a_conformer_trains_as_on_the_cpu() -> None:
    model = torchaudio.models.Conformer(32, 4, 64, 2, 15, dropout=0.0).double()
    frames, wanted = torch.randn(3, 40, 32).double(), torch.randn(3, 40, 32).double()
    lengths = torch.tensor([40, 33, 21])
    losses = []
    for device in ("cpu", "cuda"):
        trained = copy.deepcopy(model).to(device)
        optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3)
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            result, _lengths = trained(frames.to(device), lengths.to(device))
            loss = (result - wanted.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0][-1] < losses[0][0]
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-9, atol=0)
