"""The options of a kernel's compilation: the names and defaults of the release's own CUDA backend.

What speaks of registers, pipelines and clusters is taken and kept in the kernel's metadata, and changes nothing: such a
thing does not exist here. Values that hardware of capability 8.0 refuses are refused.
"""

import dataclasses
import hashlib
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from triton.backends.nvidia.release import HAS_KNOBS, RELEASE

Release = Tuple[int, ...]


class _Option(NamedTuple):
    """An option, its default, the first release that has it and the first that has it no more."""

    name: str
    default: Any
    since: Release = (0,)
    until: Release = (99,)


_FP8 = ("fp8e4b15", "fp8e5")
_PRECISIONS = ("tf32", "tf32x3", "ieee")

_OPTIONS = (
    _Option("num_warps", 4),
    _Option("num_ctas", 1),
    _Option("num_stages", 3),
    _Option("maxnreg", None),
    _Option("cluster_dims", (1, 1, 1), until=(3, 7)),
    _Option("ptx_version", None),
    _Option("enable_fp_fusion", True),
    _Option("allow_fp8e4nv", False, until=(3, 2)),
    _Option("allow_fp8e4b15", True, until=(3, 2)),
    _Option("supported_fp8_dtypes", _FP8, (3, 2)),
    _Option("deprecated_fp8_dtypes", (), (3, 2), (3, 7)),
    _Option("deprecated_fp8_dot_operand_dtypes", (), (3, 7)),
    _Option("default_dot_input_precision", "tf32"),
    _Option("allowed_dot_input_precisions", _PRECISIONS, until=(3, 7)),
    _Option("allowed_dot_input_precisions", (*_PRECISIONS, "bf16x3", "bf16x6"), (3, 7)),
    _Option("max_num_imprecise_acc_default", 0),
    _Option("extern_libs", ()),
    _Option("debug", False),
    _Option("backend_name", "cuda"),
    _Option("sanitize_overflow", True, (3, 2)),
    _Option("num_buffers_warp_spec", 0, (3, 2), (3, 7)),
    _Option("num_consumer_groups", 0, (3, 2), (3, 7)),
    _Option("reg_dec_producer", 0, (3, 2), (3, 7)),
    _Option("reg_inc_consumer", 0, (3, 2), (3, 7)),
    _Option("warp_size", 32, (3, 7)),
    _Option("ptx_options", None, (3, 7)),
    _Option("ir_override", None, (3, 7)),
    _Option("enable_reflect_ftz", True, (3, 7)),
    _Option("launch_cooperative_grid", False, (3, 7)),
    _Option("launch_pdl", False, (3, 7)),
    _Option("arch", "sm80", (3, 7)),
    _Option("instrumentation_mode", "", (3, 7)),
    _Option("sched4reg", False, (3, 9)),
    _Option("clc", False, (3, 9)),
    _Option("fpsan_homomorphic_casts", False, (3, 9)),
    _Option("min_shared_mem", None, (3, 9)),
)
# Instrumentation that the front end alone does; the rest is done by passes over NVIDIA's layouts.
_FRONT_END_MODES = {"iisan"}


def _fields() -> List[Tuple[str, type, Any]]:
    there = [option for option in _OPTIONS if option.since <= RELEASE < option.until]
    return [(o.name, type(o.default), dataclasses.field(default=o.default)) for o in there]


def _check(self: Any) -> None:
    libraries = self.extern_libs.items() if isinstance(self.extern_libs, dict) else self.extern_libs or ()
    object.__setattr__(self, "extern_libs", tuple(libraries))
    assert self.num_warps > 0 and self.num_warps & (self.num_warps - 1) == 0, "num_warps must be a power of 2"


def _hash(self: Any) -> str:
    """Return what tells kernels with different options apart in the cache."""
    text = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _modes(text: str) -> List[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


CUDAOptions = dataclasses.make_dataclass(
    "CUDAOptions",
    _fields(),
    namespace={
        "__post_init__": _check,
        "hash": _hash,
        # The front end of newer releases asks.
        "enable_iisan": property(lambda self: "iisan" in _modes(getattr(self, "instrumentation_mode", ""))),
    },
    frozen=True,
)


def _fusion(requested: Optional[bool]) -> bool:
    if HAS_KNOBS:
        from triton import knobs

        decide = getattr(knobs.language, "fp_fusion_enabled", None)
        if decide is not None:
            return bool(decide(requested))
        default = bool(knobs.language.default_fp_fusion)
    else:
        default = os.environ.get("TRITON_DEFAULT_FP_FUSION", "1") == "1"
    return default if requested is None else requested


def _refuse_hardware(values: Dict[str, Any], capability: int) -> None:
    if values.get("num_ctas", 1) > 1:
        raise ValueError(
            f"num_ctas > 1 requires NVIDIA SM90+ (Hopper). Current target is sm_{capability}. "
            "This configuration will fail. Please set num_ctas=1 or target an SM90+ GPU."
        )
    if values.get("clc"):
        raise ValueError(f"clc=True requires NVIDIA SM100+ (Blackwell); current target is sm_{capability}")
    foreign = [name for name in _modes(values.get("instrumentation_mode", "")) if name not in _FRONT_END_MODES]
    if foreign:
        raise NotImplementedError(
            f"instrumentation_mode {', '.join(foreign)} works on NVIDIA's layouts, which do not exist on this device; "
            "MACA_TRITON_CHECK=1 checks addresses"
        )


def parse(given: Dict[str, Any], capability: int) -> Any:
    """Return the options of a launch; names that are no options are left out.

    Raises:
        ValueError: what capability 8.0 does not have: a cluster of several blocks, cancellation of launches.
        NotImplementedError: instrumentation by passes over layouts.
    """
    known = {field.name for field in dataclasses.fields(CUDAOptions)}
    values = {name: value for name, value in given.items() if name in known}
    if HAS_KNOBS:
        values = {name: value for name, value in values.items() if value is not None}
        values.setdefault("arch", f"sm{capability}")
    _refuse_hardware(values, capability)
    if "iisan" in _modes(values.get("instrumentation_mode", "")):
        # The assertions are the front end's, which leaves them out unless it is told to debug.
        values.update(debug=True, sanitize_overflow=False)
    values["enable_fp_fusion"] = _fusion(values.get("enable_fp_fusion"))
    return CUDAOptions(**values)
