"""Train a convolutional network on scikit-learn's handwritten digits: 1797 grey images of 8 x 8 pixels.

An ordinary PyTorch program for an NVIDIA GPU. It reads and writes nothing but what its arguments name.
"""

import argparse
import json
import random
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images))


def load_data():
    """Images as (N, 3, 8, 8): the grey values and their two gradients; and labels, split into train and test."""
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) / 16).astype(np.float32)
    rows, columns = np.gradient(images, axis=(1, 2))
    channels = np.stack([images, rows, columns], axis=1).astype(np.float32)
    parts = train_test_split(channels, labels, test_size=360, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = map(torch.from_numpy, parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    model.eval()
    correct = torch.zeros((), dtype=torch.long, device=device)
    count = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        correct += (model(images).argmax(1) == labels).sum()
        count += len(labels)
    return correct.item() / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--amp", action="store_true", help="mixed precision with gradient scaling")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", help="a JSON file to write")
    args = parser.parse_args()

    device = torch.device(args.device)
    random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_set, test_set = load_data()
    pin = device.type == "cuda"
    train = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True, pin_memory=pin)
    test = DataLoader(test_set, 360, pin_memory=pin)

    model = Network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=args.epochs * len(train))
    if hasattr(torch.amp, "GradScaler"):
        scaler = torch.amp.GradScaler(device.type, enabled=args.amp)
    else:  # torch 2.1 has one for CUDA alone
        scaler = torch.cuda.amp.GradScaler(enabled=args.amp and device.type == "cuda")

    losses = []
    strides = None
    seconds = 0.0
    for epoch in range(args.epochs):
        model.train()
        start = time.perf_counter()
        epoch_losses = []
        for images, labels in train:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            strides = images.stride()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, enabled=args.amp):
                loss = F.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            epoch_losses.append(loss.detach())
        epoch_losses = torch.stack(epoch_losses).tolist()
        elapsed = time.perf_counter() - start
        seconds += elapsed
        losses += epoch_losses
        print(
            f"  epoch {epoch + 1}/{args.epochs}  loss {sum(epoch_losses) / len(epoch_losses):.4f}"
            f"  test accuracy {accuracy(model, test, device):.2%}"
            f"  {len(epoch_losses) * args.batch_size / elapsed:6.0f} images/s",
            flush=True,
        )

    if args.results:
        results = {
            "losses": losses,
            "score": accuracy(model, test, device),
            "throughput": args.epochs * len(train) * args.batch_size / seconds,
            "strides": strides,
        }
        with open(args.results, "w") as file:
            json.dump(results, file)
    if device.type == "cuda":
        print(torch.cuda.memory_summary(abbreviated=True))


if __name__ == "__main__":
    main()
