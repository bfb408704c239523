"""The options of a kernel's compilation: the names and defaults of the release's own CUDA backend.

What speaks of registers, pipelines and clusters is taken and kept in the kernel's metadata, and changes nothing: such a
thing does not exist here. Values that hardware of capability 8.0 refuses are refused.
"""

import dataclasses
import hashlib
import importlib.util
import os
from typing import Any, Dict, List, Tuple

# Releases from here on have the module of knobs, and with it languages, tuples and scratch memory.
HAS_KNOBS = importlib.util.find_spec("triton.knobs") is not None

_FP8 = ("fp8e4b15", "fp8e5")

_COMMON: Dict[str, Any] = {
    "num_warps": 4,
    "num_ctas": 1,
    "num_stages": 3,
    "maxnreg": None,
    "ptx_version": None,
    "enable_fp_fusion": True,
    "supported_fp8_dtypes": _FP8,
    "default_dot_input_precision": "tf32",
    "max_num_imprecise_acc_default": 0,
    "extern_libs": (),
    "debug": False,
    "backend_name": "cuda",
    "sanitize_overflow": True,
}
_WITHOUT_KNOBS: Dict[str, Any] = {
    "num_buffers_warp_spec": 0,
    "num_consumer_groups": 0,
    "reg_dec_producer": 0,
    "reg_inc_consumer": 0,
    "cluster_dims": (1, 1, 1),
    "deprecated_fp8_dtypes": (),
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee"),
}
_WITH_KNOBS: Dict[str, Any] = {
    "warp_size": 32,
    "ptx_options": None,
    "ir_override": None,
    "enable_reflect_ftz": True,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "deprecated_fp8_dot_operand_dtypes": (),
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "arch": "sm80",
    "instrumentation_mode": "",
}


def _fields() -> List[Tuple[str, type, Any]]:
    values = dict(_COMMON, **(_WITH_KNOBS if HAS_KNOBS else _WITHOUT_KNOBS))
    return [(name, type(value), dataclasses.field(default=value)) for name, value in values.items()]


def _check(self: Any) -> None:
    libraries = self.extern_libs.items() if isinstance(self.extern_libs, dict) else self.extern_libs or ()
    object.__setattr__(self, "extern_libs", tuple(libraries))
    assert self.num_warps > 0 and self.num_warps & (self.num_warps - 1) == 0, "num_warps must be a power of 2"


def _hash(self: Any) -> str:
    """Return what tells kernels with different options apart in the cache."""
    text = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


CUDAOptions = dataclasses.make_dataclass(
    "CUDAOptions", _fields(), namespace={"__post_init__": _check, "hash": _hash}, frozen=True
)


def _fusion() -> bool:
    if HAS_KNOBS:
        from triton import knobs

        return bool(knobs.language.default_fp_fusion)
    return os.environ.get("TRITON_DEFAULT_FP_FUSION", "1") == "1"


def parse(given: Dict[str, Any], capability: int) -> Any:
    """Return the options of a launch; names that are no options are left out.

    Raises:
        ValueError: a cluster of several blocks, which capability 8.0 does not have.
    """
    known = {field.name for field in dataclasses.fields(CUDAOptions)}
    values = {name: value for name, value in given.items() if name in known}
    if HAS_KNOBS:
        values = {name: value for name, value in values.items() if value is not None}
        values.setdefault("arch", f"sm{capability}")
    if values.get("num_ctas", 1) > 1:
        raise ValueError(
            f"num_ctas > 1 requires NVIDIA SM90+ (Hopper). Current target is sm_{capability}. "
            "This configuration will fail. Please set num_ctas=1 or target an SM90+ GPU."
        )
    values.setdefault("enable_fp_fusion", _fusion())
    return CUDAOptions(**values)
