"""Barriers of blocks by number, mbarrier objects, and what lanes exchange with a predicate beside the result."""

import re
from typing import List, Match, Optional

from .operands import Operands

NAMED = re.compile(
    r"(?:bar|barrier)(?:\.cta)?\.(?:(?P<f>sync|arrive)(?:\.aligned)?|red\.(?:(?P<count>popc)|(?P<vote>and|or))"
    r"(?:\.aligned)?(?(count)\.u32|\.pred))"
)
SHUFFLE = re.compile(r"shfl\.sync\.(idx|up|down|bfly)\.b32")
SHUFFLES = {"idx": "mcWarpShuffle", "up": "mcWarpShuffleUp", "down": "mcWarpShuffleDown", "bfly": "mcWarpShuffleXor"}
ORDER = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?"
SPACE = r"(?:\.(?P<space>shared(?:::cta|::cluster)?))?"
MBARRIER = re.compile(
    rf"mbarrier\.(?P<f>init|inval|arrive|arrive_drop|expect_tx|complete_tx|test_wait|try_wait)"
    rf"(?P<m>\.expect_tx|\.noComplete|\.parity)?{ORDER}{SPACE}\.b64"
)
COPIED = re.compile(rf"cp\.async\.mbarrier\.arrive(?P<noinc>\.noinc)?{SPACE}\.b64")


def translate(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    """C++ for one of these, or None."""
    if name.startswith("mbarrier.") or name.startswith("cp.async.mbarrier."):
        return _mbarrier(work, name, arguments)
    match = SHUFFLE.fullmatch(name)
    if match is not None and len(arguments) == 5:
        values = ", ".join(work.value(text, "uint32_t") for text in arguments[1:])
        call = f"const auto result = mxmaca::ptx::shuffled<{SHUFFLES[match.group(1)]}>({values});"
        return _pair(work, arguments[0], call, "result.value", "result.inside")
    if name == "elect.sync" and len(arguments) == 2:
        mask = work.value(arguments[1], "uint32_t")
        call = f"uint32_t leader; const bool chosen = mxmaca::ptx::elected({mask}, leader);"
        return _pair(work, arguments[0], call, "leader", "chosen")
    match = re.fullmatch(r"match\.all\.sync\.b(32|64)", name)
    if match is not None and len(arguments) == 3:
        value, mask = work.value(arguments[1], f"uint{match.group(1)}_t"), work.value(arguments[2], "uint32_t")
        call = f"int same; const uint32_t lanes = __match_all_sync({mask}, {value}, &same);"
        return _pair(work, arguments[0], call, "lanes", "same != 0")
    match = NAMED.fullmatch(name)
    return None if match is None else _named(work, match, arguments)


def _named(work: Operands, match: Match[str], arguments: List[str]) -> Optional[str]:
    """One of a block's sixteen barriers, at which a number of threads meets, or all."""
    function, vote = match.group("f"), match.group("vote")
    if arguments == ["0"] and function == "sync":
        return "__syncthreads();"
    place = arguments if function else arguments[1:-1]
    if len(place) not in ((2,) if function == "arrive" else (1, 2)):
        return None
    number, *counts = (work.value(text, "uint32_t") for text in place)
    threads = counts[0] if counts else "0"
    if function:
        return f"mxmaca::named_barrier({number}, {threads}, {str(function == 'arrive').lower()});"
    predicate = work.value(arguments[-1], "bool")
    call = f"mxmaca::named_barrier({number}, {threads}, false, {'!' if vote == 'and' else ''}({predicate}))"
    result = {"and": f"({call} == 0)", "or": f"({call} != 0)"}.get(vote or "", call)
    return f"mxmaca::ptx::put({work.target(arguments[0])}, {result});"


def _pair(work: Operands, targets: str, call: str, result: str, predicate: str) -> str:
    """The result, and behind `|` a predicate."""
    first, _, second = targets.partition("|")
    lines = [call, f"mxmaca::ptx::put({work.target(first)}, static_cast<uint32_t>({result}));"]
    if second.strip() not in ("", "_"):
        lines.append(f"mxmaca::ptx::put({work.target(second)}, {predicate});")
    return "{ " + " ".join(lines) + " }"


def _mbarrier(work: Operands, name: str, arguments: List[str]) -> Optional[str]:
    if name == "mbarrier.pending_count.b64" and len(arguments) == 2:
        state = work.value(arguments[1], "uint64_t")
        return f"mxmaca::ptx::put({work.target(arguments[0])}, mxmaca::ptx::pending_of({state}));"
    copied = COPIED.fullmatch(name)
    if copied is not None and len(arguments) == 1:
        # The copies before it are complete; without .noinc what it adds to the count it takes away again.
        place = work.address(arguments[0], copied.group("space"))
        return f"mxmaca::ptx::barrier_arrive({place}, 1);" if copied.group("noinc") else f"static_cast<void>({place});"
    match = MBARRIER.fullmatch(name)
    if match is None:
        return None
    function, more, space = match.group("f"), (match.group("m") or "").strip("."), match.group("space")
    wait, arrive = function in ("test_wait", "try_wait"), function.startswith("arrive")
    if more and more not in (["parity"] if wait else ["expect_tx", "noComplete"] if arrive else []):
        return None
    if wait and len(arguments) in (3, 4 if function == "try_wait" else 3):
        place = work.address(arguments[1], space)
        phase = work.value(arguments[2], "uint32_t") + " & 1"
        if not more:
            phase = f"mxmaca::ptx::phase_of({work.value(arguments[2], 'uint64_t')})"
        return f"mxmaca::ptx::put({work.target(arguments[0])}, mxmaca::ptx::barrier_passed({place}, ({phase}) != 0));"
    if arrive and len(arguments) in (2, 3):
        place = work.address(arguments[1], space)
        count = work.value(arguments[2], "uint32_t") if len(arguments) == 3 else "1"
        operands = f"1, static_cast<int32_t>({count})" if more == "expect_tx" else f"{count}, 0"
        drop = str(function == "arrive_drop").lower()
        state = f"mxmaca::ptx::barrier_arrive({place}, {operands}, {drop})"
        return f"mxmaca::ptx::put({work.target(arguments[0])}, {state});"
    if function == "inval" and len(arguments) == 1:
        return f"static_cast<void>({work.address(arguments[0], space)});"
    if function in ("init", "expect_tx", "complete_tx") and len(arguments) == 2:
        place, count = work.address(arguments[0], space), work.value(arguments[1], "uint32_t")
        if function == "init":
            return f"mxmaca::ptx::barrier_initialize({place}, {count});"
        sign = "-" if function == "complete_tx" else ""
        return f"mxmaca::ptx::barrier_expect({place}, {sign}static_cast<int32_t>({count}));"
    return None
