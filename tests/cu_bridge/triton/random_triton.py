"""Random kernels in Triton whose results are exact, to compare compiled code with Triton's interpreter.

    python tests/cu_bridge/triton/random_triton.py SEED [kernels] > kernels.py

Integers wrap round and are exact as they are. A tile of floating-point numbers holds integers below a bound that the
generator keeps account of, so that no sum depends on its order and no product rounds: every difference is a defect.
Programs of a grid write to places of their own; atomic operations are of kinds that commute.
"""

import random
import sys
from typing import Callable, List, NamedTuple, Optional, Tuple

Shape = Tuple[int, ...]
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
# Up to here every integer is a number of the format.
EXACT = {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 53}
FLOATS = tuple(EXACT)
# The interpreter keeps bfloat16 as its bits and computes with those, so these tiles are only loaded, moved, converted.
COMPUTED = tuple(name for name in FLOATS if name != "bfloat16")
TYPES = (*INTEGERS, *FLOATS)
NUMBERS = (*INTEGERS, *COMPUTED)
BITS = {name: int(name.lstrip("uintbfloa")) for name in TYPES}
# Elements of each input and of what each program may write, by type.
LENGTH, ROOM, SCRATCH, SLOTS = 4096, 4096, 1024, 16
# What the inputs of floating-point types hold at most.
LARGEST_INPUT = 8
ATOMICS = ("add", "max", "min", "and", "or", "xor")
PROGRAMS = 3
PRELUDE = """import triton
import triton.language as tl


@triton.jit
def mix(a, b):
    return a * 3 + b


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b)


@triton.jit
def both(a, b):
    return a ^ b, (a & b) + 1


@triton.jit(noinline=True)
def apart(a, b):
    if b > 3:
        a = a - b
    return a + 7


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def early(a, b):
    if a > b:
        return a - b
    return b
"""


class Tile(NamedTuple):
    """A variable: its text, dtype ("int1" for conditions), shape (() for a scalar), bound of its absolute value."""

    text: str
    dtype: str
    shape: Shape
    bound: int = 0


def product(shape: Shape) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


