// Graphs: their nodes and edges, and what can be asked about them.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/graph_node.h"
#include "capture/resources.h"
#include "state/state.h"

namespace mc {

mcGraphNode* addNode(mcGraph* graph, mcGraphNode&& made) {
  mcGraphNode* const node = nodeHandles.create(std::move(made));
  node->graph = graph;
  node->id = nextNodeId();
  graph->nodes.push_back({node, [](mcGraphNode* gone) { nodeHandles.destroy(gone); }});
  return node;
}

mcError_t sortedNodes(const mcGraph& graph, std::vector<mcGraphNode*>* sorted) {
  std::map<const mcGraphNode*, size_t> number, open;
  std::vector<std::vector<size_t>> after(graph.nodes.size());
  for (const auto& node : graph.nodes) number.emplace(node.get(), number.size());
  std::set<size_t> ready;
  for (const auto& node : graph.nodes) {
    open[node.get()] = node->dependencies.size();
    for (const mcGraphNode* const before : node->dependencies) after[number.at(before)].push_back(number[node.get()]);
    if (node->dependencies.empty()) ready.insert(number[node.get()]);
  }
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    sorted->push_back(graph.nodes[next].get());
    for (const size_t later : after[next]) {
      if (--open[graph.nodes[later].get()] == 0) ready.insert(later);
    }
  }
  return sorted->size() == graph.nodes.size() ? mcSuccess : mcErrorInvalidValue;
}

namespace {

mcGraphNode* pointerTo(mcGraphNode* node) { return node; }
mcGraphNode* pointerTo(const std::shared_ptr<mcGraphNode>& node) { return node.get(); }

// *count: the room of `to`, and then the number of nodes, unless not all have fitted; with `to` NULL the number alone.
template <class Nodes>
mcError_t listNodes(const Nodes& nodes, mcGraphNode_t* to, size_t* count) {
  for (size_t i = 0; to != nullptr && i < *count; ++i) to[i] = i < nodes.size() ? pointerTo(nodes[i]) : nullptr;
  if (to == nullptr || *count >= nodes.size()) *count = nodes.size();
  return mcSuccess;
}

void erase(std::vector<mcGraphNode*>* nodes, const mcGraphNode* node) {
  nodes->erase(std::remove(nodes->begin(), nodes->end(), node), nodes->end());
}

bool areNodes(mcGraph_t graph, const mcGraphNode_t* nodes, size_t count) {
  if (!graphs.contains(graph) || (nodes == nullptr && count != 0)) return false;
  return std::all_of(nodes, nodes + count,
                     [graph](mcGraphNode_t node) { return nodeHandles.contains(node) && node->graph == graph; });
}

mcGraph* addBody(mcGraphNode* node) {
  mcGraph* const body = graphs.create();
  body->inNode = true;
  node->bodies.emplace_back(body, [](mcGraph* gone) { graphs.destroy(gone); });
  return body;
}

// Conditions belong to both graphs, as a handle that kernels have as a value cannot change.
void copyNodes(const mcGraph& from, mcGraph& to) {
  std::map<const mcGraphNode*, mcGraphNode*> copies;
  to.conditions = from.conditions;
  to.userObjects = from.userObjects;
  for (const auto& node : from.nodes) {
    mcGraphNode* const copy =
        addNode(&to, {node->kind, node->label, node->work, node->device, node->flags, node->launch});
    copy->clonedFrom = node->id;
    copy->description = node->description;
    copy->kept = node->kept;
    copy->condition = node->condition;
    copy->conditionKind = node->conditionKind;
    for (const auto& body : node->bodies) copyNodes(*body, *addBody(copy));
    copies[node.get()] = copy;
  }
  for (const auto& node : from.nodes) {
    for (const mcGraphNode* const before : node->dependencies)
      copies[node.get()]->dependencies.push_back(copies[before]);
    tellOfNewNode(copies[node.get()], node.get());
  }
}

bool takesMemory(const mcGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const auto& node) { return node->kind == kAllocatingNode || node->kind == kFreeingNode; });
}

}  // namespace
}  // namespace mc

using namespace mc;

