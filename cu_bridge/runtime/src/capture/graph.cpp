// Launches of graphs, and what can be asked about them.

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "capture/capture.h"
#include "capture/graph_node.h"
#include "state/state.h"

struct mcGraphExec {
  std::shared_ptr<const mc::Nodes> nodes;
};

namespace mc {
namespace {

HandleTable<mcGraphExec> execs;

mcError_t runNodes(const Nodes& nodes) {
  const int device = threadState.device;
  mcError_t error = mcSuccess;
  for (const auto& node : nodes) {
    threadState.device = node->device;
    error = node->work();
    if (error != mcSuccess) break;
  }
  threadState.device = device;
  return error;
}

mcGraphNode* pointerTo(mcGraphNode* node) { return node; }
mcGraphNode* pointerTo(const std::shared_ptr<mcGraphNode>& node) { return node.get(); }

// *count: the room of `to`, and then the number of nodes, unless not all have fitted; with `to` NULL the number alone.
template <class Nodes>
mcError_t listNodes(const Nodes& nodes, mcGraphNode_t* to, size_t* count) {
  for (size_t i = 0; to != nullptr && i < *count; ++i) to[i] = i < nodes.size() ? pointerTo(nodes[i]) : nullptr;
  if (to == nullptr || *count >= nodes.size()) *count = nodes.size();
  return mcSuccess;
}

std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace
}  // namespace mc

using namespace mc;

mcError_t mcGraphInstantiate(mcGraphExec_t* exec, mcGraph_t graph) {
  MC_RETURN_IF_STICKY();
  if (exec == nullptr || !graphs.contains(graph)) return fail(mcErrorInvalidValue);
  *exec = execs.create(std::make_shared<const Nodes>(graph->nodes));
  return mcSuccess;
}

mcError_t mcGraphLaunch(mcGraphExec_t exec, mcStream_t stream) {
  if (!execs.contains(exec)) return fail(mcErrorInvalidValue);
  const std::shared_ptr<const Nodes> nodes = exec->nodes;
  return submit(stream, "graph", (std::to_string(nodes->size()) + " nodes").c_str(),
                [nodes] { return runNodes(*nodes); });
}

mcError_t mcGraphDestroy(mcGraph_t graph) { return graphs.destroy(graph) ? checkSticky() : fail(mcErrorInvalidValue); }

mcError_t mcGraphExecDestroy(mcGraphExec_t exec) {
  return execs.destroy(exec) ? checkSticky() : fail(mcErrorInvalidValue);
}

mcError_t mcGraphGetNodes(mcGraph_t graph, mcGraphNode_t* nodes, size_t* count) {
  if (!graphs.contains(graph) || count == nullptr) return fail(mcErrorInvalidValue);
  return listNodes(graph->nodes, nodes, count);
}

mcError_t mcGraphNodeDependencies(mcGraphNode_t node, mcGraphNode_t* dependencies, size_t* count) {
  if (!nodeHandles.contains(node) || count == nullptr) return fail(mcErrorInvalidValue);
  return listNodes(node->dependencies, dependencies, count);
}

mcError_t mcGraphDebugDotPrint(mcGraph_t graph, const char* path) {
  if (!graphs.contains(graph) || path == nullptr) return fail(mcErrorInvalidValue);
  FILE* const file = std::fopen(path, "w");
  const auto failed = [path] {
    return failWith(mcErrorOperatingSystem, (std::string("cannot write ") + path).c_str());
  };
  if (file == nullptr) return failed();
  std::map<const mcGraphNode*, size_t> numbers;
  std::fputs("digraph graph_1 {\n  node [shape=box];\n", file);
  for (const auto& node : graph->nodes) {
    const size_t number = numbers.emplace(node.get(), numbers.size()).first->second;
    std::fprintf(file, "  n%zu [label=\"%zu %s\\n%s\"];\n", number, number, quoted(node->kind).c_str(),
                 quoted(node->label).c_str());
    for (const mcGraphNode* const before : node->dependencies) {
      std::fprintf(file, "  n%zu -> n%zu;\n", numbers.at(before), number);
    }
  }
  std::fputs("}\n", file);
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written ? mcSuccess : failed();
}
