"""In a control group of 3 GiB no use of the device wakes the kernel's OOM killer: what cannot be backed is refused."""

import os
import pathlib
import subprocess
import sys
import time
from typing import Callable, Dict, Iterator, List, Optional

import pytest

LIMIT = 3 << 30

PROLOGUE = """
import sys
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
MIB = 1 << 20
OUT = lib.mcErrorMemoryAllocation
def device(size):
    pointer = ffi.new("void **")
    return lib.mcMalloc(pointer, size), pointer[0]
def managed(size):
    pointer = ffi.new("void **")
    return lib.mcMallocManaged(pointer, size, 1), pointer[0]
def pinned(size):
    pointer = ffi.new("void **")
    return lib.mcHostAlloc(pointer, size, 0), pointer[0]
def pooled(size):
    pointer = ffi.new("void **")
    return lib.mcMallocAsync(pointer, size, ffi.NULL), pointer[0]
def virtual(size):
    memory, address = ffi.new("mcPhysicalMemory_t *"), ffi.new("void **")
    code = lib.mcPhysicalCreate(memory, size, 0)
    if code:
        return code, None
    runtime.check(lib.mcAddressReserve(address, size, 0, ffi.NULL))
    runtime.check(lib.mcMap(address[0], size, 0, memory[0]))
    runtime.check(lib.mcSetAccess(address[0], size, 1, 1))
    return 0, address[0]
def until_refused(kind, size):
    blocks = []
    while True:
        code, block = kind(size)
        if code:
            assert code == OUT, code
            return blocks
        blocks.append(block)
def touch(blocks, size, value=1):
    for block in blocks:
        runtime.check(lib.mcMemset(block, value, size))
def read(blocks, size):
    for block in blocks:
        assert not any(memoryview(ffi.buffer(block, size))[::4096])
def step():
    print("done", flush=True)
    sys.stdin.readline()
"""


