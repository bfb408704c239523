"""LLVM text of one function, written in pieces that may still grow while later ones are written."""

from typing import Dict, List, Optional, Sequence, Set, Tuple, Union

from .types import Type


class Segment:
    """Straight-line code, apart from branches that come back into it; `label` is the block that its end lies in."""

    __slots__ = ("lines", "label")

    def __init__(self, label: str):
        self.lines: List[str] = []
        self.label = label


class Level:
    """The code at one depth of a nest of loops.

    While inner loops are being written, its last segment is what runs before them: what an inner loop needs and what
    does not change in it goes there. `memo` keeps what has been computed at this depth.
    """

    __slots__ = ("parts", "memo", "depth")

    def __init__(self, depth: int, label: str):
        self.parts: List[Union[Segment, Level]] = [Segment(label)]
        self.memo: Dict[object, object] = {}
        self.depth = depth

    @property
    def segment(self) -> Segment:
        last = self.parts[-1]
        assert isinstance(last, Segment)
        return last

    def flatten(self, out: List[str]) -> None:
        for part in self.parts:
            if isinstance(part, Segment):
                out.extend(part.lines)
            else:
                part.flatten(out)


class ModuleText:
    """What the functions of a module share: declarations, constants, helper functions, the target's vectors."""

    def __init__(self, lanes: int, features: Set[str], fusion: bool):
        self.lanes, self.features = lanes, features
        self.contract = "contract " if fusion else ""
        self.checked = False  # whether loads and stores ask the runtime about their addresses
        self.declared: Set[str] = set()
        self.globals: List[str] = []
        self.helpers: Dict[str, str] = {}
        self.strings: Dict[str, str] = {}

    def declare(self, text: str) -> None:
        self.declared.add("declare " + text)

    def string(self, text: str) -> str:
        """The name of a constant with the text and a closing zero byte."""
        if text not in self.strings:
            data = text.encode()
            name = f'@"maca.text.{len(self.strings)}"'
            escaped = "".join(f"\\{byte:02X}" for byte in data) + "\\00"
            self.globals.append(f'{name} = internal constant [{len(data) + 1} x i8] c"{escaped}"')
            self.strings[text] = name
        return self.strings[text]

    def render(self, functions: Sequence[str]) -> str:
        parts = sorted(self.declared) + self.globals + list(self.helpers.values()) + list(functions)
        return "\n".join(parts) + "\n"


class Builder:
    """Writes instructions of one function."""

    def __init__(self, module: ModuleText):
        self.module = module
        self.counter = 0
        self.allocas: List[str] = []
        self.level = Level(0, "entry")
        self.levels = [self.level]

    # ---- instructions
    def fresh(self, stem: str = "t") -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def put(self, line: str) -> None:
        self.level.segment.lines.append("  " + line)

    def emit(self, expression: str) -> str:
        name = "%" + self.fresh()
        self.level.segment.lines.append(f"  {name} = {expression}")
        return name

    def mark(self, label: str) -> None:
        segment = self.level.segment
        segment.lines.append(f"{label}:")
        segment.label = label

    def jump(self, label: str) -> None:
        self.put(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.put(f"br i1 {condition}, label %{yes}, label %{no}")

    def call(self, result: str, name: str, arguments: Sequence[Tuple[str, str]], attributes: str = "") -> str:
        """Call a function that is declared by this call; `arguments` are pairs of type and value."""
        kinds = ", ".join(kind for kind, _ in arguments)
        if not name.startswith('"') and name not in self.module.helpers:
            self.module.declare(f"{result} @{name}({kinds}){attributes}")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result == "void":
            self.put(text)
            return ""
        return self.emit(text)

    def variable(self, kind: str) -> str:
        """Memory for one value of an LLVM type, which becomes a register when the module is optimised."""
        name = "%" + self.fresh("v")
        self.allocas.append(f"  {name} = alloca {kind}")
        return name

    # ---- loops
    def open_loop(self, count: Union[int, str], step: int = 1, kind: str = "i64") -> str:
        """Begin a loop over 0, step, ... below `count`, which is at least 1. Returns the counter."""
        outer = self.level
        number = self.fresh("l")
        inner = Level(outer.depth + 1, f"loop.{number}")
        self.levels.append(inner)
        self.level = inner
        counter = f"%i.{number}"
        inner.segment.lines += [f"loop.{number}:", ""]
        inner.memo["loop"] = (number, count, step, kind)
        return counter

    def close_loop(self) -> None:
        inner = self.levels.pop()
        number, count, step, kind = inner.memo["loop"]  # type: ignore[misc]
        outer = self.levels[-1]
        before = outer.segment
        head = inner.parts[0]
        assert isinstance(head, Segment)
        end = inner.segment
        head.lines[1] = f"  %i.{number} = phi {kind} [ 0, %{before.label} ], [ %n.{number}, %{end.label} ]"
        end.lines += [
            f"  %n.{number} = add nuw nsw {kind} %i.{number}, {step}",
            f"  %c.{number} = icmp ult {kind} %n.{number}, {count}",
            f"  br i1 %c.{number}, label %loop.{number}, label %done.{number}",
        ]
        before.lines.append(f"  br label %loop.{number}")
        after = Segment(f"done.{number}")
        after.lines.append(f"done.{number}:")
        outer.parts += [inner, after]
        self.level = outer

    # ---- vectors
    def vector_type(self, kind: Union[Type, str], width: int) -> str:
        element = kind if isinstance(kind, str) else kind.llvm
        return element if width == 1 else f"<{width} x {element}>"

    def splat(self, value: str, kind: str, width: int) -> str:
        if width == 1:
            return value
        if not value.startswith("%") and not value.startswith("@"):
            return splat_constant(value, kind, width)
        first = self.emit(f"insertelement <{width} x {kind}> poison, {kind} {value}, i64 0")
        return self.emit(
            f"shufflevector <{width} x {kind}> {first}, <{width} x {kind}> poison, <{width} x i32> zeroinitializer"
        )

    def shuffle(self, value: str, kind: str, width: int, lanes: Sequence[int], other: Optional[str] = None) -> str:
        """The lanes of a vector (and of `other` after them) in another order."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        full = f"<{width} x {kind}>"
        if len(lanes) == 1 and other is None:
            return self.emit(f"extractelement {full} {value}, i64 {lanes[0]}")
        return self.emit(f"shufflevector {full} {value}, {full} {other or 'poison'}, <{len(lanes)} x i32> <{mask}>")

    def body(self) -> str:
        lines: List[str] = []
        self.levels[0].flatten(lines)
        return "\n".join(["entry:"] + self.allocas + lines)


def splat_constant(value: str, kind: str, width: int) -> str:
    if width == 1:
        return value
    if value in ("zeroinitializer", "poison", "undef"):
        return value
    return "<" + ", ".join([f"{kind} {value}"] * width) + ">"


def vector_constant(values: Sequence[object], kind: str) -> str:
    if len(values) == 1:
        return str(values[0])
    return "<" + ", ".join(f"{kind} {value}" for value in values) + ">"
