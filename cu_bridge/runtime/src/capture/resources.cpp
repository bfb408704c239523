#include "capture/resources.h"

#include <atomic>

#include "capture/graph_node.h"

namespace mc {
namespace {
std::atomic<mcResourceListener> listener{nullptr};
}  // namespace

bool resourcesAreWatched() { return listener.load(std::memory_order_relaxed) != nullptr; }

void tell(const mcResource& resource) {
  const mcResourceListener to = listener.load(std::memory_order_acquire);
  if (to != nullptr) to(&resource);
}

void tellOfNode(mcResourceEvent event, mcGraphNode_t node, mcGraphNode_t original) {
  if (!resourcesAreWatched()) return;
  mcResource told{};
  told.event = event;
  told.graph = node->graph;
  told.node = node;
  told.kind = node->kind.c_str();
  told.originalNode = original;
  told.originalGraph = original == nullptr ? nullptr : original->graph;
  tell(told);
}

void tellOfNewNode(mcGraphNode_t node, mcGraphNode_t original) {
  if (!resourcesAreWatched()) return;
  tellOfNode(mcGraphNodeCreated, node);
  if (original != nullptr) tellOfNode(mcGraphNodeCloned, node, original);
  for (mcGraphNode* const before : node->dependencies) tellOfDependency(mcGraphDependencyCreated, before, node);
}

void tellOfDependency(mcResourceEvent event, mcGraphNode_t from, mcGraphNode_t to) {
  if (!resourcesAreWatched()) return;
  mcResource edge{};
  edge.event = event;
  edge.graph = from->graph;
  edge.node = from;
  edge.kind = from->kind.c_str();
  edge.dependency = to;
  tell(edge);
}

}  // namespace mc

void mcResourceListen(mcResourceListener to) { mc::listener.store(to, std::memory_order_release); }
