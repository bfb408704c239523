// Graphs as drawings in text, for people: Graphviz's language.

#include <cstdio>
#include <map>
#include <string>

#include "capture/graph_node.h"
#include "kernels/kept_arguments.h"
#include "state/state.h"

using namespace mc;

namespace {

std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// Further lines of a node's label.
std::string details(const mcGraphNode& node) {
  std::string lines = "\\nnode " + std::to_string(node.id);
  if (node.launch == nullptr) return lines;
  const auto size = [](const mcDim3& of) {
    return std::to_string(of.x) + " x " + std::to_string(of.y) + " x " + std::to_string(of.z);
  };
  lines += "\\ngrid " + size(node.launch->grid) + ", block " + size(node.launch->block);
  return lines + "\\ndynamic shared memory " + std::to_string(node.launch->sharedBytes) +
         (node.launch->cooperative ? ", cooperative" : "");
}

}  // namespace

mcError_t mcGraphDebugDotPrint(mcGraph_t graph, const char* path, int detailed) {
  if (!graphs.contains(graph) || path == nullptr) return fail(mcErrorInvalidValue);
  FILE* const file = std::fopen(path, "w");
  const auto failed = [path] {
    return failWith(mcErrorOperatingSystem, (std::string("cannot write ") + path).c_str());
  };
  if (file == nullptr) return failed();
  std::map<const mcGraphNode*, size_t> numbers;
  std::fputs("digraph graph_1 {\n  node [shape=box];\n", file);
  for (const auto& node : graph->nodes) numbers.emplace(node.get(), numbers.size());
  for (const auto& node : graph->nodes) {
    const size_t number = numbers.at(node.get());
    std::fprintf(file, "  n%zu [label=\"%zu %s\\n%s%s\"];\n", number, number, quoted(node->kind).c_str(),
                 quoted(node->label).c_str(), detailed != 0 ? details(*node).c_str() : "");
    for (const mcGraphNode* const before : node->dependencies) {
      std::fprintf(file, "  n%zu -> n%zu;\n", numbers.at(before), number);
    }
  }
  std::fputs("}\n", file);
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written ? mcSuccess : failed();
}
