// Kernels by the address of their host function. Launching one that nobody has implemented fails, stickily and by name.

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph.h"
#include "handle_table.h"
#include "module.h"
#include "state.h"
#include "stream.h"

// A library registers tens of thousands of kernels while it loads: an entry is appended, nothing else. Names point into
// the library, which unregisters the module before it goes.
struct mcModule {
  struct Entry {
    const void* host;
    const char* name;
  };
  std::vector<Entry> entries;
};

namespace mc {
namespace {

// An implementation for every kernel of a name, whichever library registers it.
struct Named {
  mcKernelFunction function = nullptr;
  std::vector<size_t> arguments;  // bytes of each
};

struct Kernels {
  std::mutex mutex;
  std::vector<mcModule*> modules;
  std::shared_mutex implementationsMutex;
  std::unordered_map<const void*, mcKernelFunction> implementations;
  std::map<std::string, Named> named;  // by readable name
  std::atomic<bool> anyImplementation{false};
};

HandleTable<mcModule> modules;

Kernels& kernels() {
  static auto* const instance = new Kernels;
  return *instance;
}

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

// Only failures and kernels known by name ask for it, so a walk over all entries is good enough.
std::string registeredName(const void* host) {
  Kernels& all = kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const mcModule* module : all.modules) {
    for (const mcModule::Entry& entry : module->entries) {
      if (entry.host == host) return demangle(entry.name);
    }
  }
  return "";
}

const Named* namedImplementation(const void* host) {
  Kernels& all = kernels();
  const std::string name = registeredName(host);
  const std::shared_lock<std::shared_mutex> lock(all.implementationsMutex);
  const auto found = all.named.find(name);
  return found == all.named.end() ? nullptr : &found->second;
}

mcKernelFunction implementation(const void* host) {
  Kernels& all = kernels();
  if (!all.anyImplementation.load(std::memory_order_acquire)) return nullptr;
  const std::shared_lock<std::shared_mutex> lock(all.implementationsMutex);
  const auto found = all.implementations.find(host);
  return found == all.implementations.end() ? nullptr : found->second;
}

// Why an address stands for nothing that runs: nobody knows it, or the device has no code for it.
mcError_t missing(const void* host, const char* what, mcError_t unknown) {
  const std::string name = registeredName(host);
  if (name.empty()) return failWith(unknown, (std::string(what) + " that was never registered").c_str());
  return failWith(mcErrorNoKernelImageForDevice, (std::string(what) + " " + name).c_str());
}

bool canRun(const void* host) {
  return isCompiledKernel(host) || implementation(host) != nullptr || namedImplementation(host) != nullptr;
}

mcError_t submitNamed(const Named& named, const void* host, mcDim3 grid, mcDim3 block, void** arguments,
                      size_t sharedBytes, mcStream_t stream) {
  const mcKernelFunction function = named.function;
  std::vector<std::vector<char>> values;  // a node outlives the launch
  for (size_t i = 0; i < named.arguments.size(); ++i) {
    const char* const value = static_cast<const char*>(arguments[i]);
    values.emplace_back(value, value + named.arguments[i]);
  }
  return submit(stream, "kernel", registeredName(host).c_str(), [=]() mutable {
    std::vector<void*> pointers;
    for (std::vector<char>& value : values) pointers.push_back(value.data());
    function(grid, block, pointers.data(), sharedBytes, stream);
    return checkSticky();
  });
}

}  // namespace
}  // namespace mc

using namespace mc;

mcModule_t mcModuleRegister(void) {
  mcModule* const created = modules.create();
  Kernels& all = kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.modules.push_back(created);
  return created;
}

void mcModuleUnregister(mcModule_t module) {
  forgetModule(module);
  Kernels& all = kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  // Libraries go in the reverse order of their coming, so the search from the end is short.
  for (auto it = all.modules.rbegin(); it != all.modules.rend(); ++it) {
    if (*it != module) continue;
    all.modules.erase(std::next(it).base());
    modules.destroy(module);
    return;
  }
}

