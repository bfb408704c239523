"""``torch.cuda.jiterator``: an elementwise function given as CUDA C++, compiled by the SDK's NVRTC.

Upstream's host code wraps the function into a source with a C library and types of its own, which only NVIDIA's
compiler takes. Here the wrapping is a plain loop; broadcasting, promotion and layout are those of torch's operators.
"""

import ctypes
import functools
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch

__all__ = ["launch"]

_MOST_INPUTS = _MOST_OUTPUTS = 8
# What the function computes in, where that is not the tensors' own dtype.
_COMPUTE = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
_NAMES = {
    torch.bool: "bool",
    torch.uint8: "unsigned char",
    torch.int8: "signed char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
    torch.float32: "float",
    torch.float64: "double",
    torch.complex64: "std::complex<float>",
    torch.complex128: "std::complex<double>",
}
_THREADS, _ELEMENTS_PER_THREAD = 128, 16
_ENTRY = "macatorch_jiterator"


class _Complex(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("imag", ctypes.c_double)]


def launch(
    code: str, name: str, by_reference: bool, outputs: int, tensors: Sequence[torch.Tensor], extra: Dict[str, Any]
) -> Union[torch.Tensor, Tuple[torch.Tensor, ...]]:
    """Apply the function template ``name`` in ``code`` to every element.

    Args:
        code: the source; its last function is ``name``.
        by_reference: the results are written to ``outputs`` references, behind all other parameters.
        tensors: up to 8, on one CUDA device, of shapes that broadcast.
        extra: further arguments, the same for every element: bool, int, float or complex.

    Returns:
        One tensor, or a tuple of ``outputs``; in the inputs' common dtype, with their broadcast shape and layout.

    Raises:
        RuntimeError: tensors on other devices, sparse or nested ones, shapes that do not broadcast, or a source that
            does not compile; the last with the compiler's words.
        TypeError: an argument of another type.
    """
    _check(tensors, outputs)
    # Upstream's host code is C++ that no mode and no subclass looks into.
    with torch._C._DisableTorchDispatch(), torch.no_grad(), torch.cuda.device(tensors[0].device):
        dtype = _common_dtype(tensors)
        compute = _COMPUTE.get(dtype, dtype)
        if compute not in _NAMES:
            raise RuntimeError(f"jiterator has no C++ type for {dtype}.")
        like = functools.reduce(
            torch.add, [t.to("meta", torch.float32) for t in tensors], torch.empty((), device="meta")
        )
        fresh = functools.partial(
            torch.empty_strided, like.shape, like.stride(), dtype=compute, device=tensors[0].device
        )
        inputs = [fresh().copy_(t) for t in tensors]
        results = [fresh() for _ in range(outputs)]
        if like.numel():
            values = [_argument(key, value) for key, value in extra.items()]
            source = _source(code, name, by_reference, _NAMES[compute], len(inputs), outputs, [t for t, _ in values])
            _run(_kernel(source, tensors[0].device.index), like.numel(), [*inputs, *results], [v for _, v in values])
        found = tuple(result.to(dtype) for result in results)
    return found[0] if outputs == 1 else found


def _check(tensors: Sequence[torch.Tensor], outputs: int) -> None:
    if not 1 <= len(tensors) <= _MOST_INPUTS or not 1 <= outputs <= _MOST_OUTPUTS:
        raise RuntimeError(
            f"jiterator takes 1 to {_MOST_INPUTS} tensors and gives 1 to {_MOST_OUTPUTS}, "
            f"not {len(tensors)} and {outputs}."
        )
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"jiterator takes tensors, not {type(tensor).__name__}; pass a number by keyword.")
        if _has_no_values(tensor):
            raise RuntimeError("jiterator computes values: it takes no fake tensors.")
        if tensor.layout is not torch.strided:
            raise RuntimeError(f"unsupported tensor layout: jiterator takes dense tensors, not {tensor.layout}.")
    devices = list(dict.fromkeys(tensor.device for tensor in tensors))
    if len(devices) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{devices[0]} and {devices[1]}!"
        )
    if devices[0].type != "cuda":
        raise RuntimeError(f"Jiterator is only supported on CUDA, but the tensors are on {devices[0]}.")


def _has_no_values(tensor: torch.Tensor) -> bool:
    """Whether it stands for a tensor on the device: a fake one, or a subclass that wraps others."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return False
    storage = tensor.untyped_storage()
    return storage.device.type == "meta" or not storage.data_ptr()


def _common_dtype(tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Promotion of many tensors: those without dimensions count only where their kind of number is a higher one."""
    with_sizes = [tensor.dtype for tensor in tensors if tensor.dim()]
    without = [tensor.dtype for tensor in tensors if not tensor.dim()]
    if not with_sizes or not without:
        return functools.reduce(torch.promote_types, with_sizes or without)
    return torch.result_type(
        torch.empty(1, dtype=functools.reduce(torch.promote_types, with_sizes), device="meta"),
        torch.empty((), dtype=functools.reduce(torch.promote_types, without), device="meta"),
    )


