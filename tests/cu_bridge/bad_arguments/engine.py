"""Call every exported function of a CUDA library with bad arguments, and compare what comes back with a table.

Quick start for a new library
-----------------------------
1. Write `<folder of the library in cu_bridge/shims>.toml` beside this file. `common.toml` is read first: its
   statuses, handles and kinds (streams, events, memory) are there for every library.

       [statuses]                                  # names for numbers; a status is a name, a number or a list of them
       NotInitialized = 1
       InvalidValue = 7

       [handles.handle]                            # how a good value is made: calls that must return 0
       steps = [["cublasCreate_v2", "out:h"]]      # "out:h" passes a pointer; what is written there is $h afterwards
       destroy = [["cublasDestroy_v2", "$h"]]      # for "freed"; the value is the last `out:` unless `result` names one

       [kinds.handle]                              # what an argument is: a good value, and bad ones with their status
       good = "handle"
       bad = ["null", "garbage", "freed", "stream"]
       status = "NotInitialized"

       [functions]
       cublasSetStream_v2 = ["handle", "stream"]   # one entry an argument
       cublasGetVersion_v2 = ["handle", "pointer"]
       cublasFoo = { arguments = ["handle", "count", 4], expect = { "1" = "InvalidValue", "0.null" = [1, 7] } }
       cublasBar = { none = "takes no argument" }

   An entry of `arguments` that names a kind is tried with each of the kind's bad values, one at a time, while the
   others are good. Any other entry is passed as it is. `expect` overrides the kind's status, by the argument's index
   alone or with the bad value's label. `skip = { "1.host" = "why" }` leaves one out. More calls:
   `cases = [{ label = "...", arguments = [...], status = ... }]`. `returns` is "status" (the default), "text",
   "pointer" or "nothing"; the only status allowed of a pointer is "null", that of a text is the text, and that of
   nothing is "nothing". `[functions12]` and `[functions13]` hold what differs by major.

   `[families]` is the same with a regular expression in the place of the name: each exported function that it matches
   as a whole has the row. With `controls = true` at the file's beginning every row is also called with good values
   alone and must succeed, so that no other argument can be what a bad call fails by; `uncontrolled = "why"` excepts a
   row. `setup = [["nvmlInit_v2"]]` at the beginning are calls that each child makes before all others, and
   `beside = ["cusparse"]` other libraries whose functions the steps of handles call.

2. Values: an integer (passed in 64 bits, which suits any width); a float (as double), "float:1.5"; "null"; "out"
   (64 KiB of zeros); "host" (memory that CUDA does not know; "host:NAME" in steps is $NAME afterwards); "text:...";
   "callback"; "garbage" (as a bad value four of them: no memory there, memory of zeros, memory of ones, a small
   number; elsewhere the first); "freed" (in `bad`: the good handle, destroyed) or "freed:NAME"; the name of a handle;
   `{ struct = "iQP", values = [1, 2, "host"] }` (the address of such bytes, in the format of Python's struct module)
   and `{ by_value = "III", values = [1, 1, 1] }`. A bad value with a label of its own is
   `{ label = "too_many", value = 65 }`, and with a status of its own `{ label = ..., value = ..., status = ... }`.

3. Functions that the library refuses as a whole (the generated ones, weak symbols) need no row: each is called
   without arguments, and must return the library's own "not supported" status.

   What fails in a state of the process, whatever its arguments are, is a section of its own:

       [states.no_context]
       enter = [["cuCtxPopCurrent_v2", 0]]         # before the values are used, after they are made
       leave = [["cuCtxSetCurrent", "context"]]
       status = "InvalidContext"
       functions = ["cuCtxSynchronize", "cuMemAlloc_v2"]   # called with their good arguments

4. Run `pytest tests/cu_bridge/bad_arguments -k cublas`. A failure names the function, the argument and what came
   back. One library by hand: `python tests/cu_bridge/bad_arguments/engine.py SDK MAJOR FOLDER`, SDK being
   PREFIX/mxmaca.

How a library tells a handle from any other address: cu_bridge/base/handle_table.h, or shims/common/handle.h for handles
that libraries share and descriptors that lie in the caller's memory.

All calls of a library run in one child process. After a crash, or a call that does not return, the next child goes on
with the call behind it. A status of 0 is never accepted. The error that a call leaves must not be a lasting one.
"""

