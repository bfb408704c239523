"""Write the table of low-precision dtypes that the CPU kernels of one torch release lack.

Runs upstream's OpInfo samples, forward and backward, on device tensors of half, bfloat16 and complex half, calls each
operator on the way with CPU copies as well, and notes which ones say that they are "not implemented for" the dtype. Run
it with the release's vendor wheel, which may have been built with an empty table:

    python macatorch/codegen/cpu_dtypes.py --write
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, Dict, List, Set

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

WIDER = {torch.half: torch.float, torch.bfloat16: torch.float, torch.complex32: torch.complex64}
NAMES = {torch.half: "Half", torch.bfloat16: "BFloat16", torch.complex32: "ComplexHalf"}
COMPLAINT = re.compile(
    r"not implemented for '(Half|BFloat16|ComplexHalf)'|support tensors of type: (Half|ComplexHalf)"
    r"|Upsample backward only support BFloat16"
)
DEVICE = "cuda"
TABLES = Path(__file__).resolve().parents[1] / "cpu_dtypes"
HEAD = """\
# Low-precision dtypes that upstream's CPU kernels of torch {release} lack, as they say themselves. Such operators are
# computed in the next wider dtype and rounded once. Written by macatorch/codegen/cpu_dtypes.py.
"""


def converted(value: Any, table: Dict[torch.dtype, torch.dtype]) -> Any:
    """Every strided tensor on the device, in the dtype that ``table`` has for its own; dtypes themselves likewise."""

    def convert(item: Any) -> Any:
        if isinstance(item, torch.Tensor) and item.layout == torch.strided and not item.is_quantized:
            item = item.to(table[item.dtype]) if item.dtype in table else item
            return item.to(DEVICE)
        if isinstance(item, torch.device):
            return torch.device(DEVICE)
        return table.get(item, item) if isinstance(item, torch.dtype) else item

    return tree_map(convert, value)


def on_cpu(value: Any) -> Any:
    def move(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return item.cpu()
        return torch.device("cpu") if isinstance(item, torch.device) else item

    return tree_map(move, value)


class Asking(TorchDispatchMode):
    """Calls each operator on CPU copies first, and notes the complaints in ``lacking``: names of overloads by dtype."""

    def __init__(self, lacking: Dict[str, Set[str]]) -> None:
        super().__init__()
        self.lacking = lacking
        self.dtype = torch.half

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten" and any(
            isinstance(item, torch.Tensor) and item.dtype in WIDER and item.layout == torch.strided
            for item in tree_flatten((args, kwargs))[0]
        ):
            self.ask(func, args, kwargs)
        return func(*args, **kwargs)

    def ask(self, func: Any, args: Any, kwargs: Any) -> None:
        cpu_args, cpu_kwargs = on_cpu((args, kwargs))
        try:
            func(*cpu_args, **cpu_kwargs)
        except RuntimeError as error:
            found = COMPLAINT.search(str(error))
            if found is None:
                return
            name = str(func)[len("aten.") :]
            name = name[: -len(".default")] if name.endswith(".default") else name
            # A transform has real and complex operands, and names only one of their dtypes.
            said = found.group(1) or NAMES[self.dtype]
            if said == NAMES[self.dtype]:
                self.lacking[said].add(name)


def run(op: Any, sample: Any, dtype: torch.dtype, asking: Asking) -> None:
    inputs = converted((sample.input, sample.args, dict(sample.kwargs)), {WIDER[dtype]: dtype})

    def leaf(item: Any) -> Any:
        wanted = isinstance(item, torch.Tensor) and item.dtype == dtype and op.supports_autograd
        return item.detach().requires_grad_() if wanted else item

    inputs = tree_map(leaf, inputs)
    with asking:
        result = op(inputs[0], *inputs[1], **inputs[2])
        leaves = [x for x in tree_flatten(inputs)[0] if isinstance(x, torch.Tensor) and x.requires_grad]
        results = [x for x in tree_flatten(result)[0] if isinstance(x, torch.Tensor) and x.requires_grad]
        if leaves and results:
            torch.autograd.grad(results, leaves, [torch.ones_like(x) for x in results], allow_unused=True)


def name_of(op: Any) -> str:
    """The operator and its variant; releases before 2.5 have no word for both."""
    return ".".join(part for part in (op.name, op.variant_test_name) if part)


def probe(samples: int, only: str) -> Dict[str, Set[str]]:
    lacking: Dict[str, Set[str]] = {name: set() for name in NAMES.values()}
    asking = Asking(lacking)
    ops = [op for op in op_db if re.search(only, op.name)]
    for number, op in enumerate(ops):
        print(f"\r{number + 1}/{len(ops)} {name_of(op):60.60}", end="", file=sys.stderr, flush=True)
        for dtype, wide in WIDER.items():
            asking.dtype = dtype
            if wide not in op.dtypes:
                continue
            try:
                taken = [sample for sample, _ in zip(op.sample_inputs("cpu", wide), range(samples))]
            except Exception as error:
                print(f"\n{name_of(op)}: no samples: {error}", file=sys.stderr)
                continue
            for sample in taken:
                try:
                    run(op, sample, dtype, asking)
                except Exception as error:  # what fails in a wider dtype as well says nothing about this one
                    if COMPLAINT.search(str(error)):
                        print(f"\n{name_of(op)} {dtype}: {error}", file=sys.stderr)
    print(file=sys.stderr)
    return lacking


def rendered(lacking: Dict[str, Set[str]]) -> str:
    release = torch.__version__.split("+")[0]
    lines: List[str] = [HEAD.format(release=release)]
    for dtype, names in lacking.items():
        listed = "".join(f'"{name}", ' for name in sorted(names)).rstrip()
        lines += [f"{dtype} = [", *textwrap.wrap(listed, 118, initial_indent="  ", subsequent_indent="  "), "]", ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=30, help="samples of each operator and dtype (default 30)")
    parser.add_argument("--only", default="", help="operators whose OpInfo name matches this regular expression")
    parser.add_argument("--write", action="store_true", help="replace the release's table instead of printing it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    text = rendered(probe(arguments.samples, arguments.only))
    if not arguments.write:
        print(text, end="")
        return 0
    TABLES.mkdir(exist_ok=True)
    path = TABLES / f"{torch.__version__.split('+')[0]}.toml"
    path.write_text(text, encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
