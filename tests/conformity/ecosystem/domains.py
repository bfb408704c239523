"""Packages of one domain each: graphs, medical images, segmentation, equations, symmetry, reinforcement learning."""

from typing import Any, Callable, Dict, List, Tuple

import torch
from compare import Program, training
from torch import Tensor, nn


def _drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _squared(module: nn.Module, given: Any) -> Tuple[Tensor, Any]:
    outputs = module(given)
    every: List[Tensor] = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    return torch.stack([part.square().mean() for part in every]).sum(), every


class _Graphs(nn.Module):
    """One layer over a batch of graphs, and what the graphs come to."""

    def __init__(self, layer: nn.Module, wanted: str) -> None:
        super().__init__()
        self.layer, self.wanted = layer, wanted

    def forward(self, given: Dict[str, Tensor]) -> List[Tensor]:
        from torch_geometric import nn as layers

        nodes = self.layer(given["x"], *(given[word] for word in self.wanted.split()))
        return [nodes, layers.global_mean_pool(nodes, given["graph"]), layers.global_max_pool(nodes, given["graph"])]


def geometric(name: str) -> Program:
    """A layer of torch_geometric over three graphs of ten nodes."""
    from torch_geometric import nn as layers

    nodes, edges = 30, 120
    source = torch.Generator().manual_seed(2)
    given = {
        "x": _drawn(nodes, 8),
        "edges": torch.randint(0, 10, (2, edges), generator=source) + torch.arange(edges) // 40 * 10,
        "attributes": _drawn(edges, 3, seed=3),
        "kinds": torch.randint(0, 4, (edges,), generator=source),
        "places": _drawn(nodes, 3, seed=4),
        "graph": torch.arange(nodes) // 10,
    }
    degrees = torch.tensor([0, 2, 5, 9, 8, 4, 2])
    makers: Dict[str, Tuple[Callable[[], nn.Module], str]] = {
        "GCNConv": (lambda: layers.GCNConv(8, 16), "edges"),
        "GATv2Conv": (lambda: layers.GATv2Conv(8, 8, heads=2, edge_dim=3), "edges attributes"),
        "SAGEConv": (lambda: layers.SAGEConv(8, 16, aggr="max"), "edges"),
        "SAGEConv median": (lambda: layers.SAGEConv(8, 16, aggr="median"), "edges"),
        "GINConv": (lambda: layers.GINConv(nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())), "edges"),
        "ChebConv": (lambda: layers.ChebConv(8, 16, 3), "edges"),
        "TransformerConv": (lambda: layers.TransformerConv(8, 8, heads=2, edge_dim=3), "edges attributes"),
        "PNAConv": (
            lambda: layers.PNAConv(
                8, 16, ["mean", "min", "max", "std"], ["identity", "amplification"], deg=degrees, edge_dim=3
            ),
            "edges attributes",
        ),
        "EdgeConv": (lambda: layers.EdgeConv(nn.Linear(16, 16)), "edges"),
        "NNConv": (lambda: layers.NNConv(8, 16, nn.Linear(3, 128)), "edges attributes"),
        "RGCNConv": (lambda: layers.RGCNConv(8, 16, 4), "edges kinds"),
        "GENConv": (lambda: layers.GENConv(8, 16, edge_dim=3), "edges attributes"),
        "PointTransformerConv": (lambda: layers.PointTransformerConv(8, 16), "places edges"),
        "GPSConv": (lambda: layers.GPSConv(8, layers.GCNConv(8, 8), heads=2), "edges graph"),
    }
    make, wanted = makers[name]
    return training(lambda: _Graphs(make(), wanted), given, _squared)


