"""The processor that code is made for: the one that it runs on."""

from functools import lru_cache
from typing import FrozenSet, NamedTuple, Tuple


class Target(NamedTuple):
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


def target_for(flags: FrozenSet[str]) -> Target:
    """The target for a processor with these flags of /proc/cpuinfo."""
    if flags >= _LEVEL_4 | _LEVEL_3 | _LEVEL_2:
        extra = ",".join(f"+{name}" for flag, name in sorted(_EXTRA.items()) if flag in flags)
        return Target("x86-64-v4", extra, flags, 16)
    if flags >= _LEVEL_3 | _LEVEL_2:
        return Target("x86-64-v3", "", flags, 8)
    return Target("x86-64-v2" if flags >= _LEVEL_2 else "x86-64", "", flags, 4)


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The target for this machine."""
    flags: Tuple[str, ...] = ()
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("flags"):
                flags = tuple(line.split(":", 1)[1].split())
                break
    return target_for(frozenset(flags))
