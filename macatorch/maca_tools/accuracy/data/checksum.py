"""CRC-32 (ISO/IEC 8802-3), as zlib and zip files have it."""

import functools
import importlib.util
from typing import Any

try:
    # Three to four times as fast, with the processor's own instructions, where it is installed.
    from isal.isal_zlib import crc32

    FAST = True
except ImportError:
    from zlib import crc32

    FAST = False

__all__ = ["FAST", "crc32", "joined", "zipfile_module"]

# The polynomial, bits reversed.
_POLYNOMIAL = 0xEDB88320


def joined(first: int, second: int, length: int) -> int:
    """The CRC-32 of two parts behind one another, from those of both and the bytes of the second."""
    return _product(first, _shift(length)) ^ second


@functools.lru_cache(maxsize=1024)
def _shift(length: int) -> int:
    """x to the power of 8 length, modulo the polynomial: by squaring."""
    result, square = 1 << 31, 1 << 23
    while length:
        if length & 1:
            result = _product(result, square)
        square = _product(square, square)
        length >>= 1
    return result


def _product(a: int, b: int) -> int:
    """Of two polynomials over GF(2), modulo the polynomial; the highest bit is the power 0."""
    result = 0
    while a:
        if a & 0x80000000:
            result ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return result


@functools.lru_cache(maxsize=1)
def zipfile_module() -> Any:
    """The standard library's zipfile with this crc32: a copy of the module, so that nobody else's changes."""
    spec = importlib.util.find_spec("zipfile")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.crc32 = crc32  # type: ignore[attr-defined]
    return module
