"""Device memory: capacity, what a killed process held, what the host can back, other processes."""

import os
import subprocess
import sys
from typing import Callable, Dict

MALLOC = """
def malloc(size):
    pointer = ffi.new("void **")
    return lib.mcMalloc(pointer, size), pointer[0]
def info():
    free, total = ffi.new("size_t *"), ffi.new("size_t *")
    runtime.check(lib.mcMemGetInfo(free, total))
    return free[0], total[0]
"""


def test_memory_attributes_copies_and_pools(run_program: Callable[..., object]) -> None:
    run_program("memory.cpp")


def test_virtual_memory_maps_charges_and_shares(run_program: Callable[..., object]) -> None:
    run_program("virtual_memory.cpp", "libcuda", "libcudart", MACA_DEVICE_MEMORY="256MiB")


def test_what_exceeds_the_capacity_is_out_of_memory(run_python: Callable[..., str]) -> None:
    code = """
assert info()[1] == 256 << 20
code, block = malloc(200 << 20)
assert code == 0
assert malloc(100 << 20)[0] == lib.mcErrorMemoryAllocation
assert lib.mcGetLastError() == lib.mcErrorMemoryAllocation
assert malloc((1 << 64) - 1)[0] == lib.mcErrorMemoryAllocation
runtime.check(lib.mcFree(block))
assert malloc(250 << 20)[0] == 0  # not sticky
"""
    run_python(MALLOC + code, MACA_DEVICE_MEMORY="256MiB")


def test_profiles_choose_name_and_capacity(run_python: Callable[..., str]) -> None:
    code = """
print([(d.name, d.memory_total >> 30, d.capability) for d in runtime.physical_devices()])
"""
    output = run_python(code, MACA_DEVICE_COUNT="3", MACA_DEVICE_PROFILE="mxc500,mxc-tiny")
    assert output.strip() == "[('MXC500', 64, '8.0'), ('MXC-TINY', 1, '8.0'), ('MXC-TINY', 1, '8.0')]"


def test_a_wrong_variable_says_what_is_known(run_python: Callable[..., str]) -> None:
    code = """
try:
    runtime.physical_devices()
except runtime.MacaError as error:
    print("raised:", error)
"""
    output = run_python(code, MACA_DEVICE_PROFILE="mxc9000")
    assert "raised: initialization error" in output
    assert "mxc9000" in output and "mxc500" in output
    assert "raised:" in run_python(code, MACA_DEVICE_MEMORY="many")
    assert "raised:" in run_python(code, MACA_DEVICE_COUNT="-1")


def test_visible_devices_are_chosen_as_cuda_does(run_python: Callable[..., str]) -> None:
    code = """
count = ffi.new("int *")
lib.mcGetDeviceCount(count)
p = ffi.new("mcDeviceProperties *")
print([(lib.mcGetDeviceProperties(p, i), p.physicalIndex)[1] for i in range(count[0])])
"""
    for visible, expected in (("2,0", "[2, 0]"), ("1,-1,0", "[1]"), ("", "[]"), ("1,1", "[]"), ("7", "[]")):
        output = run_python(code, MACA_DEVICE_COUNT="3", CUDA_VISIBLE_DEVICES=visible)
        assert output.strip() == expected, visible


