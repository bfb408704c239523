"""Handles: every live one is known, and nothing else, however many there were."""

from typing import Callable

CHURN = """
stream, event = ffi.new("mcStream_t *"), ffi.new("mcEvent_t *")
live, gone = [], []
for round in range(3000):
    runtime.check(lib.mcEventCreate(event, 0))
    live.append(event[0])
    if round % 3:
        old = live.pop(0)
        assert lib.mcEventDestroy(old) == 0
        assert lib.mcEventDestroy(old) == 400 and lib.mcEventCheck(old) == 400
        gone.append(int(ffi.cast("intptr_t", old)))
assert len(live) == 1000 and len({int(ffi.cast("intptr_t", one)) for one in live}) == 1000
assert all(lib.mcEventCheck(one) == 0 for one in live)
now = {int(ffi.cast("intptr_t", one)) for one in live}
assert all(lib.mcEventCheck(ffi.cast("mcEvent_t", one)) == 400 for one in gone if one not in now)
# Neither the middle of an event nor a place beside it is one.
assert all(lib.mcEventCheck(ffi.cast("mcEvent_t", one + 1)) == 400 for one in now)
assert all(lib.mcEventCheck(ffi.cast("mcEvent_t", one + 8)) == 400 for one in now)
"""

THREADS = """
import threading
created, wrong = [[] for _ in range(4)], []
def work(mine):
    event = ffi.new("mcEvent_t *")
    for round in range(2000):
        if lib.mcEventCreate(event, 0) != 0:
            wrong.append("create")
        mine.append(event[0])
        if round % 2 and (lib.mcEventCheck(mine[-1]) != 0 or lib.mcEventDestroy(mine.pop(0)) != 0):
            wrong.append("destroy")
threads = [threading.Thread(target=work, args=(mine,)) for mine in created]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
everything = [int(ffi.cast("intptr_t", one)) for mine in created for one in mine]
assert not wrong and len(set(everything)) == len(everything) == 4000
"""

POOL = """
pool, block = ffi.new("mcMemoryPool_t *"), ffi.new("void **")
free, total, before = ffi.new("size_t *"), ffi.new("size_t *"), ffi.new("size_t *")
runtime.check(lib.mcDeviceMemoryInfo(0, before, total))
runtime.check(lib.mcMemPoolCreate(pool, 0))
runtime.check(lib.mcMemPoolSetAttribute(pool[0], lib.mcPoolReleaseThreshold, ffi.new("uint64_t *", 1 << 40)))
runtime.check(lib.mcMallocFromPoolAsync(block, 8 << 20, pool[0], ffi.NULL))
runtime.check(lib.mcMemPoolDestroy(pool[0]))
assert lib.mcMemPoolDestroy(pool[0]) == 1 and lib.mcMemPoolTrimTo(pool[0], 0) == 1
assert lib.mcMallocFromPoolAsync(ffi.new("void **"), 64, pool[0], ffi.NULL) == 1
ffi.memmove(block[0], b"x" * 64, 64)  # the block is the program's until it frees it
runtime.check(lib.mcFreeAsync(block[0], ffi.NULL))
runtime.check(lib.mcDeviceMemoryInfo(0, free, total))
assert free[0] == before[0]
"""

PHYSICAL = """
memory, place, again = ffi.new("mcPhysicalMemory_t *"), ffi.new("void **"), ffi.new("mcPhysicalMemory_t *")
size = lib.mcVirtualGranularity()
runtime.check(lib.mcPhysicalCreate(memory, size, 0))
runtime.check(lib.mcAddressReserve(place, size, 0, ffi.NULL))
runtime.check(lib.mcMap(place[0], size, 0, memory[0]))
runtime.check(lib.mcSetAccess(place[0], size, 1, 1))
runtime.check(lib.mcPhysicalRelease(memory[0]))
device, bytes_ = ffi.new("int *"), ffi.new("size_t *")
assert lib.mcPhysicalRelease(memory[0]) == 1 and lib.mcPhysicalInfo(memory[0], device, bytes_) == 1
ffi.memmove(place[0], b"mapped", 6)  # as long as it is mapped, the memory lives
runtime.check(lib.mcPhysicalRetain(again, place[0]))
assert again[0] == memory[0] and lib.mcPhysicalInfo(again[0], device, bytes_) == 0 and bytes_[0] == size
runtime.check(lib.mcPhysicalRelease(again[0]))
runtime.check(lib.mcUnmap(place[0], size))
assert lib.mcPhysicalRetain(again, place[0]) == 1
"""


def test_live_handles_are_known_and_destroyed_ones_are_not(run_python: Callable[..., str]) -> None:
    run_python(CHURN)


def test_handles_of_many_threads_are_different(run_python: Callable[..., str]) -> None:
    run_python(THREADS)


def test_a_destroyed_pool_is_no_handle_and_its_blocks_go_back(run_python: Callable[..., str]) -> None:
    run_python(POOL)


def test_released_physical_memory_is_no_handle_and_stays_mapped(run_python: Callable[..., str]) -> None:
    run_python(PHYSICAL)
