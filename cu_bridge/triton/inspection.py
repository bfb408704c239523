"""What `asm` of a kernel holds once it is asked for: `asm["ttgir"]`, `asm["ptx"]` and `asm["asm"]`.

The last is the machine code that runs, as text. The others are the kernel as an NVIDIA device of capability 8.0 would
run it, for those who read it. Both are real: libtriton's own passes lay the tiles out for warps, and LLVM's backend for
PTX writes the assembly. Nothing here runs them, so they are made when they are asked for, from the kernel's
`asm["ttir"]`. NVIDIA's bitcode of libdevice is not there; the functions of a kernel that calls it stay declarations.
"""

import tempfile
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

from triton._C.libtriton import ir, llvm, nvidia, passes
from triton.backends.nvidia import lowering
from triton.backends.nvidia.lowering import libllvm
from triton.backends.nvidia.lowering.target import Target
from triton.backends.nvidia.release import HAS_KNOBS, RELEASE

_PROCESSOR = "sm_80"
# The version of PTX that upstream's assembler for the release takes, from a release on.
_PTX = next(version for since, version in (((3, 7), 87), ((3, 2), 84), ((0,), 83)) if since <= RELEASE)
_CAPABILITY = 80

Step = Tuple[Any, ...]


def _layout_steps(warps: int, stages: int, blocks: int) -> List[Step]:
    """The passes from tiles without layouts to tiles that lie in registers and shared memory, and their arguments."""
    matmul: List[Step] = [
        ("remove_layout_conversions",),
        ("optimize_thread_locality",),
        ("accelerate_matmul",),
        ("remove_layout_conversions",),
        ("optimize_dot_operands", True),
    ]
    start: List[Step] = [("convert_to_ttgpuir", f"cuda:{_CAPABILITY}", warps, 32, blocks), ("coalesce",)]
    if HAS_KNOBS:
        return [
            *start, ("f32_dot_tc", True), *matmul, ("optimize_descriptor_encoding",), ("loop_aware_cse",),
            ("fuse_nested_loops",), ("canonicalizer",), ("triton_licm",), ("canonicalizer",),
            ("combine_tensor_select_and_if",), ("assign_latencies", stages), ("schedule_loops",),
            ("pipeline", stages, False), ("canonicalizer",), ("loop_aware_cse",), ("prefetch",),
            ("optimize_dot_operands", True), ("coalesce_async_copy",), ("remove_layout_conversions",),
            ("reduce_data_duplication",), ("reorder_instructions",), ("loop_aware_cse",), ("symbol_dce",),
            ("sccp",), ("cse",), ("canonicalizer",),
        ]  # fmt: skip
    initial: List[Step] = [("optimize_accumulator_init",)] if RELEASE >= (3, 2) else []
    return [
        *start, ("f32_dot_tc",), *matmul, ("cse",), *initial, ("combine_tensor_select_and_if",),
        ("pipeline", stages), ("prefetch",), ("optimize_dot_operands", True),
        ("remove_layout_conversions",), ("reduce_data_duplication",), ("reorder_instructions",), ("cse",),
        ("symbol_dce",), ("canonicalizer",),
    ]  # fmt: skip


