"""Runs all cases and leaves what they gave in a file: python run_cases.py FILE [DEVICE]."""

import pickle
import sys
from typing import Any, Dict

import cases_columns  # noqa: F401
import cases_control  # noqa: F401
import cases_elementwise  # noqa: F401
import cases_hazards  # noqa: F401
import cases_memory  # noqa: F401
import cases_narrowing  # noqa: F401
import cases_tiles  # noqa: F401
from registry import CASES


def main() -> None:
    """Write a dictionary: name of the case, and its outcome's array or the error as text."""
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    results: Dict[str, Any] = {}
    for name, function in CASES.items():
        try:
            results[name] = function(device).got
        except Exception as error:  # the interpreter lacks some operations
            results[name] = f"{type(error).__name__}: {error}"
    with open(sys.argv[1], "wb") as out:
        pickle.dump(results, out)


if __name__ == "__main__":
    main()
