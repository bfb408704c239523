// Graphs and their nodes, which captures record and programs build.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/user_objects.h"
#include "handle_table.h"
#include "mc_runtime.h"
#include "state/kept_bytes.h"

// The value that decides whether, how often or which body of a conditional node runs.
struct mcGraphCondition {
  unsigned value;
  unsigned initial;
  bool assigned;  // `initial` at each launch
};

namespace mc {
class KeptArguments;
struct KernelLaunch;  // kernels/kept_arguments.h
}  // namespace mc

struct mcGraphNode {
  std::string kind;   // "kernel", "memcpy", "memset", "host", "operator", "graph", "empty", "conditional"
  std::string label;  // for people
  std::function<mcError_t()> work;
  int device;
  unsigned flags;                                    // of a task with this work
  std::shared_ptr<const mc::KernelLaunch> launch{};  // of a kernel
  mcGraph* graph = nullptr;
  unsigned long long id = 0;  // of no other node of the process
  std::vector<mcGraphNode*> dependencies{};
  unsigned long long clonedFrom = 0;
  // Of a node with graphs inside: they belong to the node, and run in the place of `work`.
  std::vector<std::shared_ptr<mcGraph>> bodies{};
  std::shared_ptr<mcGraphCondition> condition{};  // NULL: the one body runs once
  mcGraphConditionKind conditionKind = mcGraphConditionIf;
  // The arguments as the program has asked for them. It may write there, so no launch reads them.
  std::shared_ptr<mc::KeptArguments> shown{};
  std::vector<unsigned char> description{};  // mcGraphNodeDescribe
  mc::KeptBytes kept{};
};

namespace mc {
// The kinds of nodes that take and give back memory.
constexpr char kAllocatingNode[] = "mem alloc", kFreeingNode[] = "mem free";
// The calling thread runs a launch that frees what the one before has left.
inline thread_local bool launchFreesFirst = false;

using Nodes = std::vector<std::shared_ptr<mcGraphNode>>;

// A number that no other graph of the process has, executable ones among them.
inline unsigned nextGraphId() {
  static std::atomic<unsigned> last{0};
  return ++last;
}
}  // namespace mc

struct mcGraph {
  mc::Nodes nodes;
  bool inCapture = false;  // a capture adds nodes to it
  bool inNode = false;     // it belongs to a node of another graph
  std::vector<std::shared_ptr<mcGraphCondition>> conditions{};
  mc::UserObjects userObjects{};
  unsigned id = mc::nextGraphId();
};

namespace mc {
inline HandleTable<mcGraphNode> nodeHandles;
inline HandleTable<mcGraph> graphs;
inline HandleTable<mcGraphCondition> conditions;

// A number that no other node of the process has, copies in executable graphs among them.
inline unsigned long long nextNodeId() {
  static std::atomic<unsigned long long> last{0};
  return ++last;
}

// Appends a node that comes after nobody yet. Who has given it its dependencies tells of it (resources.h).
mcGraphNode* addNode(mcGraph* graph, mcGraphNode&& node);

// The nodes in an order that all dependencies allow, as near to the order of their creation as that is possible.
// InvalidValue: they go round in a circle.
mcError_t sortedNodes(const mcGraph& graph, std::vector<mcGraphNode*>* sorted);
}  // namespace mc
