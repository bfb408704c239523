// Kinds of the runtime's graph nodes as numbers of CUDA's interfaces.
#pragma once

#include <cstring>

namespace mxmaca {

// The runtime interface, the driver's and CUPTI have one list.
inline int nodeType(const char* kind) {
  static constexpr struct {
    const char* kind;
    int type;
  } kTypes[] = {
      {"memcpy", 1},     {"memset", 2},       {"host", 3},       {"graph", 4},     {"empty", 5},
      {"event wait", 6}, {"event record", 7}, {"mem alloc", 10}, {"mem free", 11}, {"conditional", 13},
  };
  for (const auto& known : kTypes) {
    if (std::strcmp(known.kind, kind) == 0) return known.type;
  }
  return 0;  // a kernel: operators and collectives too
}

}  // namespace mxmaca
