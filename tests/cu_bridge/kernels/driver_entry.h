// Functions of the driver interface, for a program that is linked with the runtime alone: DRIVER(cuFunction)(…).
#pragma once

#include <cuda.h>

#include "check.h"

static void* entry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 13000
  CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found) == cudaSuccess);
#else
  CHECK(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found) == cudaSuccess);
#endif
  CHECK(found == cudaDriverEntryPointSuccess && function != nullptr);
  return function;
}
#define DRIVER(name) reinterpret_cast<decltype(&name)>(entry(#name))