mcError_t mcGraphCreate(mcGraph_t* graph) {
  MC_RETURN_IF_STICKY();
  if (graph == nullptr) return fail(mcErrorInvalidValue);
  *graph = graphs.create();
  tellOfGraph(mcGraphCreated, *graph);
  return mcSuccess;
}

mcError_t mcGraphDestroy(mcGraph_t graph) {
  if (!graphs.contains(graph) || graph->inNode) return fail(mcErrorInvalidValue);
  if (graph->inCapture) return fail(mcErrorIllegalState);
  tellOfGraph(mcGraphDestroys, graph);
  return graphs.destroy(graph) ? checkSticky() : fail(mcErrorInvalidValue);
}

mcError_t mcGraphClone(mcGraph_t* clone, mcGraph_t original) {
  MC_RETURN_IF_STICKY();
  if (clone == nullptr || !graphs.contains(original)) return fail(mcErrorInvalidValue);
  if (takesMemory(*original)) return fail(mcErrorNotSupported);  // two graphs would have one address
  *clone = graphs.create();
  tellOfGraph(mcGraphCreated, *clone);
  tellOfGraph(mcGraphCloned, *clone, original);
  copyNodes(*original, **clone);
  return mcSuccess;
}

mcError_t mcGraphNodeFindInClone(mcGraphNode_t* found, mcGraphNode_t original, mcGraph_t clone) {
  if (found == nullptr || !nodeHandles.contains(original) || !graphs.contains(clone)) return fail(mcErrorInvalidValue);
  for (const auto& node : clone->nodes) {
    if (node->clonedFrom != original->id) continue;
    *found = node.get();
    return mcSuccess;
  }
  return fail(mcErrorInvalidValue);
}

mcError_t mcGraphNodeDestroy(mcGraphNode_t node) {
  MC_RETURN_IF_STICKY();
  if (!nodeHandles.contains(node) || node->graph->inCapture) return fail(mcErrorInvalidValue);
  tellOfNode(mcGraphNodeDestroys, node);
  Nodes& nodes = node->graph->nodes;
  for (const auto& other : nodes) erase(&other->dependencies, node);
  nodes.erase(std::find_if(nodes.begin(), nodes.end(), [node](const auto& other) { return other.get() == node; }));
  return mcSuccess;
}

mcError_t mcGraphNodeKind(mcGraphNode_t node, const char** kind) {
  if (!nodeHandles.contains(node) || kind == nullptr) return fail(mcErrorInvalidValue);
  *kind = node->kind.c_str();
  return mcSuccess;
}

mcError_t mcGraphNodeDescribe(mcGraphNode_t node, const void* bytes, size_t count) {
  if (!nodeHandles.contains(node) || (bytes == nullptr && count != 0)) return fail(mcErrorInvalidValue);
  const auto* const first = static_cast<const unsigned char*>(bytes);
  node->description.assign(first, first + count);
  return mcSuccess;
}

mcError_t mcGraphNodeDescription(mcGraphNode_t node, void* bytes, size_t count) {
  if (!nodeHandles.contains(node) || bytes == nullptr) return fail(mcErrorInvalidValue);
  if (node->description.size() != count) return mcErrorNotSupported;  // no error: the caller has words for it
  std::copy(node->description.begin(), node->description.end(), static_cast<unsigned char*>(bytes));
  return mcSuccess;
}

mcError_t mcGraphNodeKeep(mcGraphNode_t node, int number, const void* bytes, size_t count) {
  if (!nodeHandles.contains(node) || (bytes == nullptr && count != 0)) return fail(mcErrorInvalidValue);
  node->kept.set(number, bytes, count);
  return mcSuccess;
}

mcError_t mcGraphNodeKept(mcGraphNode_t node, int number, void* bytes, size_t count) {
  if (!nodeHandles.contains(node) || bytes == nullptr) return fail(mcErrorInvalidValue);
  return node->kept.get(number, bytes, count);
}

namespace {
// A node that does nothing by itself, of which nobody has been told yet.
mcError_t addIdle(mcGraph_t graph, const char* kind, const mcGraphNode_t* dependencies, size_t count,
                  mcGraphNode_t* node) {
  MC_RETURN_IF_STICKY();
  if (node == nullptr || !areNodes(graph, dependencies, count)) return fail(mcErrorInvalidValue);
  *node = addNode(graph, {kind, "", [] { return mcSuccess; }, threadState.device, 0});
  (*node)->dependencies.assign(dependencies, dependencies + count);
  return mcSuccess;
}
}  // namespace

