"""Advice about managed memory and prefetches are kept by page, and both interfaces tell what holds for a range."""

import pathlib
from typing import Callable

CODE = """
import ctypes
rt, cu = ctypes.CDLL({runtime!r}), ctypes.CDLL({driver!r})
PAGE, PAGES, NOWHERE, HOST = 4096, 16, -2, -1
managed, size = ctypes.c_void_p(), ctypes.c_size_t
assert rt.cudaMallocManaged(ctypes.byref(managed), size(PAGES * PAGE), 1) == 0
class Place(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
def place(device):
    return ctypes.c_int(device) if {major} == 12 else Place(2, 0) if device == HOST else Place(1, device)
def at(page):
    return ctypes.c_void_p(managed.value + page * PAGE)
def advise(advice, first, pages, device=0):
    return rt.cudaMemAdvise(at(first), size(pages * PAGE), advice, place(device))
def prefetch(first, pages, device):
    flags = () if {major} == 12 else (0,)
    return rt.cudaMemPrefetchAsync(at(first), size(pages * PAGE), place(device), *flags, None)
def ask(attribute, first, pages, count=1):
    answers = []
    for get in rt.cudaMemRangeGetAttribute, cu.cuMemRangeGetAttribute:
        out = (ctypes.c_int * count)(*[77] * count)
        assert get(out, size(4 * count), attribute, at(first), size(pages * PAGE)) == 0
        answers.append(list(out))
    assert answers[0] == answers[1]
    return answers[0] if count > 1 else answers[0][0]
READ, PREFERRED, USERS, FETCHED = 1, 2, 3, 4

# Nothing was said.
assert [ask(attribute, 0, PAGES) for attribute in range(1, 9)] == [0, -2, -2, -2, 0, -2, 0, -2]
# What is said of some pages holds for a range of those alone.
assert advise(1, 4, 4) == 0
assert [ask(READ, *pages) for pages in ((4, 4), (5, 1), (3, 2), (7, 2), (0, PAGES))] == [1, 1, 0, 0, 0]
assert advise(2, 5, 1) == 0 and [ask(READ, *pages) for pages in ((4, 1), (5, 1), (6, 2), (4, 4))] == [1, 0, 1, 0]
assert advise(3, 0, 8, 1) == 0 and advise(3, 8, 8, HOST) == 0
assert [ask(PREFERRED, *pages) for pages in ((0, 8), (8, 8), (7, 2))] == [1, HOST, NOWHERE]
assert [ask(5, 0, 8), ask(6, 0, 8), ask(5, 8, 8), ask(6, 8, 8), ask(5, 0, PAGES)] == [1, 1, 2, -2, 0]
assert advise(4, 0, 8) == 0 and ask(PREFERRED, 0, 8) == NOWHERE and ask(PREFERRED, 8, 8) == HOST
assert advise(5, 0, PAGES, 1) == 0 and advise(5, 0, 4, 0) == 0 and advise(5, 0, 4, HOST) == 0
assert ask(USERS, 0, 4, 4) == [HOST, 0, 1, NOWHERE] and ask(USERS, 0, 4, 2) == [HOST, 0]
assert ask(USERS, 2, 4, 3) == [1, NOWHERE, NOWHERE]
assert advise(6, 0, 4, 0) == 0 and ask(USERS, 0, 4, 3) == [HOST, 1, NOWHERE]
assert prefetch(0, PAGES, 1) == 0 and prefetch(2, 1, HOST) == 0
assert [ask(FETCHED, *pages) for pages in ((0, 2), (2, 1), (0, 3))] == [1, HOST, NOWHERE]
assert [ask(7, 2, 1), ask(8, 2, 1), ask(7, 0, 2), ask(8, 0, 2)] == [2, -2, 1, 1]
# A piece of a page counts as the page.
byte = ctypes.c_int()
assert rt.cudaMemRangeGetAttribute(ctypes.byref(byte), size(4), READ, ctypes.c_void_p(at(4).value + 9), size(1)) == 0
assert byte.value == 1
# Several at once.
outs = [(ctypes.c_int * 1)(), (ctypes.c_int * 2)()]
data = (ctypes.c_void_p * 2)(*[ctypes.addressof(out) for out in outs])
assert rt.cudaMemRangeGetAttributes(data, (size * 2)(4, 8), (ctypes.c_int * 2)(FETCHED, USERS), size(2), at(0),
                                    size(PAGE)) == 0
assert [list(out) for out in outs] == [[1], [HOST, 1]]
# New memory at the same place knows nothing of the old one's.
assert rt.cudaFree(managed) == 0 and rt.cudaMallocManaged(ctypes.byref(managed), size(PAGES * PAGE), 1) == 0
assert [ask(attribute, 0, PAGES) for attribute in range(1, 5)] == [0, -2, -2, -2]
"""


def test_what_was_said_of_pages_is_told(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    code = CODE.replace("{major}", str(major))
    for name, library in (("runtime", "cudart"), ("driver", "cuda")):
        code = code.replace(f"{{{name}!r}}", repr(str(next(folder.glob(f"lib{library}.so.*")))))
    run_python(code, MACA_DEVICE_COUNT="2")
