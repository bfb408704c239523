// What the files of the runtime share about streams.
#pragma once

#include <cstdint>

#include "mc_runtime.h"

struct mcStream {
  uint32_t magic;
  int device;  // visible index
  unsigned int flags;
  int priority;
  unsigned long long id;
};

namespace mc {

constexpr uint32_t kStreamMagic = 0x6d637374;

bool isStream(mcStream_t stream);
int streamDevice(mcStream_t stream);

}  // namespace mc
