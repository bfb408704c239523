// Launches: what runs for a host function, or why nothing can. Launching a kernel that nobody has code for fails,
// stickily and by name.

#include <algorithm>
#include <memory>
#include <string>

#include "capture/capture.h"
#include "capture/graph_node.h"
#include "execution/run_kernel.h"
#include "host/demangle.h"
#include "kernels/kept_arguments.h"
#include "kernels/kernel_registry.h"
#include "mc_device_limits.h"
#include "state/parts.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {
namespace {

struct LaunchWatch {
  int depth = 0;
  int missed = 0;
};
thread_local LaunchWatch launchWatch;

mcError_t launchMissing(const Kernel& kernel) {
  const mcError_t error = failMissing(kernel);
  if (kernel.kind == Kernel::Kind::kUnknown) return error;
  if (launchWatch.depth != 0) {
    ++launchWatch.missed;
  } else {
    setSticky(error, nullptr);
  }
  return error;
}

uint64_t volume(mcDim3 size) { return uint64_t{size.x} * size.y * size.z; }

bool isConfiguration(mcDim3 grid, mcDim3 block) {
  const uint64_t threads = volume(block);
  return volume(grid) != 0 && threads != 0 && threads <= limits::kThreadsPerBlock && block.z <= limits::kBlockZ &&
         grid.x <= limits::kGridX && grid.y <= limits::kGridY && grid.z <= limits::kGridZ;
}

mcError_t failFor(const Kernel& kernel, mcError_t error, const std::string& why) {
  return failWith(error, ("kernel " + demangled(kernel.compiled.entry->name) + why).c_str());
}

// Checks the limits of the kernel. The configuration itself has been checked.
mcError_t checkCompiled(const Kernel& kernel, const LaunchArguments& launch) {
  const CompiledKernel& compiled = kernel.compiled;
  if (compiled.entry->deviceFunction == nullptr) {
    return failFor(kernel, mcErrorInvalidDeviceFunction,
                   " exists in the host's code alone: where __CUDA_ARCH__ is defined nothing launches or instantiates "
                   "it");
  }
  if (launch.arguments == nullptr && compiled.entry->facts[2] != 0) return fail(mcErrorInvalidValue);
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  const unsigned bound = compiled.entry->facts[0];
  if (bound != 0 && threads > bound) {
    return failFor(kernel, mcErrorLaunchOutOfResources,
                   " has __launch_bounds__(" + std::to_string(bound) + ") and was launched with " +
                       std::to_string(threads) + " threads in a block");
  }
  // Both kinds count where nothing was asked for; else the dynamic part has its limit and the device its own.
  const size_t together = launch.sharedBytes + compiled.staticShared;
  const unsigned most =
      compiled.maxDynamicShared == limits::kSharedPerBlock ? limits::kSharedPerBlock : limits::kSharedPerBlockOptin;
  if (launch.sharedBytes > compiled.maxDynamicShared || together > most) {
    return failFor(kernel, mcErrorInvalidValue,
                   " was launched with " + std::to_string(launch.sharedBytes) + " bytes of dynamic and has " +
                       std::to_string(compiled.staticShared) + " bytes of static shared memory; it may have " +
                       std::to_string(compiled.maxDynamicShared) + " (cudaFuncAttributeMaxDynamicSharedMemorySize)");
  }
  return mcSuccess;
}

mcError_t runCompiled(const Kernel& kernel, const LaunchArguments& launch) {
  const mcError_t problem = checkCompiled(kernel, launch);
  return problem != mcSuccess ? problem : runKernel(*kernel.compiled.entry, launch);
}

mcError_t submitCompiled(const Kernel& kernel, const LaunchArguments& launch) {
  const mcKernelEntry& entry = *kernel.compiled.entry;
  // What the kernel waits for may be what the program does next.
  const bool mayWait = (entry.facts[1] & mcKernelMayWait) != 0;
  const bool direct = undisturbed() || (!capturing() && !profiling() && !lateMode && !isPending(launch.stream));
  if (direct && !mayWait) return runCompiled(kernel, launch);
  if (launch.arguments == nullptr && entry.facts[2] != 0) return fail(mcErrorInvalidValue);
  if (!capturing()) {
    const mcError_t problem = checkCompiled(kernel, launch);
    if (problem != mcSuccess) return problem;
  }
  const auto kept = std::make_shared<KeptArguments>();
  if (!kept->addAll(entry, launch.arguments)) return fail(mcErrorMemoryAllocation);
  LaunchArguments again = launch;
  again.arguments = kept->pointers();
  // The library may be unloaded before the node runs.
  const KernelLabel label{demangled(entry.name),
                          launch.grid,
                          launch.block,
                          launch.sharedBytes,
                          kernel.compiled.staticShared,
                          std::make_shared<KernelLaunch>(KernelLaunch{kernel.host, launch.grid, launch.block,
                                                                      launch.sharedBytes, launch.cooperative, kept})};
  const auto work = [host = kernel.host, again, kept] {
    const Kernel now = findKernel(host);
    return now.kind == Kernel::Kind::kCompiled ? runCompiled(now, again) : fail(mcErrorInvalidDeviceFunction);
  };
  return submit(launch.stream, "kernel", label, work, mayWait ? mcTaskWaits : 0);
}

mcError_t submitNamed(const Kernel& kernel, const LaunchArguments& launch) {
  const auto kept = std::make_shared<KeptArguments>();
  void** next = launch.arguments;
  for (const size_t bytes : *kernel.argumentBytes) {
    if (!kept->add(*next++, bytes)) return fail(mcErrorMemoryAllocation);
  }
  const auto work = [function = kernel.function, launch, kept] {
    function(launch.grid, launch.block, kept->pointers(), launch.sharedBytes, launch.stream);
    const mcError_t sticky = checkSticky();
    // A task begins with no error, so this is the function's own; a thread of the program's reads it there.
    return sticky == mcSuccess && inTask() ? threadState.lastError : sticky;
  };
  const KernelLabel label{kernel.name, launch.grid, launch.block, launch.sharedBytes, 0};
  return submit(launch.stream, "kernel", label, work, mcTaskWaits);
}

mcError_t launchKernel(const Kernel& kernel, const LaunchArguments& arguments) {
  MC_RETURN_IF_STICKY();
  if (!isStream(arguments.stream)) return fail(mcErrorInvalidResourceHandle);
  LaunchArguments launch = arguments;
  launch.part = partOf(launch.stream);
  if (!kernel.canRun()) return launchMissing(kernel);
  if (!isConfiguration(launch.grid, launch.block)) return fail(mcErrorInvalidConfiguration);
  if (kernel.kind == Kernel::Kind::kCompiled) return submitCompiled(kernel, launch);
  if (kernel.kind == Kernel::Kind::kNamed) return submitNamed(kernel, launch);
  // Nothing says how large the arguments are, so that they could be kept.
  const mcError_t problem = capturing() ? refuseWait(launch.stream) : mcSuccess;
  if (problem != mcSuccess) return problem;
  waitTurn(launch.stream);
  if (lateMode && !inTask()) late::workBegins(launch.stream);
  const auto work = [&] {
    kernel.function(launch.grid, launch.block, launch.arguments, launch.sharedBytes, launch.stream);
    return checkSticky();
  };
  if (!profiling()) return work();
  const ProfiledCall call(mcCallLaunchKernel);
  const KernelLabel label{kernel.name, launch.grid, launch.block, launch.sharedBytes, 0};
  return timed(launch.stream, profiledWork("kernel", label), work)();
}

// As it is registered.
const char* nameOf(const Kernel& kernel) {
  return kernel.kind == Kernel::Kind::kCompiled ? kernel.compiled.entry->name : kernel.name.c_str();
}

}  // namespace
}  // namespace mc

