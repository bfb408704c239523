"""Makes `release_facts` known to every test; the folders here are no packages, and must not be taken for some."""

import importlib.util
import sys
from pathlib import Path

_NAME = "release_facts"
_spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name(f"{_NAME}.py"))
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules[_NAME] = _module
_spec.loader.exec_module(_module)
