"""A module of Triton's IR in memory: operations, blocks and the values that they use."""

from typing import Dict, List, Optional, Tuple

from .types import Type


class Value:
    """A result of an operation, or an argument of a block."""

    __slots__ = ("name", "type", "definition", "index", "block", "users")

    def __init__(self, name: str, kind: Type, definition: Optional["Operation"], index: int = 0):
        self.name, self.type, self.definition, self.index = name, kind, definition, index
        self.block: Optional[Block] = None  # of an argument, whose it is
        self.users: List[Operation] = []

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Block:
    __slots__ = ("label", "arguments", "operations", "parent")

    def __init__(self, label: str = ""):
        self.label = label
        self.arguments: List[Value] = []
        self.operations: List[Operation] = []
        self.parent: Optional[Operation] = None


class Operation:
    """`words` are the bare words of the printed form (a predicate, an axis); `attributes` what stands in braces."""

    __slots__ = (
        "name",
        "operands",
        "results",
        "attributes",
        "words",
        "symbol",
        "regions",
        "successors",
        "location",
        "block",
        "position",
        "text",
    )

    def __init__(self, name: str):
        self.name = name
        self.operands: List[Value] = []
        self.results: List[Value] = []
        self.attributes: Dict[str, str] = {}
        self.words: List[str] = []
        self.symbol = ""
        self.regions: List[List[Block]] = []
        self.successors: List[Tuple[str, List[Value]]] = []
        self.location: Tuple[str, int] = ("", 0)
        self.block: Optional[Block] = None
        self.position = 0
        self.text: List[str] = []  # string literals of the printed form

    def integer(self, key: str, default: Optional[int] = None) -> int:
        """The value of an integer attribute such as `axis = 1 : i32`."""
        if key not in self.attributes:
            if default is None:
                raise KeyError(key)
            return default
        return int(self.attributes[key].split(":")[0])

    def integers(self, key: str) -> List[int]:
        """The value of an attribute such as `order = array<i32: 1, 0>`."""
        text = self.attributes[key]
        inside = text[text.index("<") + 1 : text.rindex(">")]
        return [int(number) for number in inside.split(":", 1)[1].split(",")] if ":" in inside else []

    def flag(self, key: str) -> bool:
        return self.attributes.get(key, "false").split(":")[0].strip() in ("true", "unit", "1")

    def __repr__(self) -> str:
        return f"{', '.join(v.name for v in self.results)} = {self.name}({', '.join(v.name for v in self.operands)})"


class Function:
    """A function of the module; the kernel is the public one."""

    __slots__ = ("name", "arguments", "results", "blocks", "public", "location")

    def __init__(self, name: str, public: bool):
        self.name, self.public = name, public
        self.arguments: List[Value] = []
        self.results: List[Type] = []
        self.blocks: List[Block] = []
        self.location: Tuple[str, int] = ("", 0)


def walk(blocks: List[Block]):
    """All operations of the blocks, those of regions after the one that they belong to."""
    for block in blocks:
        for operation in block.operations:
            yield operation
            for region in operation.regions:
                yield from walk(region)
