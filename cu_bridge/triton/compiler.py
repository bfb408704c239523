"""Triton's compiler for the simulated device: upstream's front end and passes, then machine code of the host."""

import functools
import hashlib
import os
import pathlib
import re
from typing import Any, Callable, Dict, Tuple

import mxmaca
from triton._C.libtriton import ir, nvidia, passes
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.nvidia import options as kernel_options
from triton.backends.nvidia.options import CUDAOptions
from triton.backends.nvidia.release import HAS_KNOBS, RELEASE

if HAS_KNOBS:
    from triton import knobs

__all__ = ["CUDABackend", "CUDAOptions"]

# Passes that take block pointers and tensor descriptors apart into pointers, in order.
_REWRITES = ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer")
# The least extent that a dot sums over, by the bits of its operands' elements (16 for others), from a release on.
_LEAST_DEPTHS = (((3, 8), {8: 32, 32: 8, 64: 4}), ((0,), {8: 32}))


def min_dot_size(target: GPUTarget) -> Callable[[Any, Any], Tuple[int, int, int]]:
    """Return the function that says how small the sides of a dot may be, by the operands' types."""

    depths = next(depths for since, depths in _LEAST_DEPTHS if since <= RELEASE)

    def smallest(lhs: Any, rhs: Any) -> Tuple[int, int, int]:
        if not HAS_KNOBS:
            return (16, 32, 16) if lhs.is_int8() else (16, 16, 16)
        bits = lhs.scalar.primitive_bitwidth
        assert bits == rhs.scalar.primitive_bitwidth, "lhs and rhs bitwidth must be the same"
        return (1, 1, depths.get(bits, 16))

    return smallest


def _shows_assembly(options: Any) -> bool:
    """Return whether a user looks at the stages or changes them. Else assembly text is made when it is asked for."""
    if not HAS_KNOBS:
        return any(os.environ.get(f"TRITON_KERNEL_{word}", "0") == "1" for word in ("DUMP", "OVERRIDE"))
    asked = knobs.compilation.dump_ir or knobs.compilation.override
    return bool(asked or getattr(options, "ir_override", None))


@functools.lru_cache(maxsize=None)
def _own_hash() -> str:
    """Return what the machine code depends on beside the kernel: this backend, the SDK, the processor."""
    digest = hashlib.sha256(mxmaca.__version__.encode())
    folder = pathlib.Path(__file__).resolve().parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    from triton.backends.nvidia import lowering

    digest.update(lowering.target_key().encode())
    return digest.hexdigest()


