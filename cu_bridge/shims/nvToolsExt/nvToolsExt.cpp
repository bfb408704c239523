// NVTX before it was headers alone: marks and ranges of the default domain, to the runtime.

#include <stdint.h>

#pragma GCC visibility push(default)
#include "mc_runtime.h"

extern "C" {

void nvtxMarkA(const char* text) { mcProfileMark(mcMarkInstant, nullptr, text, 0); }
int nvtxRangePushA(const char* text) { return static_cast<int>(mcProfileMark(mcMarkPush, nullptr, text, 0)); }
int nvtxRangePop(void) { return static_cast<int>(mcProfileMark(mcMarkPop, nullptr, nullptr, 0)); }
uint64_t nvtxRangeStartA(const char* text) {
  return static_cast<uint64_t>(mcProfileMark(mcMarkStart, nullptr, text, 0));
}
void nvtxRangeEnd(uint64_t range) { mcProfileMark(mcMarkEnd, nullptr, nullptr, range); }

}  // extern "C"
#pragma GCC visibility pop