import ctypes
import itertools
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
SHIMS = HERE.parents[2] / "cu_bridge" / "shims"
GARBAGE = ("no_memory", "zeros", "ones", "small")
ROOM = 1 << 16  # bytes behind "out"
CALL_SECONDS = 20

Status = Union[int, str]


class Call(NamedTuple):
    """One call of a function, and what it may return."""

    function: str
    label: str
    arguments: List[Any]
    allowed: List[Status]
    returns: str
    enter: List[List[Any]] = []
    leave: List[List[Any]] = []


class Row(NamedTuple):
    """A library of libraries.txt."""

    folder: str
    major: int
    soname: str
    refusal: int


# ---- The table ------------------------------------------------------------------------------------------------------


def libraries() -> List[Row]:
    """Read libraries.txt."""
    rows = []
    for line in (SHIMS / "libraries.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|")]
            rows.append(Row(cells[0], int(cells[1]), cells[2], int(cells[5])))
    return rows


def library(folder: str, major: int) -> Row:
    """Find a library by its folder and CUDA major."""
    return next(row for row in libraries() if (row.folder, row.major) == (folder, major))


class Table:
    """A library's TOML file together with common.toml."""

    def __init__(self, folder: str, major: int, exported: Set[str]) -> None:
        files = [tomllib.loads((HERE / name).read_text(encoding="utf-8")) for name in ("common.toml", folder + ".toml")]
        known = {"controls", "families", "functions", "functions12", "functions13", "handles", "kinds", "states"}
        known |= {"beside", "setup", "statuses"}
        for file in files:
            assert set(file) <= known, f"{folder}: unknown sections {set(file) - known}"
        self.statuses: Dict[str, int] = {}
        self.handles: Dict[str, Dict[str, Any]] = {}
        self.kinds: Dict[str, Dict[str, Any]] = {}
        for file in files:
            self.statuses.update(file.get("statuses", {}))
            self.handles.update(file.get("handles", {}))
            self.kinds.update(file.get("kinds", {}))
        self.setup: List[List[Any]] = files[1].get("setup", [])
        self.beside: List[str] = [library(name, major).soname for name in files[1].get("beside", [])]
        self.states: Dict[str, Dict[str, Any]] = files[1].get("states", {})
        self.rows: Dict[str, Dict[str, Any]] = {}
        for section in ("functions", f"functions{major}"):
            for name, row in files[1].get(section, {}).items():
                self.rows[name] = {"arguments": row} if isinstance(row, list) else row
        for pattern, row in files[1].get("families", {}).items():
            members = {name for name in exported if re.fullmatch(pattern, name)}
            assert members, f"{folder}: no function is called {pattern}"
            assert not members & set(self.rows), f"{folder}: two rows for {members & set(self.rows)}"
            self.rows.update(dict.fromkeys(members, {"arguments": row} if isinstance(row, list) else row))
        self.controls = bool(files[1].get("controls", False))

    def status(self, value: Any) -> List[Status]:
        """Statuses by name, number or list."""
        found: List[Status] = []
        for one in value if isinstance(value, list) else [value]:
            found.append(self.statuses.get(one, one) if isinstance(one, str) else one)
        assert 0 not in found, "success is no answer to a bad argument"
        return found

    def bad_values(self, kind: Dict[str, Any]) -> Iterator[Tuple[str, Any, Any]]:
        """Label, recipe and status of each bad value of a kind."""
        for entry in kind["bad"]:
            if isinstance(entry, dict):
                yield entry["label"], entry["value"], entry.get("status", kind["status"])
            elif entry == "garbage":
                for name in GARBAGE:
                    yield name, "garbage:" + name, kind["status"]
            elif entry == "freed":
                yield entry, "freed:" + kind["good"], kind["status"]
            else:
                yield str(entry), entry, kind["status"]

    def calls(self, functions: Set[str]) -> List[Call]:
        """Every call of those functions that have a row."""
        found = []
        for name, row in self.rows.items():
            if name not in functions or "none" in row:
                continue
            returns = row.get("returns", "status")
            arguments = row.get("arguments", [])
            good = self.good_arguments(name)
            if self.controls and arguments and returns == "status" and "uncontrolled" not in row:
                found.append(Call(name, "good values alone", good, [0], returns))
            expect, skip = dict(row.get("expect", {})), dict(row.get("skip", {}))
            used = set()
            for index, one in enumerate(arguments):
                if not self.is_kind(one):
                    continue
                for label, recipe, status in self.bad_values(self.kinds[one]):
                    keys = (f"{index}.{label}", str(index))
                    used.update(keys)
                    if keys[0] in skip or keys[1] in skip:
                        continue
                    wanted = next((expect[key] for key in keys if key in expect), status)
                    tried = [*good[:index], recipe, *good[index + 1 :]]
                    found.append(Call(name, f"{index}.{label} ({one})", tried, self.status(wanted), returns))
            stale = (set(expect) | set(skip)) - used
            assert not stale, f"{name}: no such bad value: {sorted(stale)}"
            for case in row.get("cases", []):
                found.append(Call(name, case["label"], case["arguments"], self.status(case["status"]), returns))
        for state, rule in self.states.items():
            for name in rule["functions"]:
                assert name in self.rows, f"{state}: {name} has no row"
                if name in functions:
                    label, status = f"in {state}", self.status(rule["status"])
                    good = self.good_arguments(name)
                    found.append(Call(name, label, good, status, "status", rule["enter"], rule["leave"]))
        return found

    def good_arguments(self, name: str) -> List[Any]:
        """What a function's row passes where nothing is wrong."""
        arguments = self.rows[name].get("arguments", [])
        return [self.kinds[one]["good"] if self.is_kind(one) else one for one in arguments]

    def is_kind(self, entry: Any) -> bool:
        """Whether an argument's entry names a kind."""
        return isinstance(entry, str) and entry in self.kinds