def test_processes_share_one_capacity_and_a_killed_one_frees_its_part(
    run_python: Callable[..., str], environment: Dict[str, str]
) -> None:
    holder = MALLOC + "assert malloc(200 << 20)[0] == 0; print('held', flush=True); import time; time.sleep(60)"
    prologue = "from mxmaca import runtime\nffi, lib = runtime.ffi(), runtime.lib()\n"
    variables = {**environment, "MACA_DEVICE_MEMORY": "256MiB"}
    process = subprocess.Popen(
        [sys.executable, "-c", prologue + holder], env=variables, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline().strip() == "held"
        code = """
assert malloc(100 << 20)[0] == lib.mcErrorMemoryAllocation
assert info()[0] == 56 << 20
print([use.pid for use in runtime.physical_devices()[0].processes])
"""
        assert run_python(MALLOC + code, MACA_DEVICE_MEMORY="256MiB").strip() == str([process.pid])
    finally:
        process.kill()
        process.wait()
    code = "assert malloc(250 << 20)[0] == 0; print([use.pid for use in runtime.physical_devices()[0].processes])"
    assert str(process.pid) not in run_python(MALLOC + code, MACA_DEVICE_MEMORY="256MiB")


def test_what_the_host_cannot_back_is_out_of_memory_before_it_is_touched(run_python: Callable[..., str]) -> None:
    # Blocks that are never written must count: the host would overcommit them all.
    code = """
total = int(next(l for l in open("/proc/meminfo") if l.startswith("MemTotal")).split()[1]) << 10
blocks = []
for _ in range(1000):
    code, block = malloc(1 << 30)
    if code:
        break
    blocks.append(block)
assert code == lib.mcErrorMemoryAllocation
assert len(blocks) << 30 < total
pinned = ffi.new("void **")
assert lib.mcHostAlloc(pinned, 2 << 30, 0) == lib.mcErrorMemoryAllocation
print(len(blocks))
"""
    run_python(MALLOC + code, MACA_DEVICE_MEMORY="900GiB")


def test_without_a_file_descriptor_left_nothing_is_granted_unchecked(run_python: Callable[..., str]) -> None:
    code = """
import os, resource
assert malloc(1 << 20)[0] == 0
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
opened = []
try:
    while True:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
assert malloc(64 << 20)[0] == lib.mcErrorMemoryAllocation
for file in opened:
    os.close(file)
assert malloc(64 << 20)[0] == 0
assert runtime.physical_devices()[0].memory_used == 65 << 20
"""
    assert "Too many open files" in run_python(MALLOC + code)


def test_a_forked_child_gets_an_error_and_leaves_the_parents_memory(run_python: Callable[..., str]) -> None:
    code = """
import os
code, block = malloc(1 << 20)
child = os.fork()
if child == 0:
    ok = malloc(100)[0] == lib.mcErrorInitializationError and lib.mcFree(block) == lib.mcErrorInitializationError
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert runtime.physical_devices()[0].memory_used == 1 << 20
runtime.check(lib.mcFree(block))
"""
    run_python(MALLOC + code)


def test_memory_is_shared_with_another_process(run_python: Callable[..., str], environment: Dict[str, str]) -> None:
    code = """
import subprocess, sys
code, block = malloc(3 << 20)
runtime.check(lib.mcMemcpy(block, b"before", 6, lib.mcMemcpyHostToDevice))
handle = ffi.new("mcIpcHandle *")
runtime.check(lib.mcIpcGetMemHandle(handle, block))
assert lib.mcIpcOpenMemHandle(ffi.new("void **"), handle) == lib.mcErrorDeviceUninitialized
child = '''
import sys
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
handle = ffi.new("mcIpcHandle *", [bytes.fromhex(sys.argv[1])])
memory = ffi.new("void **")
runtime.check(lib.mcIpcOpenMemHandle(memory, handle))
text = ffi.new("char[6]")
runtime.check(lib.mcMemcpy(text, memory[0], 6, lib.mcMemcpyDeviceToHost))
assert bytes(ffi.buffer(text)) == b"before"
runtime.check(lib.mcMemcpy(memory[0], b"after!", 6, lib.mcMemcpyHostToDevice))
runtime.check(lib.mcIpcCloseMemHandle(memory[0]))
'''
subprocess.run([sys.executable, "-c", child, bytes(ffi.buffer(handle)).hex()], check=True)
text = ffi.new("char[6]")
runtime.check(lib.mcMemcpy(text, block, 6, lib.mcMemcpyDeviceToHost))
assert bytes(ffi.buffer(text)) == b"after!"
runtime.check(lib.mcFree(block))
"""
    run_python(MALLOC + code)


def test_the_account_file_is_the_users_alone(run_python: Callable[..., str], environment: Dict[str, str]) -> None:
    run_python(MALLOC + "assert malloc(100)[0] == 0")
    files = os.listdir(environment["MACA_STATE_DIR"])
    assert len(files) == 1
    assert os.stat(os.path.join(environment["MACA_STATE_DIR"], files[0])).st_mode & 0o777 == 0o600


SPARSE = """
blocks = []
for device in range(8):
    runtime.check(lib.mcSetDevice(device))
    assert info() == (80 << 30, 80 << 30), info()
    code, block = malloc(70 << 30)
    assert code == 0, (device, code)
    assert info()[0] == 10 << 30
    for at in (0, 35 << 30, (70 << 30) - 1):  # of the ends and the middle a few pages are used
        runtime.check(lib.mcMemset(ffi.cast("char *", block) + at, device + 1, 1))
    blocks.append(block)
    assert malloc(20 << 30)[0] == lib.mcErrorMemoryAllocation  # a device still has its capacity
for device, block in enumerate(blocks):
    byte = ffi.new("unsigned char *")
    runtime.check(lib.mcMemcpy(byte, ffi.cast("char *", block) + (70 << 30) - 1, 1, lib.mcMemcpyDeviceToHost))
    assert byte[0] == device + 1
    runtime.check(lib.mcFree(block))
"""


def test_eight_large_devices_are_shown_and_used_sparsely_on_request(run_python: Callable[..., str]) -> None:
    variables = {"MACA_DEVICE_COUNT": "8", "MACA_DEVICE_PROFILE": "mxc550"}
    run_python(MALLOC + SPARSE, MACA_MEMORY_OVERCOMMIT="1", **variables)
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 560 << 30:
        refused = "assert malloc(70 << 30)[0] == lib.mcErrorMemoryAllocation and info()[0] < 70 << 30"
        run_python(MALLOC + refused, **variables)


def test_an_importer_keeps_the_memory_of_an_exporter_that_ends_first(run_python: Callable[..., str]) -> None:
    code = """
import subprocess, sys
exporter = '''
import sys
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
block, event = ffi.new("void **"), ffi.new("mcEvent_t *")
runtime.check(lib.mcMalloc(block, 3 << 20))
runtime.check(lib.mcMemcpy(block[0], b"before", 6, lib.mcMemcpyHostToDevice))
runtime.check(lib.mcEventCreate(event, 6))
runtime.check(lib.mcEventRecord(event[0], ffi.NULL))
for export, what in ((lib.mcIpcGetMemHandle, block[0]), (lib.mcIpcGetEventHandle, event[0])):
    handle = ffi.new("mcIpcHandle *")
    runtime.check(export(handle, what))
    print(bytes(ffi.buffer(handle)).hex(), flush=True)
sys.stdin.readline()
'''
process = subprocess.Popen([sys.executable, "-c", exporter], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
memory, done = (ffi.new("mcIpcHandle *", [bytes.fromhex(process.stdout.readline().strip())]) for _ in range(2))
block, event = ffi.new("void **"), ffi.new("mcEvent_t *")
runtime.check(lib.mcIpcOpenMemHandle(block, memory))
runtime.check(lib.mcIpcOpenEventHandle(event, done))
process.kill()
process.wait()
text = ffi.new("char[6]")
runtime.check(lib.mcMemcpy(text, block[0], 6, lib.mcMemcpyDeviceToHost))
assert bytes(ffi.buffer(text)) == b"before"
runtime.check(lib.mcMemcpy(block[0], b"after!", 6, lib.mcMemcpyHostToDevice))
runtime.check(lib.mcStreamWaitEvent(ffi.NULL, event[0]) or lib.mcEventQuery(event[0]))
runtime.check(lib.mcIpcCloseMemHandle(block[0]))
assert lib.mcIpcOpenMemHandle(block, memory) == lib.mcErrorInvalidValue  # gone with its last user
"""
    run_python(MALLOC + code)


# What lies around a block, and a block of each kind.
NEIGHBOURS = """
import ctypes
NEAR = 16 << 30

def reserve(size):
    place = ffi.new("void **")
    runtime.check(lib.mcAddressReserve(place, size, 0, ffi.NULL))
    return place[0]

def number(pointer):
    return int(ffi.cast("uintptr_t", pointer))

def strangers(blocks):
    'Mappings near a block that hold none of the blocks.'
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, end = (int(word, 16) for word in line.split()[0].split("-"))
            near = any(first < at + size + NEAR and at - NEAR < end for at, size in blocks)
            if near and not any(first < at + size and at < end for at, size in blocks):
                found.append(line)
    return found
"""


def test_nothing_but_device_memory_lies_near_device_memory(run_python: Callable[..., str]) -> None:
    code = """
blocks = []
for size in (100, 1 << 20, 2 << 20, 5 << 20, 4096, 64 << 20, 1):
    code, block = malloc(size)
    assert code == 0 and (size < 2 << 20 or number(block) % (2 << 20) == 0)
    blocks.append((number(block), size))
blocks.append((number(reserve(1 << 30)), 1 << 30))
assert not strangers(blocks), strangers(blocks)
"""
    run_python(MALLOC + NEIGHBOURS + code)


def test_a_place_that_is_taken_is_passed_over(run_python: Callable[..., str]) -> None:
    code = """
size = 4 << 20
_, first = malloc(size)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
behind = number(first) + size
taken = libc.mmap(behind, 10 * size, 0, 0x22 | 0x100000, -1, 0)  # private, anonymous, and nowhere else
assert taken == behind
code, second = malloc(size)
assert code == 0 and number(second) % (2 << 20) == 0
assert not behind - size < number(second) < behind + 10 * size
assert abs(number(second) - number(first)) < NEAR
runtime.check(lib.mcMemset(second, 1, size))
"""
    run_python(MALLOC + NEIGHBOURS + code)


def test_places_begin_anew_behind_the_last(run_python: Callable[..., str]) -> None:
    code = """
code, block = malloc(4096)
for _ in range(8):
    size = 12 << 40
    place = reserve(size)
    blocks = [(number(block), 4096), (number(place), size)]
    assert not strangers(blocks), strangers(blocks)
    runtime.check(lib.mcAddressFree(place, size))
"""
    run_python(MALLOC + NEIGHBOURS + code)
