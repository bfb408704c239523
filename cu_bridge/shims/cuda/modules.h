// What the files of the driver interface share about modules. See Note [Modules] in modules.cpp.
#pragma once

#include <vector>

#include "result.h"

namespace mxmaca {

inline CUresult fail(mcError_t error, const char* detail) { return result(mcSetLastError(error, detail)); }

bool isModule(CUmodule module);
CUresult loadModule(CUmodule* out, const void* image);
CUresult findFunction(CUfunction* function, CUmodule module, const char* name);
// All kernels of a module that is one.
std::vector<CUfunction> functionsOf(CUmodule module);
// The module that a function was asked from; null where it was not.
CUmodule ownerOf(CUfunction function);

constexpr int kLastJitOption = 40;

// Lists of options: ids from 0 on, and their values.
template <class Option>
mcError_t checkOptions(unsigned int count, const Option* options, void** values, int last) {
  if (count != 0 && (options == nullptr || values == nullptr)) return mcErrorInvalidValue;
  for (unsigned int i = 0; i < count; ++i) {
    const int option = options[i];
    if (option < 0 || option > last) return mcErrorInvalidValue;
  }
  return mcSuccess;
}

}  // namespace mxmaca
