"""What a device operator must have in common with the CPU's, for one entry of upstream's OpInfo and one dtype.

Values are compared with two references: the CPU in double, which is the truth, and the CPU in the dtype itself, which
shares the points where an operator jumps (sorting, rounding, chaotic cases). An element must be near one of them.
"""

from __future__ import annotations

import re
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.opinfo.core import DecorateInfo
from torch.utils._pytree import tree_flatten, tree_map

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Samples of an entry that one check looks at, spread over all of them.
SAMPLES = 16
GRADIENTS = 6
# Gradients add up more terms, and of weights near one: what cancels leaves some of their last places.
GRADIENT_FACTOR, GRADIENT_FLOOR = 8.0, 4.0
# Relative tolerance of a dtype, and how many units in the last place of the largest element an element may be off:
# sums of a few hundred terms in another order.
TOLERANCE = {
    torch.float16: (2e-3, 16), torch.bfloat16: (1.6e-2, 8), torch.float32: (2e-5, 64), torch.float64: (1e-9, 1024),
    torch.complex32: (4e-3, 16), torch.complex64: (4e-5, 64), torch.complex128: (1e-9, 1024),
}  # fmt: skip
WIDE = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex32: torch.complex128, torch.complex64: torch.complex128,
}  # fmt: skip
TREATMENTS: Dict[str, Any] = tomllib.loads((Path(__file__).parent / "treatments.toml").read_text(encoding="utf-8"))


def entry_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).split(".")[1]


def treated(op: Any, kind: str) -> bool:
    """Whether an entry is listed under ``kind`` in treatments.toml."""
    return op.name in TREATMENTS[kind]["names"] or entry_name(op) in TREATMENTS[kind]["names"]


def is_for_cpu_alone(op: Any) -> bool:
    """Whether upstream tests an entry on the CPU alone, whatever dtypes its table claims for CUDA."""
    return any(getattr(decorator, "__name__", "") == "onlyCPU" for decorator in op.decorators)


def left_out_by_upstream(op: Any, test_class: str, test: str, dtype: torch.dtype) -> bool:
    """Whether upstream skips this check on CUDA, or expects it to fail there."""
    for decorator in op.decorators:
        if isinstance(decorator, DecorateInfo) and decorator.is_active(test_class, test, "cuda", dtype, {}):
            names = {getattr(d, "__qualname__", type(d).__name__) for d in decorator.decorators}
            if any("skip" in name.lower() or "expectedFailure" in name for name in names):
                return True
    return False