def monai(name: str) -> Program:
    """Networks for volumes, and losses on what one of them returns."""
    from monai import losses
    from monai.networks import nets

    volume = _drawn(2, 1, 32, 32, 32)
    labels = (_drawn(2, 1, 32, 32, 32, seed=2) > 0).float()

    def small() -> nn.Module:
        return nets.BasicUNet(3, 1, 2, (4, 4, 8, 8, 8, 4))

    networks: Dict[str, Callable[[], nn.Module]] = {
        "UNet": lambda: nets.UNet(3, 1, 2, (4, 8, 16), (2, 2), num_res_units=1),
        "AttentionUnet": lambda: nets.AttentionUnet(3, 1, 2, (4, 8, 16), (2, 2)),
        "SegResNet": lambda: nets.SegResNet(3, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,)),
        "DynUNet": lambda: nets.DynUNet(3, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 16]),
        "UNETR": lambda: nets.UNETR(1, 2, (32, 32, 32), feature_size=4, hidden_size=24, mlp_dim=32, num_heads=3),
        "DenseNet": lambda: nets.DenseNet(3, 1, 2, 8, 4, (2, 2)),
        "ViT": lambda: nets.ViT(1, (32, 32, 32), (8, 8, 8), 24, 48, 2, 3, classification=True),
    }
    if name in networks:
        first = name == "ViT"
        return training(
            networks[name],
            volume,
            lambda module, given: _squared(lambda x: module(x)[0] if first else module(x), given),
        )
    loss = getattr(losses, name)(to_onehot_y=True, **({} if name == "FocalLoss" else {"softmax": True}))

    def judged(module: nn.Module, given: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Any]:
        outputs = module(given[0])
        return loss(outputs, given[1]), outputs

    return training(small, (volume, labels), judged)


def segmenters(name: str) -> Program:
    """Architectures of segmentation_models_pytorch on a small encoder."""
    import segmentation_models_pytorch

    make = getattr(segmentation_models_pytorch, name)
    return training(lambda: make("resnet18", encoder_weights=None, classes=2), _drawn(2, 3, 128, 128), _squared)


def equations(name: str) -> Program:
    """Solutions of an equation that a network is the right side of; the gradients come through the solver."""
    import torchdiffeq

    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 3))

        def forward(self, given: Any, state: Any = None) -> Tensor:
            if state is not None:
                return self.layers(state)
            times = torch.linspace(0, 1, 5, device=given.device, dtype=given.dtype)
            # An adaptive step is chosen by rounding where the tolerance asks for more than float32 has.
            solve = torchdiffeq.odeint_adjoint if name == "adjoint" else torchdiffeq.odeint
            return solve(self, given, times, rtol=1e-4, atol=1e-4, method="rk4" if name == "rk4" else "dopri5")

    return training(Field, _drawn(5, 3), _squared)


def equivariant(name: str) -> Program:
    """e3nn's tensor product of features with spherical harmonics."""
    from e3nn import o3

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.product = o3.FullyConnectedTensorProduct("4x0e+2x1o", "1x0e+1x1o+1x2e", "4x0e+2x1o+1x2e")

        def forward(self, given: Tuple[Tensor, Tensor]) -> Tensor:
            return self.product(given[0], o3.spherical_harmonics([0, 1, 2], given[1], normalize=True))

    return training(Product, (_drawn(10, 10), _drawn(10, 3, seed=2)), _squared)


def reinforcement(name: str) -> Program:
    """What an agent of stable-baselines3 has learned in 200 steps; its chances come from NumPy, not from the device."""
    import stable_baselines3

    task = "CartPole-v1" if name == "DQN" else "Pendulum-v1"
    settings = {"learning_starts": 50, "buffer_size": 300, "batch_size": 16}

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        # Observations are float32: there is no run in double.
        if dtype != torch.float32:
            raise TypeError("float32 alone")
        agent = getattr(stable_baselines3, name)(
            "MlpPolicy", task, seed=1, device=device, policy_kwargs={"net_arch": [16, 16]}, **settings
        )
        agent.learn(200)
        return {"weights": list(agent.policy.parameters())}

    return program
