"""Operands of inline PTX: what stands for them in C++, read, written and as addresses."""

import re
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import table


class Unsupported(Exception):
    """An instruction or operand that the table does not have."""


class Operand(NamedTuple):
    """An operand of an asm statement."""

    name: str  # symbolic, or empty
    constraint: str
    expression: str


class Operands:
    """The operands and registers of one asm statement, by their names in PTX and in C++."""

    def __init__(self, outputs: List[Operand], inputs: List[Operand]) -> None:
        self.names: Dict[str, Tuple[str, str]] = {}  # PTX name -> C++ name, C++ type
        self.declarations: List[str] = []  # before the code, which may jump over them
        self.operands: List[str] = []
        self.after: List[str] = []
        for number, operand in enumerate(outputs + inputs):
            letter = operand.constraint.strip("=+&")
            kind = table.CONSTRAINTS.get(letter)
            if kind is None:
                raise Unsupported(f'the constraint "{operand.constraint}"')
            variable = f"mxmaca_p{number}"
            if number < len(outputs):
                start = f" = mxmaca::ptx::in<{kind}>({operand.expression})" if "+" in operand.constraint else "{}"
                self.after.append(f"mxmaca::ptx::out({operand.expression}, {variable});")
            else:
                start = f" = mxmaca::ptx::in<{kind}>({operand.expression})"
            self.operands.append(f"{kind} {variable}{start};")
            for name in [f"%{number}"] + ([f"%[{operand.name}]"] if operand.name else []):
                self.names[name] = (variable, kind)

    def value(self, text: str, kind: str) -> str:
        """C++ for an operand read as a C++ type."""
        text = text.strip()
        negated = text.startswith("!")
        if negated:
            return f"!({self.value(text[1:], kind)})"
        if text in self.names:
            return f"mxmaca::ptx::as<{kind}>({self.names[text][0]})"
        if text in table.SPECIAL:
            return f"static_cast<{kind}>({table.SPECIAL[text]})"
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
            return self._literal(struct.unpack(">f", bytes.fromhex(text[2:]))[0], "float", kind)
        if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
            return self._literal(struct.unpack(">d", bytes.fromhex(text[2:]))[0], "double", kind)
        if re.fullmatch(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)U?", text):
            number = int(text.rstrip("U"), 0)
            if kind in ("float", "double") or "::" in kind:
                raise Unsupported(f"the integer {text} as a floating-point operand")
            return f"static_cast<{kind}>({number}{'ULL' if number >= 0 else 'LL'})"
        if re.fullmatch(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?", text) and kind in ("float", "double"):
            return f"static_cast<{kind}>({text})"
        if re.fullmatch(r"[-+()~&|^\s]*(?:(?:0[xX][0-9a-fA-F]+|\d+)[-+*()~&|^<>\s]*)+", text) and "::" not in kind:
            return f"static_cast<{kind}>({text})"
        raise Unsupported(f"the operand {text}")

    @staticmethod
    def _literal(number: float, own: str, kind: str) -> str:
        bits = struct.pack(">f" if own == "float" else ">d", number).hex()
        word = "uint32_t" if own == "float" else "uint64_t"
        return f"mxmaca::ptx::as<{kind}>({word}{{0x{bits}U{'' if own == 'float' else 'LL'}}})"

    def target(self, text: str) -> str:
        """C++ for an operand that is written."""
        text = text.strip()
        if text == "_":
            return "mxmaca_nothing"
        if text not in self.names:
            raise Unsupported(f"the operand {text}")
        return self.names[text][0]

    def address(self, text: str, space: Optional[str]) -> str:
        """A pointer for `[register+offset]`."""
        match = re.fullmatch(r"\s*\[\s*(.+?)\s*(?:\+\s*(-?[\w%]+))?\s*\]\s*", text)
        if match is None:
            raise Unsupported(f"the address {text.strip()}")
        base = self.value(match.group(1), "uint64_t")
        offset = f" + {self.value(match.group(2), 'uint64_t')}" if match.group(2) else ""
        convert = "shared_pointer" if space and space.startswith("shared") else "generic_pointer"
        return f"mxmaca::ptx::{convert}({base}{offset})"

    @staticmethod
    def vector(text: str) -> List[str]:
        """The parts of `{a, b}`."""
        return [part.strip() for part in text.strip("{} ").split(",")]

    def is_predicate(self, text: str) -> bool:
        """Whether the operand is a predicate."""
        return self.names.get(text.strip(" !"), ("", ""))[1] == "bool"

    def declare(self, kind: str, names: str) -> None:
        """`.reg .b32 a, b<3>;`"""
        if kind not in table.TYPES:
            raise Unsupported(f".reg .{kind}")
        for name in names.split(","):
            match = re.fullmatch(r"\s*([\w%$]+)(?:<(\d+)>)?\s*", name)
            if match is None:
                raise Unsupported(f".reg .{kind} {names}")
            every = (
                [match.group(1)]
                if match.group(2) is None
                else [f"{match.group(1)}{i}" for i in range(int(match.group(2)))]
            )
            for one in every:
                # A name may stand for another register in another scope.
                variable = f"mxmaca_r{len(self.declarations)}_" + re.sub(r"\W", "_", one)
                self.declarations.append(f"{table.TYPES[kind]} {variable}{{}};")
                self.names[one] = (variable, table.TYPES[kind])
