// A plan of cuFFT, and its execution.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fft.h"

#pragma GCC visibility push(default)
#include "cufftXt.h"
#pragma GCC visibility pop

namespace mxmaca {

// Where the numbers of one side of a transform lie.
struct Layout {
  cudaDataType type = CUDA_C_32F;
  std::vector<int64_t> embed;  // storage dimensions
  int64_t stride = 1, distance = 0;
};

// What a program has a plan call for each element that is read, or written. A device function is a function of the host
// here, and a plan has one device, so that of the caller's lists the first entry counts.
struct Callback {
  void* function = nullptr;  // null: there is none
  void* information = nullptr;
  size_t sharedBytes = 0;
};
struct Callbacks {
  std::array<Callback, CUFFT_CB_UNDEFINED> byType{};
  const Callback& of(cufftXtCallbackType type) const { return byType[type]; }
};

struct Plan {
  std::vector<int64_t> lengths;  // empty before the plan is made
  Layout in, out;
  bool basic = true;  // the caller gave no layout: rows of real numbers are padded in place
  bool realIn = false, realOut = false, wide = false;
  int64_t batch = 1;
  cudaStream_t stream = nullptr;
  std::vector<std::shared_ptr<Fft<float>>> single;
  std::vector<std::shared_ptr<Fft<double>>> twice;
  Callbacks callbacks;
};

// Reads `input` and writes `output` with the callbacks of now: those of a plan may change while its work is pending.
void execute(const Plan& plan, const Callbacks& callbacks, const void* input, void* output, bool forward);

}  // namespace mxmaca