using namespace mc;

void mcLaunchWatchBegin(void) { ++launchWatch.depth; }

int mcLaunchWatchEnd(void) {
  const int missed = launchWatch.missed;
  if (--launchWatch.depth == 0) launchWatch.missed = 0;
  return missed;
}

mcError_t mcLaunchKernel(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         mcStream_t stream) {
  const Kernel kernel = findKernel(hostFunction);
  const ProfiledCall call(profiling(), nameOf(kernel), mcCallLaunchKernel, hostFunction, grid, block, arguments,
                          sharedBytes, stream);
  return launchKernel(kernel, {grid, block, arguments, sharedBytes, stream});
}

mcError_t mcLaunchStub(const void* inside, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                       mcStream_t stream) {
  const Kernel kernel = findKernelAround(inside);
  if (mcInKernel() == 0) return launchKernel(kernel, {grid, block, arguments, sharedBytes, stream});
  if (kernel.kind != Kernel::Kind::kCompiled || kernel.compiled.entry->deviceFunction == nullptr) {
    mcKernelFail(mcErrorInvalidDeviceFunction, "a launch from device code of a kernel that has no device code");
  }
  return mcKernelLaunchChild(kernel.compiled.entry, grid, block, arguments, sharedBytes, stream);
}

mcError_t mcLaunchCooperative(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                              mcStream_t stream) {
  const Kernel kernel = findKernel(hostFunction);
  const ProfiledCall call(profiling(), nameOf(kernel), mcCallLaunchCooperative, hostFunction, grid, block, arguments,
                          sharedBytes, stream);
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  const LaunchArguments launch{grid, block, arguments, sharedBytes, stream, true, partOf(stream)};
  if (kernel.kind != Kernel::Kind::kCompiled) return launchKernel(kernel, launch);
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, threadState.device);
  if (error != mcSuccess) return error;
  const uint64_t threads = volume(block);
  const uint64_t blocks = volume(grid);
  if (threads == 0 || threads > limits::kThreadsPerBlock || blocks == 0) return fail(mcErrorInvalidConfiguration);
  const uint64_t most = uint64_t{mcKernelBlocksPerMultiprocessor(static_cast<unsigned>(threads), sharedBytes)} *
                        multiprocessorsOf(launch.part, static_cast<unsigned>(properties.multiprocessors));
  if (blocks > most) return fail(mcErrorCooperativeLaunchTooLarge);
  return submitCompiled(kernel, launch);
}