class CUDABackend(BaseBackend):
    """The backend of targets that are called "cuda"."""

    binary_ext = "cubin"
    instrumentation = None

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Return whether the target is CUDA's."""
        return target.backend == "cuda"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.capability = target.arch
        self.binary_ext = "cubin"

    def get_target_name(self, options: Any) -> str:
        """Return the target as MLIR writes it."""
        return f"cuda:{self.target.arch}"

    def parse_options(self, opts: Dict[str, Any]) -> Any:
        """Return the options of a compilation, defaults filled in."""
        arch = knobs.runtime.override_arch if HAS_KNOBS else None
        if arch:
            if re.fullmatch(r"sm\d+", arch) is None:
                raise ValueError(r"TRITON_OVERRIDE_ARCH must have the form ^sm(\d+)$")
            opts = dict(opts, arch=arch)
        return kernel_options.parse(opts, self.target.arch)

    def pack_metadata(self, metadata: Any) -> Tuple[int, ...]:
        """Return what a launch needs of the metadata."""
        packed = (metadata.num_warps, metadata.num_ctas, metadata.shared)
        return packed if HAS_KNOBS else packed + tuple(metadata.cluster_dims)

    def get_codegen_implementation(self, options: Any = None) -> Dict[str, Any]:
        """Return what the front end asks the backend for."""
        from triton.language.extra import cuda

        return {"convert_custom_types": cuda.convert_custom_float8_sm80, "min_dot_size": min_dot_size(self.target)}

    def get_module_map(self) -> Dict[str, Any]:
        """Return which module stands for the library of mathematical functions."""
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, ctx: Any) -> None:
        """Load the dialect that the front end's inline operations need."""
        nvidia.load_dialects(ctx)

    @staticmethod
    def make_ttir(mod: Any, metadata: Dict[str, Any], opt: Any, capability: int = 80) -> Any:
        """Run the passes over Triton's own operations that do not know any hardware."""
        pm = ir.pass_manager(mod.context)
        pm.enable_debug()
        passes.common.add_inliner(pm)
        for name in _REWRITES:
            # Each release has those of the kinds of pointers that its language has.
            if hasattr(passes.ttir, name):
                getattr(passes.ttir, name)(pm)
        if HAS_KNOBS:
            passes.common.add_canonicalizer(pm)
            passes.ttir.add_combine(pm)
        else:
            passes.ttir.add_combine(pm)
            passes.common.add_canonicalizer(pm)
        passes.ttir.add_reorder_broadcast(pm)
        passes.common.add_cse(pm)
        if not HAS_KNOBS:
            passes.common.add_licm(pm)
        passes.common.add_symbol_dce(pm)
        if hasattr(passes.ttir, "add_loop_unroll"):
            passes.ttir.add_loop_unroll(pm)
        if HAS_KNOBS:
            pm.run(mod, "make_ttir")
        else:
            pm.run(mod)
        return mod

    def add_stages(self, stages: Dict[str, Any], options: Any, language: Any = None) -> None:
        """Name the steps of a compilation, in order.

        Raises:
            NotImplementedError: a kernel in Gluon, which is bound to the layouts of one NVIDIA generation.
        """
        if HAS_KNOBS and language.name != "TRITON":
            raise NotImplementedError("Gluon kernels are bound to NVIDIA's hardware and do not run on this device")
        kept: Dict[str, Any] = {}

        def llir(mod: Any, metadata: Dict[str, Any]) -> str:
            from triton.backends.nvidia import lowering

            compiled = kept["compiled"] = lowering.compile_module(str(mod), options)
            metadata["name"], metadata["shared"] = compiled.name, compiled.shared
            if HAS_KNOBS:
                metadata.update(
                    tmem_size=0,
                    global_scratch_size=0,
                    global_scratch_align=1,
                    profile_scratch_size=0,
                    profile_scratch_align=1,
                    tensordesc_meta=None,
                )
            return str(compiled.llir)

        def asm(text: str, metadata: Dict[str, Any]) -> str:
            from triton.backends.nvidia import lowering

            kept["llir"], kept["asm"] = text, lowering.assembly(text, options)
            return str(kept["asm"])

        def cubin(text: str, metadata: Dict[str, Any]) -> bytes:
            from triton.backends.nvidia import lowering

            if text != kept.get("asm", text):
                raise NotImplementedError("assembly of one's own is not taken: LLVM text (.llir) or Triton's IR is")
            llvm_text = kept.get("llir", text)
            if llvm_text != kept["compiled"].llir:
                # TRITON_KERNEL_OVERRIDE, or the option ir_override.
                return bytes(lowering.assemble(llvm_text, options))
            return bytes(kept["compiled"].object)

        stages["ttir"] = lambda mod, metadata: self.make_ttir(mod, metadata, options)
        stages["llir"], stages["cubin"] = llir, cubin
        if _shows_assembly(options):
            stages.update(asm=asm, cubin=stages.pop("cubin"))
        if HAS_KNOBS and knobs.runtime.add_stages_inspection_hook is not None:
            knobs.runtime.add_stages_inspection_hook(self, stages, options, language, self.target.arch)

    @functools.lru_cache(maxsize=None)  # noqa: B019  # the release makes one backend for each target
    def hash(self) -> str:
        """Return what tells this backend's kernels from others' in the cache."""
        return f"{_own_hash()}-{self.target.arch}"
