"""Train a small GPT-style language model on the characters of a text.

An ordinary PyTorch program for an NVIDIA GPU. It reads and writes nothing but what its arguments name.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        # (batch, heads, length, width / heads) each
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.attention(self.norm1(x)).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, symbols: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position(positions))))

    @torch.no_grad()
    def generate(self, tokens: torch.Tensor, count: int) -> torch.Tensor:
        for _ in range(count):
            logits = self(tokens[:, -self.context :])[:, -1] / 0.8
            tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], dim=1)
        return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="train what torch.compile makes of the model")
    parser.add_argument("--results", help="a JSON file to write")
    args = parser.parse_args()

    device = torch.device(args.device)
    torch.manual_seed(args.seed)

    with open(args.text, encoding="utf-8") as file:
        text = file.read()
    symbols = sorted(set(text))
    data = torch.tensor([symbols.index(character) for character in text])
    cut = len(data) * 9 // 10
    train, validation = data[:cut], data[cut:]
    choice = torch.Generator().manual_seed(args.seed)

    def batch(part: torch.Tensor):
        starts = torch.randint(len(part) - args.context - 1, (args.batch_size, 1), generator=choice)
        windows = part[starts + torch.arange(args.context + 1)]
        if device.type == "cuda":
            windows = windows.pin_memory()
        windows = windows.to(device, non_blocking=True)
        return windows[:, :-1], windows[:, 1:]

    model = LanguageModel(len(symbols), args.context, width=96, heads=4, layers=3).to(device)
    forward = torch.compile(model) if args.compile else model
    # torch 2.1 has fused optimizers for CUDA alone.
    fused = device.type == "cuda" or hasattr(torch.amp, "GradScaler")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), fused=fused)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=args.steps)

    def loss_of(part: torch.Tensor) -> torch.Tensor:
        tokens, targets = batch(part)
        return F.cross_entropy(forward(tokens).flatten(0, 1), targets.flatten())

    def characters(steps: int) -> int:
        return (steps - 1) * args.batch_size * args.context

    losses = []
    seconds = 0.0
    report = max(args.steps // 6, 1)
    for step in range(1, args.steps + 1):
        start = time.perf_counter()
        loss = loss_of(train)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        # The first step compiles, or makes the libraries ready.
        if step > 1:
            seconds += time.perf_counter() - start
        if step % report == 0:
            speed = characters(step) / max(seconds, 1e-9)
            print(f"  step {step}/{args.steps}  loss {losses[-1]:.3f}  {speed:6.0f} characters/s", flush=True)

    model.eval()
    with torch.no_grad():
        score = torch.stack([loss_of(validation) for _ in range(10)]).mean().item()
    print(f"  validation loss {score:.3f}")
    prompt = torch.tensor([[symbols.index(character) for character in "Alice "]], device=device)
    print("  it writes: " + repr("".join(symbols[i] for i in model.generate(prompt, 100)[0].tolist())))

    if args.results:
        speed = characters(args.steps) / max(seconds, 1e-9)
        with open(args.results, "w") as file:
            json.dump({"losses": losses, "score": score, "throughput": speed}, file)
    if device.type == "cuda":
        print(torch.cuda.memory_summary(abbreviated=True))


if __name__ == "__main__":
    main()
