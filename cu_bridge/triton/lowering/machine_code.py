"""LLVM text to machine code of this processor, by the LLVM inside libtriton."""

import os
import tempfile
from typing import NamedTuple

from .target import Target


class Machine(NamedTuple):
    object: bytes
    llir: str
    asm: str


def compile_text(text: str, tables: str, name: str, target: Target, fusion: bool) -> Machine:
    """Optimise a module that defines `NAME.chunk`, append `tables`, and make an object file of it.

    libtriton reads LLVM text only to link it into a module that comes from MLIR, and keeps what that module calls. So
    that module is one function, `NAME.entry`, that calls `NAME.chunk`, and takes its place in `tables`.
    """
    from triton._C.libtriton import ir, llvm

    llvm.init_targets()
    context = ir.context()
    ir.load_dialects(context)
    caller = (
        f'module attributes {{llvm.target_triple = "{target.triple}"}} {{\n'
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
        lowered = llvm.to_module(module, llvm.context())
        llvm.attach_datalayout(lowered, target.triple, target.cpu, target.features)
        llvm.link_extern_libs(lowered, [source])
    llvm.optimize_module(lowered, llvm.OPTIMIZE_O3, target.cpu, target.features, [], fusion)
    return translate(str(lowered) + tables.replace(f'@"{name}.chunk"', f'@"{name}.entry"'), target, fusion)


def translate(llir: str, target: Target, fusion: bool) -> Machine:
    """Machine code and assembly text of an optimised module."""
    from triton._C.libtriton import llvm

    arguments = (llir, target.triple, target.cpu, target.features, [], fusion)
    code = llvm.translate_to_asm(*arguments, True)
    return Machine(bytes(code), llir, llvm.translate_to_asm(*arguments, False))
