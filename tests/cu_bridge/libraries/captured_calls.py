"""A plugin of pytest: each call of a CUDA library is captured into a graph, and the graph launched.

    python -m pytest -p captured_calls tests/cu_bridge/libraries/test_libraries_cublas.py

With it the tests of the libraries' values become tests of captures. A call that a capture takes must not touch memory
of the device, and its launch must do everything that the call does: with the scalars that the call had, which are
overwritten before the launch. A call that a capture refuses must have ended the capture, and is made once more without.
$CAPTURED_CALLS names a file for the names of the functions: captured, refused, and those that did nothing.
"""

import ctypes
import json
import os
import pathlib
from typing import Any, Dict, List, Optional, Set

import library_calls
import numpy
import pytest

SET_STREAM = {
    "cublas": "cublasSetStream_v2",
    "cufft": "cufftSetStream",
    "curand": "curandSetStream",
    "cudnn": "cudnnSetStream",
    "cusparse": "cusparseSetStream",
    "cusolverDn": "cusolverDnSetStream",
    "cusolverSp": "cusolverSpSetStream",
}
STREAM_LAST = ("cublasLtMatmul", "cublasLtMatrixTransform")
GLOBAL, INVALIDATED = 0, 901
NEAR = 40  # arrays that were made last, which a call may reach through descriptors

found: Dict[str, Set[str]] = {"captured": set(), "refused": set(), "nothing": set()}
arrays: List[numpy.ndarray] = []
plain_status = library_calls.Library.status
plain_device = library_calls.Library.device


def device(self: Any, array: Any) -> numpy.ndarray:
    """Remember what lies on the device."""
    result = plain_device(self, array)
    arrays.append(result)
    return result


class Graphs:
    """The calls of the runtime interface, each of which must succeed unless its status is asked for."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.stream = ctypes.c_void_p()
        assert runtime.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1) == 0

    def begin(self) -> None:
        """Begin a capture of the stream."""
        assert self.runtime.cudaStreamBeginCapture(self.stream, GLOBAL) == 0

    def end(self) -> Optional[ctypes.c_void_p]:
        """Return the graph, or None after a capture that was ended by what was called."""
        graph = ctypes.c_void_p()
        status = self.runtime.cudaStreamEndCapture(self.stream, ctypes.byref(graph))
        assert status in (0, INVALIDATED), status
        self.runtime.cudaGetLastError()
        return graph if status == 0 else None

    def nodes(self, graph: ctypes.c_void_p) -> int:
        """Count the nodes."""
        count = ctypes.c_size_t()
        assert self.runtime.cudaGraphGetNodes(graph, None, ctypes.byref(count)) == 0
        return count.value

    def launch(self, graph: ctypes.c_void_p) -> int:
        """Launch the graph once, wait, and return the launch's status."""
        executable = ctypes.c_void_p()
        assert self.runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) == 0
        status = int(self.runtime.cudaGraphLaunch(executable, self.stream))
        assert self.runtime.cudaStreamSynchronize(self.stream) == 0
        assert self.runtime.cudaGraphExecDestroy(executable) == 0
        self.runtime.cudaGetLastError()
        return status


def graphs_of(library: Any) -> Graphs:
    """The library's stream for captures."""
    if not hasattr(library, "graphs"):
        library.graphs = Graphs(library.runtime)
    return library.graphs  # type: ignore[no-any-return]


def setter_of(library: Any, name: str) -> Any:
    """The function that sets the stream of the handle that `name` takes; None if it takes none."""
    prefix = max((each for each in SET_STREAM if name.startswith(each)), key=len, default="")
    return getattr(library.library, SET_STREAM.get(prefix, ""), None) if prefix else None


def status(self: Any, name: str, *arguments: Any) -> int:
    """Capture the call and launch it; what it returns is what the call returned."""
    graphs = graphs_of(self)
    with_stream: List[Any] = list(arguments)
    setter = None
    if name in STREAM_LAST:
        with_stream[-1] = graphs.stream
    else:
        setter = setter_of(self, name)
        if setter is None or "Stream" in name or not arguments or not set_stream(setter, arguments[0], graphs.stream):
            return plain_status(self, name, *arguments)
    before = [array.copy() for array in arrays[-NEAR:]]
    near = arrays[-NEAR:]
    graphs.begin()
    answer = plain_status(self, name, *with_stream)
    graph = graphs.end()
    if graph is None:
        found["refused"].add(name)
        assert answer != 0 or "Destroy" in name, f"{name} succeeded and ended the capture"
        reset(setter, arguments)
        return plain_status(self, name, *arguments)
    if answer == 0:
        for array, old in zip(near, before):
            assert array.tobytes() == old.tobytes(), f"{name} touched memory of the device in the capture"
    if answer == 0 and graphs.nodes(graph) == 0:
        found["nothing"].add(name)
    if answer == 0 and graphs.nodes(graph) != 0:
        found["captured"].add(name)
        kept = poison(arguments)
        launched = graphs.launch(graph)
        for array, old in kept:
            array[...] = old
        if launched != 0:  # what only the data told: the same call at once says it
            reset(setter, arguments)
            return plain_status(self, name, *arguments)
    assert self.runtime.cudaGraphDestroy(graph) == 0
    reset(setter, arguments)
    return answer


def set_stream(setter: Any, handle: Any, stream: Optional[ctypes.c_void_p]) -> bool:
    """Set the stream of a handle; False where it is none."""
    return bool(setter(library_calls.Library.pass_on(handle), stream) == 0)


def reset(setter: Any, arguments: Any) -> None:
    """Give the handle its default stream back."""
    if setter is not None:
        set_stream(setter, arguments[0], None)


def poison(arguments: Any) -> List[Any]:
    """Overwrite the arrays on the host, and return what they held."""
    kept = []
    for each in arguments:
        if isinstance(each, numpy.ndarray) and not any(numpy.may_share_memory(each, array) for array in arrays):
            data = each.reshape(-1).view(numpy.uint8)
            kept.append((data, data.copy()))
            data[...] = 0xFF
    return kept[::-1]  # one that is passed twice gets back what it held first


@pytest.fixture(scope="session", autouse=True)
def _captured_calls() -> Any:
    """Put the calls in the place of the plain ones, and write down what was found."""
    library_calls.Library.status = status  # type: ignore[method-assign]
    library_calls.Library.device = device  # type: ignore[method-assign]
    yield
    if "CAPTURED_CALLS" in os.environ:
        text = json.dumps({key: sorted(names) for key, names in found.items()})
        pathlib.Path(os.environ["CAPTURED_CALLS"]).write_text(text, encoding="utf-8")
