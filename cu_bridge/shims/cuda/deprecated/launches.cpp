// A launch in several calls: shape of the blocks, shared memory and parameters are kept with the kernel.

#include "launches.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "mc_kernel.h"

namespace {

struct Prepared {
  int block[3] = {0, 0, 0};
  unsigned int sharedBytes = 0;
  size_t bytes = 0;  // of the parameters, as they were announced
  std::vector<char> parameters;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<CUfunction, Prepared> of;
};

// Never destroyed: a program's last launches may come from its exit handlers.
Table& prepared() {
  static auto* const table = new Table;
  return *table;
}

constexpr size_t kMostParameterBytes = 4096;

template <class Change>
CUresult prepare(CUfunction function, const Change& change) {
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(mcKernelKnown(function));
  Table& table = prepared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  return change(table.of[function]);
}

CUresult setParameter(CUfunction function, int offset, const void* value, size_t bytes) {
  RETURN_IF_NULL(value);
  return prepare(function, [&](Prepared& one) {
    if (offset < 0 || bytes > kMostParameterBytes || static_cast<size_t>(offset) > kMostParameterBytes - bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto place = static_cast<size_t>(offset);
    if (one.parameters.size() < place + bytes) one.parameters.resize(place + bytes);
    std::memcpy(one.parameters.data() + place, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult launchGrid(CUfunction function, int width, int height, CUstream stream) {
  Prepared one;
  const CUresult error = prepare(function, [&](const Prepared& kept) {
    one = kept;
    return CUDA_SUCCESS;
  });
  if (error != CUDA_SUCCESS) return error;
  // Zero threads: the shape of the blocks was never set.
  RETURN_IF_WRONG(valueError(width > 0 && height > 0 && one.block[0] > 0));
  one.parameters.resize(one.bytes);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, one.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &one.bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, static_cast<unsigned int>(width), static_cast<unsigned int>(height), 1,
                        static_cast<unsigned int>(one.block[0]), static_cast<unsigned int>(one.block[1]),
                        static_cast<unsigned int>(one.block[2]), one.sharedBytes, stream, nullptr, extra);
}

}  // namespace

namespace mxmaca {

void forgetLaunch(CUfunction function) {
  Table& table = prepared();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.of.erase(function);
}

}  // namespace mxmaca

#pragma GCC visibility push(default)
extern "C" {

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return prepare(function, [&](Prepared& one) {
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    one.block[0] = x;
    one.block[1] = y;
    one.block[2] = z;
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  return prepare(function, [&](Prepared& one) {
    one.sharedBytes = bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSetSize(CUfunction function, unsigned int bytes) {
  return prepare(function, [&](Prepared& one) {
    if (bytes > kMostParameterBytes) return CUDA_ERROR_INVALID_VALUE;
    one.bytes = bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return setParameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return setParameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction function, int offset, void* value, unsigned int bytes) {
  return setParameter(function, offset, value, bytes);
}

CUresult cuLaunch(CUfunction function) { return launchGrid(function, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return launchGrid(function, width, height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return launchGrid(function, width, height, stream);
}

}  // extern "C"
#pragma GCC visibility pop
