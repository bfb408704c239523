// The live streams.
#pragma once

#include <cstdint>
#include <memory>

#include "handle_table.h"
#include "mc_runtime.h"
#include "state/state.h"

namespace mc {
struct Timeline;  // queue/queue.h
}

struct mcStream {
  int device;  // visible index
  unsigned int flags;
  int priority;
  unsigned long long id;
  std::shared_ptr<mc::Timeline> timeline;
  unsigned part;  // see Note [Parts]
};

namespace mc {

inline HandleTable<mcStream> streams;

inline bool isDefaultStream(mcStream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

// Whether it is a stream; any value may be asked about.
inline bool isStream(mcStream_t stream) { return isDefaultStream(stream) || streams.contains(stream); }

inline int streamDevice(mcStream_t stream) { return isDefaultStream(stream) ? threadState.device : stream->device; }

}  // namespace mc
