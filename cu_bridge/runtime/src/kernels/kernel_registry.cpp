#include "kernels/kernel_registry.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "handle_table.h"
#include "host/demangle.h"
#include "kernels/object_code.h"
#include "mc_device_limits.h"
#include "state/locked.h"
#include "state/state.h"

// A library registers tens of thousands of kernels while it loads: an entry is appended, nothing else. Names point into
// the library, which unregisters the module before it goes.
struct mcModule {
  struct Entry {
    const void* host;
    const char* name;  // mangled
  };
  std::vector<Entry> entries;
  std::unique_ptr<mc::ObjectCode> code;  // where the runtime has loaded it itself
};

namespace mc {
namespace {

struct Variable {
  const mcVariableEntry* entry;
  mcModule_t module;
};

struct NamedKernel {
  mcKernelFunction function;
  std::vector<size_t> argumentBytes;
};

struct Registry {
  HandleTable<mcModule> handles;
  std::vector<mcModule*> modules;
  std::map<uintptr_t, CompiledKernel> compiled;  // by host function
  std::map<uintptr_t, Variable> variables;       // by host variable
  std::unordered_map<const void*, mcKernelFunction> functions;
  std::map<std::string, NamedKernel> named;  // by readable name
};

uintptr_t numberOf(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// "" if it is not registered. Only failures and kernels known by name ask, so a walk over all entries is good enough.
// With the lock.
std::string registeredName(const Registry& all, const void* host) {
  for (const mcModule* module : all.modules) {
    for (const mcModule::Entry& entry : module->entries) {
      if (entry.host == host) return demangled(entry.name);
    }
  }
  return "";
}

// With the lock.
Kernel compiledKernel(std::map<uintptr_t, CompiledKernel>::const_iterator found) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kCompiled;
  kernel.host = reinterpret_cast<const void*>(found->first);
  kernel.compiled = found->second;
  return kernel;
}

mcError_t failMissing(const std::string& what, const std::string& name, mcError_t unknown) {
  if (name.empty()) return failWith(unknown, (what + " that was never registered").c_str());
  return failWith(mcErrorNoKernelImageForDevice, (what + " " + name).c_str());
}

template <class Entries>
void eraseModule(Entries& entries, mcModule_t module) {
  for (auto it = entries.begin(); it != entries.end();) {
    it = it->second.module == module ? entries.erase(it) : std::next(it);
  }
}

// The entry of this name, of one module or of any (NULL); end() if there is none. With the lock.
template <class Entries>
auto findNamed(Entries& entries, mcModule_t module, const char* name) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& item) {
    return (module == nullptr || item.second.module == module) && std::strcmp(item.second.entry->name, name) == 0;
  });
}

void describe(const mcVariableEntry& entry, void** address, size_t* bytes) {
  if (address != nullptr) *address = entry.address;
  if (bytes != nullptr) *bytes = entry.bytes;
}

}  // namespace

Kernel findKernel(const void* host) {
  const Reading<Registry> all;
  const auto compiled = all->compiled.find(numberOf(host));
  if (compiled != all->compiled.end()) return compiledKernel(compiled);
  Kernel kernel;
  kernel.host = host;
  if (const auto found = all->functions.find(host); found != all->functions.end()) {
    kernel.kind = Kernel::Kind::kFunction;
    kernel.function = found->second;
    return kernel;
  }
  kernel.name = registeredName(*all, host);
  if (kernel.name.empty()) return kernel;
  const auto found = all->named.find(kernel.name);
  kernel.kind = found == all->named.end() ? Kernel::Kind::kMissing : Kernel::Kind::kNamed;
  if (found == all->named.end()) return kernel;
  kernel.function = found->second.function;
  kernel.argumentBytes = &found->second.argumentBytes;
  return kernel;
}

Kernel findKernelAround(const void* inside) {
  const Reading<Registry> all;
  // Host functions of kernels are the only callers, so the nearest one before the return address is it.
  const auto after = all->compiled.upper_bound(numberOf(inside));
  return after == all->compiled.begin() ? Kernel{} : compiledKernel(std::prev(after));
}

mcError_t failMissing(const Kernel& kernel) { return failMissing("kernel", kernel.name, mcErrorInvalidDeviceFunction); }

namespace {
const mcVariableEntry* variableAround(const Registry& all, const void* address) {
  for (const auto& [host, variable] : all.variables) {
    (void)host;
    if (numberOf(address) - numberOf(variable.entry->address) < variable.entry->bytes) return variable.entry;
  }
  return nullptr;
}
}  // namespace

