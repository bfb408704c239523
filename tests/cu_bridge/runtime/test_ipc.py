"""Memory and events of other processes, and processes that are killed while they share them."""

import datetime
import os
import random
import subprocess
import sys
import time
from typing import Callable, Dict, List

SIZE = 4 << 20
PROLOGUE = f"""
import sys
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
SIZE = {SIZE}
"""
# Each block is filled, shared, and freed two blocks later; half of them while somebody may be opening them.
EXPORTER = """
blocks = []
for value in range(1, 1 << 30):
    block, handle = ffi.new("void **"), ffi.new("mcIpcHandle *")
    runtime.check(lib.mcMalloc(block, SIZE))
    runtime.check(lib.mcMemset(block[0], value % 251, SIZE))
    runtime.check(lib.mcIpcGetMemHandle(handle, block[0]))
    print(bytes(ffi.buffer(handle)).hex(), value % 251, flush=True)
    blocks.append(block[0])
    if len(blocks) > 2:
        runtime.check(lib.mcFree(blocks.pop(0)))
"""
# A block that is gone is an error. One that opens has its exporter's value in every byte, until it is closed.
IMPORTER = """
opened = gone = 0
for line in sys.stdin:
    if not line.endswith("\\n"):
        break  # its writer was killed
    text, value = line.split()
    memory, handle = ffi.new("void **"), ffi.new("mcIpcHandle *", [bytes.fromhex(text)])
    code = lib.mcIpcOpenMemHandle(memory, handle)
    if code == lib.mcErrorInvalidValue:
        gone += 1
        continue
    runtime.check(code)
    values = bytearray(SIZE)
    runtime.check(lib.mcMemcpy(ffi.from_buffer(values), memory[0], SIZE, lib.mcMemcpyDeviceToHost))
    assert values.count(int(value)) == SIZE, (value, values[:4])
    runtime.check(lib.mcIpcCloseMemHandle(memory[0]))
    opened += 1
    print(opened, gone, flush=True)
"""
FREE = """
free, total = ffi.new("size_t *"), ffi.new("size_t *")
runtime.check(lib.mcMemGetInfo(free, total))
print(free[0], total[0])
"""


def start(code: str, environment: Dict[str, str], **pipes: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROLOGUE + code]
    return subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE, **pipes)  # type: ignore


def end(process: "subprocess.Popen[str]") -> str:
    """Wait for a process that nobody keeps busy any more. Returns what it said on stderr."""
    try:
        return process.communicate(timeout=120)[1]
    finally:
        process.kill()


def test_who_is_killed_while_memory_is_shared_leaves_nothing_and_harms_nobody(
    environment: Dict[str, str], run_python: Callable[..., str]
) -> None:
    rounds = int(os.environ.get("IPC_KILLS", "6"))
    generator = random.Random(datetime.date.today().toordinal())
    environment["MACA_DEVICE_MEMORY"] = "256MiB"
    shared: List[int] = []
    for number in range(rounds):
        exporter = start(EXPORTER, environment, stdout=subprocess.PIPE)
        importer = start(IMPORTER, environment, stdin=exporter.stdout, stdout=subprocess.PIPE)
        assert exporter.stdout is not None and importer.stdout is not None
        exporter.stdout.close()  # the importer's alone now
        importer.stdout.readline()  # they are under way
        time.sleep(generator.uniform(0, 0.2))
        victims = ((exporter,), (importer,), (exporter, importer))[number % 3]
        for victim in victims:
            victim.kill()
        said = importer.communicate(timeout=120)
        if importer not in victims:
            # Its exporter is gone: it has opened what it could, and ends as a program does.
            assert importer.returncode == 0, said[1]
            shared.append(int(said[0].split()[-2]) if said[0] else 0)
        if exporter not in victims:
            # Nobody reads any more, which is an error of the pipe and of nothing else.
            assert "BrokenPipeError" in end(exporter)
        else:
            exporter.wait()
        free, total = run_python(FREE, MACA_DEVICE_MEMORY="256MiB").split()
        assert free == total == str(256 << 20), (number, free)
        assert len(os.listdir(environment["MACA_STATE_DIR"])) == 1
    assert rounds < 3 or sum(shared) > 0


