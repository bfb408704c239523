"""Instructions of AVX-512 on whole vectors that LLVM has no operation of its own for."""

from typing import Optional, Sequence

from ..text import Builder

_CURRENT_ROUNDING = "4"
_SUFFIXES = {"float": "ps", "double": "pd"}
# Operand of `range`: the sign is that of the result; 1 for the larger, 0 for the smaller.
_EXTREMES = {"maximum": "5", "minimum": "4"}


def scaled(b: Builder, value: str, power: str, width: int) -> Optional[str]:
    """``value`` 2^``power`` of f32, rounded once, for whole powers of any size; None where there is no instruction."""
    if width != 16 or "avx512f" not in b.module.features:
        return None
    return _call(b, "scalef", "float", width, [value, power])


def extreme_number(b: Builder, name: str, first: str, second: str, kind: str, width: int) -> Optional[str]:
    """`maximum` or `minimum`, -0 below +0, of two NaNs only a NaN; None where there is no instruction.

    Of a signalling NaN and a number the instruction makes a NaN. With itself it makes a quiet one of it, which then
    gives way to a number.
    """
    if width != {"float": 16, "double": 8}.get(kind) or "avx512dq" not in b.module.features:
        return None
    quiet = [_call(b, "range", kind, width, [value, value], _EXTREMES[name]) for value in (first, second)]
    return _call(b, "range", kind, width, quiet, _EXTREMES[name])


def _call(b: Builder, name: str, kind: str, width: int, values: Sequence[str], choice: str = "") -> str:
    """The instruction on all lanes; `choice` is its number, if it takes one."""
    full = b.vector_type(kind, width)
    given = [(full, value) for value in values]
    if choice:
        given.append(("i32", choice))
    given += [(full, "zeroinitializer"), (f"i{width}", "-1"), ("i32", _CURRENT_ROUNDING)]
    return b.call(full, f"llvm.x86.avx512.mask.{name}.{_SUFFIXES[kind]}.512", given)
