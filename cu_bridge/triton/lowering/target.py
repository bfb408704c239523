"""The processor that code is made for: the one that it runs on."""

import platform
from functools import lru_cache
from typing import FrozenSet, NamedTuple, Tuple

from .errors import LoweringError


class Target(NamedTuple):
    triple: str
    cpu: str
    features: str  # LLVM's, as "+avx512bf16"
    flags: FrozenSet[str]
    lanes: int  # of f32 in the vectors that are used


# LLVM's levels of x86-64 and the flags that the kernel reports for each.
_LEVEL_4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVEL_3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_LEVEL_2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_EXTRA = {
    "avx512_bf16": "avx512bf16",
    "avx512_vnni": "avx512vnni",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512vbmi": "avx512vbmi",
}
# What is more than Armv8.0, which has vectors of four f32 (NEON) and fused multiplication always. Half precision of the
# processor's own is left alone: where it fuses, it rounds once, and the code for other processors twice.
_ARM_EXTRA = {"atomics": "lse"}


def target_for(flags: FrozenSet[str], machine: str = "x86_64") -> Target:
    """The target for a processor with these flags of /proc/cpuinfo. ``machine``: the architecture, as uname has it."""
    if machine == "x86_64":
        return _x86(flags)
    if machine == "aarch64":
        extra = ",".join(f"+{name}" for flag, name in sorted(_ARM_EXTRA.items()) if flag in flags)
        return Target("aarch64-unknown-linux-gnu", "generic", extra, flags, 4)
    raise LoweringError("the processor", f"is a {machine}, which kernels are not compiled for")


def _x86(flags: FrozenSet[str]) -> Target:
    triple = "x86_64-unknown-linux-gnu"
    if flags >= _LEVEL_4 | _LEVEL_3 | _LEVEL_2:
        extra = ",".join(f"+{name}" for flag, name in sorted(_EXTRA.items()) if flag in flags)
        return Target(triple, "x86-64-v4", extra, flags, 16)
    if flags >= _LEVEL_3 | _LEVEL_2:
        return Target(triple, "x86-64-v3", "", flags, 8)
    return Target(triple, "x86-64-v2" if flags >= _LEVEL_2 else "x86-64", "", flags, 4)


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The target for this machine."""
    machine = platform.machine()
    # The kernel's name of the line differs. Under emulation the file may be another processor's, and tells nothing.
    name = "Features" if machine == "aarch64" else "flags"
    flags: Tuple[str, ...] = ()
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(name):
                flags = tuple(line.split(":", 1)[1].split())
                break
    return target_for(frozenset(flags), machine)
