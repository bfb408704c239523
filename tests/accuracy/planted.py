"""A twelve-layer transformer whose kernels can be perturbed: once forward, once only backward.

python planted.py --device cuda --dtype float32 --plant fwd:37 prints the module that was planted. Place N is the N-th
call of a module that is one operator.
"""

import argparse
import os
from typing import Any, List

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.softmax = nn.Softmax(dim=-1)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = self.softmax(q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 32, layers: int = 12, words: int = 50) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*[Block(width, 2) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embed(tokens))))


class WrongBackward(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        right = grad.dtype == torch.float64 or grad.device.type != DEVICE
        return grad if right else (grad.double() * 1.01).to(grad.dtype)


def _wrong_forward(value: torch.Tensor) -> torch.Tensor:
    # Only on the device and not in double precision: the kernels that level 0 compares with are right.
    if value.dtype == torch.float64 or value.device.type != DEVICE:
        return value
    return value + (value.detach().double() * 0.01).to(value.dtype)


def places(model: Model) -> List[Any]:
    return [module for module in model.modules() if not list(module.children())]


def plant(model: Model, where: str) -> str:
    """Perturb one module's kernel by 1e-2, inside of the module's own call; the class of the module."""
    way, _, number = where.partition(":")
    module = places(model)[int(number)]
    original = module.forward
    if way == "fwd":
        module.forward = lambda x: _wrong_forward(original(x))
    else:
        # The output's gradient, so that it is wrong for input and parameters alike.
        module.forward = lambda x: WrongBackward.apply(original(x))
    return f"torch.nn.{type(module).__name__}"


def call_order(model: Model) -> List[Any]:
    """The modules in the order in which the forward pass calls them."""
    parts = ("norm1", "qkv", "softmax", "out", "norm2", "up", "act", "down")
    inner = [getattr(block, part) for block in model.blocks for part in parts]
    return [model.embed, *inner, model.norm, model.head]


def build(device: str, dtype: torch.dtype, where: str = "", layers: int = 12) -> Model:
    torch.manual_seed(0)
    model = Model(layers=layers).to(device, dtype)
    if where:
        plant(model, where)
    return model  # type: ignore[no-any-return]


def train(model: Model) -> None:
    """One forward and backward pass."""
    device = next(model.parameters()).device
    tokens = torch.arange(24, device=device).view(2, 12) * 7 % 50
    nn.functional.cross_entropy(model(tokens).view(-1, 50), tokens.view(-1)).backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default=os.environ.get("MACA_ACCURACY_DEVICE", "cpu"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--plant", default="")
    parser.add_argument("--only-on", default="")
    parser.add_argument("--layers", type=int, default=12)
    chosen = parser.parse_args()
    here = chosen.plant if not chosen.only_on or chosen.device.startswith(chosen.only_on) else ""
    train(build(chosen.device, getattr(torch, chosen.dtype), here, chosen.layers))