def exported(path: pathlib.Path) -> Tuple[Set[str], Set[str]]:
    """Functions that a library exports: those with a body of their own, and those that it refuses as a whole."""
    text = subprocess.run(["nm", "-D", "--defined-only", str(path)], check=True, stdout=subprocess.PIPE, text=True)
    own, refused = set(), set()
    for line in text.stdout.splitlines():
        *_, kind, name = line.split()
        {"T": own, "W": refused}.get(kind, set()).add(name.split("@")[0])
    return own, refused


# ---- The child ------------------------------------------------------------------------------------------------------


class Child:
    """Makes the values and calls the functions, in a process that may die of it."""

    def __init__(
        self, sdk: pathlib.Path, major: int, soname: str, handles: Dict[str, Dict[str, Any]], beside: Sequence[str] = ()
    ) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        folder = sdk / "lib" / f"cuda{major}"
        self.runtime = ctypes.CDLL(str(sdk / "lib" / "libmcruntime.so"))
        self.cudart = ctypes.CDLL(str(next(folder.glob("libcudart.so.*"))))
        ctypes.CDLL(str(folder / "libcuda.so.1"))  # as in a process with torch, where libraries find it by name
        self.library = ctypes.CDLL(str(folder / soname))
        self.places = [self.library, self.cudart, self.runtime, *(ctypes.CDLL(str(folder / name)) for name in beside)]
        self.handles = handles
        self.kept: List[Any] = []  # until the call has been made
        self.lasting: List[Any] = []  # what a library knows the address of
        self.garbage = {"small": 7, "no_memory": 2 << 20}  # below all programs, where the kernel places nothing unasked
        self.nothing = ctypes.CFUNCTYPE(None)(lambda: None)
        for name, byte in (("zeros", b"\0"), ("ones", b"\xff")):
            self.lasting.append(ctypes.create_string_buffer(byte * ROOM, ROOM))
            self.garbage[name] = ctypes.addressof(self.lasting[-1])

    def address(self, thing: Any) -> int:
        """Keep an object and return its address."""
        self.kept.append(thing)
        return ctypes.addressof(thing)

    def find(self, name: str) -> Any:
        """A function of the library, else of the CUDA runtime, of the runtime below, or of a library beside it."""
        for place in self.places:
            if hasattr(place, name):
                return place[name]  # an object of its own, whose result type nobody else sets
        raise AttributeError(f"no library has {name}")

    def make(self, recipe: Any, names: Dict[str, int]) -> Any:
        """Make a value; integers and addresses as int, other things as ctypes objects."""
        if isinstance(recipe, int):
            return int(recipe)
        if isinstance(recipe, float):
            return ctypes.c_double(recipe)
        if isinstance(recipe, dict):
            return self.make_struct(recipe, names)
        word, _, rest = recipe.partition(":")
        if word == "null":
            return 0
        if word in ("out", "host"):
            place = self.address(ctypes.create_string_buffer(ROOM))
            if rest:
                self.lasting.append(self.kept[-1])
                names[("&" if word == "out" else "$") + rest] = place
            return place
        if word == "text":
            return self.address(ctypes.create_string_buffer(rest.encode()))
        if word == "float":
            return ctypes.c_float(float(rest))
        if word == "garbage":
            return self.garbage[rest or GARBAGE[0]]
        if word == "callback":
            return self.address_of_callback()
        if word.startswith("$"):
            return names[word]
        return self.make_handle(rest if word == "freed" else word, word == "freed")

    def address_of_callback(self) -> int:
        """The address of a C function that does nothing."""
        return ctypes.cast(self.nothing, ctypes.c_void_p).value or 0

    def make_struct(self, recipe: Dict[str, Any], names: Dict[str, int]) -> Any:
        """Bytes by address, or fields by value."""
        values = [value if isinstance(value, float) else self.make(value, names) for value in recipe["values"]]
        if "struct" in recipe:
            packed = struct.pack(recipe["struct"], *values)
            return self.address(ctypes.create_string_buffer(packed, max(len(packed), 1) + 64))
        types = {"i": ctypes.c_int, "I": ctypes.c_uint, "q": ctypes.c_int64, "Q": ctypes.c_uint64}
        types.update(f=ctypes.c_float, d=ctypes.c_double)
        fields = [(f"field{index}", types[letter]) for index, letter in enumerate(recipe["by_value"])]
        return type("ByValue", (ctypes.Structure,), {"_fields_": fields})(*values)

    def make_handle(self, name: str, freed: bool) -> int:
        """Carry out a handle's steps."""
        handle = self.handles[name]
        names: Dict[str, int] = {}
        written = ""
        for step in handle["steps"]:
            written = self.step(name, step, names) or written
        if freed:
            for step in handle["destroy"]:
                self.step(name, step, names)
        return names["$" + handle.get("result", written)]

    def step(self, handle: str, step: List[Any], names: Dict[str, int]) -> str:
        """Call a function that must succeed; return the name of its last `out:` argument."""
        function, *arguments = step
        status = self.call(function, [self.make(one, names) for one in arguments], "status")
        if status != 0:
            raise RuntimeError(f"making {handle}: {function} returned {status}")
        written = ""
        for name in [name for name in names if name.startswith("&")]:
            written = name[1:]
            names["$" + written] = ctypes.c_uint64.from_address(names.pop(name)).value
        return written

    def call(self, name: str, arguments: List[Any], returns: str) -> Status:
        """Call a function with values that `make` made."""
        function = self.find(name)
        types = {"status": ctypes.c_int, "pointer": ctypes.c_void_p, "text": ctypes.c_char_p, "nothing": None}
        function.restype = types[returns]
        found = function(*[ctypes.c_uint64(one & (1 << 64) - 1) if isinstance(one, int) else one for one in arguments])
        if returns == "status":
            return int(found)
        if returns == "pointer":
            return "null" if found is None else "a pointer"
        return "nothing" if found is None else found.decode()

    def run(self, call: Call) -> Dict[str, Any]:
        """Make the call's values and call."""
        self.kept = []
        try:
            arguments = [self.make(one, {}) for one in call.arguments]
        except (RuntimeError, AttributeError, KeyError, struct.error) as error:
            return {"problem": f"{type(error).__name__}: {error}"}
        for step in call.enter:
            self.step(call.label, step, {})
        result: Dict[str, Any] = {"status": self.call(call.function, arguments, call.returns)}
        for step in call.leave:
            self.step(call.label, step, {})
        if self.runtime.mcStickyError() != 0:
            result["sticky"] = self.runtime.mcStickyError()
            self.runtime.mcDeviceReset()
        self.runtime.mcGetLastError()
        return result


