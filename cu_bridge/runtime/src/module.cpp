// Kernels and variables of object files that cucc has compiled, by the addresses that host code knows them by.

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "block.h"
#include "graph.h"
#include "launch.h"
#include "module.h"
#include "state.h"

namespace mc {
namespace {

constexpr unsigned kDefaultDynamicShared = 48 << 10;
constexpr unsigned kMostShared = 163 << 10;

struct Kernel {
  const mcKernelEntry* entry;
  mcModule_t module;
  unsigned maxDynamicShared = kDefaultDynamicShared;
  unsigned staticShared = 0;
};

struct Variable {
  const mcVariableEntry* entry;
  mcModule_t module;
};

struct Registry {
  std::shared_mutex mutex;
  std::map<uintptr_t, Kernel> kernels;      // by host function
  std::map<uintptr_t, Variable> variables;  // by host variable
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

bool namesMatch(const char* mangled, const char* wanted) { return std::strcmp(mangled, wanted) == 0; }

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

bool isCompiledKernel(const void* host) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  return all.kernels.count(reinterpret_cast<uintptr_t>(host)) != 0;
}

mcError_t launchCompiled(const void* host, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         bool cooperative) {
  Kernel kernel{};
  {
    Registry& all = registry();
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    const auto found = all.kernels.find(reinterpret_cast<uintptr_t>(host));
    if (found == all.kernels.end()) return fail(mcErrorInvalidDeviceFunction);
    kernel = found->second;
  }
  if (kernel.entry->deviceFunction == nullptr) {
    const std::string text = "kernel " + demangled(kernel.entry->name) +
                             " exists in the host's code alone: where __CUDA_ARCH__ is defined nothing launches or "
                             "instantiates it";
    return failWith(mcErrorInvalidDeviceFunction, text.c_str());
  }
  if (arguments == nullptr && kernel.entry->facts[2] != 0) return fail(mcErrorInvalidValue);
  const unsigned threads = block.x * block.y * block.z;
  const unsigned bound = kernel.entry->facts[0];
  if (bound != 0 && threads > bound) {
    const std::string text = "kernel " + demangled(kernel.entry->name) + " has __launch_bounds__(" +
                             std::to_string(bound) + ") and was launched with " + std::to_string(threads) +
                             " threads in a block";
    return failWith(mcErrorLaunchOutOfResources, text.c_str());
  }
  // Both kinds count where nothing was asked for; else the dynamic part has its limit and the device its own.
  const size_t together = sharedBytes + kernel.staticShared;
  const unsigned most = kernel.maxDynamicShared == kDefaultDynamicShared ? kDefaultDynamicShared : kMostShared;
  if (sharedBytes > kernel.maxDynamicShared || together > most) {
    const std::string text = "kernel " + demangled(kernel.entry->name) + " was launched with " +
                             std::to_string(sharedBytes) + " bytes of dynamic and has " +
                             std::to_string(kernel.staticShared) + " bytes of static shared memory; it may have " +
                             std::to_string(kernel.maxDynamicShared) + " (cudaFuncAttributeMaxDynamicSharedMemorySize)";
    return failWith(mcErrorInvalidValue, text.c_str());
  }
  return runKernel({kernel.entry->name, kernel.entry->deviceFunction}, grid, block, arguments, sharedBytes,
                   cooperative);
}

mcError_t submitCompiled(const void* host, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                         mcStream_t stream, bool cooperative) {
  if (!capturing()) return launchCompiled(host, grid, block, arguments, sharedBytes, cooperative);
  // A node outlives the launch, so it needs the arguments' values.
  struct Arguments {
    std::vector<std::unique_ptr<void, void (*)(void*)>> values;
    std::vector<void*> pointers;
  };
  constexpr size_t kLine = 64;  // at least the alignment of any parameter
  const auto kept = std::make_shared<Arguments>();
  const char* name = "";
  {
    Registry& all = registry();
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    const auto found = all.kernels.find(reinterpret_cast<uintptr_t>(host));
    if (found == all.kernels.end()) return fail(mcErrorInvalidDeviceFunction);
    name = found->second.entry->name;
    if (arguments == nullptr && found->second.entry->facts[2] != 0) return fail(mcErrorInvalidValue);
    size_t index = 0;
    for (const unsigned* fact = found->second.entry->facts + 2; *fact != 0; fact += 2) {
      void* const value = std::aligned_alloc(kLine, (*fact + kLine - 1) / kLine * kLine);
      if (value == nullptr) return fail(mcErrorMemoryAllocation);
      kept->values.emplace_back(value, &std::free);
      std::memcpy(value, arguments[index++], *fact);
      kept->pointers.push_back(value);
    }
  }
  return submit(stream, "kernel", demangled(name).c_str(),
                [=] { return launchCompiled(host, grid, block, kept->pointers.data(), sharedBytes, cooperative); });
}

}  // namespace mc

using namespace mc;

mcModule_t mcModuleLoad(const mcModuleTable* table) {
  mcModule_t const module = mcModuleRegister();
  if (table->version < 1 || table->version > mcModuleTableVersion) {
    mcReportRefusal("libmcruntime.so", "mcModuleLoad", "an object file of another version of cucc");
    std::abort();
  }
  for (size_t i = 0; i < table->kernelCount; ++i) {
    mcKernelRegister(module, table->kernels[i].hostFunction, table->kernels[i].name);
  }
  for (size_t i = 0; i < table->variableCount; ++i) {
    mcVariableRegister(module, table->variables[i].hostVariable, table->variables[i].name, table->variables[i].bytes);
  }
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  for (size_t i = 0; i < table->kernelCount; ++i) {
    const mcKernelEntry& entry = table->kernels[i];
    const auto shared = static_cast<unsigned>(table->version >= 2 ? table->staticShared[i] : 0);
    // Instances of one template in several object files have one host function; any of their device functions will do.
    const Kernel kernel{&entry, module, kDefaultDynamicShared, shared};
    const auto place = all.kernels.emplace(reinterpret_cast<uintptr_t>(entry.hostFunction), kernel).first;
    if (place->second.entry->deviceFunction == nullptr) place->second = kernel;
  }
  for (size_t i = 0; i < table->variableCount; ++i) {
    const mcVariableEntry& entry = table->variables[i];
    all.variables.emplace(reinterpret_cast<uintptr_t>(entry.hostVariable), Variable{&entry, module});
  }
  return module;
}

void mc::forgetModule(mcModule_t module) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  for (auto it = all.kernels.begin(); it != all.kernels.end();) {
    it = it->second.module == module ? all.kernels.erase(it) : std::next(it);
  }
  for (auto it = all.variables.begin(); it != all.variables.end();) {
    it = it->second.module == module ? all.variables.erase(it) : std::next(it);
  }
}