def move(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor on the device: sizes, strides, storage and lazy bits included."""
    if tensor.is_cuda:
        return tensor
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        return tensor.detach().to("cuda").requires_grad_(tensor.requires_grad)
    plain = tensor.detach()
    if plain.is_conj():
        moved = move(plain.conj()).conj()
    elif plain.is_neg():
        moved = torch._neg_view(move(torch._neg_view(plain)))
    else:
        whole = torch.empty(0, dtype=torch.uint8).set_(plain.untyped_storage()).clone().cuda()
        moved = torch.empty(0, dtype=plain.dtype, device="cuda")
        moved.set_(whole.untyped_storage(), plain.storage_offset(), plain.size(), plain.stride())
    return moved.requires_grad_(tensor.requires_grad)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return tree_map(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf, value)


def to_cuda(op: Any, arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """A sample on the device: tensors, devices by name or object, and the device that a factory function is given."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return move(leaf)
        if isinstance(leaf, torch.device):
            return torch.device("cuda")
        return "cuda" if isinstance(leaf, str) and leaf == "cpu" else leaf

    first, others = arguments[0], arguments[1:]
    if treated(op, "host arguments"):
        others = mapped(others, torch.clone)
    else:
        others = tree_map(change, others)
    moved = tree_map(change, keywords)
    if op.is_factory_function and not tensors(arguments):
        moved = {**moved, "device": "cuda"}
    return (tree_map(change, first), *others), moved


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor in double precision, in a storage with the same gaps: as_strided looks into them."""
    plain = tensor.detach()
    if plain.layout != torch.strided or plain.is_quantized or plain.is_nested or plain.is_conj() or plain.is_neg():
        return plain.to(WIDE[plain.dtype])
    storage = plain.untyped_storage()
    whole = plain.new_empty(0).set_(storage, 0, (storage.nbytes() // plain.element_size(),), (1,))
    return whole.to(WIDE[plain.dtype]).as_strided(plain.size(), plain.stride(), plain.storage_offset())


def widen(value: Any) -> Any:
    def change(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return WIDE.get(leaf, leaf)
        if isinstance(leaf, torch.Tensor) and leaf.dtype in WIDE:
            return widened(leaf).requires_grad_(leaf.requires_grad)
        return leaf

    return tree_map(change, value)


def tensors(value: Any) -> List[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def dense(value: torch.Tensor) -> torch.Tensor:
    value = value.detach()
    if value.is_quantized:
        value = value.dequantize()
    if value.is_nested:
        value = value.to_padded_tensor(0.0)
    return value if value.layout == torch.strided else value.to_dense()


def spread(samples: Iterator[Any], limit: int) -> List[Any]:
    """At most ``limit`` of them, from the whole range."""
    found = list(samples)
    if len(found) <= limit:
        return found
    return [found[index * len(found) // limit] for index in range(limit)]


def samples_of(op: Any, dtype: torch.dtype, limit: int, requires_grad: bool = False) -> Iterator[Any]:
    """Arguments on the CPU, the same in every run."""
    warnings.simplefilter("ignore")
    torch.manual_seed(zlib.crc32(f"{entry_name(op)} {dtype}".encode()))
    samples = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    if treated(op, "one driver"):
        samples = [sample for sample in samples if sample.kwargs.get("driver", "gels") == "gels"]
    for sample in spread(samples, limit):
        yield (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad


def attempt(call: Callable[[], Any]) -> Optional[Any]:
    """What it returns; None where the CPU cannot do it."""
    try:
        return call()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None


def far(got: torch.Tensor, want: torch.Tensor, factor: float, floor: float) -> Optional[torch.Tensor]:
    """Elements that differ by more than ``factor`` tolerances and ``floor`` epsilons; None where the shape differs."""
    if got.shape != want.shape:
        return None
    if not (got.is_floating_point() or got.is_complex()):
        return torch.ne(got, want.to(got.dtype))
    if got.is_complex():
        pair = torch.view_as_real(got.resolve_conj().resolve_neg().to(torch.complex128))
        narrow = torch.view_as_real(want.resolve_conj().resolve_neg().to(got.dtype).to(torch.complex128))
    else:
        pair, narrow = got.double(), want.to(got.dtype).double()
    rtol, units = TOLERANCE.get(got.dtype, (0.0, 0))
    finite = narrow[narrow.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    epsilon = torch.finfo(got.dtype).eps if got.dtype in TOLERANCE else 0.0
    bound = factor * (rtol * narrow.abs() + units * epsilon * largest) + floor * epsilon + torch.finfo(got.dtype).tiny
    differs = torch.where(
        narrow.isfinite() & pair.isfinite(),
        (pair - narrow).abs() > bound,
        ~((pair == narrow) | (pair.isnan() & narrow.isnan())),
    )
    return differs.any(-1) if got.is_complex() else differs


def compare(
    got: torch.Tensor,
    same: Optional[torch.Tensor],
    wide: Optional[torch.Tensor],
    where: str,
    factor: float = 1.0,
    floor: float = 0.0,
) -> None:
    """Fail unless every element agrees with one of the references."""
    value = dense(got).cpu()
    wrong: Optional[torch.Tensor] = None
    references = [dense(reference).cpu() for reference in (same, wide) if reference is not None]
    for reference in references:
        differs = far(value, reference, factor, floor)
        if differs is None:
            assert value.shape == reference.shape, f"{where}: shape {tuple(value.shape)}, not {tuple(reference.shape)}"
            continue
        wrong = differs if wrong is None else wrong & differs
    if wrong is None or not bool(wrong.any()):
        return
    index = tuple(wrong.nonzero()[0].tolist())
    wanted = " or ".join(str(reference[index].item()) for reference in references)
    found = f"{int(wrong.sum())} of {wrong.numel()} elements are wrong; at {index} {value[index].item()}, not {wanted}"
    pytest.fail(f"{where}: {found}", pytrace=False)


def describe(arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> str:
    """A sample in a few words."""

    def word(leaf: Any) -> str:
        if isinstance(leaf, torch.Tensor):
            return f"{dtype_name(leaf.dtype)}{list(leaf.shape)}"
        if isinstance(leaf, (list, tuple)):
            return "[" + ", ".join(word(each) for each in leaf) + "]"
        return repr(leaf)

    words = [word(each) for each in arguments] + [f"{key}={word(value)}" for key, value in keywords.items()]
    return f"({', '.join(words)})"[:300]


def check_values(op: Any, dtype: torch.dtype, limit: int = SAMPLES) -> None:
    """Shape, dtype, device, layout and values of the results."""
    compared, unreferenced = 0, 0
    for arguments, keywords, _ in samples_of(op, dtype, limit):
        where = describe(arguments, keywords)
        moved, moved_keywords = to_cuda(op, arguments, keywords)
        if treated(op, "random"):
            check_random(op, moved, moved_keywords, where)
            compared += 1
            continue
        # In-place operators among the entries change their arguments: each call has its own.
        wide_arguments, wide_keywords = widen(mapped((arguments, keywords), torch.clone))
        wide = attempt(lambda: op(*wide_arguments, **wide_keywords)) if dtype in WIDE else None  # noqa: B023
        same = attempt(lambda: op(*arguments, **keywords))  # noqa: B023
        got = op(*moved, **moved_keywords)
        found = tensors(got)
        sames = tensors(same) if same is not None else [None] * len(found)
        wides = tensors(wide) if wide is not None else [None] * len(found)
        unreferenced += same is None and wide is None
        for position, value in enumerate(found):
            assert value.is_cuda, f"{where}: the result is on {value.device}"
            reference = sames[position] if position < len(sames) else None
            if treated(op, "wider statistics") and reference is not None and reference.numel() == 0:
                continue  # the CPU hands on no statistics in evaluation
            if reference is not None:
                same_dtype = value.dtype == reference.dtype or treated(op, "wider statistics")
                assert same_dtype, f"{where}: {value.dtype}, not {reference.dtype}"
                assert value.shape == reference.shape, f"{where}: {value.shape}, not {reference.shape}"
                assert value.layout == reference.layout, f"{where}: {value.layout}, not {reference.layout}"
            if not treated(op, "undefined"):
                compare(value, reference, wides[position] if position < len(wides) else None, where)
        if not found and same is not None:
            assert got == same, f"{where}: {got}, not {same}"
        compared += 1
    if compared and unreferenced == compared:
        pytest.skip("the CPU has no reference for this entry")
    assert compared or not limit, "upstream has no sample for this entry"


def check_random(op: Any, arguments: Tuple[Any, ...], keywords: Dict[str, Any], where: str) -> None:
    """The seed decides, and nothing else."""
    results = []
    for _ in range(2):
        torch.cuda.manual_seed(11)
        given, named = mapped((arguments, keywords), lambda t: t.detach().clone())
        results.append(tensors(op(*given, **named)))
    for first, second in zip(*results):
        assert first.is_cuda and second.is_cuda
        assert torch.equal(dense(first).nan_to_num(), dense(second).nan_to_num()), f"{where}: a seed does not repeat"


def weights(like: torch.Tensor) -> torch.Tensor:
    """Multiples of 1/8 between -1 and 1: dense, different from neighbour to neighbour, exact in every dtype."""
    steps = torch.arange(like.numel(), device=like.device) * 5 % 17 - 8
    return (steps.to(torch.float32) / 8).to(like.dtype).reshape(like.shape)


def total(values: Sequence[torch.Tensor]) -> torch.Tensor:
    """A scalar whose gradient with respect to the values is ``weights``."""
    parts = [dense_for_gradient(v) for v in values]
    sums = [(p * weights(p)).sum() for p in parts]
    return sum(s.real + s.imag if s.is_complex() else s for s in sums)  # type: ignore[return-value]


def dense_for_gradient(value: torch.Tensor) -> torch.Tensor:
    if value.is_nested:
        value = value.to_padded_tensor(0.0)
    return value if value.layout == torch.strided else value.to_dense()


def gradients(
    op: Any, arguments: Tuple[Any, ...], keywords: Dict[str, Any], process: Callable[[Any], Any]
) -> Optional[List[Any]]:
    """Gradients of ``total`` with respect to every argument that asks for one; None where there are none.

    ``process`` takes from the result what has a gradient (upstream's ``output_process_fn_grad``).
    """
    result = process(op(*arguments, **keywords))
    outputs = [t for t in tensors(result) if t.requires_grad]
    inputs = [t for t in tensors((arguments, keywords)) if t.requires_grad]
    if not outputs or not inputs:
        return None
    return list(torch.autograd.grad(total(outputs), inputs, allow_unused=True))


def check_gradients(op: Any, dtype: torch.dtype, limit: int = GRADIENTS) -> None:
    """Gradients with respect to every input."""
    compared = 0
    for arguments, keywords, process in samples_of(op, dtype, limit, requires_grad=True):
        where = describe(arguments, keywords)
        moved, moved_keywords = to_cuda(op, arguments, keywords)
        wide_arguments, wide_keywords = widen((arguments, keywords))
        got = gradients(op, moved, moved_keywords, process)
        if got is None:
            continue
        same = attempt(lambda: gradients(op, arguments, keywords, process))  # noqa: B023
        wide = attempt(lambda: gradients(op, wide_arguments, wide_keywords, process)) if dtype in WIDE else None  # noqa: B023
        for position, value in enumerate(got):
            references = [r[position] if r is not None and position < len(r) else None for r in (same, wide)]
            if value is None:
                assert same is None or references[0] is None, f"{where}: gradient {position} is missing"
                continue
            assert value.is_cuda, f"{where}: gradient {position} is on {value.device}"
            compare(
                value, references[0], references[1], f"{where}, gradient {position}", GRADIENT_FACTOR, GRADIENT_FLOOR
            )
            compared += 1
    if not compared:
        pytest.skip("no sample has a gradient")


def check_out(op: Any, dtype: torch.dtype, limit: int = 4) -> None:
    """``out=`` is written whatever its strides; an empty one is resized; one on the CPU is refused."""
    for arguments, keywords, _ in samples_of(op, dtype, limit):
        where = describe(arguments, keywords)
        moved, moved_keywords = to_cuda(op, arguments, keywords)
        want = op(*moved, **moved_keywords)
        single = isinstance(want, torch.Tensor)
        if not single and not (isinstance(want, (tuple, list)) and all(isinstance(t, torch.Tensor) for t in want)):
            pytest.skip("returns no tensors")

        def write(make: Callable[[torch.Tensor], torch.Tensor]) -> List[torch.Tensor]:
            out = make(want) if single else tuple(make(t) for t in want)  # noqa: B023
            op(*moved, **moved_keywords, out=out)  # noqa: B023
            return [out] if single else list(out)  # type: ignore[list-item]  # noqa: B023

        wanted = [want] if single else list(want)
        apart = write(every_second)
        for out, expected in zip(apart, wanted):
            assert out.stride() == every_second(expected).stride(), f"{where}: the strides of out= changed"
            compare(out, expected, None, f"{where}, out= with gaps")
        for out, expected in zip(write(lambda t: t.new_empty(0)), wanted):
            assert out.shape == expected.shape, f"{where}: an empty out= became {tuple(out.shape)}"
            compare(out, expected, None, f"{where}, empty out=")
        with pytest.raises(RuntimeError):
            write(lambda t: torch.empty_like(t, device="cpu"))


def every_second(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor like it whose elements have gaps between them, filled with what must not stay."""
    if tensor.numel() == 0 or tensor.dim() == 0:
        return torch.empty_like(tensor)
    wide = tensor.new_empty((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide.fill_(float("nan") if wide.is_floating_point() or wide.is_complex() else 1)
    return wide[..., ::2]


def check_inplace(op: Any, dtype: torch.dtype, limit: int = 6) -> None:
    """The in-place form returns its argument, with the values of the other form and a new version."""
    variant, done = op.get_inplace(), 0
    for arguments, keywords, _ in samples_of(op, dtype, limit):
        where = describe(arguments, keywords)
        moved, moved_keywords = to_cuda(op, arguments, keywords)
        if not isinstance(moved[0], torch.Tensor):
            continue
        torch.cuda.manual_seed(3)
        want = op(*moved, **moved_keywords)
        target = moved[0].clone()
        if not isinstance(want, torch.Tensor) or want.dtype != target.dtype or want.shape != target.shape:
            continue
        version = target._version
        on_host = arguments[0].detach().clone()
        written = attempt(lambda: variant(on_host, *arguments[1:], **keywords)) is None or on_host._version > 0  # noqa: B023
        torch.cuda.manual_seed(3)
        got = variant(target, *moved[1:], **moved_keywords)
        assert got is target, f"{where}: another tensor came back"
        assert target._version > version or not written, f"{where}: the version did not change"
        if not treated(op, "undefined") and not treated(op, "random"):
            compare(target, want.cpu(), None, where)
        done += 1
    if not done:
        pytest.skip("no sample for the in-place form")


def layout_of(tensor: torch.Tensor) -> Tuple[Any, ...]:
    """Shape, dtype and the strides that mean something: of dimensions with more than one element."""
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return tuple(tensor.shape), tensor.dtype, tensor.layout
    return tuple(tensor.shape), tensor.dtype, tuple(s for s, n in zip(tensor.stride(), tensor.shape) if n > 1)


def fake_layouts(op: Any, arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> Optional[List[Tuple[Any, ...]]]:
    """What FakeTensor says about the results; None where it has no answer (values decide, or it lacks the operator)."""
    mode = FakeTensorMode()
    try:
        given, named = mapped((arguments, keywords), mode.from_tensor)
        with mode:
            return [(*layout_of(t), t.device.type) for t in tensors(op(*given, **named))]
    except Exception:  # FakeTensor's many ways of saying no; a wrong answer is what is looked for
        return None


def check_strides(op: Any, dtype: torch.dtype, limit: int = SAMPLES) -> None:
    """FakeTensor, which torch.compile trusts, and the device agree about the results, for both memory formats.

    Where FakeTensor is wrong about the CPU in the same way, the device is compared with the CPU.
    """
    compared = 0
    for arguments, keywords, _ in samples_of(op, dtype, limit):
        for format_ in (torch.contiguous_format, torch.channels_last):
            given = arguments, keywords
            if format_ == torch.channels_last:
                if not any(t.dim() == 4 for t in tensors(given)):
                    continue
                given = mapped(given, lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t)
            moved, moved_keywords = to_cuda(op, *given)
            want = fake_layouts(op, moved, moved_keywords)
            if want is None:
                continue
            got = [(*layout_of(t), t.device.type) for t in tensors(op(*moved, **moved_keywords))]
            compared += 1
            if got == want:
                continue
            cpu = attempt(lambda: tensors(op(*given[0], **given[1])))  # noqa: B023
            cpus = None if cpu is None else [(*layout_of(t), "cuda") for t in cpu]
            fake_cpu = fake_layouts(op, *given)
            if cpus == got and fake_cpu is not None and [(*f[:-1], "cuda") for f in fake_cpu] != cpus:
                continue
            pytest.fail(f"{describe(*given)} {format_}: {got}, FakeTensor {want}, CPU {cpus}", pytrace=False)
    if not compared:
        pytest.skip("FakeTensor has no answer for this entry")


def check_errors(op: Any) -> None:
    """Bad input raises what upstream's CUDA raises."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    wrong = []
    for error in op.error_inputs("cuda"):
        sample = error.sample_input
        where = describe((sample.input, *sample.args), sample.kwargs)
        try:
            if op(sample.input, *sample.args, **sample.kwargs) is NotImplemented:
                # Python raises for the operator that it stands for.
                continue
        except error.error_type as caught:
            if not re.search(error.error_regex, str(caught)):
                wrong.append(f"{where}: said {str(caught).splitlines()[0]!r}, not {error.error_regex!r}")
        except Exception as caught:  # reported, with the type that was wanted
            wrong.append(f"{where}: raised {type(caught).__name__}: {caught}, not {error.error_type}")
        else:
            wrong.append(f"{where}: raised nothing, not {error.error_type} {error.error_regex!r}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def module_dtypes(info: Any) -> List[torch.dtype]:
    """Those that upstream claims for CUDA; up to torch 2.2 one list is for all devices."""
    claimed = info.supported_dtypes("cuda") if hasattr(info, "supported_dtypes") else info.dtypes
    return list(claimed)


def check_module(info: Any, dtype: torch.dtype, training: bool) -> None:
    """A module moved to the device: its outputs, and the gradients of its parameters."""
    warnings.simplefilter("ignore")
    torch.manual_seed(zlib.crc32(f"{info.name} {dtype}".encode()))
    is_lazy = issubclass(info.module_cls, torch.nn.modules.lazy.LazyModuleMixin)
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training)
    for given in spread(iter(inputs), SAMPLES):
        if given.forward_input is None:
            continue
        build, forward = given.constructor_input, given.forward_input
        module = info.module_cls(*build.args, **build.kwargs).to(dtype).train(training)
        if is_lazy:
            module(*forward.args, **forward.kwargs)
        wide = info.module_cls(*build.args, **build.kwargs).to(dtype)
        if is_lazy:
            wide(*forward.args, **forward.kwargs)
        wide.load_state_dict(module.state_dict())
        device = info.module_cls(*build.args, **build.kwargs).to(dtype)
        if is_lazy:
            device(*forward.args, **forward.kwargs)
        device.load_state_dict(module.state_dict())
        device = device.to(device="cuda", dtype=dtype).train(training)
        wide = wide.to(WIDE.get(dtype, dtype)).train(training)
        where = f"{describe(build.args, build.kwargs)} {describe(forward.args, forward.kwargs)}"
        results = []
        for kind, one, change in (
            ("cuda", device, lambda given: mapped(given, move)),
            ("cpu", module, None),
            ("wide", wide, widen),
        ):
            arguments, keywords = mapped((forward.args, forward.kwargs), torch.clone)
            if change is not None:
                arguments, keywords = change((arguments, keywords))
            call = lambda: run_module(one, arguments, keywords)  # noqa: B023, E731
            results.append(call() if kind == "cuda" else attempt(call))
        got, same, wider = results
        if TREATMENTS["random modules"] and info.module_cls.__name__ in TREATMENTS["random modules"]["names"]:
            continue
        assert got is not None
        for position, value in enumerate(got):
            references = [None if r is None else r[position] for r in (same, wider)]
            if value is not None:
                assert value.is_cuda, f"{where}: result {position} is on {value.device}"
                compare(
                    value, references[0], references[1], f"{where}, result {position}", GRADIENT_FACTOR, GRADIENT_FLOOR
                )


def run_module(module: Any, arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> List[Optional[torch.Tensor]]:
    """Outputs and the parameters' gradients."""
    outputs = tensors(module(*arguments, **keywords))
    floating = [t for t in outputs if t.requires_grad]
    parameters = list(module.parameters())
    # cuDNN's recurrent networks have no backward in evaluation, with upstream's error.
    refuses = isinstance(module, torch.nn.RNNBase) and not module.training
    if not floating or not parameters or refuses:
        return list(outputs)
    return [*outputs, *torch.autograd.grad(total(floating), parameters, allow_unused=True)]
