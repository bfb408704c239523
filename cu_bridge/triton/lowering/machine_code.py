"""LLVM text to machine code of this processor, by the LLVM inside libtriton."""

import os
import tempfile
from typing import NamedTuple

from . import libllvm
from .target import Target


class Machine(NamedTuple):
    object: bytes
    llir: str


def compile_text(text: str, tables: str, name: str, target: Target, fusion: bool) -> Machine:
    """Optimise a module that defines `NAME.chunk`, append `tables`, and make an object file of it.

    libtriton reads LLVM text only to link it into a module that comes from MLIR, and keeps what that module calls. So
    that module is one function, `NAME.entry`, that calls `NAME.chunk`, and takes its place in `tables`.
    """
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    layout = "" if libllvm.has_data_layouts(target) else f', llvm.data_layout = "{libllvm.DATA_LAYOUT}"'
    caller = (
        f'module attributes {{llvm.target_triple = "{target.triple}"{layout}}} {{\n'
        f'  llvm.func @"{name}.chunk"()\n'
        f'  llvm.func @"{name}.entry"() {{\n    llvm.call @"{name}.chunk"() : () -> ()\n    llvm.return\n  }}\n}}\n'
    )
    with tempfile.TemporaryDirectory(prefix="maca-triton-") as folder:
        mlir, source = os.path.join(folder, "stub.mlir"), os.path.join(folder, "kernel.ll")
        with open(mlir, "w") as out:
            out.write(caller)
        with open(source, "w") as out:
            out.write(text)
        module = ir.parse_mlir_module(mlir, context)
        lowered = libllvm.to_module(module, target)
        libllvm.link(lowered, source, target)
    libllvm.optimise(lowered, target, fusion)
    return translate(str(lowered) + tables.replace(f'@"{name}.chunk"', f'@"{name}.entry"'), target, fusion)


def translate(llir: str, target: Target, fusion: bool) -> Machine:
    """Machine code of an optimised module."""
    return Machine(bytes(libllvm.machine_code(llir, target, fusion, binary=True)), llir)


def assembly_text(llir: str, target: Target, fusion: bool) -> str:
    """The same as assembly text, which takes as long again."""
    return str(libllvm.machine_code(llir, target, fusion, binary=False))
