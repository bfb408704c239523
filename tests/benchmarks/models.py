"""A training step and an inference of six kinds of model on the device beside the CPU.

Both sides hold the same weights and run in one process, in turns; see _measure.py. The training step is taken a second
time with each side in a process of its own, since in one process either side may cost the other something: threads
that are kept ready, memory that is not given back. So is the peak of resident memory.

    python tests/benchmarks/models.py [--only ResNet] [--rounds 7]
"""

from __future__ import annotations

import copy
import json
import resource
import statistics
import subprocess
import sys
from typing import Callable, Dict, List, Tuple

import _measure
import torch
import torch.nn.functional as F
from torch import nn

# Seconds for one row where the machine is noisy.
MOST = 30.0
# In a process of its own: seconds of steps, at least so many steps, and rounds of one process for each side.
ALONE, FEWEST, ROUNDS = 3.0, 3, 3

# Makes a model, its input and its target, both on the CPU.
Maker = Callable[[], Tuple[nn.Module, torch.Tensor, torch.Tensor]]


class Transformer(nn.Module):
    """GPT-2 small's shape when causal, BERT base's when not: 12 blocks of width 768; as many heads as blocks."""

    def __init__(self, symbols: int, length: int, causal: bool, layers: int = 12, width: int = 768) -> None:
        super().__init__()
        self.causal = causal
        self.token, self.position = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, layers, pre_norm=causal) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x, self.causal)
        return self.norm(x) @ self.token.weight.t()


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, pre_norm: bool) -> None:
        super().__init__()
        self.heads, self.pre_norm = heads, pre_norm
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x: torch.Tensor, causal: bool) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor, causal: bool) -> torch.Tensor:
        if self.pre_norm:
            x = x + self.attend(self.norm1(x), causal)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attend(x, causal))
        return self.norm2(x + self.mlp(x))


class Recurrent(nn.Module):
    """Two layers of LSTM over embedded symbols."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.lstm, self.head = nn.Embedding(1000, 256), nn.LSTM(256, 512, 2), nn.Linear(512, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.token(tokens))[0])


def double_convolution(inner: int, outer: int) -> nn.Sequential:
    layers = []
    for channels in (inner, outer):
        layers += [nn.Conv2d(channels, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """U-Net of four levels, 32 channels at the top."""

    def __init__(self) -> None:
        super().__init__()
        widths = [32, 64, 128, 256]
        self.down = nn.ModuleList(double_convolution(i, o) for i, o in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(widths, widths[1:]))
        self.join = nn.ModuleList(double_convolution(2 * width, width) for width in widths[:-1])
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.join[level](torch.cat([kept[level], self.up[level](x)], 1))
        return self.head(x)


def vision(name: str) -> Maker:
    def make() -> Tuple[nn.Module, torch.Tensor, torch.Tensor]:
        import torchvision

        return getattr(torchvision.models, name)(weights=None), torch.rand(8, 3, 224, 224), torch.randint(1000, (8,))

    return make


def language(causal: bool, batch: int, length: int, symbols: int, *size: int) -> Maker:
    def make() -> Tuple[nn.Module, torch.Tensor, torch.Tensor]:
        tokens, target = torch.randint(symbols, (2, batch, length))
        return Transformer(symbols, length, causal, *size), tokens, target

    return make


MODELS: Dict[str, Maker] = {
    "ResNet-50": vision("resnet50"),
    "MobileNet-v3": vision("mobilenet_v3_large"),
    "GPT-2 small": language(True, 2, 256, 50257),
    "BERT base": language(False, 2, 128, 30522),
    "LSTM": lambda: (Recurrent(), torch.randint(1000, (64, 16)), torch.randint(1000, (64, 16))),
    "U-Net": lambda: (UNet(), torch.rand(2, 3, 128, 128), torch.randint(4, (2, 128, 128))),
}
# So small that its loops are short: what it costs to start them shows.
SMALL: Dict[str, Maker] = {"3 layers of 96": language(True, 32, 64, 70, 3, 96)}


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy; the classes are the last dimension of sequences (b, n, c), the second of images (b, c, h, w)."""
    if output.dim() == 3:
        output, target = output.flatten(0, 1), target.flatten()
    return F.cross_entropy(output, target)