mcError_t mcLaunchStub(const void* inside, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                       mcStream_t stream) {
  const auto caller = reinterpret_cast<uintptr_t>(inside);
  const void* host = nullptr;
  {
    Registry& all = registry();
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    // Host functions of kernels are the only callers, so the nearest one before the return address is it.
    auto found = all.kernels.upper_bound(caller);
    if (found != all.kernels.begin()) host = reinterpret_cast<const void*>((--found)->first);
  }
  return mcLaunchKernel(host, grid, block, arguments, sharedBytes, stream);
}

mcError_t mcLaunchCooperative(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                              mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (!isCompiledKernel(hostFunction)) {
    return mcLaunchKernel(hostFunction, grid, block, arguments, sharedBytes, stream);
  }
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, threadState.device);
  if (error != mcSuccess) return error;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kMaxThreads || blocks == 0) return fail(mcErrorInvalidConfiguration);
  const uint64_t most = uint64_t{mcKernelBlocksPerMultiprocessor(static_cast<unsigned>(threads), sharedBytes)} *
                        static_cast<unsigned>(properties.multiprocessors);
  if (blocks > most) return fail(mcErrorCooperativeLaunchTooLarge);
  return submitCompiled(hostFunction, grid, block, arguments, sharedBytes, stream, true);
}

