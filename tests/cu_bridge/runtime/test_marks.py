"""NVTX's marks and ranges, from the runtime to CUPTI's records."""

import pathlib
import shutil
import subprocess
from typing import Callable, Dict

import pytest

# `records(body)` is what CUPTI records of markers meanwhile: flags, id and name of each.
SETUP = """
import ctypes, struct
cupti = ctypes.CDLL({library!r})
MARKER = 12
INSTANT, START, END = 1, 2, 4
room = ctypes.create_string_buffer(1 << 16)
seen = []

sizes = ctypes.POINTER(ctypes.c_size_t)
@ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), sizes, sizes)
def request(buffer, size, most):
    buffer[0], size[0], most[0] = ctypes.addressof(room), len(room), 0

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def complete(context, stream, buffer, size, used):
    record = ctypes.c_void_p()
    while cupti.cuptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(used), ctypes.byref(record)) == 0:
        data = ctypes.string_at(record.value, 56)
        kind, flags, time, number, objects, process, thread, _, _, name, domain = struct.unpack("<IIQIIIIIIQQ", data)
        text = lambda pointer: ctypes.string_at(pointer).decode() if pointer else None
        seen.append((kind, flags, time, number, text(name), text(domain)))

def records(body):
    del seen[:]
    assert cupti.cuptiActivityRegisterCallbacks(request, complete) == 0
    assert cupti.cuptiActivityEnable(MARKER) == 0
    body()
    assert cupti.cuptiActivityFlushAll(0) == 0 and cupti.cuptiActivityDisable(MARKER) == 0
    assert all(kind == MARKER for kind, *_ in seen)
    assert [time for _, _, time, *_ in seen] == sorted(time for _, _, time, *_ in seen)
    return [(flags, number, name, domain) for _, flags, _, number, name, domain in seen]
mark = lib.mcProfileMark
NULL = ffi.NULL
"""


def prepared(sdk: pathlib.Path, major: int) -> str:
    return SETUP.format(library=str(next((sdk / "lib" / f"cuda{major}").glob("libcupti.so.*"))))


def test_ranges_are_records_with_one_number_for_begin_and_end(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(
        prepared(sdk, major)
        + """
def body():
    assert mark(lib.mcMarkPush, NULL, b"outer", 0) == 0 and mark(lib.mcMarkPush, NULL, b"inner", 0) == 1
    assert mark(lib.mcMarkPush, b"domain", b"elsewhere", 0) == 0
    mark(lib.mcMarkInstant, NULL, b"moment", 0)
    assert mark(lib.mcMarkPop, NULL, NULL, 0) == 1 and mark(lib.mcMarkPop, NULL, NULL, 0) == 0
    assert mark(lib.mcMarkPop, NULL, NULL, 0) == -1 and mark(lib.mcMarkPop, b"domain", NULL, 0) == 0
    first, second = mark(lib.mcMarkStart, NULL, b"first", 0), mark(lib.mcMarkStart, NULL, NULL, 0)
    mark(lib.mcMarkEnd, NULL, NULL, first)
    mark(lib.mcMarkEnd, NULL, NULL, second)
found = records(body)
assert [flags for flags, *_ in found] == [START, START, START, INSTANT, END, END, END, START, START, END, END]
outer, inner, elsewhere = (found[i][1] for i in range(3))
assert len({outer, inner, elsewhere}) == 3
assert [number for _, number, *_ in found[4:7]] == [inner, outer, elsewhere]
assert [name for *_, name, _ in found[:4]] == ["outer", "inner", "elsewhere", "moment"]
assert [domain for *_, domain in found[:3]] == [None, None, "domain"]
assert [number for _, number, *_ in found[7:9]] == [number for _, number, *_ in found[9:]]
assert records(lambda: None) == []
"""
    )


def test_a_thread_begins_without_the_ranges_that_another_has_left(run_python: Callable[..., str]) -> None:
    """The system gives the number of a thread that has ended to a later one."""
    run_python(
        """
import threading
pushed, numbers = [], set()
def work():
    numbers.add(threading.get_ident())
    pushed.append(lib.mcProfileMark(lib.mcMarkPush, ffi.NULL, b"left", 0))
for _ in range(20):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
assert pushed == [0] * 20 and len(numbers) < 20, (pushed, len(numbers))
"""
    )


PROGRAM = """
#include <nvToolsExt.h>
#include <stdio.h>
int main(void) {
  nvtxMarkA("moment");
  printf("%d ", nvtxRangePushA("outer"));
  printf("%d ", nvtxRangePushA("inner"));
  printf("%d ", nvtxRangePop());
  printf("%d ", nvtxRangePop());
  nvtxRangeId_t id = nvtxRangeStartA("range");
  nvtxRangeEnd(id);
  printf("%d\\n", id != 0);
}
"""


@pytest.mark.parametrize("with_runtime", [True, False])
def test_the_header_works_with_and_without_the_runtime(
    sdk: pathlib.Path, environment: Dict[str, str], tmp_path: pathlib.Path, with_runtime: bool
) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "ranges.c").write_text(PROGRAM, encoding="utf-8")
    command = [compiler, "-I", str(sdk / "include"), "-o", str(tmp_path / "ranges"), str(tmp_path / "ranges.c")]
    if with_runtime:
        command += ["-Wl,--no-as-needed", str(sdk / "lib" / "libmcruntime.so"), f"-Wl,-rpath,{sdk / 'lib'}"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "ranges")], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == (["0", "1", "1", "0", "1"] if with_runtime else ["-2", "-2", "-2", "-2", "0"])


