// The registry of device code: kernels and variables, by the addresses that host code knows them by.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mc_kernel.h"

namespace mc {

// A kernel that cucc has compiled. The entry lies in the library that it came with.
struct CompiledKernel {
  const mcKernelEntry* entry;
  mcModule_t module;
  unsigned maxDynamicShared;
  unsigned staticShared;
};

// What the registry knows about a host function.
struct Kernel {
  enum class Kind {
    kUnknown,   // no library has registered it
    kMissing,   // registered, and nobody has code for it
    kCompiled,  // by cucc
    kFunction,  // mcKernelImplement has given a function for this address
    kNamed      // mcKernelImplementWaiting has given one for this name; a launch is pending until it returns
  };
  Kind kind = Kind::kUnknown;
  const void* host = nullptr;
  CompiledKernel compiled{};                           // kCompiled
  mcKernelFunction function = nullptr;                 // kFunction, kNamed
  const std::vector<size_t>* argumentBytes = nullptr;  // kNamed; lives as long as the process
  std::string name{};                                  // readable; kMissing, kNamed

  bool canRun() const { return kind > Kind::kMissing; }
};

Kernel findKernel(const void* host);

// The compiled kernel in whose host function the address lies.
Kernel findKernelAround(const void* inside);

// Records why a kernel that cannot run cannot: it is unknown, or the device has no code for it.
mcError_t failMissing(const Kernel& kernel);

// Whether [address, address + bytes) lies in a variable of device code. A walk over all of them: for addresses that are
// no allocation's.
bool insideVariable(const void* address, size_t bytes);
// Whether the address lies in a __constant__ variable. The same walk.
bool insideConstant(const void* address);

}  // namespace mc
