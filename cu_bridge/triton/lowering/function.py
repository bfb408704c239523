"""The lowering of one function: each operation to its place."""

from typing import Dict, List, Tuple

from .dot_scaled import DotScaled
from .errors import LoweringError
from .ir import Function, Operation, Value
from .planning.branches import flatten
from .planning.narrowing import narrow
from .planning.plan import ROOTS, VIEWS, Plan
from .planning.turning import turn
from .shapes import Shapes
from .text import ModuleText
from .tiles import Buffer

_GRID = ("grid_x", "grid_y", "grid_z", "pid_x", "pid_y", "pid_z")
_AXES = {"x": "x", "y": "y", "z": "z", "0": "x", "1": "y", "2": "z"}


class FunctionLowering(Shapes, DotScaled):
    """Writes the LLVM text of one function. `names` maps functions of the module to those of the text."""

    def __init__(self, module: ModuleText, function: Function, names: Dict[str, str]):
        super().__init__(module)
        self.function, self.names = function, names
        flatten(function, self.e.knows)
        narrow(function)
        self.chunks_first = turn(function, self.e.knows)
        self.plan = Plan(function)
        self.calls: List[Tuple[str, str]] = []
        self.done_stores: set = set()
        self.returned: List[str] = []

    # ---- statements
    def statement(self, operation: Operation) -> None:
        try:
            self._statement(operation)
        except LoweringError as error:
            if error.location[0]:
                raise
            raise LoweringError(error.operation, error.reason, operation.location) from error
        except (KeyError, ValueError, IndexError, AssertionError, AttributeError, TypeError) as error:
            reason = f"cannot be lowered ({type(error).__name__}: {error})"
            raise LoweringError(operation.name, reason, operation.location) from error

    def _statement(self, operation: Operation) -> None:
        name = operation.name
        method = _STATEMENTS.get(name)
        if method is not None:
            getattr(self, method)(operation)
            return
        if name in ROOTS and name not in VIEWS:
            raise LoweringError(name, "has no lowering to the CPU", operation.location)
        if not operation.results:
            raise LoweringError(name, "has no lowering to the CPU", operation.location)
        if not operation.results[0].type.shape and not any(operand.type.shape for operand in operation.operands):
            self._scalar_statement(operation)
            return
        if name not in VIEWS and name not in ("tt.load", "tt.gather") and not self.e.knows(operation):
            raise LoweringError(name, "has no lowering to the CPU", operation.location)
        for result in operation.results:
            if result in self.plan.kept:
                self.buffers[result] = self.keep(result)

    def _scalar_statement(self, operation: Operation) -> None:
        result = operation.results[0]
        if operation.name == "arith.constant":
            level = self.b.levels[0]
            self.scalars[result] = self._constant(operation, result, (), level).scalar
        elif operation.name == "tt.load":
            values = [self.scalar(operand) for operand in operation.operands]
            mask = values[1] if len(values) > 1 and values[1] != "1" else None
            self.check_address(operation, values[0], mask, result.type.bytes)
            self.scalars[result] = self.load_scalar(operation, values[0], mask, values[2] if len(values) > 2 else None)
        elif operation.name in ("tt.splat", "tt.broadcast"):
            self.scalars[result] = self.scalar(operation.operands[0])
        else:
            results = self.e.apply(operation, [self.scalar(operand) for operand in operation.operands], 1)
            self.scalars.update(zip(operation.results, results))

    def _store(self, operation: Operation) -> None:
        if not operation.operands[0].type.shape:
            values = [self.scalar(operand) for operand in operation.operands]
            mask = values[2] if len(values) > 2 and values[2] != "1" else None
            self.check_address(operation, values[0], mask, operation.operands[1].type.bytes)
            self.store_scalar(values[0], values[1], operation.operands[1].type, mask)
            return
        members = self.plan.group_members[self.plan.groups[operation]]
        if operation is members[-1]:
            self.store_group(members)

    def _program_id(self, operation: Operation) -> None:
        self.scalars[operation.results[0]] = f"%pid_{self._axis(operation)}"

    def _program_count(self, operation: Operation) -> None:
        self.scalars[operation.results[0]] = f"%grid_{self._axis(operation)}"

    def _axis(self, operation: Operation) -> str:
        word = operation.words[0] if operation.words else str(operation.integer("axis"))
        return _AXES[word]

    def _nothing(self, operation: Operation) -> None:
        """A barrier between the threads of a program: here one thread does all of its work."""

    def _return(self, operation: Operation) -> None:
        for address, value in zip(self.returned, operation.operands):
            if value.type.shape:
                self.keep_copy(value, Buffer(address, value.type))
            else:
                self.b.put(f"store {value.type.llvm} {self.scalar(value)}, ptr {address}")
        self.b.put("ret void")

    # ---- the function
    def define(self, kernel: bool) -> str:
        """The text of the function. A kernel reads its parameters through `%arguments`."""
        parameters: List[Tuple[str, str]] = []
        if kernel:
            parameters.append(("ptr", "%arguments"))
            self._read_parameters()
        else:
            for number, argument in enumerate(self.function.arguments):
                self._bind_argument(argument, f"%a{number}", parameters)
            for number, _ in enumerate(self.function.results):
                self.returned.append(f"%r{number}")
                parameters.append(("ptr noalias", f"%r{number}"))
        parameters += [("i32", f"%{name}") for name in _GRID]
        parameters.append(("ptr noalias", "%scratch"))
        self.blocks(self.function.blocks)
        own = (self.scratch_bytes + self.slack + 63) // 64 * 64
        for _, callee in self.calls:
            self.b.allocas.append(f"  %{callee} = getelementptr i8, ptr %scratch, i64 {own}")
        self.own_scratch = own
        text = ", ".join(f"{kind} {name}" for kind, name in parameters)
        name = self.names[self.function.name]
        return f'define internal void @"{name}"({text}) #0 {{\n{self.b.body()}\n}}'

    own_scratch = 0

    def _read_parameters(self) -> None:
        for number, argument in enumerate(self.function.arguments):
            place = self.b.emit(f"getelementptr ptr, ptr %arguments, i64 {number}")
            address = self.b.emit(f"load ptr, ptr {place}, !invariant.load !{{}}")
            kind = argument.type
            memory = self.memory_type(kind)
            value = self.b.emit(f"load {memory}, ptr {address}, align {kind.bytes}, !invariant.load !{{}}")
            if kind.element == "i1":
                value = self.b.emit(f"trunc i8 {value} to i1")
            self.scalars[argument] = value

    def _bind_argument(self, argument: Value, name: str, parameters: List[Tuple[str, str]]) -> None:
        if argument.type.shape:
            parameters.append(("ptr noalias", name))
            self.buffers[argument] = Buffer(name, argument.type)
        else:
            parameters.append((argument.type.llvm, name))
            self.scalars[argument] = name