EVENTS = """
import subprocess, threading, time
gate = threading.Event()
held = ffi.callback("void(void *)", lambda _: gate.wait())
stream, event, handle = ffi.new("mcStream_t *"), ffi.new("mcEvent_t *"), ffi.new("mcIpcHandle *")
runtime.check(lib.mcStreamCreateWithPriority(stream, 1, 0))
runtime.check(lib.mcEventCreate(event, 6))

def record_late():
    'A record that is pending until the gate opens.'
    gate.clear()
    runtime.check(lib.mcLaunchHostFunction(stream[0], held, ffi.NULL))
    start = time.monotonic()
    runtime.check(lib.mcEventRecord(event[0], stream[0]))
    assert time.monotonic() - start < 5 and lib.mcEventQuery(event[0]) == lib.mcErrorNotReady

def open_event(text):
    runtime.check(lib.mcIpcOpenEventHandle(event, ffi.new("mcIpcHandle *", [bytes.fromhex(text)])))

def export():
    runtime.check(lib.mcIpcGetEventHandle(handle, event[0]))
    return bytes(ffi.buffer(handle)).hex()
"""
# Does what it is told, a line each, and says what came of it.
OTHER = (
    PROLOGUE
    + EVENTS
    + """
open_event(sys.argv[1])
assert lib.mcIpcGetEventHandle(handle, event[0]) == lib.mcErrorInvalidResourceHandle  # another process has made it
block, byte = ffi.new("void **"), ffi.new("unsigned char *")
runtime.check(lib.mcMalloc(block, 64))
runtime.check(lib.mcMemset(block[0], 1, 64))
for line in sys.stdin:
    what = line.strip()
    if what == "query":
        print(lib.mcEventQuery(event[0]), flush=True)
    elif what == "synchronize":
        print("waits", flush=True)
        print(lib.mcEventSynchronize(event[0]), flush=True)
    elif what == "wait":
        runtime.check(lib.mcStreamWaitEvent(stream[0], event[0]))
        runtime.check(lib.mcMemsetAsync(block[0], 2, 64, stream[0]))
        runtime.check(lib.mcMemcpy(byte, block[0], 1, lib.mcMemcpyDeviceToHost))
        print(lib.mcStreamQuery(stream[0]), byte[0], flush=True)
    elif what == "finish":
        runtime.check(lib.mcStreamSynchronize(stream[0]))
        runtime.check(lib.mcMemcpy(byte, block[0], 1, lib.mcMemcpyDeviceToHost))
        print(lib.mcStreamQuery(stream[0]), byte[0], flush=True)
    elif what == "record":
        record_late()
        print("recorded", flush=True)
    elif what == "reach":
        gate.set()
        runtime.check(lib.mcStreamSynchronize(stream[0]))
        print("reached", flush=True)
"""
)
TELL = """
NOT_READY = str(lib.mcErrorNotReady)
def start_other():
    command = [sys.executable, "-c", OTHER, export()]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
def tell(other, what):
    print(what, file=other.stdin, flush=True)
    return other.stdout.readline().strip()
"""


def with_another(code: str) -> str:
    return f"import sys\nSIZE = 0\nOTHER = {OTHER!r}\n" + EVENTS + TELL + code


def test_an_events_record_is_pending_for_all_processes_until_it_is_reached(run_python: Callable[..., str]) -> None:
    code = """
other = start_other()
assert tell(other, "query") == "0"  # never recorded
record_late()
assert tell(other, "query") == NOT_READY
assert tell(other, "wait") == NOT_READY + " 1"
assert tell(other, "synchronize") == "waits"
gate.set()
assert other.stdout.readline().strip() == "0"
runtime.check(lib.mcEventSynchronize(event[0]))
assert tell(other, "finish") == "0 2"
# The other one's record is pending here, and this process's stream waits for it.
assert tell(other, "record") == "recorded" and lib.mcEventQuery(event[0]) == lib.mcErrorNotReady
runtime.check(lib.mcStreamWaitEvent(stream[0], event[0]))
assert lib.mcStreamQuery(stream[0]) == lib.mcErrorNotReady
assert tell(other, "reach") == "reached"
runtime.check(lib.mcStreamSynchronize(stream[0]))
assert lib.mcEventQuery(event[0]) == 0
"""
    run_python(with_another(code))


def test_nobody_waits_for_the_record_of_a_process_that_is_killed(run_python: Callable[..., str]) -> None:
    code = """
other = start_other()
assert tell(other, "record") == "recorded" and lib.mcEventQuery(event[0]) == lib.mcErrorNotReady
threading.Timer(0.3, other.kill).start()
start = time.monotonic()
runtime.check(lib.mcEventSynchronize(event[0]))
assert 0.2 < time.monotonic() - start < 20 and lib.mcEventQuery(event[0]) == 0
other.wait()
"""
    run_python(with_another(code))


def test_an_event_that_its_maker_destroys_is_reached_and_cannot_be_opened(run_python: Callable[..., str]) -> None:
    code = """
other = start_other()
record_late()
assert tell(other, "query") == NOT_READY
gone = export()
gate.set()
runtime.check(lib.mcStreamSynchronize(stream[0]))
runtime.check(lib.mcEventDestroy(event[0]))
assert tell(other, "query") == "0"
opened = lib.mcIpcOpenEventHandle(event, ffi.new("mcIpcHandle *", [bytes.fromhex(gone)]))
assert opened == lib.mcErrorInvalidResourceHandle
# Its place is another event's; what that one does is nothing to who had opened the first.
events = [ffi.new("mcEvent_t *") for _ in range(1100)]
for made in events:
    runtime.check(lib.mcEventCreate(made, 6))
gate.clear()
runtime.check(lib.mcLaunchHostFunction(stream[0], held, ffi.NULL))
for made in events:
    runtime.check(lib.mcEventRecord(made[0], stream[0]))
assert tell(other, "query") == "0"
gate.set()
for made in events:
    runtime.check(lib.mcEventSynchronize(made[0]))
    runtime.check(lib.mcEventDestroy(made[0]))
"""
    run_python(with_another(code))
