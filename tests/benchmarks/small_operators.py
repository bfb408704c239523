"""What an operator costs on the device beside the same one on the CPU: on few elements, and on a million.

Both sides run in one process, alternating, and only their ratio counts. Run in an environment with the vendor wheel:

    python tests/benchmarks/small_operators.py [--elements 16 1048576] [--rounds 7]
"""

from __future__ import annotations

import functools
import math
from typing import Callable, Dict

import _measure
import torch
import torch.nn.functional as F

Operator = Callable[[torch.Tensor, torch.Tensor], object]

OPERATORS: Dict[str, Operator] = {
    "add": lambda a, b: a + b,
    "add_": lambda a, b: a.add_(b, alpha=0.0),
    "add scalar": lambda a, b: a + 1.0,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mul scalar": lambda a, b: a * 2.0,
    "mul_": lambda a, b: a.mul_(1.0),
    "div": lambda a, b: a / b,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: a.abs(),
    "pow": lambda a, b: a**2,
    "sqrt": lambda a, b: a.sqrt(),
    "rsqrt": lambda a, b: a.rsqrt(),
    "exp": lambda a, b: a.exp(),
    "log": lambda a, b: a.log(),
    "sin": lambda a, b: a.sin(),
    "tanh": lambda a, b: a.tanh(),
    "erf": lambda a, b: a.erf(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "relu": lambda a, b: a.relu(),
    "gelu": lambda a, b: F.gelu(a),
    "silu": lambda a, b: F.silu(a),
    "leaky_relu": lambda a, b: F.leaky_relu(a),
    "clamp": lambda a, b: a.clamp(0.0, 1.0),
    "maximum": lambda a, b: torch.maximum(a, b),
    "gt": lambda a, b: a > b,
    "eq": lambda a, b: a == b,
    "where": lambda a, b: torch.where(a > b, a, b),
    "masked_fill": lambda a, b: a.masked_fill(a > b, 0.0),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "to half": lambda a, b: a.half(),
    "to double": lambda a, b: a.double(),
    "sum": lambda a, b: a.sum(),
    "sum dim": lambda a, b: a.sum(0),
    "mean": lambda a, b: a.mean(-1),
    "amax": lambda a, b: a.amax(-1),
    "max dim": lambda a, b: a.max(-1),
    "argmax": lambda a, b: a.argmax(-1),
    "norm": lambda a, b: a.norm(),
    "cumsum": lambda a, b: a.cumsum(-1),
    "softmax": lambda a, b: a.softmax(-1),
    "log_softmax": lambda a, b: a.log_softmax(-1),
    "layer_norm": lambda a, b: F.layer_norm(a, a.shape[-1:]),
    "mm": lambda a, b: a @ b,
    "addmm": lambda a, b: torch.addmm(a, a, b),
    "bmm": lambda a, b: torch.bmm(a[None], b[None]),
    "linear": lambda a, b: F.linear(a, b),
    "cat": lambda a, b: torch.cat([a, b]),
    "stack": lambda a, b: torch.stack([a, b]),
    "sort": lambda a, b: a.sort(-1),
    "index": lambda a, b: a[:, [0, 1]],
    "clone": lambda a, b: a.clone(),
    "contiguous": lambda a, b: a.t().contiguous(),
    "copy_": lambda a, b: b.copy_(a),
    "zeros_like": lambda a, b: torch.zeros_like(a),
    "empty_like": lambda a, b: torch.empty_like(a),
    "select": lambda a, b: a[0],
    "transpose": lambda a, b: a.t(),
    "view": lambda a, b: a.view(-1),
}


def main() -> None:
    parser = _measure.parser(__doc__)
    parser.add_argument("--elements", type=int, nargs="+", default=[16, 1 << 20], help="of a tensor, square numbers")
    arguments = parser.parse_args()
    table = _measure.Table(arguments)
    groups = []
    for elements in arguments.elements:
        side = math.isqrt(elements)
        host = [torch.rand(side, side) + 0.5 for _ in range(2)]
        device = [tensor.cuda() for tensor in host]
        group = f"operators, {side}x{side}"
        groups.append(group)
        print(group)
        for name, operator in OPERATORS.items():
            if arguments.only not in name:
                continue
            # About as long on one side as a scheduler's time slice, whatever the size.
            work = [functools.partial(operator, *tensors) for tensors in (host, device)]
            calls = max(1, min(2000, round(0.01 / max(_measure.seconds(work[0], 2), 1e-7))))
            table.add(_measure.compare(group, name, *work, calls=calls, rounds=arguments.rounds))
    table.close(groups)


if __name__ == "__main__":
    main()