_STATEMENTS: Dict[str, str] = {
    "tt.store": "_store",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
    "tt.atomic_load": "atomic",
    "tt.atomic_store": "atomic",
    "tt.atomic_poll": "atomic",
    "tt.reduce": "reduce",
    "tt.scan": "scan",
    "tt.dot": "dot",
    "tt.dot_scaled": "dot_scaled",
    "tt.histogram": "histogram",
    "tt.map_elementwise": "map_elementwise",
    "tt.cat": "concatenate",
    "tt.unsplat": "unsplat",
    "tt.print": "print_values",
    "tt.assert": "check",
    "tt.call": "call_function",
    "tt.return": "_return",
    "tt.get_program_id": "_program_id",
    "tt.get_num_programs": "_program_count",
    "scf.for": "for_loop",
    "scf.if": "condition",
    "scf.while": "while_loop",
    "scf.execute_region": "inner_region",
    "cf.br": "branch_to",
    "cf.cond_br": "branch_to",
    "gpu.barrier": "_nothing",
    "ttg.barrier": "_nothing",
    "ttg.local_barrier": "_nothing",
    "llvm.intr.assume": "_nothing",
    "tt.reduce.return": "region_return",
    "tt.scan.return": "region_return",
    "tt.map_elementwise.return": "region_return",
}