class Kernel:
    """Writes the text of one kernel."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance, self.name = chance, name
        self.lines: List[str] = []
        self.depth = 1
        self.count = 0
        self.scopes: List[List[Tile]] = [[]]
        self.used = dict.fromkeys(TYPES, 0)

    # ---- text
    def pick(self, *choices):
        return self.chance.choice(choices)

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def define(self, text: str, dtype: str, shape: Shape, bound: int = 0) -> Tile:
        """A new variable; `to` makes the type sure where Triton would promote."""
        name = self.fresh()
        cast = "" if dtype == "int1" else f".to(tl.{dtype})"
        if dtype == "int32" and text.startswith("tl."):
            # Triton 3.2's interpreter keeps sums and counts as 64 bits under the name of 32, and stores them so.
            cast = ".to(tl.int64).to(tl.int32)"
        self.put(f"{name} = ({text}){cast}")
        tile = Tile(name, dtype, shape, bound)
        self.scopes[-1].append(tile)
        return tile

    def visible(self, test: Callable[[Tile], bool]) -> List[Tile]:
        return [tile for scope in self.scopes for tile in scope if test(tile)]

    def some(self, test: Callable[[Tile], bool]) -> Optional[Tile]:
        found = self.visible(test)
        # The last ones are more likely to be long expressions.
        return self.chance.choice(found[-6:] if self.chance.random() < 0.6 else found) if found else None

    # ---- leaves
    def shape(self, most: int = 512) -> Shape:
        while True:
            rank = self.pick(1, 1, 2, 2, 2, 3)
            shape = tuple(1 << self.chance.randrange(0, 7 if rank < 3 else 4) for _ in range(rank))
            if 2 <= product(shape) <= most:
                return shape

    def places(self, shape: Shape) -> Tuple[str, int]:
        """Index expression of a tile, side by side or with steps, and the largest number that it has."""
        terms, most, stride = [], 0, 1
        order = list(range(len(shape)))
        if self.chance.random() < 0.3:
            self.chance.shuffle(order)
        for axis in reversed(order):
            extent = shape[axis]
            spread = stride * self.pick(1, 1, 1, 2, 3) if most + stride * extent * 3 < LENGTH else stride
            arange = f"tl.arange(0, {extent})"
            if self.chance.random() < 0.15:
                arange = f"({extent - 1} - {arange})"
            elif self.chance.random() < 0.1:
                arange = f"({arange} ^ {self.chance.randrange(extent)})"
            if len(shape) > 1:
                at = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
                arange = f"{arange}[{at}]"
            terms.append(f"{arange} * {spread}" if spread > 1 else arange)
            most += (extent - 1) * spread
            stride = max(stride * extent, (extent - 1) * spread + 1)
        return " + ".join(terms), most

    def row_major(self, shape: Shape) -> str:
        terms, stride = [], 1
        for axis in reversed(range(len(shape))):
            at = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
            index = f"[{at}]" if len(shape) > 1 else ""
            terms.append(f"tl.arange(0, {shape[axis]}){index} * {stride}")
            stride *= shape[axis]
        return " + ".join(terms)

    def mask(self, shape: Shape) -> str:
        known = self.some(lambda t: t.dtype == "int1" and t.shape == shape)
        if known is not None and self.chance.random() < 0.4:
            return known.text
        axis = self.chance.randrange(len(shape))
        at = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        arange = f"tl.arange(0, {shape[axis]})" + (f"[{at}]" if len(shape) > 1 else "")
        test = self.pick(
            f"{arange} < n", f"{arange} < {self.chance.randrange(shape[axis] + 1)}", f"{arange} % 3 != m - 2",
            f"{arange} >= pid",
        )  # fmt: skip
        return f"tl.broadcast_to({test}, {list(shape)})" if len(shape) > 1 else f"({test})"

    def load(self, shape: Optional[Shape] = None, dtype: Optional[str] = None) -> Tile:
        shape, dtype = shape or self.shape(), dtype or self.pick(*TYPES)
        bound = LARGEST_INPUT if dtype in EXACT else 0
        index = self.some(lambda t: t.shape == shape and t.dtype in ("int32", "int64", "int16", "uint32"))
        mask = self.mask(shape) if self.chance.random() < 0.4 else ""
        if index is not None and self.chance.random() < 0.3:
            place = f"({index.text} & {LENGTH - 1})"
        else:
            place, most = self.places(shape)
            start = self.chance.randrange(LENGTH - most)
            place = f"{start} + {place}" if self.chance.random() < 0.7 else f"({place}) + {start - start % 64}"
            if self.chance.random() < 0.2 and most + 130 < LENGTH:
                place = f"pid * {self.pick(1, 16, 64)} + ({self.places(shape)[0]})"
                mask = f"({place}) < {LENGTH}"
        rest = ""
        if mask:
            other = self.pick("0", "1", "3") if dtype in INTEGERS else self.pick("0.0", "-2.0", "5.0")
            rest = f", mask={mask}, other={other}"
        return self.define(f"tl.load(in_{dtype} + ({place}){rest})", dtype, shape, bound)

    def tile(self, shape: Optional[Shape] = None, dtype: Optional[str] = None, bound: Optional[int] = None) -> Tile:
        """A variable of these, an old one where there is one."""

        def fits(tile: Tile) -> bool:
            return (
                (bool(tile.shape) if shape is None else tile.shape == shape)
                and (tile.dtype in TYPES if dtype is None else tile.dtype == dtype)
                and (bound is None or tile.bound <= bound)
            )

        found = self.some(fits)
        return found if found is not None and self.chance.random() < 0.9 else self.load(shape, dtype)

    def number(self) -> Tile:
        """A tile of a type that all functions take."""
        return self.some(lambda t: bool(t.shape) and t.dtype in NUMBERS) or self.load(None, self.pick(*NUMBERS))

    def integer(self, shape: Optional[Shape] = None) -> Tile:
        return self.tile(shape, self.pick(*INTEGERS))

    def scalar(self) -> str:
        known = self.some(lambda t: not t.shape and t.dtype == "int32")
        if known is not None and self.chance.random() < 0.5:
            return known.text
        return self.pick("n", "m", "pid", "(n - m)", str(self.chance.randrange(-9, 10)), "(pid * 5 + 1)")

    # ---- expressions
    def statement(self) -> None:
        methods = (
            [self.arithmetic] * 6 + [self.float_arithmetic] * 5 + [self.convert] * 3 + [self.compare, self.choose] * 2
            + [self.reduce] * 3 + [self.scan, self.move, self.move, self.move, self.small_tile, self.call]
            + [self.own_reduction, self.gather, self.histogram, self.dot, self.sort, self.wide_index, self.find]
        )  # fmt: skip
        self.pick(*methods)()

    def arithmetic(self) -> None:
        a = self.integer(self.pick(None, None, self.shape()))
        b, kind = self.tile(a.shape, a.dtype), a.dtype
        small = f"({b.text} & {BITS[kind] - 1})"
        text = self.pick(
            f"{a.text} + {b.text}", f"{a.text} - {b.text}", f"{a.text} * {b.text}", f"{a.text} & {b.text}",
            f"{a.text} | {b.text}", f"{a.text} ^ {b.text}", f"{a.text} // (({b.text} & 7) + 1)",
            f"{a.text} % (({b.text} & 15) + 3)", f"{a.text} << {small}", f"{a.text} >> {small}",
            f"tl.minimum({a.text}, {b.text})", f"tl.maximum({a.text}, {b.text})", f"-{a.text}",
            # The interpreter has no ~ of unsigned numbers.
            f"~{a.text}" if kind in SIGNED else f"{a.text} ^ 5", f"{a.text} * {self.chance.randrange(2, 100)}",
            f"{a.text} + ({self.scalar()} + pid * 0)", f"{a.text} >> 1", f"{a.text} // {self.pick(2, 3, 7, 10)}",
            f"{a.text} % {self.pick(2, 3, 8, 13)}",
        )  # fmt: skip
        if kind in SIGNED and self.chance.random() < 0.1:
            text = f"tl.abs({a.text})"
        if kind in ("int32", "uint32", "int64", "uint64") and self.chance.random() < 0.08:
            text = f"tl.umulhi({a.text}, {b.text})" if kind in ("uint32", "uint64") else f"tl.cdiv({a.text}, 5)"
        self.define(text, kind, a.shape)

    def float_arithmetic(self) -> None:
        a = self.tile(self.pick(None, None, self.shape()), self.pick(*COMPUTED))
        b = self.tile(a.shape, a.dtype)
        limit = EXACT[a.dtype]
        ways = [(f"-{a.text}", a.bound), (f"tl.abs({a.text})", a.bound), (f"tl.floor({a.text} * 0.5)", a.bound),
                (f"tl.minimum({a.text}, {b.text})", max(a.bound, b.bound)),
                (f"tl.maximum({a.text}, {b.text})", max(a.bound, b.bound)),
                (f"tl.clamp({a.text}, -3.0, 5.0)", 5),
                (f"{a.text} - 3", a.bound + 3), (f"{a.text} % 16", min(15, a.bound)),
                (f"{a.text} + {b.text}", a.bound + b.bound), (f"{a.text} - {b.text}", a.bound + b.bound),
                (f"{a.text} * {b.text}", a.bound * b.bound),
                (f"{a.text} * 2 + {b.text}", 2 * a.bound + b.bound)]  # fmt: skip
        if a.dtype == "float16":
            # These functions are of f32 and f64.
            ways = [way for way in ways if "floor" not in way[0]]
        else:
            ways += [(f"tl.fma({a.text}, {b.text}, {a.text})", a.bound * b.bound + a.bound)]
            if a.bound * a.bound <= limit:
                ways += [(f"tl.sqrt({a.text} * {a.text})", a.bound), (f"tl.ceil({a.text} * 0.25)", a.bound)]
        text, bound = self.pick(*[way for way in ways if way[1] <= limit])
        self.define(text, a.dtype, a.shape, bound)

    def convert(self) -> None:
        a = self.tile()
        kind = self.pick(*TYPES)
        if a.dtype in INTEGERS and kind in INTEGERS:
            self.define(a.text, kind, a.shape)
        elif a.dtype in INTEGERS:
            small = self.pick(f"({a.text} & 31)", f"({a.text} % 32)")
            # bfloat16 from an integer is wrong in the interpreter, as it is kept as bits.
            self.define(f"{small}.to(tl.float32)" if kind == "bfloat16" else small, kind, a.shape, 32)
        elif kind in EXACT:
            if a.bound <= EXACT[kind]:
                self.define(
                    f"{a.text}.to(tl.float32)" if "bfloat16" in (kind, a.dtype) else a.text, kind, a.shape, a.bound
                )
        elif a.dtype != "bfloat16" and kind in SIGNED and a.bound < 1 << (BITS[kind] - 1):
            self.define(a.text, kind, a.shape)
        elif a.dtype != "bfloat16" and a.bound < 1 << BITS["int64"] - 2:
            self.define(f"{a.text}.to(tl.int64)", kind, a.shape)

    def compare(self) -> None:
        a = self.number()
        b = self.tile(a.shape, a.dtype)
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        right = self.pick(b.text, b.text, "3")
        first = self.define(f"{a.text} {sign} {right}", "int1", a.shape)
        old = self.some(lambda t: t.dtype == "int1" and t.shape == a.shape and t is not first)
        if old is not None and self.chance.random() < 0.4:
            self.define(f"{first.text} {self.pick('&', '|', '^')} {old.text}", "int1", a.shape)

    def choose(self) -> None:
        a = self.tile()
        b = self.tile(a.shape, a.dtype)
        self.define(f"tl.where({self.mask(a.shape)}, {a.text}, {b.text})", a.dtype, a.shape, max(a.bound, b.bound))

    def small_tile(self) -> None:
        """A tile of fewer elements, widened to one of more."""
        a = self.tile(self.pick((4, 8), (16, 16), (2, 32), (32, 2)), self.pick(*NUMBERS))
        axis = self.chance.randrange(2)
        row = self.tile((a.shape[1 - axis],), a.dtype)
        wide = f"{row.text}[:, None]" if axis else f"{row.text}[None, :]"
        if a.dtype in INTEGERS:
            self.define(f"{a.text} {self.pick('+', '*', '^', '-')} {wide}", a.dtype, a.shape)
        elif a.bound + row.bound <= EXACT[a.dtype]:
            self.define(f"{a.text} - {wide}", a.dtype, a.shape, a.bound + row.bound)

    # ---- operations on whole tiles
    def reduce(self) -> None:
        a = self.number()
        axis = self.chance.randrange(len(a.shape))
        rest = a.shape[:axis] + a.shape[axis + 1 :]
        # Triton 3.2's interpreter disregards the mask of a store of one reduced element.
        keep = self.chance.random() < 0.25 and len(rest) > 0
        shape = a.shape[:axis] + (1,) + a.shape[axis + 1 :] if keep else rest
        words = f", axis={axis}" + (", keep_dims=True" if keep else "")
        # Both releases sum narrow integers in types of their own.
        wide = a.text if BITS[a.dtype] >= 32 else f"{a.text}.to(tl.{'int32' if a.dtype in INTEGERS else 'float32'})"
        if self.chance.random() < 0.5:
            name = self.pick("max", "min")
            self.define(f"tl.{name}({a.text}{words})", a.dtype, shape, a.bound)
        elif a.dtype in INTEGERS:
            name = self.pick("sum", "sum", "xor_sum")
            self.define(f"tl.{name}({wide}{words})", "int32" if BITS[a.dtype] < 64 else "int64", shape)
        elif a.bound * a.shape[axis] <= 1 << 24:
            kind = a.dtype if BITS[a.dtype] >= 32 else "float32"
            self.define(f"tl.sum({wide}{words})", kind, shape, a.bound * a.shape[axis])

    def find(self) -> None:
        a = self.number()
        axis = self.chance.randrange(len(a.shape))
        rest = a.shape[:axis] + a.shape[axis + 1 :]
        self.define(f"tl.{self.pick('argmax', 'argmin')}({a.text}, axis={axis})", "int32", rest)

    def own_reduction(self) -> None:
        a = self.tile(self.pick((16,), (4, 8), (8, 4), (32,)), self.pick("int32", "int64"))
        axis = self.chance.randrange(len(a.shape))
        rest = a.shape[:axis] + a.shape[axis + 1 :]
        self.define(f"tl.reduce({a.text}, {axis}, smaller)", a.dtype, rest)

    def scan(self) -> None:
        a = self.tile(self.pick((16,), (4, 8), (8, 4), (64,), (2, 4, 4)), self.pick("int32", "int64", "float32"))
        axis = self.chance.randrange(len(a.shape))
        back = self.pick("", ", reverse=True")
        if a.dtype == "float32":
            if a.bound * 64 <= EXACT["float32"]:
                self.define(f"tl.cumsum({a.text}, {axis}{back})", a.dtype, a.shape, a.bound * a.shape[axis])
        elif self.chance.random() < 0.6:
            self.define(f"tl.{self.pick('cumsum', 'cumprod')}({a.text}, {axis}{back})", a.dtype, a.shape)
        else:
            b = self.tile(a.shape, a.dtype)
            name, other = self.fresh(), self.fresh()
            self.put(f"{name}, {other} = tl.associative_scan(({a.text}, {b.text}), {axis}, affine{back})")
            self.scopes[-1] += [Tile(name, a.dtype, a.shape), Tile(other, a.dtype, a.shape)]

    def move(self) -> None:
        """Elements to other places."""
        a = self.tile()
        rank = len(a.shape)
        ways: List[Callable[[], object]] = []

        def keep(text: str, shape: Shape) -> Callable[[], object]:
            return lambda: self.define(text, a.dtype, shape, a.bound)

        if rank == 2:
            ways.append(keep(f"tl.trans({a.text})", a.shape[::-1]))
        if rank == 3:
            order = self.chance.sample(range(3), 3)
            ways.append(keep(f"tl.permute({a.text}, {order})", tuple(a.shape[axis] for axis in order)))
        bits = product(a.shape).bit_length() - 1
        cut = self.chance.randrange(bits + 1)
        ways.append(keep(f"tl.reshape({a.text}, {[1 << cut, 1 << bits - cut]})", (1 << cut, 1 << bits - cut)))
        ways.append(keep(f"tl.reshape({a.text}, {[1 << bits]})", (1 << bits,)))
        b = self.tile(a.shape, a.dtype)
        bound = max(a.bound, b.bound)
        if product(a.shape) <= 256 and rank < 3:
            ways.append(lambda: self.define(f"tl.join({a.text}, {b.text})", a.dtype, (*a.shape, 2), bound))
            wide = (*a.shape[:-1], 2 * a.shape[-1])
            ways.append(lambda: self.define(f"tl.interleave({a.text}, {b.text})", a.dtype, wide, bound))
        if a.shape[-1] == 2 and rank > 1:
            ways += [self.split(a)] * 3
        if rank == 1 and a.shape[0] > 1:
            ways.append(keep(f"tl.flip({a.text}, 0)", a.shape))
        self.pick(*ways)()

    def split(self, a: Tile) -> Callable[[], object]:
        def write() -> None:
            first, second = self.fresh(), self.fresh()
            self.put(f"{first}, {second} = tl.split({a.text})")
            self.scopes[-1] += [Tile(name, a.dtype, a.shape[:-1], a.bound) for name in (first, second)]

        return write

    def gather(self) -> None:
        shape = self.pick((16,), (8, 16), (16, 4), (64,))
        a, index = self.tile(shape), self.tile(shape, "int32")
        axis = self.chance.randrange(len(shape))
        text = f"tl.gather({a.text}, {index.text} & {shape[axis] - 1}, {axis})"
        self.define(text, a.dtype, shape, a.bound)

    def histogram(self) -> None:
        a = self.tile(self.pick((32,), (128,), (256,)), "int32")
        bins = self.pick(16, 32)
        self.define(f"tl.histogram({a.text} & 15, {bins})", "int32", (bins,))

    def dot(self) -> None:
        m, n, k = (self.pick(16, 16, 32) for _ in range(3))
        kind = self.pick("float16", "float32", "int8")
        k = max(k, 32) if kind == "int8" else k
        a, b = self.tile((m, k), kind), self.tile((k, n), kind)
        if kind == "int8":
            self.define(f"tl.dot({a.text}, {b.text}, out_dtype=tl.int32)", "int32", (m, n))
            return
        bound = a.bound * b.bound * k
        old = self.some(lambda t: t.shape == (m, n) and t.dtype == "float32")
        rest = ', input_precision="ieee"' if kind == "float32" else ""
        if old is not None and bound + old.bound <= 1 << 24:
            self.define(f"tl.dot({a.text}, {b.text}, {old.text}{rest})", "float32", (m, n), bound + old.bound)
        elif bound <= 1 << 24:
            self.define(f"tl.dot({a.text}, {b.text}{rest})", "float32", (m, n), bound)

    def sort(self) -> None:
        if self.chance.random() < 0.5:
            a = self.tile(self.pick((8,), (16,), (4, 8)), self.pick("int32", "float32", "int16"))
            self.define(f"tl.sort({a.text}{self.pick('', ', descending=True')})", a.dtype, a.shape, a.bound)

    def wide_index(self) -> None:
        """Arithmetic as of addresses, in several widths."""
        extent = self.pick(16, 32, 128)
        kind = self.pick("int8", "uint8", "int16", "uint32", "int64")
        text = f"(tl.arange(0, {extent}) + ({self.scalar()} + pid * 0)).to(tl.{kind}) * {self.chance.randrange(1, 40)}"
        self.define(self.pick(text, f"({text}).to(tl.int64) - 3"), self.pick("int32", "int64", kind), (extent,))

    def call(self) -> None:
        a = self.tile(None, self.pick("int32", "int64", "uint32"))
        b = self.tile(a.shape, a.dtype)
        way = self.chance.randrange(4)
        if way == 0:
            self.define(f"mix({a.text}, {b.text})", a.dtype, a.shape)
        elif way == 1:
            self.define(f"apart({self.scalar()} + pid * 0, {self.scalar()} + pid * 0)", "int32", ())
        elif way == 2:
            self.define(f"early({self.scalar()} + pid * 0, {self.scalar()} + pid * 0)", "int32", ())
        else:
            first, second = self.fresh(), self.fresh()
            self.put(f"{first}, {second} = both({a.text}, {b.text})")
            self.scopes[-1] += [Tile(name, a.dtype, a.shape) for name in (first, second)]

    # ---- memory
    def scratch(self) -> None:
        """Write a tile, wait, read it in another order."""
        a = self.tile(None, "int32")
        self.put("tl.debug_barrier()")
        self.put(f"tl.store(scratch + ({self.row_major(a.shape)}), {a.text})")
        self.put("tl.debug_barrier()")
        size = product(a.shape)
        back = self.pick(f"{size - 1} - ({self.row_major(a.shape)})", f"(({self.row_major(a.shape)}) * 5) % {size}")
        self.define(f"tl.load(scratch + ({back}))", "int32", a.shape)
        self.put("tl.debug_barrier()")

    def in_place(self) -> None:
        """Change memory element by element, twice, with and without a mask."""
        a = self.tile(None, "int32")
        place = self.fresh()
        self.put("tl.debug_barrier()")
        self.put(f"{place} = scratch + ({self.row_major(a.shape)})")
        self.put(f"tl.store({place}, {a.text})")
        self.put(f"tl.store({place}, tl.load({place}) * 3 + {a.text}, mask={self.mask(a.shape)})")
        self.define(f"tl.load({place})", "int32", a.shape)
        self.put(f"tl.store({place}, {a.text} - 1)")
        self.put("tl.debug_barrier()")

    def atomic(self) -> None:
        a = self.tile(None, "int32")
        kind = self.chance.randrange(len(ATOMICS))
        # The interpreter takes the mask's memory as it is, so it must not be a broadcast one.
        mask = f", mask={self.mask(a.shape)} & ({a.text} == {a.text})" if self.chance.random() < 0.5 else ""
        place = f"slots + {SLOTS * kind} + ({a.text} & {SLOTS - 1})"
        self.put(f"tl.atomic_{ATOMICS[kind]}({place}, {a.text}{mask})")

    # ---- control flow
    def change(self, targets: List[Tile]) -> None:
        """Give a variable of an outer scope a new value of the same type."""
        target = self.chance.choice(targets)
        text = self.tile(target.shape, target.dtype).text
        if target.dtype in INTEGERS:
            text = self.pick(text, f"{target.text} + {text}", f"{target.text} * 3 - {text}", f"{target.text} ^ {text}")
        else:
            text = f"tl.clamp({target.text} - {text}, -{float(target.bound)}, {float(target.bound)})"
        self.put(f"{target.text} = ({text}).to(tl.{target.dtype})")

    def carried(self) -> List[Tile]:
        """Variables that a region may change."""
        known = self.visible(
            lambda t: (
                t.text.isidentifier()
                and (t.dtype in INTEGERS or (t.dtype in COMPUTED and 0 < t.bound <= EXACT[t.dtype] // 4))
            )
        )
        if not known:
            known = [self.load(dtype="int32")]
        return self.chance.sample(known, min(len(known), 3))

    def region(self, targets: List[Tile], level: int) -> None:
        self.depth += 1
        self.scopes.append([])
        for _ in range(self.chance.randrange(1, 4)):
            if level > 0 and self.chance.random() < 0.25:
                self.control(level - 1)
            elif self.chance.random() < 0.2:
                self.pick(self.scratch, self.scratch, self.atomic, self.in_place)()
            else:
                self.statement()
        for _ in range(self.chance.randrange(1, 3)):
            self.change(targets)
        self.scopes.pop()
        self.depth -= 1

    def control(self, level: int) -> None:
        targets = self.carried()
        way = self.chance.randrange(4)
        if way == 0:
            self.put(f"if {self.scalar()} {self.pick('<', '>', '!=')} {self.scalar()} + pid * 0:")
            self.region(targets, level)
            if self.chance.random() < 0.5:
                self.put("else:")
                self.region(targets, level)
        elif way == 1:
            counter = self.fresh()
            self.put(f"{counter} = pid * 0")
            self.put(f"while {counter} < {self.pick('3', 'm', '(pid + 1)', '1')}:")
            self.region(targets, level)
            self.put(f"    {counter} += 1")
        else:
            counter = self.fresh()
            bounds = self.pick("0, 3", "0, m", "pid, 4", "1, n, 5", "2, 2")
            words = self.pick("range", "range", "tl.range", "tl.static_range")
            if words == "tl.static_range":
                bounds = self.pick("0, 2", "1, 4, 2")
            self.put(f"for {counter} in {words}({bounds}):")
            # The interpreter counts in Python's integers, which have no method `to`.
            self.scopes.append([Tile(f"({counter} + pid * 0)", "int32", ())] if words != "tl.static_range" else [])
            self.region(targets, level)
            self.scopes.pop()

    def text(self) -> str:
        self.put("pid = tl.program_id(0)")
        self.put(f"scratch += pid * {SCRATCH}")
        for _ in range(2):
            self.load()
        for _ in range(self.chance.randrange(4, 14)):
            draw = self.chance.random()
            if draw < 0.18:
                self.control(1)
            elif draw < 0.3:
                self.pick(self.scratch, self.scratch, self.atomic, self.in_place)()
            else:
                self.statement()
        for tile in self.scopes[0]:
            self.leave(tile)
        names = ", ".join([*(f"in_{name}" for name in TYPES), *(f"out_{name}" for name in TYPES)])
        head = f"@triton.jit\ndef {self.name}({names}, scratch, slots, n, m):"
        return "\n\n" + head + "\n" + "\n".join(self.lines) + "\n"

    def leave(self, tile: Tile) -> None:
        """Store a variable where the test compares it, as long as there is room."""
        dtype, text = (tile.dtype, tile.text) if tile.dtype in TYPES else ("int8", f"{tile.text}.to(tl.int8)")
        start, size = self.used[dtype], product(tile.shape)
        if start + size > ROOM:
            return
        self.used[dtype] = start + size
        place = f"out_{dtype} + pid * {ROOM} + {start}"
        if not tile.shape:
            self.put(f"tl.store({place}, {text})")
            return
        mask = f", mask={self.mask(tile.shape)}" if self.chance.random() < 0.3 else ""
        self.put(f"tl.store({place} + ({self.row_major(tile.shape)}), {text}{mask})")


def module(seed: int, count: int) -> str:
    """The text of a module of so many kernels, k0, k1, ..."""
    return PRELUDE + "".join(Kernel(random.Random(f"{seed}/{number}"), f"k{number}").text() for number in range(count))


if __name__ == "__main__":
    print(module(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20))
