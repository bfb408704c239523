"""The LLVM inside libtriton: the same few steps in all releases, whose functions take more from one to the next."""

import ctypes
import re
from functools import lru_cache
from typing import Any

from .target import Target

# Sizes and alignments as LLVM has them for x86-64: the one kind of processor that the release has wheels for which
# cannot attach them by name, and reads them from MLIR.
DATA_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
# LLVM's names of the kinds of processors, by the first word of a triple.
_PROCESSORS = {"x86_64": "X86", "aarch64": "AArch64", "nvptx64": "NVPTX"}
_STEPS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")


@lru_cache(maxsize=None)
def _llvm(triple: str) -> Any:
    """libtriton's module for LLVM, ready to make code for a kind of processor."""
    from triton._C import libtriton

    libtriton.llvm.init_targets()
    # Releases from 3.8 on start the processors of accelerators alone, and export the functions for the one of the host.
    exported = ctypes.PyDLL(libtriton.__file__)
    for step in _STEPS:
        start = getattr(exported, f"LLVMInitialize{_PROCESSORS[triple.split('-')[0]]}{step}", None)
        if start is not None:
            start()
    return libtriton.llvm


def _parameters(function: Any) -> str:
    """The parameters of one of libtriton's functions, as its documentation has them."""
    found = re.search(r"\((.*)\) ->", function.__doc__ or "", re.S)
    return found[1] if found else ""


def _flags_asked(function: Any) -> int:
    """How many parameters that are true or false a function has no default for."""
    return len(re.findall(r": bool(?! =)", _parameters(function)))


def has_data_layouts(target: Target) -> bool:
    """Whether a module is given its data layout; else MLIR has to name it."""
    return hasattr(_llvm(target.triple), "attach_datalayout")


def to_module(module: Any, target: Target) -> Any:
    """LLVM's module of one in MLIR's dialect of LLVM."""
    llvm = _llvm(target.triple)
    lowered = llvm.to_module(module, llvm.context())
    if has_data_layouts(target):
        llvm.attach_datalayout(lowered, target.triple, target.cpu, target.features)
    return lowered


def link(module: Any, path: str, target: Target) -> None:
    """Add what the module calls from a file of LLVM text."""
    _llvm(target.triple).link_extern_libs(module, [path])


def optimise(module: Any, target: Target, fusion: bool) -> None:
    """Run LLVM's passes of the third level, as far as the release takes the processor into account."""
    llvm = _llvm(target.triple)
    if "features" in _parameters(llvm.optimize_module):
        llvm.optimize_module(module, llvm.OPTIMIZE_O3, target.cpu, target.features, [], fusion)
    else:
        llvm.optimize_module(module, llvm.OPTIMIZE_O3, target.triple)


def machine_code(text: str, target: Target, fusion: bool, binary: bool) -> Any:
    """An object file (``binary``) or assembly text of LLVM text."""
    translate = _llvm(target.triple).translate_to_asm
    arguments = (text, target.triple, target.cpu, target.features, [], fusion, binary)
    # Two flags in the oldest release; what came later changes nothing that is asked for here.
    return translate(*arguments, *([False] * (_flags_asked(translate) - 2)))
