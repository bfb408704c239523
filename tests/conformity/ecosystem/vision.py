"""Networks for images: classification, detection, segmentation."""

from typing import Any, Tuple

import torch
from compare import Program, training
from torch import Tensor, nn


def _images(count: int, size: int) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(1))


def _classified(module: nn.Module, given: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Any]:
    images, labels = given
    outputs = module(images)
    # Networks with auxiliary classifiers return a tuple while they train; some networks of timm two equal heads.
    every = [part for part in outputs if isinstance(part, Tensor)] if isinstance(outputs, tuple) else [outputs]
    value = torch.stack([nn.functional.cross_entropy(part, labels) for part in every]).sum()
    return value, list(every)


def torchvision(name: str) -> Program:
    """Training steps and inference of a classifier with fresh weights."""
    import torchvision

    size = {"inception_v3": 299, "maxvit_t": 224, "vit_b_32": 224}.get(name, 96)
    extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return training(
        lambda: torchvision.models.get_model(name, weights=None, num_classes=10, **extra),
        (_images(4, size), torch.tensor([1, 7, 3, 0])),
        _classified,
    )


def timm(name: str) -> Program:
    """The same of a network of timm, at the size of its configuration or at 96 pixels where it takes any."""
    import timm

    fixed = any(word in name for word in ("_224", "_256", "26t", "coat", "levit", "edgenext"))
    size = 256 if "256" in name or "26t" in name else 224 if fixed else 96
    return training(
        lambda: timm.create_model(name, pretrained=False, num_classes=10),
        (_images(2, size), torch.tensor([1, 7])),
        _classified,
    )


def segmentation(name: str) -> Program:
    """Cross entropy of every pixel, with the auxiliary head where there is one."""
    import torchvision

    def loss(module: nn.Module, given: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Any]:
        outputs = module(given[0])
        value = torch.stack([nn.functional.cross_entropy(part, given[1]) for part in outputs.values()]).sum()
        return value, dict(outputs)

    labels = torch.randint(0, 5, (2, 64, 64), generator=torch.Generator().manual_seed(2))
    return training(
        lambda: torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5),
        (_images(2, 64), labels),
        loss,
    )


def detection(name: str) -> Program:
    """Losses of a detector on two images with boxes, and what it finds in them afterwards."""
    import torchvision

    def loss(module: nn.Module, given: Tuple[Any, Any]) -> Tuple[Tensor, Any]:
        images, targets = given
        # The sampler of proposals draws from the device's generator: every proposal is taken instead.
        if not module.training:
            return torch.zeros(()), module(list(images))
        parts = module(list(images), targets)
        return torch.stack(list(parts.values())).sum(), dict(parts)

    boxes = [torch.tensor([[4.0, 6.0, 40.0, 52.0]]), torch.tensor([[10.0, 8.0, 50.0, 60.0], [0.0, 0.0, 20.0, 20.0]])]
    targets = [{"boxes": b, "labels": torch.ones(len(b), dtype=torch.int64)} for b in boxes]
    settings = {"min_size": 64, "max_size": 64} if name.startswith(("faster", "retina")) else {}
    if name.startswith("faster"):
        settings.update(rpn_batch_size_per_image=10**6, box_batch_size_per_image=10**6)
    return training(
        lambda: torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=3, **settings),
        (list(_images(2, 64)), targets),
        loss,
    )