MARKS = """
#include <nvtx3/nvToolsExt.h>
int all(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateW(L"d\\u00f6main");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  nvtxEventAttributes_t event = {0};
  int depth;
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = 1.5;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "coloured";
  depth = nvtxRangePushEx(&event);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  depth = 10 * depth + nvtxDomainRangePushEx(domain, &event);
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  event.message.unicode = L"\\u00fcber \\U0001f680";
  depth = 10 * depth + nvtxDomainRangePushEx(domain, &event);
  nvtxMarkEx(&event);
  nvtxDomainMarkEx(domain, &event);
  nvtxRangePop();
  nvtxDomainRangePop(domain);
  nvtxDomainRangePop(domain);
  nvtxMarkW(L"wide");
  nvtxRangeEnd(nvtxRangeStartEx(&event));
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &event));
  nvtxNameCategoryA(1, "category");
  nvtxNameOsThread(7, "thread");
  nvtxDomainDestroy(domain);
  return depth;
}
"""


def test_events_with_attributes_and_domains_reach_the_records(
    sdk: pathlib.Path, run_python: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "marks.c", tmp_path / "marks.so"
    source.write_text(MARKS, encoding="utf-8")
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", str(sdk / "include"), str(source)]
    runtime = ["-Wl,--no-as-needed", str(sdk / "lib" / "libmcruntime.so"), f"-Wl,-rpath,{sdk / 'lib'}"]
    command += ["-o", str(library), *runtime]
    subprocess.run(command, check=True)
    run_python(
        prepared(sdk, 13)
        + f"marks = ctypes.CDLL({str(library)!r})\n"
        + """
depths = []
found = records(lambda: depths.append(marks.all()))
assert depths == [1], depths
unicode, domain = "\\u00fcber \\U0001f680", "d\\u00f6main"
assert [(flags, name, where) for flags, _, name, where in found if flags != END] == [
    (START, "coloured", None),
    (START, "registered", domain),
    (START, unicode, domain),
    (INSTANT, unicode, None),
    (INSTANT, unicode, domain),
    (INSTANT, "wide", None),
    (START, unicode, None),
    (START, unicode, domain),
], found
numbers = lambda wanted: [number for flags, number, *_ in found if flags == wanted]
started = numbers(START)
assert numbers(END) == [started[0], started[2], started[1], *started[3:]]
"""
    )
