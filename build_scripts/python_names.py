"""How a Python is named: by its version, ``3.14``, or ``3.14t`` for the build without the global lock (PEP 703)."""

import sys
import sysconfig
from typing import Optional, Tuple

from packaging.version import Version

from .errors import FactoryError

FREE_THREADED = "t"


def running() -> str:
    """The name of the Python that runs this."""
    mark = FREE_THREADED if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{sys.version_info[0]}.{sys.version_info[1]}{mark}"


def parse(text: Optional[str]) -> str:
    """``3.10`` from any of 3.10, 310, cp310, ``3.14t`` from 3.14t, 314t, cp314t; the running Python for nothing."""
    if not text:
        return running()
    digits = text[2:] if text.startswith("cp") else text
    mark = FREE_THREADED if digits.endswith(FREE_THREADED) else ""
    digits = number(digits)
    if "." not in digits and len(digits) >= 2:
        digits = f"{digits[0]}.{digits[1:]}"
    parts = digits.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        raise FactoryError(
            f"'{text}' is no Python version.", "Write it as 3.10, 310 or cp310, without the global lock as 3.14t."
        )
    return ".".join(parts[:2]) + mark


def number(python: str) -> str:
    """The version alone, which pip and the markers of requirements compare."""
    return python[: -len(FREE_THREADED)] if python.endswith(FREE_THREADED) else python


def order(python: str) -> Tuple[Version, bool]:
    """What Pythons are sorted by: the age of the version, then the build with the lock first."""
    return Version(number(python)), python.endswith(FREE_THREADED)


def interpreter_tag(python: str) -> str:
    """The first part of a wheel's tag: ``cp314``, with and without the lock."""
    return "cp" + number(python).replace(".", "")


def abi_tag(python: str) -> str:
    """The second part of a wheel's tag: ``cp314``, or ``cp314t``."""
    return "cp" + python.replace(".", "")


def abis(python: str) -> Tuple[str, ...]:
    """The second parts of the tags that it takes. The stable ABI is of builds with the lock."""
    own = abi_tag(python)
    return (own, "none") if python.endswith(FREE_THREADED) else (own, "abi3", "none")