bool insideVariable(const void* address, size_t bytes) {
  const Reading<Registry> all;
  const mcVariableEntry* const found = variableAround(*all, address);
  return found != nullptr && bytes <= found->bytes - (numberOf(address) - numberOf(found->address));
}

bool insideConstant(const void* address) {
  const Reading<Registry> all;
  const mcVariableEntry* const found = variableAround(*all, address);
  return found != nullptr && (found->flags & mcVariableConstant) != 0;
}

}  // namespace mc

using namespace mc;

// ---- Modules --------------------------------------------------------------------------------------------------------

mcModule_t mcModuleRegister(void) {
  const Writing<Registry> all;
  all->modules.push_back(all->handles.create());
  return all->modules.back();
}

mcModule_t mcModuleLoad(const mcModuleTable* table) {
  if (table->version < 1 || table->version > mcModuleTableVersion) {
    mcReportRefusal("libmcruntime.so", "mcModuleLoad", "an object file of another version of cucc");
    std::abort();
  }
  mcModule_t const module = mcModuleRegister();
  const Writing<Registry> all;
  for (size_t i = 0; i < table->kernelCount; ++i) {
    const mcKernelEntry& entry = table->kernels[i];
    module->entries.push_back({entry.hostFunction, entry.name});
    const auto shared = static_cast<unsigned>(table->version >= 2 ? table->staticShared[i] : 0);
    // Instances of one template in several object files have one host function; any of their device functions will do.
    const CompiledKernel kernel{&entry, module, limits::kSharedPerBlock, shared};
    const auto place = all->compiled.emplace(numberOf(entry.hostFunction), kernel).first;
    if (place->second.entry->deviceFunction == nullptr) place->second = kernel;
  }
  for (size_t i = 0; i < table->variableCount; ++i) {
    const mcVariableEntry& entry = table->variables[i];
    module->entries.push_back({entry.hostVariable, entry.name});
    all->variables.emplace(numberOf(entry.hostVariable), Variable{&entry, module});
  }
  return module;
}

mcError_t mcModuleLoadObject(mcModule_t* module, const void* image, size_t bytes) {
  std::string problem;
  std::unique_ptr<ObjectCode> code = ObjectCode::load(image, bytes, &problem);
  if (code == nullptr) return failWith(mcErrorInvalidKernelImage, problem.c_str());
  const auto* const table = static_cast<const mcModuleTable*>(code->symbol(mcObjectTableSymbol));
  if (table == nullptr) return failWith(mcErrorInvalidKernelImage, "object file without a table of kernels");
  if (table->version < 1 || table->version > mcModuleTableVersion) {
    return failWith(mcErrorInvalidKernelImage, "object file that another version of the SDK has made");
  }
  *module = mcModuleLoad(table);
  const Writing<Registry> all;
  (*module)->code = std::move(code);
  return mcSuccess;
}

void mcModuleUnregister(mcModule_t module) {
  const Writing<Registry> all;
  // Libraries go in the reverse order of their coming, so the search from the end is short.
  const auto found = std::find(all->modules.rbegin(), all->modules.rend(), module);
  if (found == all->modules.rend()) return;
  eraseModule(all->compiled, module);
  eraseModule(all->variables, module);
  all->modules.erase(std::next(found).base());
  all->handles.destroy(module);
}

void mcKernelRegister(mcModule_t module, const void* hostFunction, const char* mangledName) {
  const Writing<Registry> all;
  if (!all->handles.contains(module)) return;  // registered by nobody, so there is nothing to add to
  module->entries.push_back({hostFunction, mangledName});
}

void mcVariableRegister(mcModule_t module, const void* hostVariable, const char* mangledName, size_t) {
  mcKernelRegister(module, hostVariable, mangledName);
}

mcError_t mcModuleGetKernel(const void** hostFunction, mcModule_t module, const char* name) {
  const Reading<Registry> all;
  const auto found = findNamed(all->compiled, module, name);
  if (found == all->compiled.end()) return fail(mcErrorSymbolNotFound);
  *hostFunction = reinterpret_cast<const void*>(found->first);
  return mcSuccess;
}

mcError_t mcModuleGetKernels(const void** hostFunctions, size_t* count, mcModule_t module) {
  const Reading<Registry> all;
  const size_t room = hostFunctions == nullptr ? 0 : *count;
  size_t found = 0;
  for (const auto& [host, kernel] : all->compiled) {
    if (module != nullptr && kernel.module != module) continue;
    if (found < room) hostFunctions[found] = reinterpret_cast<const void*>(host);
    ++found;
  }
  *count = found;
  return mcSuccess;
}

