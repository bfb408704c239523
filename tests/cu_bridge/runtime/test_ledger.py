"""The account of device memory: what may happen to its file, to its folder and to the processes that use it."""

import fcntl
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional

import pytest

PROLOGUE = """
import sys
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
def malloc(size):
    pointer = ffi.new("void **")
    return lib.mcMalloc(pointer, size), pointer[0]
def used():
    return runtime.physical_devices()[0].memory_used >> 20
"""
# Waits for a line before each step, so that the test can do something in between.
STEPS = """
for line in sys.stdin:
    exec(line.strip())
    print("done", flush=True)
"""
RECORD = struct.Struct("<qQQQqQ16x")
PAGE = 4096


class Record(NamedTuple):
    """One account of one process in the file."""

    pid: int
    start: int
    key: int
    nbytes: int
    ranges_file: int
    ranges_inode: int


def the_file(environment: Dict[str, str]) -> pathlib.Path:
    """Return the one file in the state folder."""
    (path,) = pathlib.Path(environment["MACA_STATE_DIR"]).iterdir()
    return path


def records(path: pathlib.Path) -> List[Record]:
    """Return what is in use of the file."""
    data = path.read_bytes()
    whole = data[RECORD.size : len(data) // RECORD.size * RECORD.size]
    return [record for record in map(Record._make, RECORD.iter_unpack(whole)) if record.pid != 0]


def start_time(pid: int) -> int:
    """Return when a process began, as the runtime reads it."""
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


class Stepper:
    """A process that runs the lines of code that it is given."""

    def __init__(self, environment: Dict[str, str], **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + STEPS],
            env={**environment, "MACA_DEVICE_MEMORY": "512MiB", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(self, line: str) -> None:
        """Run one line; what it asserts must hold."""
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == "done", (answer, self.process.wait(), self.process.stderr.read())

    def finish(self) -> str:
        """End the process, which must succeed, and return what it said on stderr."""
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        return said

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture()
def stepper(environment: Dict[str, str]) -> Iterator[Callable[..., Stepper]]:
    """Return a function that starts a process that runs lines; all are gone afterwards."""
    started: List[Stepper] = []

    def start(**variables: str) -> Stepper:
        started.append(Stepper(environment, **variables))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture()
def run_isolated(environment: Dict[str, str], sdk: pathlib.Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return a function that runs a shell script with mounts and process numbers of its own."""
    unshare = shutil.which("unshare")
    command = [unshare or "", "--mount", "--pid", "--fork", "--mount-proc"]
    if unshare is None or subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to make mount namespaces")
    if pathlib.Path("/tmp") in sdk.parents:
        pytest.skip("the SDK lies in /tmp, which this test replaces")

    def run(script: str, code: str, **variables: Optional[str]) -> "subprocess.CompletedProcess[str]":
        env = {**environment, "CODE": PROLOGUE + code, "PYTHON": sys.executable, "MACA_DEVICE_MEMORY": "512MiB"}
        for key, value in variables.items():
            env.pop(key, None)
            if value is not None:
                env[key] = value
        run_code = '"$PYTHON" -c "$CODE"'
        return subprocess.run(
            [*command, "sh", "-ec", script + "\n" + run_code], env=env, capture_output=True, text=True, timeout=120
        )

    return run


FILL = "mount -t tmpfs -o size=64k none {0}; dd if=/dev/zero of={0}/fill bs=4096 2>/dev/null || true\n"
ALLOCATES = "assert malloc(300 << 20)[0] == 0; assert malloc(300 << 20)[0] == lib.mcErrorMemoryAllocation\n"


def test_a_full_folder_gives_way_to_the_next(run_isolated: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    script = FILL.format("/dev/shm") + "mount -t tmpfs -o size=1m none /tmp"
    done = run_isolated(script, ALLOCATES + "import os; print(os.listdir('/tmp'))", MACA_STATE_DIR=None)
    assert done.returncode == 0, done.stderr
    assert "mxmaca-" in done.stdout
    assert done.stderr == ""


def test_the_folder_that_living_processes_count_in_comes_first(
    run_isolated: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    script = FILL.format("/dev/shm") + "mount -t tmpfs -o size=1m none /tmp"
    code = """
import os, subprocess
code, block = malloc(300 << 20)
assert code == 0
os.remove("/dev/shm/fill")
other = os.environ["CODE"].split("import os, subprocess")[0]
other += "assert used() == 300; assert malloc(300 << 20)[0] != 0"
subprocess.run([sys.executable, "-c", other], check=True)
"""
    done = run_isolated(script, code, MACA_STATE_DIR=None)
    assert done.returncode == 0, done.stderr


def test_without_a_folder_a_process_counts_for_itself_and_says_so(
    run_isolated: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    done = run_isolated(FILL.format("/dev/shm") + FILL.format("/tmp"), ALLOCATES, MACA_STATE_DIR=None)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "/dev/shm" in done.stderr and "/tmp" in done.stderr and "No space left" in done.stderr
    assert "MACA_STATE_DIR" in done.stderr


def test_the_smallest_shared_memory_is_enough(
    run_isolated: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    done = run_isolated("mount -t tmpfs -o size=1m none /dev/shm", ALLOCATES, MACA_STATE_DIR=None)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


FAILS = """
try:
    runtime.physical_devices()
except runtime.MacaError as error:
    print("raised:", error)
"""


def test_a_named_folder_that_is_full_is_an_error_that_names_it(
    run_isolated: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    done = run_isolated(FILL.format(folder), FAILS, MACA_STATE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert "raised: initialization error" in done.stdout
    assert str(folder) in done.stdout and "No space left" in done.stdout


def test_a_named_folder_that_is_not_there_is_an_error_that_names_it(
    run_python: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    code = FAILS + "assert lib.mcMalloc(ffi.new('void **'), 100) != 0\n"
    output = run_python(code, MACA_STATE_DIR=str(tmp_path / "not" / "there"))
    assert "raised: initialization error" in output
    assert "MACA_STATE_DIR" in output and str(tmp_path / "not" / "there") in output


def test_an_empty_name_of_a_folder_is_none(run_isolated: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_isolated("mount -t tmpfs -o size=1m none /dev/shm", ALLOCATES, MACA_STATE_DIR="")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def make_foreign(path: pathlib.Path, kind: str) -> None:
    """Put something in the ledger's place."""
    ledger = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        target = path.parent.parent / "target"
        target.write_bytes(ledger)
        target.chmod(0o600)
        path.symlink_to(target)
    elif kind == "version":
        path.write_bytes(ledger[:16] + b"\x63" + ledger[17:])
    elif kind == "text":
        path.write_bytes(b"somebody's notes")
    elif kind == "long text":
        path.write_bytes(b"somebody's notes " * 1000)
    elif kind == "huge":
        path.write_bytes(ledger)
        os.truncate(path, 1 << 40)
    elif kind in ("open to all", "another owner's"):
        path.write_bytes(ledger)
    if kind not in ("folder", "pipe", "link"):
        path.chmod(0o666 if kind == "open to all" else 0o600)
    if kind == "another owner's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, 12345, 12345)


FOREIGN = [
    "folder", "pipe", "link", "version", "text", "long text", "huge", "open to all", "another owner's"
]  # fmt: skip


def state_of(path: pathlib.Path) -> object:
    """Return what a program could change of a file."""
    status = path.stat()
    content = path.read_bytes() if path.is_file() and status.st_size < 1 << 20 else b""
    return status.st_mtime_ns, status.st_size, status.st_mode, content


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_ledger_is_left_alone_and_named(
    run_python: Callable[..., str], environment: Dict[str, str], kind: str
) -> None:
    run_python("runtime.physical_devices()")
    path = the_file(environment)
    make_foreign(path, kind)
    before = state_of(path)
    output = run_python(FAILS)
    assert "raised: initialization error" in output
    assert str(path) in output
    assert state_of(path) == before


@pytest.mark.parametrize("begun, zeros", [(0, 0), (1, 0), (63, 0), (0, 64), (5, 59), (0, 2 * PAGE), (10, 100)])
def test_a_ledger_that_was_only_begun_is_completed(
    run_python: Callable[..., str], environment: Dict[str, str], begun: int, zeros: int
) -> None:
    # What a process that is killed while it makes the file leaves, or one that shortens it at that moment.
    run_python("runtime.physical_devices()")
    path = the_file(environment)
    whole = path.read_bytes()
    path.write_bytes(whole[:begun] + bytes(zeros))
    assert run_python(PROLOGUE + "assert malloc(1 << 20)[0] == 0 and used() == 1") == ""
    assert path.read_bytes()[: RECORD.size] == whole[: RECORD.size]
    assert [record.nbytes for record in records(path)] == [1 << 20]


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_ledger_that_is_replaced_stops_nobody(
    stepper: Callable[..., Stepper], environment: Dict[str, str], kind: str
) -> None:
    process = stepper()
    process.do("code, block = malloc(300 << 20); assert code == 0")
    path = the_file(environment)
    make_foreign(path, kind)
    before = state_of(path)
    process.do("assert malloc(300 << 20)[0] == lib.mcErrorMemoryAllocation")
    process.do("runtime.check(lib.mcFree(block)); assert malloc(300 << 20)[0] == 0")
    assert state_of(path) == before
    # What was there is gone again: the process counts with the others, without having been told.
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    process.do("assert used() == 300")
    other = stepper()
    other.do("assert used() == 300; assert malloc(300 << 20)[0] == lib.mcErrorMemoryAllocation")
    said = process.finish()
    assert len(said.splitlines()) == 1 and str(path) in said
    assert other.finish() == ""


@pytest.mark.parametrize("size", [0, 30, 64, 100, 128, PAGE, PAGE + 100, None])
def test_what_a_shortened_or_deleted_ledger_lost_is_written_again(
    stepper: Callable[..., Stepper], environment: Dict[str, str], size: Optional[int]
) -> None:
    holders = [stepper() for _ in range(3)]
    for index, process in enumerate(holders):
        process.do(f"assert malloc({100 + index} << 20)[0] == 0")
    path = the_file(environment)
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    for process in holders:
        process.do("code, block = malloc(1 << 20); assert code == 0")
    assert path.stat().st_size % RECORD.size == 0
    assert sorted(record.nbytes >> 20 for record in records(path)) == [101, 102, 103]
    for process in holders:
        process.do("runtime.check(lib.mcFree(block))")
    holders[0].do("assert used() == 303")
    for process in holders:
        assert process.finish() == ""


def test_a_process_that_is_stopped_with_the_lock_blocks_nobody(
    stepper: Callable[..., Stepper], environment: Dict[str, str]
) -> None:
    first = stepper()
    first.do("assert malloc(100 << 20)[0] == 0")
    path = the_file(environment)
    code = (
        f"import fcntl, time; file = open({str(path)!r}); fcntl.flock(file, fcntl.LOCK_EX); print('locked', flush=True)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code + "; time.sleep(60)"], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        holder.send_signal(signal.SIGSTOP)
        second = stepper()
        started = time.monotonic()
        for _ in range(20):
            first.do("code, block = malloc(1 << 20); assert code == 0; runtime.check(lib.mcFree(block))")
        second.do("assert malloc(450 << 20)[0] == lib.mcErrorMemoryAllocation; assert malloc(150 << 20)[0] == 0")
        first.do("assert used() == 250; assert malloc(300 << 20)[0] == lib.mcErrorMemoryAllocation")
        assert time.monotonic() - started < 10
        holder.send_signal(signal.SIGCONT)
        holder.kill()
        second.do("assert used() == 250; assert malloc(200 << 20)[0] == 0")
        first.do("assert used() == 450")
        for process in (first, second):
            said = process.finish()
            assert len(said.splitlines()) == 1 and f"process {holder.pid}, which is stopped" in said
    finally:
        holder.kill()
        holder.communicate()


def test_a_lock_that_is_only_slow_is_waited_for(stepper: Callable[..., Stepper], environment: Dict[str, str]) -> None:
    process = stepper()
    process.do("assert malloc(1 << 20)[0] == 0")
    with open(the_file(environment), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert process.process.stdin is not None and process.process.stdout is not None
        process.process.stdin.write("assert used() == 1\n")
        process.process.stdin.flush()
        time.sleep(0.3)
    assert process.process.stdout.readline() == "done\n"
    assert process.finish() == ""


GREEDY = """
count = 0
while malloc(1 << 20)[0] == 0:
    count += 1
    sys.stdin.readline() if count == 1 else None
print(count, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("locked", [False, True], ids=["lock", "no lock"])
def test_processes_that_race_are_never_granted_more_than_there_is(environment: Dict[str, str], locked: bool) -> None:
    variables = {**environment, "MACA_DEVICE_MEMORY": "64MiB"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + "runtime.check(malloc(4096)[0]); print('ready', flush=True)\n" + GREEDY],
            env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    lines = [(process.stdin, process.stdout) for process in processes]
    try:
        assert all(out is not None and out.readline() == "ready\n" for _, out in lines)
        with open(the_file(environment), "rb") as file:
            if locked:
                fcntl.flock(file, fcntl.LOCK_EX)
            for into, _ in lines:
                assert into is not None
                into.write("go\n")
                into.flush()
            granted = [int(out.readline()) for _, out in lines if out is not None]
            assert sum(granted) <= 63
            assert locked or sum(granted) == 63  # under the lock none is refused while there is room
            assert sum(record.nbytes for record in records(the_file(environment))) == (sum(granted) << 20) + 4 * 4096
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def write_foreign_records(path: pathlib.Path, count: int, key: int, nbytes: int) -> None:
    """Append accounts of this process, as if ``count`` living processes held ``nbytes`` each."""
    mine = RECORD.pack(os.getpid(), start_time(os.getpid()), key, nbytes, -1, 0)
    kept = records(path)
    header = path.read_bytes()[: RECORD.size]
    path.write_bytes(header + b"".join(RECORD.pack(*record) for record in kept) + mine * count)


def test_any_number_of_processes_finds_room(stepper: Callable[..., Stepper], environment: Dict[str, str]) -> None:
    first = stepper()
    first.do("assert malloc(10 << 20)[0] == 0")
    path = the_file(environment)
    write_foreign_records(path, 1000, records(path)[0].key, 1 << 18)
    others = [stepper() for _ in range(5)]
    for process in others:
        process.do("assert malloc(10 << 20)[0] == 0")
    first.do("assert used() == 250 + 60; assert malloc(203 << 20)[0] == lib.mcErrorMemoryAllocation")
    first.do("code, block = malloc(202 << 20); assert code == 0; runtime.check(lib.mcFree(block))")
    for process in (*others, first):
        assert process.finish() == ""


def test_a_ledger_that_cannot_grow_says_so_and_goes_on(
    run_isolated: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    code = """
import os, struct, subprocess
code = os.environ["CODE"].split("import os, struct")[0]
subprocess.run([sys.executable, "-c", code + "assert malloc(1 << 20)[0] == 0"], check=True)
folder = os.environ["MACA_STATE_DIR"]
path, = (os.path.join(folder, name) for name in os.listdir(folder))
data = open(path, "rb").read()
record = struct.Struct("<qQQQqQ16x")
key = record.unpack_from(data, record.size)[2]
start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
foreign = record.pack(os.getpid(), start, key, 1 << 20, -1, 0)
open(path, "r+b").write(data[:record.size] + foreign * (len(data) // record.size - 1))
open(folder + "/fill", "wb").write(b"")
try:
    open(folder + "/fill", "ab", buffering=0).write(bytes(1 << 20))
    open(folder + "/fill", "ab", buffering=0).write(bytes(1 << 20))
except OSError:
    pass
taken = 127
code += f"assert malloc({512 - taken + 1} << 20)[0] != 0; assert malloc({512 - taken} << 20)[0] == 0\\n"
code += "assert used() == 512"
subprocess.run([sys.executable, "-c", code], check=True)
"""
    mount = f"mount -t tmpfs -o size=64k none {folder}"
    done = run_isolated(mount, code, MACA_STATE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "cannot grow" in done.stderr and "No space left" in done.stderr


def test_a_child_forked_before_the_device_is_used_has_an_account_of_its_own(run_python: Callable[..., str]) -> None:
    code = """
import os
assert runtime.physical_devices()[0].memory_used == 0  # opens the ledger, and uses no device
reading, writing = os.pipe()
child_reading, child_writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    ok = malloc(100 << 20)[0] == 0 and used() == 100
    os.write(child_writing, b"1")  # only now: what the parent takes would count in the line above
    os.read(reading, 1)
    os._exit(0 if ok and used() == 120 else 1)
os.close(reading)
os.close(child_writing)
assert os.read(child_reading, 1) == b"1" and used() == 100
assert malloc(20 << 20)[0] == 0 and used() == 120
assert sorted(use.memory >> 20 for use in runtime.physical_devices()[0].processes) == [20, 100]
os.close(writing)
assert os.waitpid(child, 0)[1] == 0
assert used() == 20
"""
    run_python(PROLOGUE + code)


def test_a_program_that_replaces_itself_begins_with_nothing(run_python: Callable[..., str]) -> None:
    code = """
import os
if "again" not in sys.argv:
    assert malloc(100 << 20)[0] == 0 and used() == 100
    os.execv(sys.executable, [sys.executable, "-c", os.environ["CODE"], "again"])
assert used() == 0 and malloc(10 << 20)[0] == 0 and used() == 10
"""
    run_python(PROLOGUE + code, CODE=PROLOGUE + code)


def test_a_program_that_closes_all_files_loses_nothing_and_writes_to_none_of_its_own(
    run_python: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    code = f"""
import os
code, block = malloc(100 << 20)
os.closerange(3, 256)
files = [open({str(tmp_path)!r} + "/" + str(i), "w") for i in range(50)]
assert malloc(10 << 20)[0] == 0 and used() == 110
runtime.check(lib.mcFree(block))
assert used() == 10
"""
    run_python(PROLOGUE + code)
    assert all((tmp_path / str(i)).read_bytes() == b"" for i in range(50))


def test_processes_killed_at_any_moment_leave_a_right_account(
    stepper: Callable[..., Stepper], environment: Dict[str, str]
) -> None:
    watcher = stepper()
    watcher.do("assert malloc(50 << 20)[0] == 0")
    work = """
while True:
    code, block = malloc(100 << 20)
    assert code == 0 or lib.mcGetLastError() == lib.mcErrorMemoryAllocation
    runtime.check(lib.mcFree(block))
"""
    variables = {**environment, "MACA_DEVICE_MEMORY": "512MiB"}
    for round_ in range(5):
        workers = [subprocess.Popen([sys.executable, "-c", PROLOGUE + work], env=variables) for _ in range(3)]
        time.sleep(0.5 + 0.0137 * round_)
        for worker in workers:
            assert worker.poll() is None
            worker.kill()
            worker.wait()
        watcher.do("assert used() == 50")
    assert watcher.finish() == ""
    assert the_file(environment).stat().st_size == 2 * PAGE  # records of the dead are used again