class Group:
    """A control group with a limit on memory."""

    def __init__(self, folder: pathlib.Path, unified: bool) -> None:
        self.folder = folder
        self.unified = unified
        self.processes: List[subprocess.Popen[str]] = []

    def limit(self, nbytes: int) -> None:
        """Set the limit; swap is no way around it."""
        if self.unified:
            (self.folder / "memory.max").write_text(str(nbytes))
            swap = self.folder / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
        else:
            (self.folder / "memory.limit_in_bytes").write_text(str(nbytes))
            (self.folder / "memory.swappiness").write_text("0")

    def kills(self) -> int:
        """Return how often the OOM killer ended a process of the group."""
        events = self.folder / ("memory.events" if self.unified else "memory.oom_control")
        return int(dict(line.split() for line in events.read_text().splitlines())["oom_kill"])

    def start(self, code: str, environment: Dict[str, str]) -> "subprocess.Popen[str]":
        """Start Python code in the group."""
        command = ["sh", "-c", 'echo 0 > "$0" && exec "$@"', str(self.folder / "cgroup.procs")]
        process = subprocess.Popen(
            [*command, sys.executable, "-c", PROLOGUE + code],
            env={**environment, "MACA_DEVICE_MEMORY": "64GiB"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        """End all processes and remove the group."""
        for process in self.processes:
            process.kill()
            process.communicate()
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:  # the last process is not quite gone
                time.sleep(0.05)
        self.folder.rmdir()


def make_group() -> Optional[Group]:
    """Return a new group below this process's own; None where that is not allowed."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        unified = controllers == ""
        if not unified and "memory" not in controllers.split(","):
            continue
        root = "/sys/fs/cgroup" + ("" if unified else "/memory")
        for parent in (pathlib.Path(root + path), pathlib.Path(root)):
            group = Group(parent / f"mxmaca-test-{os.getpid()}", unified)
            try:
                group.folder.mkdir()
            except OSError:
                continue
            try:
                group.limit(LIMIT)
                group.kills()
                # That the group takes processes is not said by its files.
                subprocess.run(
                    ["sh", "-c", f"echo 0 > {group.folder}/cgroup.procs"], check=True, stderr=subprocess.DEVNULL
                )
                return group
            except (OSError, KeyError, subprocess.CalledProcessError):
                group.folder.rmdir()
    return None


@pytest.fixture()
def group() -> Iterator[Group]:
    """Return a control group of 3 GiB in which, at the end, no process was killed."""
    memory = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    if int(memory["MemAvailable"].split()[0]) << 10 < LIMIT + (2 << 30):
        pytest.skip("needs 5 GiB of free memory")
    made = make_group()
    if made is None:
        pytest.skip("needs the right to make control groups that limit memory")
    try:
        yield made
        assert made.kills() == 0
    finally:
        made.close()


@pytest.fixture()
def run(group: Group, environment: Dict[str, str]) -> Callable[[str], str]:
    """Return a function that runs code in the group, which must succeed, and returns its output."""

    def run_code(code: str) -> str:
        process = group.start(code, environment)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, (process.returncode, output)
        return output

    return run_code


def step(process: "subprocess.Popen[str]", line: str = "") -> None:
    """Let a process go on, if it waits, until it says that it is done."""
    assert process.stdin is not None and process.stdout is not None
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    assert process.stdout.readline() == "done\n", process.wait()


@pytest.mark.parametrize("kind", ["device", "managed", "pinned", "pooled", "virtual"])
def test_all_that_is_granted_can_be_written(run: Callable[[str], str], kind: str) -> None:
    code = f"""
blocks = until_refused({kind}, 64 * MIB)
assert 40 <= len(blocks) < 48, len(blocks)  # most of the group, and not more
touch(blocks, 64 * MIB)
assert until_refused({kind}, 64 * MIB) == []
"""
    run(code)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_small_blocks_add_up(run: Callable[[str], str], kind: str) -> None:
    code = f"""
blocks = until_refused({kind}, MIB)
assert 2600 <= len(blocks) < 3072, len(blocks)
touch(blocks, MIB)
"""
    run(code)


def test_what_was_only_read_is_not_backed_yet(run: Callable[[str], str]) -> None:
    code = """
blocks = [device(128 * MIB)[1] for _ in range(16)]
read(blocks, 128 * MIB)
more = until_refused(device, 64 * MIB)
assert 5 <= len(more) < 16, len(more)
touch(blocks, 128 * MIB)
touch(more, 64 * MIB)
"""
    run(code)


def test_physical_memory_that_is_not_mapped_counts(run: Callable[[str], str]) -> None:
    code = """
memories = []
for _ in range(16):
    memories.append(ffi.new("mcPhysicalMemory_t *"))
    runtime.check(lib.mcPhysicalCreate(memories[-1], 128 * MIB, 0))
more = until_refused(device, 64 * MIB)
assert len(more) < 16, len(more)
touch(more, 64 * MIB)
address = ffi.new("void **")
for memory in memories:
    runtime.check(lib.mcAddressReserve(address, 128 * MIB, 0, ffi.NULL))
    runtime.check(lib.mcMap(address[0], 128 * MIB, 0, memory[0]))
    runtime.check(lib.mcSetAccess(address[0], 128 * MIB, 1, 1))
    touch([address[0]], 128 * MIB)
"""
    run(code)


def test_memory_that_the_program_takes_counts_for_the_next_request(run: Callable[[str], str]) -> None:
    code = """
code, block = device(1024 * MIB)
assert code == 0
before = device(1024 * MIB)
assert before[0] == 0
runtime.check(lib.mcFree(before[1]))
ordinary = bytearray(b"1") * (1024 * MIB)
assert device(1024 * MIB)[0] == OUT
assert device(128 * MIB)[0] == 0
touch([block], 1024 * MIB)
"""
    run(code)


def test_ordinary_memory_of_another_process_hides_none_of_its_device_memory(
    group: Group, environment: Dict[str, str]
) -> None:
    first = group.start(
        "blocks = [device(64 * MIB)[1] for _ in range(16)]; ordinary = bytearray(b'1') * (1024 * MIB); step()\n"
        "touch(blocks, 64 * MIB); step()",
        environment,
    )
    step(first)
    second = group.start(
        "blocks = until_refused(device, 32 * MIB); assert 8 <= len(blocks) <= 30, len(blocks)\n"
        "touch(blocks, 32 * MIB); step()",
        environment,
    )
    step(second)
    step(first, "go on")


def test_what_another_process_has_written_is_not_counted_twice(group: Group, environment: Dict[str, str]) -> None:
    first = group.start(
        "blocks = [device(64 * MIB)[1] for _ in range(16)]; touch(blocks, 64 * MIB); step()", environment
    )
    step(first)
    second = group.start("assert len(until_refused(device, 32 * MIB)) >= 50; step()", environment)
    step(second)


def test_two_processes_share_what_there_is(group: Group, environment: Dict[str, str]) -> None:
    code = "blocks = until_refused(device, 32 * MIB); step(); touch(blocks, 32 * MIB); step(); print(len(blocks))"
    both = [group.start(code, environment) for _ in range(2)]
    for process in both:
        step(process)
    for process in both:  # both at once
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
    counts = []
    for process in both:
        step(process)
        output, _ = process.communicate("end\n", timeout=60)
        assert process.returncode == 0
        counts.append(int(output))
    assert 75 <= sum(counts) < 96, counts


def test_memory_of_processes_outside_a_group_is_not_the_groups(group: Group, environment: Dict[str, str]) -> None:
    code = PROLOGUE + "assert device(2048 * MIB)[0] == 0; print('done', flush=True); sys.stdin.readline()"
    variables = {**environment, "MACA_DEVICE_MEMORY": "64GiB"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as outside:
        step(outside)
        inside = group.start("assert len(until_refused(device, 64 * MIB)) >= 40; step()", environment)
        step(inside)


@pytest.mark.parametrize("blocks", [1, 36])
def test_sharing_asks_for_what_it_needs_and_refuses_without_harm(run: Callable[[str], str], blocks: int) -> None:
    code = f"""
size = 2304 * MIB // {blocks}
blocks = [device(size)[1] for _ in range({blocks})]
touch(blocks, size, 7)
handle = ffi.new("mcIpcHandle *")
shared = [lib.mcIpcGetMemHandle(handle, block) for block in blocks]
assert set(shared) == {{0}}  # a part at a time finds room where the whole twice would not
filling = until_refused(device, 16 * MIB)
touch(filling, 16 * MIB, 9)
rest = until_refused(device, 2 * MIB)
touch(rest, 2 * MIB)
codes = [lib.mcIpcGetMemHandle(handle, block) for block in filling]
assert set(codes) == {{OUT}}, codes
for block, length, value in [(b, size, 7) for b in blocks] + [(b, 16 * MIB, 9) for b in filling]:
    view = ffi.buffer(block, length)
    assert view[0] == view[length // 2] == view[length - 1] == bytes([value])
    ffi.buffer(block, length)[length // 2] = b"x"
for block in filling + rest:
    runtime.check(lib.mcFree(block))
assert device(512 * MIB)[0] == 0
"""
    run(code)


def test_sharing_unwritten_memory_takes_none(run: Callable[[str], str]) -> None:
    code = """
code, block = device(2048 * MIB)
handle = ffi.new("mcIpcHandle *")
runtime.check(lib.mcIpcGetMemHandle(handle, block))
more = until_refused(device, 64 * MIB)
assert 5 <= len(more) < 16, len(more)
touch(more, 64 * MIB)
touch([block], 2048 * MIB)
"""
    run(code)
