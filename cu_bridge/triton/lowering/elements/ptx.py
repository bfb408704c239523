"""PTX instructions on vectors of bits (PTX ISA 8): one LLVM sequence for each."""

import re
import struct
from typing import Callable, Dict, List, Optional, Tuple

from ..types import Type
from .conversions import float_constant

_FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}
_STATEMENT = re.compile(r"(?:@(!?)([\w$%]+)\s+)?([a-z][\w.:]*)\s*(.*)\Z", re.S)
_DECLARATION = re.compile(r"\.reg\s+\.(\w+)\s+(.*)\Z", re.S)


class PtxError(Exception):
    """An instruction, a register or an operand that is not known."""


class Ptx:
    """Runs statements; `w` writes elementwise code, `n` is the number of lanes."""

    def __init__(self, writer, lanes: int):
        self.w, self.n = writer, lanes
        self.values: Dict[str, Optional[str]] = {}
        self.sizes: Dict[str, int] = {}

    # ---- registers
    def declare(self, name: str, bits: int) -> None:
        self.sizes[name], self.values[name] = bits, None

    def set(self, name: str, value: str, bits: int) -> None:
        self.sizes[name], self.values[name] = bits, value

    def get(self, name: str) -> Tuple[str, int]:
        if name not in self.sizes:
            raise PtxError(f"register {name}")
        value = self.values[name]
        return (value if value is not None else self.const(0, self.sizes[name])), self.sizes[name]

    def const(self, number: int, bits: int) -> str:
        return self.w.const(number if bits > 1 else ("true" if number else "false"), f"i{bits}", self.n)

    def op(self, name: str, bits: int, *values: str) -> str:
        return self.w.op(name, f"i{bits}", self.n, *values)

    def resize(self, value: str, source: int, target: int, signed: bool = False) -> str:
        if source == target:
            return value
        name = "trunc" if source > target else "sext" if signed else "zext"
        return self.w.cast(name, value, f"i{source}", f"i{target}", self.n)

    # ---- text
    def run(self, text: str) -> None:
        """All statements of a text without comments."""
        for statement in text.split(";"):
            statement = statement.strip()
            while statement[:1] in ("{", "}"):
                statement = statement[1:].strip()
            if statement:
                self._statement(statement)

    def _statement(self, text: str) -> None:
        declared = _DECLARATION.match(text)
        if declared:
            bits = _bits(declared[1])
            for name in declared[2].split(","):
                name = name.strip()
                many = re.match(r"(\S+)<(\d+)>\Z", name)
                for single in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]:
                    self.declare(single, bits)
            return
        match = _STATEMENT.match(text)
        if match is None:
            raise PtxError(text)
        operands = _split(match[4])
        guard = None
        if match[2]:
            guard = self.get(match[2])[0]
            if match[1]:
                guard = self.op("xor", 1, guard, self.const(1, 1))
        self._instruction(match[3], operands, guard)

    def _instruction(self, name: str, operands: List[str], guard: Optional[str]) -> None:
        parts = name.split(".")
        method = _INSTRUCTIONS.get(parts[0])
        if method is None:
            raise PtxError(f"instruction {name}")
        if guard is not None and parts[0] in ("ld", "st"):
            raise PtxError(f"{name} under a predicate")
        if parts[0] == "st":
            self.store(parts, operands)
            return
        results = getattr(self, method)(parts, operands)
        if results is None:
            raise PtxError(f"instruction {name}")
        targets = operands[0].split("|") if "|" in operands[0] else [operands[0]]
        if operands[0].startswith("{"):
            targets = _split(operands[0][1:-1])
        for target, value in zip(targets, results):
            if target == "_" or value is None:
                continue
            self._assign(target.strip(), value, guard)

    def _assign(self, target: str, value: Tuple[str, int], guard: Optional[str]) -> None:
        if target not in self.sizes:
            raise PtxError(f"register {target}")
        bits = self.sizes[target]
        new = self.resize(value[0], value[1], bits)
        if guard is not None:
            new = self.w.choose(guard, new, self.get(target)[0], f"i{bits}", self.n)
        self.values[target] = new

    def source(self, text: str, bits: int) -> str:
        """An operand as so many bits: a register, a number, a special register."""
        text = text.strip()
        if text in self.sizes:
            value, size = self.get(text)
            return self.resize(value, size, bits)
        if re.match(r"0[fF][0-9A-Fa-f]{8}\Z", text) or re.match(r"0[dD][0-9A-Fa-f]{16}\Z", text):
            return self.const(int(text[2:], 16), bits)
        if re.match(r"-?(0[xX][0-9A-Fa-f]+|\d+)U?\Z", text):
            number = int(text.rstrip("U"), 0) & ((1 << bits) - 1)
            return self.const(number - (1 << bits) if number >> (bits - 1) and bits > 1 else number, bits)
        if re.match(r"-?\d+\.\d*(e[+-]?\d+)?\Z", text):
            form = "<I" if bits == 32 else "<Q"
            return self.const(struct.unpack(form, struct.pack("<f" if bits == 32 else "<d", float(text)))[0], bits)
        if text.startswith("%"):
            return self.resize(*self._special(text), bits)
        raise PtxError(f"operand {text}")

    def _special(self, name: str) -> Tuple[str, int]:
        b = self.w.b
        if name in ("%globaltimer", "%clock64", "%clock"):
            # A pair of seconds and nanoseconds (timespec).
            room = b.variable("[2 x i64]")
            b.call("i32", "clock_gettime", [("i32", "0" if name == "%globaltimer" else "1"), ("ptr", room)])
            seconds = b.emit(f"load volatile i64, ptr {room}")
            rest = b.emit(f"load volatile i64, ptr {b.emit(f'getelementptr i64, ptr {room}, i64 1')}")
            total = b.emit(f"add i64 {b.emit(f'mul i64 {seconds}, 1000000000')}, {rest}")
            return b.splat(total, "i64", self.n), 64
        axes = re.match(r"%(n?)ctaid\.([xyz])\Z", name)
        if axes:
            return b.splat(f"%{'grid' if axes[1] else 'pid'}_{axes[2]}", "i32", self.n), 32
        known = {"%smid": 0, "%nsmid": 1, "%gridid": 0}
        if name in known:
            return self.const(known[name], 32), 32
        raise PtxError(f"register {name}")

    # ---- floating point
    def floating(self, bits_value: str, kind: str) -> str:
        """The bits of a format as the type that is computed in: f32, or f64."""
        if kind in ("f32", "f64"):
            return self.w.cast("bitcast", bits_value, f"i{_bits(kind)}", _llvm(kind), self.n)
        return self.w.widen(bits_value, Type((), kind), self.n)

    def bits_of(self, value: str, kind: str) -> Tuple[str, int]:
        if kind in ("f32", "f64"):
            return self.w.cast("bitcast", value, _llvm(kind), f"i{_bits(kind)}", self.n), _bits(kind)
        return self.w.narrow(value, Type((), kind), self.n), 16

    def _float_apply(self, kind: str, operands: List[str], body: Callable[..., str]) -> Tuple[str, int]:
        """Apply `body` to operands of a format; to both halves for the formats of two numbers."""
        if not kind.endswith("x2"):
            values = [self.floating(self.source(o, _bits(kind)), kind) for o in operands]
            return self.bits_of(body(*values), kind)
        half = kind[:-2]
        parts = []
        for shift in (0, 16):
            values = []
            for operand in operands:
                word = self.source(operand, 32)
                word = self.op("lshr", 32, word, self.const(shift, 32)) if shift else word
                values.append(self.floating(self.resize(word, 32, 16), half))
            parts.append(self.resize(self.bits_of(body(*values), half)[0], 16, 32))
        high = self.op("shl", 32, parts[1], self.const(16, 32))
        return self.op("or", 32, parts[0], high), 32

    def _fop(self, name: str, kind: str) -> Callable[..., str]:
        return lambda *values: self.w.op(name, _llvm(kind), self.n, *values)

    # ---- instructions: each returns its results as (bits, size), None for one that is not known
    def mov(self, parts, operands):
        bits = _bits(parts[1])
        if operands[0].startswith("{"):
            names = _split(operands[0][1:-1])
            value, part = self.source(operands[1], bits), bits // len(names)
            return [
                (self.resize(self.op("lshr", bits, value, self.const(part * i, bits)), bits, part), part)
                for i in range(len(names))
            ]
        if operands[1].startswith("{"):
            names = _split(operands[1][1:-1])
            part, total = bits // len(names), ""
            for number, name in enumerate(names):
                piece = self.resize(self.source(name, part), part, bits)
                piece = self.op("shl", bits, piece, self.const(part * number, bits)) if number else piece
                total = piece if not total else self.op("or", bits, total, piece)
            return [(total, bits)]
        return [(self.source(operands[1], bits), bits)]

    def arithmetic(self, parts, operands):
        kind = parts[-1]
        if _is_float(kind):
            if any(part in ("rz", "rm", "rp", "sat") for part in parts):
                return None
            names = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
            return [self._float_apply(kind, operands[1:], self._fop(names[parts[0]], kind))]
        bits, signed = _bits(kind), kind[0] == "s"
        a, b = (self.source(o, bits) for o in operands[1:3])
        if parts[0] == "mul" and ("wide" in parts or "hi" in parts):
            product = self.op(
                "mul", 2 * bits, self.resize(a, bits, 2 * bits, signed), self.resize(b, bits, 2 * bits, signed)
            )
            if "wide" in parts:
                return [(product, 2 * bits)]
            high = self.op("lshr", 2 * bits, product, self.const(bits, 2 * bits))
            return [(self.resize(high, 2 * bits, bits), bits)]
        if parts[0] in ("div", "rem"):
            from ..ir import Operation

            name = {"div": "arith.div", "rem": "arith.rem"}[parts[0]] + ("si" if signed else "ui")
            return [(self.w._division(Operation(name), [a, b], [], Type((), f"i{bits}"), self.n), bits)]
        if "cc" in parts or "sat" in parts:
            return None
        return [(self.op({"add": "add", "sub": "sub", "mul": "mul"}[parts[0]], bits, a, b), bits)]

    def multiply_add(self, parts, operands):
        kind = parts[-1]
        if _is_float(kind):
            if any(part in ("rz", "rm", "rp", "sat", "relu") for part in parts):
                return None
            fused = lambda *v: self.w.intrinsic("fma", _llvm(kind), self.n, *v)  # noqa: E731
            return [self._float_apply(kind, operands[1:], fused)]
        product = self.arithmetic(["mul"] + parts[1:], operands[:3])[0]
        total = self.op("add", product[1], product[0], self.source(operands[3], product[1]))
        return [(total, product[1])]

    def extreme(self, parts, operands):
        kind = parts[-1]
        if _is_float(kind):
            if any(part in ("abs", "xorsign") for part in parts):
                return None
            name, ignore = ("maximum" if parts[0] == "max" else "minimum"), "NaN" not in parts
            element = Type((), "f64" if kind == "f64" else "f32")
            return [
                self._float_apply(
                    kind, operands[1:], lambda a, b: self.w.extreme(name, ignore, [a, b], element, self.n)
                )
            ]
        bits = _bits(kind)
        values = [self.source(o, bits) for o in operands[1:]]
        return [(self.w.intrinsic(("s" if kind[0] == "s" else "u") + parts[0], f"i{bits}", self.n, *values), bits)]

    def logic(self, parts, operands):
        bits = _bits(parts[-1])
        values = [self.source(o, bits) for o in operands[1:]]
        if parts[0] == "not":
            return [(self.op("xor", bits, values[0], self.const(-1 if bits > 1 else 1, bits)), bits)]
        return [(self.op(parts[0], bits, *values), bits)]

    def negate(self, parts, operands):
        kind = parts[-1]
        if _is_float(kind):
            if parts[0] == "neg":
                return [self._float_apply(kind, operands[1:], self._fop("fneg", kind))]
            return [self._float_apply(kind, operands[1:], lambda v: self.w.intrinsic("fabs", _llvm(kind), self.n, v))]
        bits = _bits(kind)
        value = self.source(operands[1], bits)
        negated = self.op("sub", bits, self.const(0, bits), value)
        return [(negated if parts[0] == "neg" else self.w.intrinsic("smax", f"i{bits}", self.n, value, negated), bits)]

    def shift(self, parts, operands):
        bits = _bits(parts[-1])
        value, count = self.source(operands[1], bits), self.source(operands[2], 32)
        count = (
            self.resize(count, 32, bits)
            if bits >= 32
            else self.resize(self.w.intrinsic("umin", "i32", self.n, count, self.const(bits, 32)), 32, bits)
        )
        name = "shl" if parts[0] == "shl" else "ashr" if parts[-1][0] == "s" else "lshr"
        inside = self.op("icmp ult", bits, count, self.const(bits, bits))
        safe = self.w.choose(inside, count, self.const(bits - 1, bits), f"i{bits}", self.n)
        found = self.op(name, bits, value, safe)
        if name == "ashr":
            return [(found, bits)]
        return [(self.w.choose(inside, found, self.const(0, bits), f"i{bits}", self.n), bits)]

    def funnel(self, parts, operands):
        low, high, count = (self.source(o, 32) for o in operands[1:4])
        if "clamp" in parts:
            return None
        name = "fshl" if parts[1] == "l" else "fshr"
        return [(self.w.intrinsic(name, "i32", self.n, high, low, count), 32)]

    def permute(self, parts, operands):
        if len(parts) != 2:
            return None
        low, high, selector = (self.source(o, 32) for o in operands[1:4])
        wide = self.op("shl", 64, self.resize(high, 32, 64), self.const(32, 64))
        wide = self.op("or", 64, wide, self.resize(low, 32, 64))
        chosen, total = self.resize(selector, 32, 64), self.const(0, 64)
        for number in range(4):
            nibble = self.op("lshr", 64, chosen, self.const(4 * number, 64))
            shift = self.op("shl", 64, self.op("and", 64, nibble, self.const(7, 64)), self.const(3, 64))
            byte = self.resize(self.op("lshr", 64, wide, shift), 64, 8)
            sign = self.op("icmp ne", 64, self.op("and", 64, nibble, self.const(8, 64)), self.const(0, 64))
            byte = self.w.choose(sign, self.op("ashr", 8, byte, self.const(7, 8)), byte, "i8", self.n)
            part = self.op("shl", 64, self.resize(byte, 8, 64), self.const(8 * number, 64))
            total = self.op("or", 64, total, part)
        return [(self.resize(total, 64, 32), 32)]

    def table3(self, parts, operands):
        """lop3: the bit of the table for each three bits."""
        a, b, c = (self.source(o, 32) for o in operands[1:4])
        table = int(operands[4], 0)
        inverted = {v: self.op("xor", 32, v, self.const(-1, 32)) for v in (a, b, c)}
        total = self.const(0, 32)
        for number in range(8):
            if table >> number & 1:
                term = self.op("and", 32, a if number & 4 else inverted[a], b if number & 2 else inverted[b])
                total = self.op("or", 32, total, self.op("and", 32, term, c if number & 1 else inverted[c]))
        return [(total, 32)]

    def count(self, parts, operands):
        bits = _bits(parts[-1])
        value = self.source(operands[1], bits)
        names = {"popc": "ctpop", "clz": "ctlz", "brev": "bitreverse"}
        full = self.w.b.vector_type(f"i{bits}", self.n)
        suffix = f"i{bits}" if self.n == 1 else f"v{self.n}i{bits}"
        extra = [("i1", "false")] if parts[0] == "clz" else []
        found = self.w.b.call(full, f"llvm.{names[parts[0]]}.{suffix}", [(full, value)] + extra)
        return [(found, bits)]

    def field(self, parts, operands):
        if parts[1] not in ("u32", "s32"):
            return None
        value, start, length = (self.source(o, 32) for o in operands[1:4])
        start = self.op("and", 64, self.resize(start, 32, 64), self.const(255, 64))
        length = self.op("and", 64, self.resize(length, 32, 64), self.const(255, 64))
        limit = lambda v: self.w.intrinsic("umin", "i64", self.n, v, self.const(32, 64))  # noqa: E731
        start, length = limit(start), limit(length)
        wide = self.resize(value, 32, 64, parts[1] == "s32")
        wide = self.op("ashr" if parts[1] == "s32" else "lshr", 64, wide, start)
        up = self.op("sub", 64, self.const(64, 64), self.w.intrinsic("umax", "i64", self.n, length, self.const(1, 64)))
        found = self.op("ashr" if parts[1] == "s32" else "lshr", 64, self.op("shl", 64, wide, up), up)
        none = self.op("icmp eq", 64, length, self.const(0, 64))
        return [(self.resize(self.w.choose(none, self.const(0, 64), found, "i64", self.n), 64, 32), 32)]

    def function(self, parts, operands):
        kind = parts[-1]
        if kind not in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
            return None
        element = Type((), "f64" if kind == "f64" else "f32")
        llvm = "double" if kind == "f64" else "float"
        one = self.w.const(float_constant(1.0), llvm, self.n)

        def body(value: str) -> str:
            if parts[0] in ("ex2", "lg2", "sin", "cos", "tanh"):
                name = {"ex2": "exp2", "lg2": "log2"}.get(parts[0], parts[0])
                return self.w.lanes(name, [value], element, self.n)
            root = value if parts[0] == "rcp" else self.w.intrinsic("sqrt", llvm, self.n, value)
            return root if parts[0] == "sqrt" else self.w.op("fdiv", llvm, self.n, one, root)

        return [self._float_apply(kind, operands[1:2], body)]

    def compare(self, parts, operands):
        if len(parts) != 3:
            return None
        kind, test = parts[2], parts[1]
        if kind.endswith("x2"):
            half = kind[:-2]
            flags = []
            for shift in (0, 16):
                values = []
                for operand in operands[1:3]:
                    word = self.op("lshr", 32, self.source(operand, 32), self.const(shift, 32))
                    values.append(self.floating(self.resize(word, 32, 16), half))
                flags.append((self._compared(test, half, values), 1))
            return flags
        bits = _bits(kind)
        values = [self.source(o, bits) for o in operands[1:3]]
        if _is_float(kind):
            values = [self.floating(v, kind) for v in values]
        found = self._compared(test, kind, values)
        if "|" in operands[0]:
            return [(found, 1), (self.op("xor", 1, found, self.const(1, 1)), 1)]
        return [(found, 1)]

    def _compared(self, test: str, kind: str, values: List[str]) -> str:
        if _is_float(kind):
            unordered = {
                "equ": "ueq",
                "neu": "une",
                "ltu": "ult",
                "leu": "ule",
                "gtu": "ugt",
                "geu": "uge",
                "num": "ord",
                "nan": "uno",
            }
            name = (
                unordered.get(test)
                or {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}[test]
            )
            return self.w.op(f"fcmp {name}", _llvm(kind), self.n, *values)
        test = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(test, test)
        name = test if test in ("eq", "ne") else ("s" if kind[0] == "s" else "u") + test
        return self.op(f"icmp {name}", _bits(kind), *values)

    def choose(self, parts, operands):
        bits = _bits(parts[-1])
        yes, no = (self.source(o, bits) for o in operands[1:3])
        return [(self.w.choose(self.source(operands[3], 1), yes, no, f"i{bits}", self.n), bits)]

    def convert(self, parts, operands):
        """cvt: the last two words are types; what stands between says how to round."""
        target, source = parts[-2], parts[-1]
        modes = set(parts[1:-2])
        if modes - {"rn", "rz", "rni", "rzi", "rmi", "rpi", "ftz"} or "x2" in target:
            return None
        value = self.source(operands[1], _bits(source))
        if _is_float(source) and _is_float(target):
            if modes & {"rni", "rzi", "rmi", "rpi"}:
                return None
            kinds = Type((), source), Type((), target)
            given = (
                self.w.cast("bitcast", value, f"i{_bits(source)}", _llvm(source), self.n)
                if source in ("f32", "f64")
                else value
            )
            found = self.w.convert_float(given, kinds[0], kinds[1], self.n, "rz" in modes)
            if target in ("f32", "f64"):
                found = self.w.cast("bitcast", found, _llvm(target), f"i{_bits(target)}", self.n)
            return [(found, _bits(target))]
        if _is_float(source):
            wide = self.floating(value, source)
            rounding = {"rni": "rint", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
            chosen = [rounding[m] for m in modes if m in rounding]
            if not chosen:
                return None
            wide = self.w.intrinsic(chosen[0], _llvm(source), self.n, wide)
            bits = _bits(target)
            return [
                (
                    self.w.cast_sat(
                        "fptosi" if target[0] == "s" else "fptoui", wide, _llvm(source), f"i{bits}", self.n
                    ),
                    bits,
                )
            ]
        if _is_float(target):
            if "rn" not in modes:
                return None
            name = "sitofp" if source[0] == "s" else "uitofp"
            if target in ("f32", "f64"):
                found = self.w.cast(name, value, f"i{_bits(source)}", _llvm(target), self.n)
                return [self.bits_of(found, target)]
            if _bits(source) > 16:
                return None
            return [self.bits_of(self.w.cast(name, value, f"i{_bits(source)}", "float", self.n), target)]
        found = self.resize(value, _bits(source), _bits(target), source[0] == "s")
        return [(found, _bits(target))]

    def load(self, parts, operands):
        """ld from memory at [register+offset]."""
        kind = parts[-1]
        if any(p in ("shared", "local", "param", "const") or re.match(r"v\d", p) for p in parts):
            return None
        bits = _bits(kind)
        pointer = self._address(operands[1])

        def one(values):
            return self.w.b.emit(
                f"load volatile i{bits}, ptr {self.w.b.emit(f'inttoptr i64 {values[0]} to ptr')}, align {bits // 8}"
            )

        return [(self.w.each_lane(self.n, f"i{bits}", [pointer], ["i64"], one), bits)]

    def store(self, parts, operands) -> None:
        kind = parts[-1]
        if any(p in ("shared", "local", "param") or re.match(r"v\d", p) for p in parts):
            raise PtxError("instruction " + ".".join(parts))
        bits = _bits(kind)
        values = [self._address(operands[0]), self.source(operands[1], bits)]

        def one(single):
            pointer = self.w.b.emit(f"inttoptr i64 {single[0]} to ptr")
            self.w.b.put(f"store volatile i{bits} {single[1]}, ptr {pointer}, align {bits // 8}")
            return single[1]

        self.w.each_lane(self.n, f"i{bits}", values, ["i64", f"i{bits}"], one)

    def _address(self, text: str) -> str:
        match = re.match(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+))?\s*\]\Z", text.strip())
        if match is None:
            raise PtxError(f"address {text}")
        value = self.source(match[1], 64)
        return self.op("add", 64, value, self.const(int(match[2], 0), 64)) if match[2] else value


