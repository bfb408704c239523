"""Loads, stores, atomic operations and copies. Their modifiers may stand in any order, as ptxas takes them."""

import re
from typing import List, NamedTuple, Optional

from . import table
from .operands import Operands

ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
IGNORED = ("cta", "gpu", "sys", "cluster", "weak", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "noftz")
SPACES = ("global", "local", "const", "param", "shared", "shared::cta", "shared::cluster")
COPY = re.compile(r"cp\.async\.c[ag]\.shared(?:::cta)?\.global((?:\.L2::\w+)*)")
BULK = re.compile(r"cp\.async\.bulk\.shared::(?:cluster|cta)\.global\.mbarrier::complete_tx::bytes(\.L2::cache_hint)?")
BULK_BACK = re.compile(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(\.L2::cache_hint)?")


class Modifiers(NamedTuple):
    """What the words of an instruction's name say."""

    order: bool
    space: Optional[str]
    vector: int
    function: str
    hint: bool  # a last operand says what caches are to do
    kind: str


def modifiers(words: List[str]) -> Optional[Modifiers]:
    """The modifiers of an access, or None where one is not known."""
    order, space, vector, function, hint = False, None, 1, "", False
    for word in words[1:-1]:
        if word in ORDERS:
            order = True
        elif word in SPACES and space is None:
            space = word
        elif word in ("v2", "v4", "v8"):
            vector = int(word[1:])
        elif word == "L2::cache_hint":
            hint = True
        elif word in table.ATOMICS or word == "cas":
            function = word
        elif word not in IGNORED and not re.fullmatch(r"L[12]::\w+", word):
            return None
    return Modifiers(order, space, vector, function, hint, words[-1])


def translate(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    """C++ for an access to memory, or None."""
    words = name.split(".")
    if re.fullmatch(r"createpolicy\.fractional\.L2::\w+\.b64", name) and len(arguments) in (1, 2):
        return f"mxmaca::ptx::put({work.target(arguments[0])}, uint64_t{{0}});"  # a hint that nobody follows
    if words[0] == "cp":
        return _copy(work, name, arguments)
    if words[0] not in ("ld", "ldu", "st", "atom", "red") or len(words) < 2:
        return None
    known = modifiers(words)
    if known is None or known.kind not in table.TYPES or known.kind == "pred":
        return None
    given = arguments[:-1] if known.hint else arguments
    if words[0] in ("atom", "red"):
        return _atomic(work, known, words[0] == "atom", given)
    if known.function or len(given) != 2:
        return None
    return _access(work, known, words[0] == "st", given)


def _access(work: Operands, known: Modifiers, store: bool, arguments: List[str]) -> Optional[str]:
    kind = table.TYPES[known.kind]
    place = work.address(arguments[0] if store else arguments[1], known.space)
    other = arguments[1] if store else arguments[0]
    parts = work.vector(other) if other.startswith("{") else [other]
    if len(parts) != known.vector:
        return None
    count, size = known.vector, f"sizeof({kind})"
    lines = [f"char* const place = static_cast<char*>({place});"]
    if count > 1 and known.order and count * table.bytes_of(known.kind) % 8 == 0:
        if store:
            lines.append(f"const {kind} parts[] = {{{', '.join(work.value(part, kind) for part in parts)}}};")
            lines.append("mxmaca::ptx::store_vector(place, parts);")
        else:
            lines.append(f"{kind} parts[{count}]; mxmaca::ptx::load_vector(place, parts);")
            lines += [f"mxmaca::ptx::put({work.target(part)}, parts[{i}]);" for i, part in enumerate(parts)]
        return "{ " + " ".join(lines) + " }"
    suffix = "_ordered" if known.order else ""
    for i, part in enumerate(parts):
        where = f"place + {i} * {size}"
        if store:
            lines.append(f"mxmaca::ptx::store{suffix}<{kind}>({where}, {work.value(part, kind)});")
        elif part.strip() != "_":
            lines.append(f"mxmaca::ptx::put({work.target(part)}, mxmaca::ptx::load{suffix}<{kind}>({where}));")
    return "{ " + " ".join(lines) + " }"


def _atomic(work: Operands, known: Modifiers, fetch: bool, arguments: List[str]) -> Optional[str]:
    kind, count = table.TYPES[known.kind], known.vector
    rest = arguments[2 if fetch else 1 :]
    swap = known.function == "cas"
    if swap and fetch and len(rest) == 2 and count == 1:
        expression = "old == b ? c : old"
    elif swap or len(rest) != 1 or known.function not in table.ATOMICS:
        return None
    elif "::" in kind:
        if known.function not in table.NARROW_ATOMICS:
            return None
        expression = f"mxmaca::ptx::{known.function}(old, b)"
    else:
        expression = table.ATOMICS[known.function].replace("T", kind)
    place = work.address(arguments[1 if fetch else 0], known.space)
    vectors = [work.vector(text) if text.startswith("{") else [text] for text in rest]
    targets = work.vector(arguments[0]) if fetch and arguments[0].startswith("{") else arguments[:1]
    if any(len(vector) != count for vector in vectors) or (fetch and len(targets) != count):
        return None
    lines = [f"char* const place = static_cast<char*>({place});"]
    if known.function in ("cas", "exch"):
        lines.append("::mxmaca::spun();")  # programs wait for a lock by them
    for i in range(count):
        values = [f"const {kind} {letter} = {work.value(vector[i], kind)};" for letter, vector in zip("bc", vectors)]
        call = (
            f"mxmaca::ptx::atomic<{kind}>(place + {i} * sizeof({kind}), "
            f"[&]({kind} old) {{ (void)old; return static_cast<{kind}>({expression}); }})"
        )
        done = f"mxmaca::ptx::put({work.target(targets[i])}, {call});" if fetch else f"{call};"
        lines.append("{ " + " ".join([*values, done]) + " }")
    return "{ " + " ".join(lines) + " }"


def _copy(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    match = COPY.fullmatch(name)
    if match is not None:
        given = arguments[:-1] if "cache_hint" in match.group(1) else arguments
        if len(given) not in (3, 4) or (len(given) == 4 and work.is_predicate(given[3])):
            return None
        to, source = work.address(given[0], "shared"), work.address(given[1], None)
        bytes_ = work.value(given[2], "uint32_t")
        read = work.value(given[3], "uint32_t") if len(given) == 4 else bytes_
        return f"mxmaca::ptx::copy_part({to}, {source}, {bytes_}, {read});"
    match = BULK.fullmatch(name)
    if match is not None and len(arguments) == (5 if match.group(1) else 4):
        to, source = work.address(arguments[0], "shared"), work.address(arguments[1], None)
        bytes_, barrier = work.value(arguments[2], "uint32_t"), work.address(arguments[3], "shared")
        return (
            f"{{ const uint32_t bytes = {bytes_}; memcpy({to}, {source}, bytes); "
            f"mxmaca::ptx::barrier_expect({barrier}, -static_cast<int32_t>(bytes)); }}"
        )
    match = BULK_BACK.fullmatch(name)
    if match is not None and len(arguments) == (4 if match.group(1) else 3):
        to, source = work.address(arguments[0], None), work.address(arguments[1], "shared")
        return f"memcpy({to}, {source}, {work.value(arguments[2], 'uint32_t')});"
    return None