mcError_t mcGraphAddEmpty(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count, mcGraphNode_t* node) {
  const mcError_t error = addIdle(graph, "empty", dependencies, count, node);
  if (error == mcSuccess) tellOfNewNode(*node);
  return error;
}

mcError_t mcGraphAddChild(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count, mcGraph_t child,
                          mcGraphNode_t* node) {
  if (!graphs.contains(child) || child == graph) return fail(mcErrorInvalidValue);
  if (takesMemory(*child)) return fail(mcErrorNotSupported);
  const mcError_t error = addIdle(graph, "graph", dependencies, count, node);
  if (error != mcSuccess) return error;
  (*node)->label = std::to_string(child->nodes.size()) + " nodes";
  mcGraph* const copy = addBody(*node);
  tellOfNewNode(*node);
  tellOfGraph(mcGraphCreated, copy);
  tellOfGraph(mcGraphCloned, copy, child);
  copyNodes(*child, *copy);
  return mcSuccess;
}

mcError_t mcGraphChild(mcGraphNode_t node, mcGraph_t* child) {
  if (!nodeHandles.contains(node) || child == nullptr || node->kind != "graph" || node->bodies.empty()) {
    return fail(mcErrorInvalidValue);
  }
  *child = node->bodies.front().get();
  return mcSuccess;
}

mcError_t mcGraphConditionCreate(unsigned long long* handle, mcGraph_t graph, unsigned int initial, int assigned) {
  MC_RETURN_IF_STICKY();
  if (handle == nullptr || !graphs.contains(graph)) return fail(mcErrorInvalidValue);
  mcGraphCondition* const made = conditions.create(initial, initial, assigned != 0);
  graph->conditions.emplace_back(made, [](mcGraphCondition* gone) { conditions.destroy(gone); });
  *handle = reinterpret_cast<unsigned long long>(made);
  return mcSuccess;
}

mcError_t mcGraphConditionSet(unsigned long long handle, unsigned int value) {
  auto* const condition = reinterpret_cast<mcGraphCondition*>(handle);
  if (!conditions.contains(condition)) return fail(mcErrorInvalidValue);
  condition->value = value;
  return mcSuccess;
}

mcError_t mcGraphAddConditional(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                                unsigned long long handle, mcGraphConditionKind kind, unsigned int bodies,
                                mcGraph_t* body, mcGraphNode_t* node) {
  const bool known = kind >= mcGraphConditionIf && kind <= mcGraphConditionSwitch;
  const bool counted = kind == mcGraphConditionIf ? bodies == 1 || bodies == 2
                                                  : bodies == 1 || (kind == mcGraphConditionSwitch && bodies != 0);
  if (!graphs.contains(graph) || !known || !counted || body == nullptr) return fail(mcErrorInvalidValue);
  for (const auto& condition : graph->conditions) {
    if (reinterpret_cast<unsigned long long>(condition.get()) != handle) continue;
    const mcError_t error = addIdle(graph, "conditional", dependencies, count, node);
    if (error != mcSuccess) return error;
    (*node)->condition = condition;
    (*node)->conditionKind = kind;
    for (unsigned i = 0; i < bodies; ++i) body[i] = addBody(*node);
    tellOfNewNode(*node);
    for (unsigned i = 0; i < bodies; ++i) tellOfGraph(mcGraphCreated, body[i]);
    return mcSuccess;
  }
  return fail(mcErrorInvalidValue);
}

mcError_t mcGraphAddDependencies(mcGraph_t graph, const mcGraphNode_t* from, const mcGraphNode_t* to, size_t count) {
  MC_RETURN_IF_STICKY();
  if (!areNodes(graph, from, count) || !areNodes(graph, to, count)) return fail(mcErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    const auto& before = to[i]->dependencies;
    const bool known = std::find(before.begin(), before.end(), from[i]) != before.end();
    if (known || from[i] == to[i]) return fail(mcErrorInvalidValue);
  }
  for (size_t i = 0; i < count; ++i) {
    to[i]->dependencies.push_back(from[i]);
    tellOfDependency(mcGraphDependencyCreated, from[i], to[i]);
  }
  return mcSuccess;
}

