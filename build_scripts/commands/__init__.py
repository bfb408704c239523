"""The commands: a file ``<command>.py`` with ``configure``, which adds its options to the command line, and ``run``.

``options.py`` holds the options that several commands share.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import List


def found() -> List[ModuleType]:
    """The modules of all commands, in the order of their names."""
    modules = [importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__)]
    return [module for module in modules if hasattr(module, "configure")]
