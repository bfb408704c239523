// What a capture leaves behind: graphs and their nodes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "handle_table.h"
#include "mc_runtime.h"

struct mcGraphNode {
  std::string kind;   // "kernel", "memcpy", "memset", "host", "operator", "graph"
  std::string label;  // for people
  std::function<mcError_t()> work;
  int device;
  std::vector<mcGraphNode*> dependencies{};
};

namespace mc {
using Nodes = std::vector<std::shared_ptr<mcGraphNode>>;
}  // namespace mc

struct mcGraph {
  mc::Nodes nodes;
};

namespace mc {
inline HandleTable<mcGraphNode> nodeHandles;
inline HandleTable<mcGraph> graphs;
}  // namespace mc