unsigned int mcKernelBlocksPerMultiprocessor(unsigned int threads, size_t sharedBytes) {
  if (threads == 0 || threads > limits::kThreadsPerBlock || sharedBytes > limits::kSharedPerBlockOptin) return 0;
  const unsigned warps = (threads + limits::kWarpSize - 1) / limits::kWarpSize;
  const auto bySharedMemory =
      sharedBytes == 0
          ? limits::kBlocksPerMultiprocessor
          : static_cast<unsigned>(limits::kSharedPerMultiprocessor / (sharedBytes + limits::kSharedReserved));
  return std::min({limits::kWarpsPerMultiprocessor / warps, limits::kBlocksPerMultiprocessor, bySharedMemory});
}

mcError_t mcGraphNodeReplace(mcGraphNode_t node, mcGraphNode_t by) {
  MC_RETURN_IF_STICKY();
  if (!nodeHandles.contains(node) || !nodeHandles.contains(by) || node->graph->inCapture || node->kind != by->kind ||
      !node->bodies.empty() || !by->bodies.empty()) {
    return fail(mcErrorInvalidValue);
  }
  // Parameters do not say it, and the kernel's grid would wait for blocks that do not run.
  if (node->launch != nullptr && node->launch->cooperative && by->launch != nullptr && !by->launch->cooperative) {
    return failWith(mcErrorNotSupported, "other parameters for a node that launches cooperatively");
  }
  const bool sameKernel =
      node->launch != nullptr && by->launch != nullptr && node->launch->hostFunction == by->launch->hostFunction;
  if (node->shown != nullptr && !(sameKernel && node->shown->assign(*by->launch->arguments))) node->shown.reset();
  node->description = by->description;
  node->label = by->label;
  node->work = by->work;
  node->device = by->device;
  node->flags = by->flags;
  node->launch = by->launch;
  return mcSuccess;
}

mcError_t mcGraphKernelLaunch(mcGraphNode_t node, mcKernelLaunch* launch) {
  MC_RETURN_IF_STICKY();
  if (!nodeHandles.contains(node) || launch == nullptr) return fail(mcErrorInvalidValue);
  if (node->launch == nullptr) return fail(mcErrorInvalidDeviceFunction);
  if (node->shown == nullptr) {
    auto shown = std::make_shared<KeptArguments>();
    if (!shown->addAll(*node->launch->arguments)) return fail(mcErrorMemoryAllocation);
    node->shown = std::move(shown);
  }
  const KernelLaunch& kernel = *node->launch;
  *launch = {kernel.hostFunction,       kernel.grid, kernel.block, kernel.sharedBytes, node->shown->pointers(),
             kernel.cooperative ? 1 : 0};
  return mcSuccess;
}