class Side:
    """A model and its data on one device."""

    def __init__(self, model: nn.Module, x: torch.Tensor, target: torch.Tensor, device: str) -> None:
        self.model, self.x, self.target = copy.deepcopy(model).to(device), x.to(device), target.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def train(self) -> float:
        self.model.train()
        self.optimizer.zero_grad()
        loss = loss_of(self.model(self.x), self.target)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def infer(self) -> float:
        self.model.eval()
        return self.model(self.x).sum().item()


def peak_kilobytes(name: str, device: str) -> int:
    """Peak resident memory of a process that trains two steps on ``device``."""
    command = [sys.executable, __file__, "--peak", name, device]
    return int(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def step_seconds(name: str, device: str) -> float:
    """Median time of a training step in a process that knows only ``device``."""
    command = [sys.executable, __file__, "--alone", name, device]
    return float(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def alone(side: Side) -> float:
    """Median time of a training step, in seconds."""
    side.train()
    taken: List[float] = []
    while len(taken) < FEWEST or sum(taken) < ALONE:
        taken.append(_measure.seconds(side.train, 1))
    return statistics.median(taken)


def apart(name: str) -> _measure.Ratio:
    """The training step on both sides, each in processes of its own."""
    ratios, references = [], []
    for turn in range(ROUNDS):
        order = ("cpu", "cuda") if turn % 2 else ("cuda", "cpu")
        taken = {device: step_seconds(name, device) for device in order}
        ratios.append(taken["cuda"] / taken["cpu"])
        references.append(taken["cpu"])
    group = "training step, processes apart"
    return _measure.Ratio(group, name, statistics.median(ratios), min(ratios), max(ratios), min(references))


def main() -> None:
    parser = _measure.parser(__doc__)
    parser.add_argument(
        "--alone", nargs=2, metavar=("MODEL", "DEVICE"), help="print the time of a step on this device alone, in s"
    )
    parser.add_argument(
        "--peak", nargs=2, metavar=("MODEL", "DEVICE"), help="print the peak memory of two steps, in KiB"
    )
    parser.set_defaults(rounds=5)
    arguments = parser.parse_args()
    if arguments.peak:
        name, device = arguments.peak
        torch.manual_seed(0)
        side = Side(*MODELS[name](), device)
        side.train(), side.train()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return
    if arguments.alone:
        name, device = arguments.alone
        torch.manual_seed(0)
        print(alone(Side(*{**MODELS, **SMALL}[name](), device)))
        return
    table = _measure.Table(arguments)
    for name, make in MODELS.items():
        if arguments.only not in name:
            continue
        torch.manual_seed(0)
        made = make()
        host, device = Side(*made, "cpu"), Side(*made, "cuda")
        # A quick model is run several times a round.
        host.train()
        calls = max(1, round(0.5 / _measure.seconds(host.train, 1)))
        table.add(_measure.compare("training step", name, host.train, device.train, calls, arguments.rounds, MOST))
        with torch.inference_mode():
            calls = max(1, round(0.5 / _measure.seconds(host.infer, 1)))
            table.add(_measure.compare("inference", name, host.infer, device.infer, calls, arguments.rounds, MOST))
    for name in [*MODELS, *SMALL]:
        if arguments.only in name:
            table.add(apart(name))
    if arguments.only in "ResNet-50":
        peaks = [peak_kilobytes("ResNet-50", device) for device in ("cpu", "cuda")]
        ratio = peaks[1] / peaks[0]
        table.add(_measure.Ratio("peak memory", f"ResNet-50 step, {peaks[0] / 1024:.0f} MiB", ratio, ratio, ratio, 0.0))
    table.close(["training step", "inference", "training step, processes apart"])


if __name__ == "__main__":
    main()