unsigned int mcKernelBlocksPerMultiprocessor(unsigned int threads, size_t sharedBytes) {
  if (threads == 0 || threads > kMaxThreads || sharedBytes > kMostShared) return 0;
  const unsigned warps = (threads + kWarpSize - 1) / kWarpSize;
  unsigned blocks = std::min(64 / warps, 32U);
  if (sharedBytes != 0) blocks = std::min(blocks, static_cast<unsigned>((164 << 10) / (sharedBytes + 1024)));
  return blocks;
}

mcError_t mcKernelGetFacts(mcKernelFacts* facts, const void* hostFunction) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.kernels.find(reinterpret_cast<uintptr_t>(hostFunction));
  if (facts == nullptr || found == all.kernels.end()) return fail(mcErrorInvalidDeviceFunction);
  const unsigned bound = found->second.entry->facts[0];
  *facts = {bound != 0 ? std::min(bound, kMaxThreads) : kMaxThreads, found->second.maxDynamicShared,
            found->second.staticShared};
  return mcSuccess;
}

mcError_t mcKernelSetMaxDynamicShared(const void* hostFunction, unsigned int bytes) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.kernels.find(reinterpret_cast<uintptr_t>(hostFunction));
  if (found == all.kernels.end()) return fail(mcErrorInvalidDeviceFunction);
  if (bytes > kMostShared) return fail(mcErrorInvalidValue);
  found->second.maxDynamicShared = std::max(bytes, kDefaultDynamicShared);
  return mcSuccess;
}

mcError_t mcKernelGetParameter(const void* hostFunction, unsigned int index, size_t* bytes, size_t* alignment) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.kernels.find(reinterpret_cast<uintptr_t>(hostFunction));
  if (found == all.kernels.end()) return fail(mcErrorInvalidDeviceFunction);
  const unsigned* fact = found->second.entry->facts + 2;
  for (; *fact != 0; fact += 2) {
    if (index-- != 0) continue;
    *bytes = fact[0];
    *alignment = fact[1];
    return mcSuccess;
  }
  return mcErrorInvalidValue;
}

mcError_t mcModuleGetKernel(const void** hostFunction, mcModule_t module, const char* name) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  for (const auto& [address, kernel] : all.kernels) {
    if ((module != nullptr && kernel.module != module) || !namesMatch(kernel.entry->name, name)) continue;
    *hostFunction = reinterpret_cast<const void*>(address);
    return mcSuccess;
  }
  return fail(mcErrorSymbolNotFound);
}

mcError_t mcModuleGetVariable(void** address, size_t* bytes, mcModule_t module, const char* name) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  for (const auto& [host, variable] : all.variables) {
    (void)host;
    if ((module != nullptr && variable.module != module) || !namesMatch(variable.entry->name, name)) continue;
    if (address != nullptr) *address = variable.entry->address;
    if (bytes != nullptr) *bytes = variable.entry->bytes;
    return mcSuccess;
  }
  return fail(mcErrorSymbolNotFound);
}

bool mc::insideVariable(const void* address, size_t bytes) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  for (const auto& [host, variable] : all.variables) {
    const auto start = reinterpret_cast<uintptr_t>(variable.entry->address);
    if (place >= start && place - start < variable.entry->bytes)
      return bytes <= variable.entry->bytes - (place - start);
  }
  return false;
}

mcError_t mcVariableGet(void** address, size_t* bytes, const void* hostVariable) {
  Registry& all = registry();
  {
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    const auto found = all.variables.find(reinterpret_cast<uintptr_t>(hostVariable));
    if (found != all.variables.end()) {
      if (address != nullptr) *address = found->second.entry->address;
      if (bytes != nullptr) *bytes = found->second.entry->bytes;
      return checkSticky();
    }
  }
  const mcError_t error = mcVariableCheck(hostVariable);
  return error;
}
