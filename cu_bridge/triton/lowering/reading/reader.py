"""Reads Triton's IR in its printed form, which is the one form that all releases give.

The printed form of most operations is: words and operands, attributes in braces, a colon, types. Operations with
regions (functions, loops, conditions, reductions) have forms of their own.
"""

import re
from typing import Dict, List, Optional, Tuple

from ..errors import LoweringError
from ..ir import Block, Function, Operation, Value
from ..types import I1, I32, Type, parse_type
from .scanner import Word, scan

_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_ALIAS_USE = re.compile(r"#loc\d*")
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$", re.M)

# The result has the type that stands first; the others are those of operands.
_FIRST_TYPE = {"tt.addptr", "tt.advance"}


def read_module(text: str) -> List[Function]:
    """The functions of a printed module, in order. Raises LoweringError or ValueError for what it cannot read."""
    return _Reader(text).module()


class _Reader:
    def __init__(self, text: str):
        self.aliases = dict(_ALIAS.findall(text))
        self.resolved: Dict[str, Tuple[str, int]] = {}
        self.words = scan(_ALIAS.sub("", text))
        self.place = 0
        self.values: List[Dict[str, Value]] = [{}]
        self.pending: Dict[str, Operation] = {}

    # ---- words
    @property
    def word(self) -> Word:
        return self.words[self.place]

    def take(self, text: Optional[str] = None) -> Word:
        word = self.words[self.place]
        if text is not None and word.text != text:
            before = " ".join(w.text for w in self.words[max(0, self.place - 12) : self.place])
            raise ValueError(f"{text!r} is expected after {before!r}, not {word.text!r}")
        self.place += 1
        return word

    def accept(self, text: str) -> bool:
        if self.words[self.place].text == text:
            self.place += 1
            return True
        return False

    # ---- locations
    def locate(self, text: str) -> Tuple[str, int]:
        found = self.resolved.get(text)
        if found is not None:
            return found
        direct = _FILE_LOCATION.search(text)
        alias = _ALIAS_USE.search(text)
        if direct and (alias is None or direct.start() < alias.start()):
            found = (direct[1], int(direct[2]))
        else:
            found = self.locate(self.aliases[alias[0]]) if alias and alias[0] in self.aliases else ("", 0)
        self.resolved[text] = found
        return found

    def location(self) -> Tuple[str, int]:
        return self.locate(self.take().text) if self.word.kind == "loc" else ("", 0)

    # ---- values
    def define(self, name: str, kind: Type, definition: Optional[Operation], index: int = 0) -> Value:
        value = Value(name, kind, definition, index)
        self.values[-1][name] = value
        return value

    def find(self, name: str) -> Value:
        for scope in reversed(self.values):
            if name in scope:
                return scope[name]
        raise ValueError(f"{name} is used before it is defined")

    def use(self, operation: Operation, name: str) -> Value:
        value = self.find(name)
        value.users.append(operation)
        return value

    # ---- module and functions
    def module(self) -> List[Function]:
        functions = []
        while self.word.kind != "end" and self.word.text != "module":
            self.take()
        self.take("module")
        while self.word.text != "{":
            if self.accept("attributes"):
                self.braces()
            else:
                self.take()
        self.take("{")
        while self.word.text != "}":
            if self.word.text in ("tt.func", "func.func"):
                functions.append(self.function())
            else:
                raise LoweringError(self.word.text, "is not lowered outside a function")
        return functions

    def function(self) -> Function:
        self.take()
        public = True
        while self.word.kind == "name":
            public = self.take().text != "private"
        function = Function(self.take().text[1:].strip('"'), public)
        self.values.append({})
        self.take("(")
        entry = Block("entry")
        while not self.accept(")"):
            name = self.take().text
            self.take(":")
            entry.arguments.append(self.define(name, self.type(), None))
            if self.word.text == "{":
                self.braces()
            self.location()
            self.accept(",")
        if self.accept("->"):
            function.results = self.types_in_brackets()
        if self.accept("attributes"):
            self.braces()
        function.arguments = entry.arguments
        function.blocks = self.region(entry)
        function.location = self.location()
        self.values.pop()
        return function

    def type(self) -> Type:
        return parse_type(self.take().text)

    def types_in_brackets(self) -> List[Type]:
        if not self.accept("("):
            return [self.type()]
        kinds = []
        while not self.accept(")"):
            kinds.append(self.type())
            if self.word.text == "{":
                self.braces()
            self.accept(",")
        return kinds

    def region(self, entry: Optional[Block] = None) -> List[Block]:
        """The blocks between braces. Names defined inside are known inside only."""
        self.take("{")
        self.values.append({})
        blocks = [entry or Block()]
        while not self.accept("}"):
            if self.word.kind == "label":
                block = self.block_header()
                if len(blocks) == 1 and not blocks[0].operations and entry is None:
                    blocks = [block]
                else:
                    blocks.append(block)
                continue
            operation = self.operation()
            operation.block, operation.position = blocks[-1], len(blocks[-1].operations)
            blocks[-1].operations.append(operation)
        self.values.pop()
        for block in blocks:
            for argument in block.arguments:
                argument.block = block
        return blocks

    def block_header(self) -> Block:
        block = Block(self.take().text)
        if self.accept("("):
            while not self.accept(")"):
                name = self.take().text
                self.take(":")
                block.arguments.append(self.define(name, self.type(), None))
                self.location()
                self.accept(",")
        self.take(":")
        return block

    def braces(self) -> Dict[str, str]:
        """Attributes `{name = value, name}`; the values as they are printed."""
        self.take("{")
        found = {}
        while not self.accept("}"):
            name = self.take().text.strip('"')
            value = "unit"
            if self.accept("="):
                parts, depth = [], 0
                while depth or self.word.text not in (",", "}"):
                    word = self.take()
                    depth += {"{": 1, "[": 1, "(": 1, "<": 1, "}": -1, "]": -1, ")": -1, ">": -1}.get(word.text, 0)
                    parts.append(word.text)
                value = " ".join(parts)
            found[name] = value
            self.accept(",")
        return found

    # ---- operations
    def operation(self) -> Operation:
        names: List[Tuple[str, int]] = []
        while self.word.kind == "value":
            name = self.take().text
            count = 1
            if self.accept(":"):
                count = int(self.take().text)
                names += [(f"{name}#{i}", i) for i in range(count)]
            else:
                names.append((name, 0))
            if not self.accept(","):
                self.take("=")
                break
        word = self.take()
        operation = Operation(word.text.strip('"'))
        generic = word.kind == "string"
        try:
            read = _FORMS.get(operation.name)
            if generic:
                kinds = self.generic(operation)
            elif read is not None:
                kinds = read(self, operation)
            else:
                kinds = self.plain(operation)
        except (ValueError, KeyError, IndexError) as error:
            while self.word.kind not in ("loc", "end"):
                self.take()
            raise LoweringError(operation.name, f"cannot be read ({error})", self.location()) from error
        operation.location = self.location()
        if len(kinds) != len(names):
            if names:
                raise LoweringError(operation.name, "its results cannot be read", operation.location)
            kinds = []
        for index, ((name, _), kind) in enumerate(zip(names, kinds)):
            operation.results.append(self.define(name, kind, operation, index))
        return operation

    def plain(self, operation: Operation) -> List[Type]:
        """Words, operands, attributes, types; returns the types of results."""
        while True:
            word = self.word
            if word.first or word.kind == "loc":
                return []
            self.take()
            if word.kind == "value":
                operation.operands.append(self.use(operation, word.text))
            elif word.kind == "symbol":
                operation.symbol = word.text[1:].strip('"')
            elif word.kind == "string":
                operation.text.append(word.text[1:-1])
            elif word.kind == "label":
                operation.successors.append((word.text, self.successor_values(operation)))
            elif word.text == "{":
                self.place -= 1
                operation.attributes.update(self.braces())
            elif word.text == "<" and self.word.text == "{":
                operation.attributes.update(self.braces())
                self.take(">")
            elif word.kind in ("name", "number", "list"):
                if self.word.text == "=":
                    self.take()
                    operation.attributes[word.text] = self.take().text
                elif word.text == "scale":
                    operation.attributes[f"scale {len(operation.operands)}"] = "unit"
                else:
                    operation.words.append(word.text)
            elif word.text == "->":
                self.place -= 1
                return self.result_types(operation)
            elif (
                word.text == ":"
                and self.word.kind in ("type", "name", "arrow")
                or word.text == ":"
                and self.word.text == "("
            ):
                return self.result_types(operation)

    def successor_values(self, operation: Operation) -> List[Value]:
        values = []
        if self.accept("("):
            while not self.accept(")"):
                word = self.take()
                if word.kind == "value":
                    values.append(self.use(operation, word.text))
        return values

    def result_types(self, operation: Operation) -> List[Type]:
        sides: List[List[Type]] = [[]]
        while not (self.word.first or self.word.kind == "loc"):
            word = self.take()
            if word.text in ("->", "to"):
                sides.append([])
            elif word.text == "*":
                operation.attributes["factors"] = str(len(sides[-1]))
            elif word.kind in ("type", "name") and word.text not in ("into", "x"):
                sides[-1].append(parse_type(word.text))
        first, last = sides[0], sides[-1]
        name = operation.name
        if len(sides) > 1:
            return last * 2 if name == "tt.split" and len(last) == 1 else last
        if name in _NO_RESULTS or not first:
            return []
        if name in ("arith.cmpi", "arith.cmpf"):
            return [Type(first[0].shape, "i1")]
        if name == "tt.load" and first[0].pointee is not None:
            pointee = first[0].pointee
            return [pointee.shaped(first[0].shape) if first[0].shape else pointee]
        if name in ("arith.addui_extended", "arith.mului_extended", "arith.mulsi_extended"):
            return [first[0], first[-1] if name == "arith.addui_extended" else first[0]]
        if name == "tt.unsplat":
            return [first[0].scalar]
        return [first[0]] if name in _FIRST_TYPE else [last[-1]]

    def generic(self, operation: Operation) -> List[Type]:
        """`"name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        self.take("(")
        while not self.accept(")"):
            word = self.take()
            if word.kind == "value":
                operation.operands.append(self.use(operation, word.text))
        if self.accept("["):
            while not self.accept("]"):
                operation.successors.append((self.take().text, []))
                self.accept(",")
        if self.word.text == "<":
            self.take()
            operation.attributes.update(self.braces())
            self.take(">")
        if self.accept("("):
            while not self.accept(")"):
                operation.regions.append(self.owned_region(operation))
                self.accept(",")
        if self.word.text == "{":
            operation.attributes.update(self.braces())
        self.take(":")
        self.types_in_brackets()
        self.take("->")
        return self.types_in_brackets()

    def owned_region(self, operation: Operation, entry: Optional[Block] = None) -> List[Block]:
        blocks = self.region(entry)
        for block in blocks:
            block.parent = operation
        return blocks

    def assignments(self, operation: Operation, block: Block) -> List[str]:
        """`(%argument = %initial, ...)`; returns the names of arguments, whose types come later."""
        names = []
        self.take("(")
        while not self.accept(")"):
            names.append(self.take().text)
            self.take("=")
            operation.operands.append(self.use(operation, self.take().text))
            self.accept(",")
        return names

    def argument(self, block: Block, name: str, kind: Type) -> None:
        value = Value(name, kind, None)
        self.values[-1][name] = value
        block.arguments.append(value)

    def for_form(self, operation: Operation) -> List[Type]:
        self.accept("unsigned") and operation.words.append("unsigned")
        induction = self.take().text
        self.take("=")
        for separator in ("to", "step", None):
            operation.operands.append(self.use(operation, self.take().text))
            if separator:
                self.take(separator)
        block = Block()
        names: List[str] = []
        kinds: List[Type] = []
        self.values.append({})
        if self.accept("iter_args"):
            names = self.assignments(operation, block)
            self.take("->")
            kinds = self.types_in_brackets()
        counter = self.type() if self.accept(":") else parse_type("index")
        self.argument(block, induction, counter)
        for name, kind in zip(names, kinds):
            self.argument(block, name, kind)
        operation.regions.append(self.owned_region(operation, block))
        self.values.pop()
        self.trailing(operation)
        return kinds

    def while_form(self, operation: Operation) -> List[Type]:
        before = Block()
        self.values.append({})
        names = self.assignments(operation, before) if self.word.text == "(" else []
        self.take(":")
        kinds = self.types_in_brackets()
        for name, kind in zip(names, kinds):
            self.argument(before, name, kind)
        self.take("->")
        results = self.types_in_brackets()
        operation.regions.append(self.owned_region(operation, before))
        self.values.pop()
        self.take("do")
        operation.regions.append(self.owned_region(operation))
        self.trailing(operation)
        return results

    def if_form(self, operation: Operation) -> List[Type]:
        operation.operands.append(self.use(operation, self.take().text))
        kinds = self.types_in_brackets() if self.accept("->") else []
        operation.regions.append(self.owned_region(operation))
        if self.accept("else"):
            operation.regions.append(self.owned_region(operation))
        self.trailing(operation)
        return kinds

    def trailing(self, operation: Operation) -> None:
        if self.accept("attributes") or (self.word.text == "{" and not self.word.first):
            operation.attributes.update(self.braces())

    def region_form(self, operation: Operation) -> List[Type]:
        """scf.execute_region and the like."""
        kinds = self.types_in_brackets() if self.accept("->") else []
        operation.regions.append(self.owned_region(operation))
        self.trailing(operation)
        return kinds

    def constant_form(self, operation: Operation) -> List[Type]:
        if self.word.text == "{":
            operation.attributes.update(self.braces())
        parts = []
        while self.word.text != ":" and not self.word.first and self.word.kind != "loc":
            parts.append(self.take().text)
        operation.words = [" ".join(parts)]
        if self.accept(":"):
            return [self.type()]
        return [I1]

    def special_type_form(self, operation: Operation) -> List[Type]:
        self.plain(operation)
        return [I32]


_NO_RESULTS = {
    "tt.store",
    "tt.atomic_store",
    "tt.return",
    "tt.print",
    "tt.assert",
    "scf.yield",
    "scf.condition",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
    "tt.descriptor_store",
    "tt.experimental_descriptor_store",
    "cf.br",
    "cf.cond_br",
    "gpu.barrier",
    "ttg.barrier",
    "ttg.local_barrier",
    "llvm.intr.assume",
    "tt.descriptor_scatter",
    "tt.descriptor_reduce",
}
_FORMS = {
    "scf.for": _Reader.for_form,
    "scf.while": _Reader.while_form,
    "scf.if": _Reader.if_form,
    "scf.execute_region": _Reader.region_form,
    "arith.constant": _Reader.constant_form,
}
