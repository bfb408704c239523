// Functions of CUDA's interfaces that a profiler is told of under their own names, with their own arguments.
#pragma once

#include "mc_runtime.h"

namespace mxmaca {

// A function: its number in CUPTI's list for its interface, and what is most like it in the runtime below.
struct ToldFunction {
  unsigned int number;
  mcCall call;
  bool ofDriver;
};

// What `work` returns, whose numbers are the runtime's. `kernel`: a kernel's handle, or null. `arguments`: the
// function's, in its order.
template <class Work, class... Arguments>
auto told(const ToldFunction& function, const void* kernel, Work&& work, const Arguments&... arguments) {
  if (mcProfileListens() == 0) return work();
  const void* const places[sizeof...(arguments) + 1] = {&arguments...};
  mcFunctionCall call{function.call, function.ofDriver ? 1 : 0, function.number, nullptr, places, 0, 0};
  if (kernel != nullptr && mcKernelGetName(&call.kernel, kernel) != mcSuccess) mcGetLastError();
  const bool begun = mcProfileFunctionBegin(&call) != 0;
  const auto status = work();
  if (begun) mcProfileFunctionEnd(&call, static_cast<mcError_t>(status));
  return status;
}

// A function that launches no kernel, of one interface or the other.
template <class Work, class... Arguments>
auto toldOfRuntime(unsigned int number, mcCall call, Work&& work, const Arguments&... arguments) {
  return told({number, call, false}, nullptr, work, arguments...);
}
template <class Work, class... Arguments>
auto toldOfDriver(unsigned int number, mcCall call, Work&& work, const Arguments&... arguments) {
  return told({number, call, true}, nullptr, work, arguments...);
}

}  // namespace mxmaca
