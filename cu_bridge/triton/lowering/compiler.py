"""A module of Triton's IR to a module of the simulated device."""

import os
from typing import Dict, List, NamedTuple

from .errors import LoweringError
from .function import FunctionLowering
from .ir import Function, walk
from .machine_code import assembly_text, compile_text, translate
from .reading.reader import read_module
from .target import Target, host_target
from .text import ModuleText


class Compiled(NamedTuple):
    """A kernel in machine code. `scratch`: bytes of memory for a program's tiles; `parameters`: sizes in bytes."""

    object: bytes
    llir: str
    name: str
    scratch: int
    parameters: List[int]
    shared: int = 0


class Lowered(NamedTuple):
    """A kernel as LLVM text that defines `NAME.program`."""

    text: str
    name: str
    scratch: int
    parameters: List[int]
    work: int


def lower_module(ttir: str, target: Target, fusion: bool = True) -> Lowered:
    """The LLVM text of the kernel of a printed module and of the functions that it calls."""
    functions = {function.name: function for function in read_module(ttir)}
    kernels = [function for function in functions.values() if function.public]
    if len(kernels) != 1:
        raise LoweringError("module", f"{len(kernels)} kernels in one module")
    kernel = kernels[0]
    module = ModuleText(target.lanes, set(target.flags), fusion)
    module.checked = _checked()
    names = {name: f"{name}.function" for name in functions}
    names[kernel.name] = f"{kernel.name}.program"
    names[""] = kernel.name
    texts: List[str] = []
    sizes: Dict[str, int] = {}
    for function in _callees_first(functions, kernel):
        lowering = FunctionLowering(module, function, names)
        texts.append(lowering.define(kernel=function is kernel))
        inner = max((sizes[name] for name, _ in lowering.calls), default=0)
        sizes[function.name] = lowering.own_scratch + inner
    attributes = 'attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" }\n'
    parameters = [argument.type.bytes for argument in kernel.arguments]
    text = module.render(texts) + attributes
    return Lowered(text, kernel.name, sizes[kernel.name], parameters, _work(kernel))


def _work(kernel: Function) -> int:
    """About how many elements a program computes: those of its largest tile, or an eighth of a product's operations."""
    most = 1
    for operation in walk(kernel.blocks):
        for result in operation.results:
            most = max(most, result.type.count)
        if operation.name in ("tt.dot", "tt.dot_scaled"):
            most = max(most, operation.results[0].type.count * operation.operands[0].type.shape[-1] // 8)
    return min(most, 1 << 24)


def _callees_first(functions: Dict[str, Function], kernel: Function) -> List[Function]:
    order: List[Function] = []
    open_: List[str] = []

    def visit(function: Function) -> None:
        if function in order:
            return
        if function.name in open_:
            raise LoweringError("tt.call", f"{function.name} calls itself", function.location)
        open_.append(function.name)
        for operation in walk(function.blocks):
            if operation.name == "tt.call":
                visit(functions[operation.symbol])
        open_.pop()
        order.append(function)

    visit(kernel)
    return order


def compile_module(ttir: str, options: object = None) -> Compiled:
    """Compile the kernel of a printed module for this machine. Raises LoweringError for what has no lowering."""
    from ..module_text import chunk_text, table_text

    target = host_target()
    fusion = bool(getattr(options, "enable_fp_fusion", True))
    lowered = lower_module(ttir, target, fusion)
    text = lowered.text + chunk_text(lowered.name, lowered.scratch)
    threads = 32 * int(getattr(options, "num_warps", 4))
    tables = table_text(lowered.name, lowered.parameters, work=max(1, lowered.work // threads))
    machine = compile_text(text, tables, lowered.name, target, fusion)
    return Compiled(machine.object, machine.llir, lowered.name, lowered.scratch, lowered.parameters)


def assemble(llir: str, options: object = None) -> bytes:
    """The object of LLVM text that a user has changed."""
    return translate(llir, host_target(), bool(getattr(options, "enable_fp_fusion", True))).object


def assembly(llir: str, options: object = None) -> str:
    """The assembly text of LLVM text that `compile_module` gave. `options`: those of the compilation, or metadata."""
    return assembly_text(llir, host_target(), bool(getattr(options, "enable_fp_fusion", True)))


def target_key() -> str:
    """What machine code depends on beside the kernel: the processor, and whether addresses are checked."""
    target = host_target()
    return f"{target.cpu}{target.features}{'checked' if _checked() else ''}"


def _checked() -> bool:
    return os.environ.get("MACA_TRITON_CHECK", "0") == "1"