def child_main() -> None:
    """Carry out the calls of a plan from an index on, and report each on a pipe."""
    plan = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    start, pipe = int(sys.argv[3]), int(sys.argv[4])
    child = Child(pathlib.Path(plan["sdk"]), plan["major"], plan["soname"], plan["handles"], plan["beside"])
    for step in plan["setup"]:
        child.step("setup", step, {})
    for index, call in enumerate(plan["calls"]):
        if index < start:
            continue
        signal.alarm(CALL_SECONDS)
        os.write(pipe, (json.dumps({"index": index}) + "\n").encode())
        os.write(pipe, (json.dumps({"index": index, **child.run(Call(*call))}) + "\n").encode())
    signal.alarm(0)
    os._exit(0)  # the libraries' destructors have nothing to do with the calls


# ---- The parent -----------------------------------------------------------------------------------------------------


def run_calls(
    sdk: pathlib.Path,
    row: Row,
    handles: Dict[str, Dict[str, Any]],
    calls: List[Call],
    folder: pathlib.Path,
    environment: Dict[str, str],
    setup: Sequence[List[Any]] = (),
    beside: Sequence[str] = (),
) -> List[str]:
    """Carry out calls in child processes; return what is wrong, a line each."""
    plan = folder / f"{row.folder}{row.major}.json"
    text = {"sdk": str(sdk), "major": row.major, "soname": row.soname, "setup": setup, "beside": beside}
    plan.write_text(json.dumps({**text, "handles": handles, "calls": calls}), encoding="utf-8")
    problems: List[str] = []
    start = 0
    while start < len(calls):
        reports, ending = run_child(plan, start, environment)
        answered = {report["index"]: report for report in reports if len(report) > 1}
        begun = max((report["index"] for report in reports), default=None)
        for index, report in sorted(answered.items()):
            problem = judge(calls[index], report)
            if problem is not None:
                problems.append(problem)
        if begun is None:
            problems.append(f"{row.soname}: the child did not start: {ending}")
            break
        if begun not in answered:
            problems.append(describe(calls[begun]) + f": {ending}")
        start = begun + 1
    return problems