def _argument(name: str, value: Any) -> Tuple[str, Any]:
    """The C++ type of a further argument, and its value for the launch."""
    if isinstance(value, bool):
        return "bool", ctypes.c_bool(value)
    if isinstance(value, int):
        return "long long", ctypes.c_longlong(value)
    if isinstance(value, float):
        return "double", ctypes.c_double(value)
    if isinstance(value, complex):
        return "std::complex<double>", _Complex(value.real, value.imag)
    raise TypeError(f"jiterator: {name} must be a number, not {type(value).__name__}.")


def _source(
    code: str, name: str, by_reference: bool, scalar: str, inputs: int, outputs: int, extra: Sequence[str]
) -> str:
    parameters = [f"const {scalar}* in{n}" for n in range(inputs)] + [f"{scalar}* out{n}" for n in range(outputs)]
    parameters += [f"{kind} extra{n}" for n, kind in enumerate(extra)]
    arguments = [f"in{n}[i]" for n in range(inputs)]
    # A complex number of double converts to one of float only when asked to.
    arguments += [f"({scalar})extra{n}" if "complex" in kind else f"extra{n}" for n, kind in enumerate(extra)]
    if by_reference:
        call = f"{name}<{scalar}>({', '.join([*arguments, *(f'out{n}[i]' for n in range(outputs))])});"
    else:
        call = f"out0[i] = {name}<{scalar}>({', '.join(arguments)});"
    return f"""#include <cmath>
#include <complex>
{code}
extern "C" __global__ void {_ENTRY}(long long count, {", ".join(parameters)}) {{
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {{
    {call}
  }}
}}
"""


@functools.lru_cache(maxsize=None)
def _libraries() -> Tuple[Any, Any]:
    """NVRTC and the driver's interface: the SDK's, which ``preload`` has loaded."""
    return ctypes.CDLL(f"libnvrtc.so.{str(torch.version.cuda).split('.')[0]}"), ctypes.CDLL("libcuda.so.1")


def _done(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"jiterator: {what} failed with CUDA error {status}.")


@functools.lru_cache(maxsize=None)
def _kernel(source: str, device: int) -> Any:
    """The compiled function, once per device: a module belongs to the context it was loaded in."""
    module, function = c_void_p(), c_void_p()
    driver = _libraries()[1]
    _done(driver.cuModuleLoadData(byref(module), _image(source)), "loading the compiled function")
    _done(driver.cuModuleGetFunction(byref(function), module, _ENTRY.encode()), "finding the compiled function")
    return function


@functools.lru_cache(maxsize=None)
def _image(source: str) -> bytes:
    compiler = _libraries()[0]
    program = c_void_p()
    _done(compiler.nvrtcCreateProgram(byref(program), source.encode(), b"jiterator.cu", 0, None, None), "NVRTC")
    try:
        options = (c_char_p * 1)(b"--std=c++17")
        if compiler.nvrtcCompileProgram(program, 1, options):
            words = _text(compiler.nvrtcGetProgramLogSize, compiler.nvrtcGetProgramLog, program)
            raise RuntimeError("jiterator could not compile the function:\n" + words.rstrip(b"\0").decode())
        return _text(compiler.nvrtcGetCUBINSize, compiler.nvrtcGetCUBIN, program)
    finally:
        compiler.nvrtcDestroyProgram(byref(program))


def _text(size_of: Any, read: Any, program: c_void_p) -> bytes:
    size = c_size_t()
    _done(size_of(program, byref(size)), "NVRTC")
    buffer = ctypes.create_string_buffer(size.value)
    _done(read(program, buffer), "NVRTC")
    return buffer.raw


def _run(function: Any, count: int, tensors: List[torch.Tensor], values: List[Any]) -> None:
    addresses = [tensor.data_ptr() for tensor in tensors]
    arguments = [ctypes.c_longlong(count), *(c_void_p(address) for address in addresses), *values]
    places = (c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(value), c_void_p) for value in arguments])
    blocks = min(-(-count // (_THREADS * _ELEMENTS_PER_THREAD)), (1 << 31) - 1)
    stream = c_void_p(torch.cuda.current_stream().cuda_stream)
    _done(_libraries()[1].cuLaunchKernel(function, blocks, 1, 1, _THREADS, 1, 1, 0, stream, places, None), "the launch")
