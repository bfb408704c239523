// What a profiler is told of streams, graphs and nodes (mcResourceListen).
#pragma once

#include "mc_runtime.h"

namespace mc {

// Whether somebody wants to know.
bool resourcesAreWatched();
void tell(const mcResource& resource);

inline void tellOfStream(mcResourceEvent event, mcStream_t stream) {
  if (resourcesAreWatched()) tell({event, stream, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
}
inline void tellOfGraph(mcResourceEvent event, mcGraph_t graph, mcGraph_t original = nullptr) {
  if (resourcesAreWatched()) tell({event, nullptr, graph, original, nullptr, nullptr, nullptr, nullptr, nullptr});
}
// A node that was made, with its dependencies; and where it is a copy, of what.
void tellOfNewNode(mcGraphNode_t node, mcGraphNode_t original = nullptr);
void tellOfNode(mcResourceEvent event, mcGraphNode_t node, mcGraphNode_t original = nullptr);
void tellOfDependency(mcResourceEvent event, mcGraphNode_t from, mcGraphNode_t to);

}  // namespace mc