void mcKernelRegister(mcModule_t module, const void* hostFunction, const char* mangledName) {
  Kernels& all = kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!modules.contains(module)) return;  // registered by nobody, so there is nothing to add to
  module->entries.push_back({hostFunction, mangledName});
}

void mcVariableRegister(mcModule_t module, const void* hostVariable, const char* mangledName, size_t) {
  mcKernelRegister(module, hostVariable, mangledName);
}

mcError_t mcKernelImplement(const void* hostFunction, mcKernelFunction function) {
  if (hostFunction == nullptr) return fail(mcErrorInvalidDeviceFunction);
  Kernels& all = kernels();
  const std::unique_lock<std::shared_mutex> lock(all.implementationsMutex);
  if (function == nullptr) {
    all.implementations.erase(hostFunction);
  } else {
    all.implementations[hostFunction] = function;
  }
  all.anyImplementation.store(!all.implementations.empty(), std::memory_order_release);
  return mcSuccess;
}

mcError_t mcKernelImplementNamed(const char* name, mcKernelFunction function, const size_t* argumentBytes,
                                 size_t count) {
  if (name == nullptr || function == nullptr) return fail(mcErrorInvalidDeviceFunction);
  Kernels& all = kernels();
  const std::unique_lock<std::shared_mutex> lock(all.implementationsMutex);
  all.named.emplace(name, Named{function, {argumentBytes, argumentBytes + count}});  // the first one stays
  return mcSuccess;
}

mcError_t mcKernelCheck(const void* hostFunction) {
  MC_RETURN_IF_STICKY();
  return canRun(hostFunction) ? mcSuccess : missing(hostFunction, "kernel", mcErrorInvalidDeviceFunction);
}

mcError_t mcKernelKnown(const void* hostFunction) {
  MC_RETURN_IF_STICKY();
  if (canRun(hostFunction) || !registeredName(hostFunction).empty()) return mcSuccess;
  return missing(hostFunction, "kernel", mcErrorInvalidDeviceFunction);
}

mcError_t mcVariableCheck(const void* hostVariable) {
  MC_RETURN_IF_STICKY();
  return missing(hostVariable, "device variable", mcErrorInvalidSymbol);
}

namespace {
struct LaunchWatch {
  int depth = 0;
  int missed = 0;
};
thread_local LaunchWatch launchWatch;
}  // namespace

void mcLaunchWatchBegin(void) { ++launchWatch.depth; }

int mcLaunchWatchEnd(void) {
  const int missed = launchWatch.missed;
  if (--launchWatch.depth == 0) launchWatch.missed = 0;
  return missed;
}

mcError_t mcLaunchKernel(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  const bool compiled = isCompiledKernel(hostFunction);
  const mcKernelFunction function = compiled ? nullptr : implementation(hostFunction);
  const Named* const named = compiled || function != nullptr ? nullptr : namedImplementation(hostFunction);
  if (!compiled && function == nullptr && named == nullptr) {
    const mcError_t error = missing(hostFunction, "kernel", mcErrorInvalidDeviceFunction);
    if (error == mcErrorInvalidDeviceFunction) return error;
    if (launchWatch.depth != 0) {
      ++launchWatch.missed;
    } else {
      setSticky(error, nullptr);
    }
    return error;
  }
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0;
  if (empty || threads > 1024 || block.z > 64 || grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535) {
    return fail(mcErrorInvalidConfiguration);
  }
  if (compiled) return submitCompiled(hostFunction, grid, block, arguments, sharedBytes, stream, false);
  if (named != nullptr) return submitNamed(*named, hostFunction, grid, block, arguments, sharedBytes, stream);
  // Nothing says how large the arguments are, so that they could be kept.
  const mcError_t problem = capturing() ? refuseWait(stream) : mcSuccess;
  if (problem != mcSuccess) return problem;
  function(grid, block, arguments, sharedBytes, stream);
  return checkSticky();
}

mcError_t mcLaunchMissing(const char* name) {
  MC_RETURN_IF_STICKY();
  setSticky(mcErrorNoKernelImageForDevice, ("kernel " + demangle(name)).c_str());
  return mcErrorNoKernelImageForDevice;
}