def _machine_steps() -> List[Step]:
    """The passes from there to LLVM's dialect of MLIR."""
    end: List[Step] = [("canonicalizer",), ("cse",), ("symbol_dce",)]
    ours: Tuple[int, ...] = (_CAPABILITY, _PTX)
    if RELEASE >= (3, 9):
        return [
            ("combine_tensor_select_and_if",), ("allocate_warp_groups", False), ("scf_to_cf",),
            ("allocate_shared_memory_nv", *ours), ("membar", *ours), ("allocate_global_scratch_memory",),
            ("to_llvmir", *ours), ("canonicalize_llvm_ir",), ("cse",), ("warp_specialize_to_llvm",),
            ("nvgpu_to_llvm",), *end, ("nvvm_to_llvm",), ("di_scope",),
        ]  # fmt: skip
    if HAS_KNOBS:
        # Whether instrumentation is wanted is asked from 3.8 on.
        asked = (False,) if RELEASE >= (3, 8) else ()
        return [
            ("combine_tensor_select_and_if",), ("allocate_warp_groups", *asked), ("scf_to_cf",),
            ("allocate_shared_memory_nv", *ours), ("allocate_global_scratch_memory",),
            ("to_llvmir", *ours, *asked), ("canonicalizer",), ("cse",), ("nvgpu_to_llvm",),
            ("warp_specialize_to_llvm",), *end, ("nvvm_to_llvm",), ("di_scope",),
        ]  # fmt: skip
    # PTX's version is asked from 3.2 on.
    ours = ours if RELEASE >= (3, 2) else (_CAPABILITY,)
    return [
        ("decompose_unsupported_conversions",), ("combine_tensor_select_and_if",), ("scf_to_cf",),
        ("index_to_llvmir",), ("allocate_shared_memory",), ("to_llvmir", *ours), ("nvgpu_to_llvm",),
        ("arith_to_llvmir",), *end, ("di_scope",),
    ]  # fmt: skip


def _pass(name: str) -> Callable[..., None]:
    """The function of libtriton that adds a pass; NVIDIA's own comes before the common one of its name."""
    nvidias = (nvidia.passes.ttgpuir, nvidia.passes.ttnvgpuir)
    places = (*nvidias, passes.ttgpuir, passes.ttir, passes.common, passes.convert, passes.llvmir)
    return next(getattr(place, f"add_{name}") for place in places if hasattr(place, f"add_{name}"))


def _run(module: Any, steps: List[Step], name: str) -> None:
    manager = ir.pass_manager(module.context)
    for step in steps:
        _pass(step[0])(manager, *step[1:])
    if HAS_KNOBS:
        manager.run(module, name)
    else:
        manager.run(module)


def _module(ttir: str, metadata: Any) -> Any:
    """The module of a printed kernel, with layouts."""
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(ttir)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    _run(module, _layout_steps(metadata.num_warps, metadata.num_stages, metadata.num_ctas), "make_ttgir")
    return module


class Texts(Dict[str, Any]):
    """The dictionary `asm` of a compiled kernel, for a release whose own makes nothing when it is asked for it."""

    def __init__(self, texts: Dict[str, Any], metadata: Any) -> None:
        super().__init__(texts)
        self.metadata = metadata._asdict()  # its own class is in no module, and Inductor pickles kernels

    def __missing__(self, key: str) -> str:
        if key not in ("ttgir", "ptx", "asm") or "ttir" not in self:
            raise KeyError(f"Unknown key: '{key}'")
        self[key] = value = view(key, self, self.metadata)
        return value


def view(key: str, texts: Dict[str, Any], facts: Dict[str, Any]) -> str:
    """The kernel as `key` ("ttgir", "ptx" or "asm") names it. `texts` and `facts`: its stages and its metadata.

    Raises:
        NotImplementedError: the kernel was compiled for another capability.
        RuntimeError: a pass of libtriton has no lowering for capability 8.0 of something that the kernel does.
    """
    metadata = SimpleNamespace(**facts)
    if key == "asm":
        return lowering.assembly(texts["llir"], metadata)
    if metadata.target.arch != _CAPABILITY:
        raise NotImplementedError(f"{key} is made for capability 8.0, and the kernel is for {metadata.target.arch}")
    module = _module(texts["ttir"], metadata)
    if key == "ttgir":
        return str(module)
    _run(module, _machine_steps(), "make_llir")
    target = Target("nvptx64-nvidia-cuda", _PROCESSOR, f"+ptx{_PTX}", frozenset(), 0)
    lowered = libllvm.to_module(module, target)
    llvm.optimize_module(lowered, llvm.OPTIMIZE_O3)
    fusion = bool(getattr(metadata, "enable_fp_fusion", True))
    text: str = libllvm.machine_code(str(lowered), target, fusion, binary=False)
    # NVIDIA's assembler takes the flag of a debugger together with no optimisation alone.
    return text.replace(f".target {_PROCESSOR}, debug", f".target {_PROCESSOR}")