mcError_t mcGraphRemoveDependencies(mcGraph_t graph, const mcGraphNode_t* from, const mcGraphNode_t* to, size_t count) {
  MC_RETURN_IF_STICKY();
  if (!areNodes(graph, from, count) || !areNodes(graph, to, count)) return fail(mcErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    const auto& before = to[i]->dependencies;
    if (std::find(before.begin(), before.end(), from[i]) == before.end()) return fail(mcErrorInvalidValue);
  }
  for (size_t i = 0; i < count; ++i) {
    tellOfDependency(mcGraphDependencyDestroys, from[i], to[i]);
    erase(&to[i]->dependencies, from[i]);
  }
  return mcSuccess;
}

mcError_t mcGraphRootNodes(mcGraph_t graph, mcGraphNode_t* nodes, size_t* count) {
  if (!graphs.contains(graph) || count == nullptr) return fail(mcErrorInvalidValue);
  std::vector<mcGraphNode*> roots;
  for (const auto& node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return listNodes(roots, nodes, count);
}

mcError_t mcGraphEdges(mcGraph_t graph, mcGraphNode_t* from, mcGraphNode_t* to, size_t* count) {
  if (!graphs.contains(graph) || count == nullptr || (from == nullptr) != (to == nullptr)) {
    return fail(mcErrorInvalidValue);
  }
  std::vector<mcGraphNode*> before, after;
  for (const auto& node : graph->nodes) {
    before.insert(before.end(), node->dependencies.begin(), node->dependencies.end());
    after.resize(before.size(), node.get());
  }
  size_t room = *count;
  listNodes(before, from, &room);
  return listNodes(after, to, count);
}

mcError_t mcGraphGetNodes(mcGraph_t graph, mcGraphNode_t* nodes, size_t* count) {
  if (!graphs.contains(graph) || count == nullptr) return fail(mcErrorInvalidValue);
  return listNodes(graph->nodes, nodes, count);
}

mcError_t mcGraphNodeDependencies(mcGraphNode_t node, mcGraphNode_t* dependencies, size_t* count) {
  if (!nodeHandles.contains(node) || count == nullptr) return fail(mcErrorInvalidValue);
  return listNodes(node->dependencies, dependencies, count);
}

mcError_t mcGraphNodeDependents(mcGraphNode_t node, mcGraphNode_t* dependents, size_t* count) {
  if (!nodeHandles.contains(node) || count == nullptr) return fail(mcErrorInvalidValue);
  std::vector<mcGraphNode*> after;
  for (const auto& other : node->graph->nodes) {
    const auto& before = other->dependencies;
    if (std::find(before.begin(), before.end(), node) != before.end()) after.push_back(other.get());
  }
  return listNodes(after, dependents, count);
}

mcError_t mcGraphRetainUserObject(mcGraph_t graph, mcUserObject_t object, unsigned int count, int move) {
  if (!graphs.contains(graph)) return fail(mcErrorInvalidValue);
  if (move == 0) {
    const mcError_t error = mcUserObjectRetain(object, count);
    if (error != mcSuccess) return error;
  }
  return graph->userObjects.receive(object, count);
}

mcError_t mcGraphReleaseUserObject(mcGraph_t graph, mcUserObject_t object, unsigned int count) {
  if (!graphs.contains(graph)) return fail(mcErrorInvalidValue);
  return graph->userObjects.giveBack(object, count) ? mcSuccess : fail(mcErrorInvalidValue);
}

mcError_t mcGraphGetId(mcGraph_t graph, unsigned int* id) {
  if (!graphs.contains(graph) || id == nullptr) return fail(mcErrorInvalidValue);
  *id = graph->id;
  return mcSuccess;
}

mcError_t mcGraphNodeGetId(mcGraphNode_t node, unsigned long long* id) {
  if (!nodeHandles.contains(node) || id == nullptr) return fail(mcErrorInvalidValue);
  *id = node->id;
  return mcSuccess;
}