def run_child(plan: pathlib.Path, start: int, environment: Dict[str, str]) -> Tuple[List[Dict[str, Any]], str]:
    """Run one child; return its reports, and how it ended."""
    reader, writer = os.pipe()
    command = [sys.executable, str(HERE / "engine.py"), "--child", str(plan), str(start), str(writer)]
    output = plan.with_suffix(".log")
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    code = process.wait()
    if code == -signal.SIGALRM:
        ending = f"did not return within {CALL_SECONDS} seconds"
    elif code < 0:
        ending = f"crash ({signal.Signals(-code).name})"
    else:
        ending = f"the child ended with status {code}: " + output.read_text(encoding="utf-8", errors="replace")[-2000:]
    return [json.loads(line) for line in lines if line.endswith("}")], ending


def describe(call: Call) -> str:
    """A call as a failure names it."""
    return f"{call.function} [{call.label}]"


def judge(call: Call, report: Dict[str, Any]) -> Optional[str]:
    """Return what is wrong with a call's outcome, or None."""
    if "problem" in report:
        return f"{describe(call)}: the table is wrong: {report['problem']}"
    if report["status"] not in call.allowed:
        what = "success" if report["status"] == 0 else f"status {report['status']}"
        return f"{describe(call)}: {what}, wanted {' or '.join(map(str, call.allowed))}"
    if "sticky" in report:
        return f"{describe(call)}: leaves the lasting error {report['sticky']}"
    return None


class Outcome(NamedTuple):
    """What trying a library has found."""

    problems: List[str]
    functions: int
    calls: int


def try_library(sdk: pathlib.Path, folder: str, major: int, work: pathlib.Path, environment: Dict[str, str]) -> Outcome:
    """Try all functions of a library with bad arguments."""
    row = library(folder, major)
    own, refused = exported(sdk / "lib" / f"cuda{major}" / row.soname)
    table = Table(folder, major, own)
    calls = table.calls(own)
    calls += [Call(name, "refused", [], [row.refusal], "status") for name in sorted(refused)]
    problems = [f"{name}: exported, and has no row" for name in sorted(own - set(table.rows))]
    tried = {call.function for call in calls} | {name for name, line in table.rows.items() if "none" in line}
    problems += [f"{name}: its row tries nothing" for name in sorted((set(table.rows) & own) - tried)]
    variables = {**environment, "MACA_DEVICE_COUNT": "2"}
    problems += run_calls(sdk, row, table.handles, calls, work, variables, table.setup, table.beside)
    return Outcome(problems, len(own | refused), len(calls))


def main() -> None:
    """Try one library and print what is wrong."""
    import tempfile

    sdk, major, folder = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as work:
        environment = {**os.environ, "MACA_STATE_DIR": work}
        outcome = try_library(sdk, folder, major, pathlib.Path(work), environment)
    for line in itertools.chain(outcome.problems, [f"{outcome.functions} functions, {outcome.calls} calls"]):
        print(line)
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child_main()
    else:
        main()
