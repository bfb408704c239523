"""``python run.py MODULE FAMILY PROGRAM...``: programs on both devices, one line of JSON for each."""

import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Dict

sys.path.insert(0, str(Path(__file__).parent))

import torch
from compare import Differs, compare


def said(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:160]


def outcome_of(module: str, family: str, name: str) -> Dict[str, object]:
    """``equal``; ``differs``; ``fails`` where the CPU does not; ``not run`` where the CPU cannot either."""
    program = None
    try:
        program = getattr(importlib.import_module(module), family)(name)
        return {"outcome": "equal", "difference": compare(program)}
    except Differs as error:
        return {"outcome": "differs", "says": str(error)[:160]}
    except Exception as error:
        reason = said(error)
    if program is not None:
        try:
            program("cpu", torch.float32)
            return {"outcome": "fails", "says": reason}
        except Exception as error:
            reason = said(error)
    return {"outcome": "not run", "says": reason}


def main() -> int:
    warnings.simplefilter("ignore")
    module, family, *names = sys.argv[1:]
    for name in names:
        began = time.monotonic()
        found = outcome_of(module, family, name)
        print(json.dumps({"program": name, "seconds": round(time.monotonic() - began, 1), **found}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