mcError_t mcModuleGetVariable(void** address, size_t* bytes, mcModule_t module, const char* name) {
  const Reading<Registry> all;
  const auto found = findNamed(all->variables, module, name);
  if (found == all->variables.end()) return fail(mcErrorSymbolNotFound);
  describe(*found->second.entry, address, bytes);
  return mcSuccess;
}

// ---- Kernels and variables ------------------------------------------------------------------------------------------

mcError_t mcKernelImplement(const void* hostFunction, mcKernelFunction function) {
  if (hostFunction == nullptr) return fail(mcErrorInvalidDeviceFunction);
  const Writing<Registry> all;
  if (function == nullptr) {
    all->functions.erase(hostFunction);
  } else {
    all->functions[hostFunction] = function;
  }
  return mcSuccess;
}

mcError_t mcKernelImplementWaiting(const char* name, mcKernelFunction function, const size_t* argumentBytes,
                                   size_t count) {
  if (name == nullptr || function == nullptr) return fail(mcErrorInvalidDeviceFunction);
  const Writing<Registry> all;
  all->named.emplace(name, NamedKernel{function, {argumentBytes, argumentBytes + count}});  // the first one stays
  return mcSuccess;
}

mcError_t mcKernelCheck(const void* hostFunction) {
  MC_RETURN_IF_STICKY();
  const Kernel kernel = findKernel(hostFunction);
  return kernel.canRun() ? mcSuccess : failMissing(kernel);
}

mcError_t mcKernelKnown(const void* hostFunction) {
  MC_RETURN_IF_STICKY();
  const Kernel kernel = findKernel(hostFunction);
  return kernel.kind != Kernel::Kind::kUnknown ? mcSuccess : failMissing(kernel);
}

mcError_t mcKernelGetFacts(mcKernelFacts* facts, const void* hostFunction) {
  const Kernel kernel = findKernel(hostFunction);
  if (facts == nullptr || kernel.kind != Kernel::Kind::kCompiled) return fail(mcErrorInvalidDeviceFunction);
  const unsigned bound = kernel.compiled.entry->facts[0];
  *facts = {bound != 0 ? std::min(bound, limits::kThreadsPerBlock) : limits::kThreadsPerBlock,
            kernel.compiled.maxDynamicShared, kernel.compiled.staticShared};
  return mcSuccess;
}

mcError_t mcKernelGetName(const char** name, const void* hostFunction) {
  const Reading<Registry> all;
  const auto compiled = all->compiled.find(numberOf(hostFunction));
  if (compiled != all->compiled.end()) {
    *name = compiled->second.entry->name;
    return mcSuccess;
  }
  for (const mcModule* module : all->modules) {
    for (const mcModule::Entry& entry : module->entries) {
      if (entry.host != hostFunction) continue;
      *name = entry.name;
      return mcSuccess;
    }
  }
  return fail(mcErrorInvalidDeviceFunction);
}

mcError_t mcKernelSetMaxDynamicShared(const void* hostFunction, unsigned int bytes) {
  const Writing<Registry> all;
  const auto found = all->compiled.find(numberOf(hostFunction));
  if (found == all->compiled.end()) return fail(mcErrorInvalidDeviceFunction);
  if (bytes > limits::kSharedPerBlockOptin) return fail(mcErrorInvalidValue);
  found->second.maxDynamicShared = std::max(bytes, limits::kSharedPerBlock);
  return mcSuccess;
}

mcError_t mcKernelGetParameter(const void* hostFunction, unsigned int index, size_t* bytes, size_t* alignment) {
  const Kernel kernel = findKernel(hostFunction);
  if (kernel.kind != Kernel::Kind::kCompiled) return fail(mcErrorInvalidDeviceFunction);
  for (const unsigned* fact = kernel.compiled.entry->facts + 2; *fact != 0; fact += 2) {
    if (index-- != 0) continue;
    *bytes = fact[0];
    *alignment = fact[1];
    return mcSuccess;
  }
  return mcErrorInvalidValue;
}

mcError_t mcVariableCheck(const void* hostVariable) {
  MC_RETURN_IF_STICKY();
  const Reading<Registry> all;
  return failMissing("device variable", registeredName(*all, hostVariable), mcErrorInvalidSymbol);
}

mcError_t mcVariableGet(void** address, size_t* bytes, const void* hostVariable) {
  {
    const Reading<Registry> all;
    const auto found = all->variables.find(numberOf(hostVariable));
    if (found != all->variables.end()) {
      describe(*found->second.entry, address, bytes);
      return checkSticky();
    }
  }
  return mcVariableCheck(hostVariable);
}
