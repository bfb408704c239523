#pragma once

namespace macatorch {

/// NVTX's ranges become annotations in torch.profiler's traces. On a GPU a tool of NVIDIA's shows them, which is not
/// there for a simulated device.
void register_mark_records();

}  // namespace macatorch
