"""``MACA_INDUCTOR=cpp``: torch.compile's own C++ code for the device's tensors, which lie in the host's memory.

Upstream chooses a generator of code by ``torch._inductor.config.cuda_backend``; patches/<release> adds the name ``cpp``
for `HostScheduling` and lets the variable choose it. It needs a C++ compiler, as upstream's does for the CPU.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.virtualized import V

__all__ = ["HostScheduling", "scheduling", "wait_for_turn"]

NO_GRAPHS = "MACA_INDUCTOR=cpp: C++ code is called, not launched, so that no graph could repeat it"


def wait_for_turn(device: int) -> None:
    """Wait until work that was given to the device's current stream before is done; generated code reads its results.

    Raises CUDA's error for a wait while the stream is captured: the graph would lack what is called now.
    """
    torch.cuda.current_stream(device).synchronize()


class HostScheduling(CppScheduling):  # type: ignore[misc]  # torch is not there where types are checked
    """Upstream's generator of C++ code, for tensors of the device."""

    def __init__(self, scheduler: Any) -> None:
        super().__init__(scheduler)
        if scheduler is None:
            return
        if V.graph.cpp_wrapper:
            raise NotImplementedError("MACA_INDUCTOR=cpp has no C++ wrapper (AOTInductor, cpp_wrapper): leave it unset")
        V.graph.disable_cudagraphs = True  # up to 2.1 without a reason
        V.graph.disable_cudagraphs_reason = NO_GRAPHS

    def can_fuse_vertical(self, node1: Any, node2: Any) -> bool:
        return not (node1.is_template() or node2.is_template()) and super().can_fuse_vertical(node1, node2)

    def can_fuse_horizontal(self, node1: Any, node2: Any) -> bool:
        return not (node1.is_template() or node2.is_template()) and super().can_fuse_horizontal(node1, node2)

    def codegen_template(self, template_node: Any, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError(
            f"MACA_INDUCTOR=cpp has no code for the template {template_node.get_name()} (flex_attention, or a product "
            "that max_autotune was told to take from Triton): leave it unset"
        )

    def codegen_foreach(self, node: Any) -> None:
        """Operators on lists, where upstream gathers them for a device: one after the other."""
        for inner in node.get_subkernel_nodes():
            self.codegen_nodes(inner.get_nodes())

    def flush(self) -> None:
        """Generate and call what has gathered, behind what the stream has to do."""
        wrapper = V.graph.wrapper_code
        if self.kernel_group.scheduled_nodes:
            wrapper.add_import_once("from macatorch.inductor import wait_for_turn")
            # Said by number: what has gathered may be called outside of the code's own choice of a device.
            wrapper.writeline(f"wait_for_turn({self.kernel_group.scheduled_nodes[0].get_device().index})")
        # The call of a kernel on this device would be a launch; up to 2.4 the generator says so itself.
        known = hasattr(V.graph, "set_current_device")
        with V.graph.set_current_device(torch.device("cpu")) if known else nullcontext():
            super().flush()


def scheduling(name: str) -> type[HostScheduling]:
    """The generator of ``cuda_backend``s that upstream does not know. Raises ValueError for any name but ``cpp``."""
    if name != "cpp":
        raise ValueError(f"MACA_INDUCTOR={name} names no generator of code: say triton (the default) or cpp")
    return HostScheduling
