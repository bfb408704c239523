"""Inline PTX: known statements become C++ (assembly/table.py says which), all others an error with its name."""

import re
from typing import List, Optional

from .assembly import TRANSLATORS, table
from .assembly.operands import Operand, Operands, Unsupported

# PTX writes types behind dots (mov.u32, ld.global.ca.f32) or is one of these words; x86 and Arm code is neither.
INSTRUCTION = re.compile(r"(?:^|[;{}\\n\\t\s])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_:]+)+)(?=[\s;]|$)")
WORDS = re.compile(r"^\s*(?:trap|exit|brkpt|pmevent|membar|bar|ret)\b")
LABEL = re.compile(r"\s*([A-Za-z_$%][\w$%=]*)\s*:(?!:)")
REGISTERS = re.compile(r"\.reg\s*\.(?:v[24]\s*\.)?(\w+)\s+(.*)", re.DOTALL)


def is_ptx(template: str) -> bool:
    """Whether the text of an asm statement is PTX."""
    plain = plain_text(template)
    return bool(INSTRUCTION.search(plain) or WORDS.match(plain) or re.search(r"\.reg\s*\.", plain))


def plain_text(template: str) -> str:
    """The PTX of a string literal's text, without comments."""
    text = template.replace("\\n", "\n").replace("\\t", " ").replace("\\r", " ").replace('\\"', '"')
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)


def without_scopes(text: str) -> str:
    """The text without the braces that only bound names; those of vectors stay."""
    kept: List[str] = []
    scopes: List[bool] = []
    before = ";"
    for character in text:
        if character == "{":
            scopes.append(before in ";")
            character = ";" if scopes[-1] else character
        elif character == "}":
            character = ";" if scopes and scopes.pop() else character
        kept.append(character)
        before = before if character.isspace() else character
    return "".join(kept)