def _bits(kind: str) -> int:
    if kind == "pred":
        return 1
    match = re.match(r"(?:b?f|[usb])(\d+)(x2)?\Z", kind)
    if match is None:
        raise PtxError(f"type {kind}")
    return int(match[1]) * (2 if match[2] else 1)


def _is_float(kind: str) -> bool:
    return kind.startswith(("f", "bf"))


def _llvm(kind: str) -> str:
    return "double" if kind == "f64" else "float"


def _split(text: str) -> List[str]:
    """Operands between commas that are not inside braces or brackets."""
    found, depth, current = [], 0, ""
    for sign in text:
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += sign
    return found + [current.strip()] if current.strip() else found


_INSTRUCTIONS: Dict[str, str] = {
    "mov": "mov",
    **dict.fromkeys(("add", "sub", "mul", "div", "rem"), "arithmetic"),
    **dict.fromkeys(("mad", "fma"), "multiply_add"),
    **dict.fromkeys(("min", "max"), "extreme"),
    **dict.fromkeys(("and", "or", "xor", "not"), "logic"),
    **dict.fromkeys(("neg", "abs"), "negate"),
    **dict.fromkeys(("shl", "shr"), "shift"),
    "shf": "funnel",
    "prmt": "permute",
    "lop3": "table3",
    **dict.fromkeys(("popc", "clz", "brev"), "count"),
    "bfe": "field",
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"), "function"),
    "setp": "compare",
    "selp": "choose",
    "cvt": "convert",
    "ld": "load",
    "st": "store",
}