def split(text: str, separator: str) -> List[str]:
    """The parts of PTX between separators that stand outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


class Translation(Operands):
    """One asm statement on its way to C++."""

    def __init__(self, outputs: List[Operand], inputs: List[Operand]) -> None:
        super().__init__(outputs, inputs)
        self.labels: List[str] = []
        self.code: List[str] = []
        self.unsupported: List[str] = []

    def instruction(self, name: str, arguments: List[str]) -> str:
        """C++ for one instruction."""
        for special in (self._move, self._convert, self._jump):
            code = special(name, arguments)
            if code is not None:
                return code
        for translate_one in TRANSLATORS:
            code = translate_one(self, name, arguments)
            if code is not None:
                return code
        found = table.find_row(name)
        if found is None:
            raise Unsupported(name)
        row, match = found
        groups = match.groupdict()
        short = groups.get("t") or "u32"
        kinds = {
            "T": table.TYPES.get(short, ""),
            "U": table.UNSIGNED.get(short, ""),
            "W": table.WIDER.get(short, ""),
        }
        wanted = list(row.operands)
        if wanted == ["address"]:
            return row.expression + ";"
        given = arguments[1:] if row.result else arguments
        if len(given) != len(wanted):
            raise Unsupported(f"{name} with {len(arguments)} operands")
        lines = []
        for letter, kind, text in zip("abcd", wanted, given):
            cpp = kinds.get(kind) or table.TYPES[kind]
            value = self.value(text, cpp)
            flush = ".ftz" in name and (cpp == "float" or "::" in cpp)
            value = f"mxmaca::ptx::flushed({value})" if flush else value
            lines.append(f"const {cpp} {letter} = {value};")
        expression = row.expression.replace("{r}", table.ROUNDINGS[groups.get("r") or "n"]).replace(
            "{f}", groups.get("f") or ""
        )
        # In the place of a name for the type: the program's templates have parameters of every name.
        expression = re.sub(r"\b[TUW]\b", lambda found: kinds[found.group()], expression)
        if not row.result:
            return "{ " + " ".join(lines) + f" {expression}; }}"
        cpp = kinds.get(row.result) or table.TYPES[row.result]
        result = expression if "::" in cpp else f"static_cast<{cpp}>({expression})"
        for modifier, function in (("ftz", "flushed"), ("sat", "saturated"), ("relu", "relu")):
            if f".{modifier}" in name and (cpp in ("float", "double") or "::" in cpp):
                result = f"mxmaca::ptx::{function}({result})"
        return "{ " + " ".join(lines) + f" mxmaca::ptx::put({self.target(arguments[0])}, {result}); }}"

    def _move(self, name: str, arguments: List[str]) -> Optional[str]:
        match = re.fullmatch(r"mov\.(\w+)", name)
        if match is None or match.group(1) not in table.TYPES or len(arguments) != 2:
            return None
        kind = table.TYPES[match.group(1)]
        to, source = arguments
        size = {"uint16_t": 16, "int16_t": 16, "uint64_t": 64, "int64_t": 64, "double": 64}.get(kind, 32)
        if source.startswith("{"):
            parts = source.strip("{} ").split(",")
            step = size // len(parts)
            whole = " | ".join(
                f"static_cast<uint64_t>({self.value(part, f'uint{step}_t')}) << {i * step}"
                for i, part in enumerate(parts)
            )
            return f"mxmaca::ptx::put({self.target(to)}, static_cast<uint{size}_t>({whole}));"
        if to.startswith("{"):
            parts = to.strip("{} ").split(",")
            step = size // len(parts)
            lines = [f"const uint64_t whole = {self.value(source, f'uint{size}_t')};"]
            for i, part in enumerate(parts):
                if part.strip() != "_":
                    lines.append(
                        f"mxmaca::ptx::put({self.target(part)}, static_cast<uint{step}_t>(whole >> {i * step}));"
                    )
            return "{ " + " ".join(lines) + " }"
        return f"mxmaca::ptx::put({self.target(to)}, {self.value(source, kind)});"

    def _convert(self, name: str, arguments: List[str]) -> Optional[str]:
        match = table.CVT.fullmatch(name)
        if match is None or len(arguments) != 2:
            return None
        to, source = table.TYPES.get(match.group("to")), table.TYPES.get(match.group("from"))
        if to is None or source is None or match.group("to").endswith("x2"):
            return None
        to_float, from_float = ("f" in match.group("to")), ("f" in match.group("from"))
        # Without a mode the conversion is exact, or one between integers.
        mode = table.ROUNDINGS[match.group("r") or ("z" if from_float and not to_float else "n")]
        whole = str(bool(match.group("i")) and to_float and from_float).lower()
        saturate = str(bool(match.group("sat"))).lower()
        operand = self.value(arguments[1], source)
        value = f"mxmaca::ptx::convert<{to}, mxmaca::Rounding::{mode}, {saturate}, {whole}>({operand})"
        if match.group("ftz") and to == "float":
            value = f"mxmaca::ptx::flushed({value})"
        if match.group("relu"):
            if not to_float or to == "double":
                return None
            value = f"mxmaca::ptx::relu({value})"
        return f"mxmaca::ptx::put({self.target(arguments[0])}, {value});"

    def _jump(self, name: str, arguments: List[str]) -> Optional[str]:
        if name not in ("bra", "bra.uni") or len(arguments) != 1 or self._label(arguments[0]) not in self.labels:
            return None
        return f"goto {self._label(arguments[0])};"

    @staticmethod
    def _label(name: str) -> str:
        return "mxmaca_l_" + re.sub(r"\W", "_", name)

    def note_labels(self, statements: List[str]) -> None:
        """Jumps may go forward, so labels are known before the code."""
        for text in statements:
            match = LABEL.match(text)
            while match is not None:
                self.labels.append(self._label(match.group(1)))
                text = text[match.end() :]
                match = LABEL.match(text)

    def statement(self, text: str) -> None:
        """Translates one statement; notes it where that cannot be."""
        text = " ".join(text.split())
        label = LABEL.match(text)
        while label is not None:
            self.code.append(f"{self._label(label.group(1))}:;")
            text = text[label.end() :].strip()
            label = LABEL.match(text)
        if not text:
            return
        try:
            registers = REGISTERS.fullmatch(text)
            if registers is not None:
                self.declare(registers.group(1), registers.group(2))
                return
            guard = re.match(r"@(!?)([\w%$]+)\s+", text)
            condition = ""
            if guard is not None:
                text = text[guard.end() :]
                condition = f"if ({guard.group(1)}{self.value(guard.group(2), 'bool')}) "
            name, _, rest = text.partition(" ")
            arguments = [part.strip() for part in split(rest, ",")] if rest.strip() else []
            self.code.append(condition + "{ " + self.instruction(name, arguments) + " }")
        except Unsupported as problem:
            self.unsupported.append(str(problem))


def refusal(names: List[str]) -> str:
    """C++ that does not compile if it is used, and says why."""
    message = f"inline PTX is not supported here: {', '.join(names)}".replace('"', "'").replace("\\", "/")
    return (
        '{ extern void __mxmaca_unsupported_ptx() __attribute__((error("' + message + '"))); '
        "__mxmaca_unsupported_ptx(); }"
    )


def translate(template: str, outputs: List[Operand], inputs: List[Operand]) -> str:
    """C++ for a statement of inline PTX."""
    try:
        work = Translation(outputs, inputs)
    except Unsupported as problem:
        return refusal([str(problem)])
    statements = split(without_scopes(plain_text(template)).replace("%%", "%"), ";")
    work.note_labels(statements)
    if len(set(work.labels)) != len(work.labels):
        return refusal(["a label that stands twice"])
    for one in statements:
        work.statement(one)
    if work.unsupported:
        return refusal(work.unsupported)
    nothing = "uint64_t mxmaca_nothing [[maybe_unused]] = 0; "
    labels = "".join(f"__label__ {label}; " for label in work.labels)
    return "{ " + labels + nothing + " ".join(work.operands + work.declarations + work.code + work.after) + " }"
