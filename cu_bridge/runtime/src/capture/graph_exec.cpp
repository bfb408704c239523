// Graphs that can be launched: copies of a graph's nodes in the order in which they run.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture.h"
#include "capture/graph_node.h"
#include "capture/launch_work.h"
#include "capture/resources.h"
#include "state/state.h"

namespace mc {
namespace {

struct ExecNode;
using ExecNodes = std::vector<ExecNode>;

// A node as a launch runs it. The graph that it comes from may change or go.
struct ExecNode {
  std::string kind, label;
  std::function<mcError_t()> work;
  int device;
  unsigned flags;
  unsigned long long id;             // of the graph's node
  std::vector<size_t> dependencies;  // numbers of nodes, in ascending order
  std::vector<ExecNodes> bodies;
  std::shared_ptr<mcGraphCondition> condition;
  mcGraphConditionKind conditionKind;
  bool enabled = true;
  unsigned long long number = nextNodeId();  // of the copy, for a profiler
};

}  // namespace
}  // namespace mc

struct mcGraphExec {
  std::shared_ptr<const mc::ExecNodes> nodes;
  std::shared_ptr<const mc::UserObjects> objects;             // of the bodies too
  std::vector<std::shared_ptr<mcGraphCondition>> conditions;  // of the bodies too
  unsigned flags;                                             // of a task that runs them
  bool hasLaunchWork;                                         // nodes record events or wait for them
  bool freesFirst = false;                                    // what the launch before has left of its memory
  unsigned long long programFlags = 0;                        // mcGraphExecSetFlags
  unsigned id = mc::nextGraphId();
};

namespace mc {
namespace {

HandleTable<mcGraphExec> execs;

// What belongs to a graph with its bodies.
struct Belongings {
  std::vector<std::shared_ptr<mcGraphCondition>> conditions;
  std::shared_ptr<UserObjects> objects = std::make_shared<UserObjects>();
};

mcError_t copyForLaunch(const mcGraph& graph, ExecNodes* to, unsigned* flags, Belongings* all) {
  std::vector<mcGraphNode*> sorted;
  const mcError_t error = sortedNodes(graph, &sorted);
  if (error != mcSuccess) return error;
  all->conditions.insert(all->conditions.end(), graph.conditions.begin(), graph.conditions.end());
  all->objects->share(graph.userObjects);
  const auto numberOf = [&](const mcGraphNode* node) {
    return static_cast<size_t>(std::find(sorted.begin(), sorted.end(), node) - sorted.begin());
  };
  for (const mcGraphNode* const node : sorted) {
    ExecNode copy{node->kind, node->label, node->work, node->device,    node->flags,
                  node->id,   {},          {},         node->condition, node->conditionKind};
    for (const mcGraphNode* const before : node->dependencies) copy.dependencies.push_back(numberOf(before));
    std::sort(copy.dependencies.begin(), copy.dependencies.end());
    for (const auto& body : node->bodies) {
      const mcError_t inside = copyForLaunch(*body, &copy.bodies.emplace_back(), flags, all);
      if (inside != mcSuccess) return inside;
    }
    *flags |= node->flags;
    to->push_back(std::move(copy));
  }
  return mcSuccess;
}

// `graph` is the number of the executable graph, for a profiler.
mcError_t runNodes(const ExecNodes& nodes, unsigned graph);

mcError_t runBodies(const ExecNode& node, unsigned graph) {
  if (node.condition == nullptr) return runNodes(node.bodies.front(), graph);
  // Kernels set the value while the bodies run.
  const volatile unsigned& value = node.condition->value;
  if (node.conditionKind == mcGraphConditionWhile) {
    mcError_t error = mcSuccess;
    while (error == mcSuccess && value != 0) error = runNodes(node.bodies.front(), graph);
    return error;
  }
  const size_t chosen = node.conditionKind == mcGraphConditionIf ? (value == 0 ? 1 : 0) : value;
  return chosen < node.bodies.size() ? runNodes(node.bodies[chosen], graph) : mcSuccess;
}

std::function<mcError_t()> timedNode(const ExecNode& node, unsigned graph) {
  ProfiledWork what = profiledWork(node.kind.c_str(), node.label.c_str());
  what.record.graph = graph;
  what.record.graphNode = node.number;
  return timed(nullptr, std::move(what), node.work);
}

mcError_t runNodes(const ExecNodes& nodes, unsigned graph) {
  const int device = threadState.device;
  mcError_t error = mcSuccess;
  for (const ExecNode& node : nodes) {
    if (!node.enabled) continue;
    threadState.device = node.device;
    if (!node.bodies.empty()) {
      error = runBodies(node, graph);
    } else {
      error = profiling() ? timedNode(node, graph)() : node.work();
    }
    if (error != mcSuccess) break;
  }
  threadState.device = device;
  return error;
}

bool hasLaunchWork(const ExecNodes& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const ExecNode& node) {
    return node.work.target<LaunchWork>() != nullptr ||
           std::any_of(node.bodies.begin(), node.bodies.end(), hasLaunchWork);
  });
}

// With `node` in its place or in that of a body; nullptr if there is none.
ExecNode* findNode(ExecNodes* nodes, unsigned long long id) {
  for (ExecNode& node : *nodes) {
    if (node.id == id) return &node;
    for (ExecNodes& body : node.bodies) {
      if (ExecNode* const found = findNode(&body, id)) return found;
    }
  }
  return nullptr;
}

// Changes one node of what the next launches run; launches that are pending keep theirs.
template <class Change>
mcError_t changeNode(mcGraphExec_t exec, mcGraphNode_t node, Change&& change) {
  MC_RETURN_IF_STICKY();
  if (!execs.contains(exec) || !nodeHandles.contains(node)) return fail(mcErrorInvalidValue);
  auto changed = std::make_shared<ExecNodes>(*exec->nodes);
  ExecNode* const found = findNode(changed.get(), node->id);
  if (found == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = change(found);
  if (error != mcSuccess) return fail(error);
  exec->nodes = std::move(changed);
  return mcSuccess;
}

// What keeps the nodes `from` from taking the place of `to`.
mcGraphUpdateResult compare(const ExecNodes& to, const ExecNodes& from, unsigned long long* different) {
  if (to.size() != from.size()) return mcGraphUpdateTopologyChanged;
  for (size_t i = 0; i < to.size(); ++i) {
    *different = from[i].id;
    if (to[i].kind != from[i].kind) return mcGraphUpdateKindChanged;
    if (to[i].dependencies != from[i].dependencies) return mcGraphUpdateTopologyChanged;
    if (to[i].bodies.size() != from[i].bodies.size() || to[i].condition != from[i].condition ||
        to[i].conditionKind != from[i].conditionKind) {
      return mcGraphUpdateParametersChanged;
    }
    for (size_t body = 0; body < to[i].bodies.size(); ++body) {
      const mcGraphUpdateResult inside = compare(to[i].bodies[body], from[i].bodies[body], different);
      if (inside != mcGraphUpdateSuccess) return inside;
    }
  }
  return mcGraphUpdateSuccess;
}

// Takes the work of `from`, whose nodes correspond. The nodes of the first graph stay the names of them.
void takeWork(ExecNodes* to, const ExecNodes& from) {
  for (size_t i = 0; i < to->size(); ++i) {
    ExecNode& node = (*to)[i];
    node.label = from[i].label;
    node.work = from[i].work;
    node.device = from[i].device;
    node.flags = from[i].flags;
    for (size_t body = 0; body < node.bodies.size(); ++body) takeWork(&node.bodies[body], from[i].bodies[body]);
  }
}

// A listener sees the copies as nodes of `shown`.
void tellOfCopies(const mcGraph& graph, const ExecNodes& copies, mcGraph* shown) {
  std::vector<mcGraphNode*> nodes;
  for (const ExecNode& copy : copies) {
    const auto original =
        std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) { return node->id == copy.id; });
    nodes.push_back(addNode(shown, {copy.kind, copy.label, {}, copy.device, copy.flags}));
    nodes.back()->id = copy.number;
    for (const size_t before : copy.dependencies) nodes.back()->dependencies.push_back(nodes[before]);
    tellOfNewNode(nodes.back(), original->get());
    for (size_t i = 0; i < copy.bodies.size(); ++i) tellOfCopies(*(*original)->bodies[i], copy.bodies[i], shown);
  }
}

// The executable graph is new. The graph that is named is the one of the copies, since a program may end the one that
// they are copies of before the first launch.
void tellOfExec(mcGraphExec_t exec, mcGraph_t graph) {
  mcGraph* const shown = graphs.create();
  shown->id = exec->id;
  tellOfCopies(*graph, *exec->nodes, shown);
  mcResource told{};
  told.event = mcGraphExecCreated;
  told.graph = shown;
  told.originalGraph = graph;
  told.exec = exec;
  tell(told);
  graphs.destroy(shown);
}

}  // namespace
}  // namespace mc

using namespace mc;

mcError_t mcGraphInstantiate(mcGraphExec_t* exec, mcGraph_t graph) {
  MC_RETURN_IF_STICKY();
  if (exec == nullptr || !graphs.contains(graph)) return fail(mcErrorInvalidValue);
  unsigned flags = 0;
  const auto nodes = std::make_shared<ExecNodes>();
  Belongings all;
  const mcError_t error = copyForLaunch(*graph, nodes.get(), &flags, &all);
  if (error != mcSuccess) return failWith(error, "the dependencies of the graph's nodes form a circle");
  *exec = execs.create(nodes, std::move(all.objects), std::move(all.conditions), flags & mcTaskWaits,
                       hasLaunchWork(*nodes));
  if (resourcesAreWatched()) tellOfExec(*exec, graph);
  return mcSuccess;
}

namespace {
// Asks the nodes that have a part in the launch, those of bodies among them, until one fails.
mcError_t beforeLaunch(const ExecNodes& nodes, mcStream_t stream) {
  for (const ExecNode& node : nodes) {
    const auto* const work = node.work.target<LaunchWork>();
    mcError_t error = work != nullptr && work->before ? work->before(stream) : mcSuccess;
    for (const ExecNodes& body : node.bodies) {
      if (error == mcSuccess) error = beforeLaunch(body, stream);
    }
    if (error != mcSuccess) return error;
  }
  return mcSuccess;
}
void afterLaunch(const ExecNodes& nodes, mcStream_t stream) {
  for (const ExecNode& node : nodes) {
    const auto* const work = node.work.target<LaunchWork>();
    if (work != nullptr && work->after) work->after(stream);
    for (const ExecNodes& body : node.bodies) afterLaunch(body, stream);
  }
}
}  // namespace

mcError_t mcGraphLaunch(mcGraphExec_t exec, mcStream_t stream) {
  const ProfiledCall call(mcCallGraphLaunch, exec, stream);
  if (!execs.contains(exec)) return fail(mcErrorInvalidValue);
  // A launch that is captured is made by another one, later.
  const bool orders = exec->hasLaunchWork && isStream(stream) && !isCaptured(stream) && !inTask();
  if (orders) {
    const mcError_t problem = beforeLaunch(*exec->nodes, stream);
    if (problem != mcSuccess) return fail(problem);
  }
  // The objects of the program's last until the launch is over.
  const auto run = [nodes = exec->nodes, objects = exec->objects, conditions = exec->conditions,
                    frees = exec->freesFirst, orders, id = exec->id] {
    for (const auto& condition : conditions) {
      if (condition->assigned) condition->value = condition->initial;
    }
    const bool outer = std::exchange(launchFreesFirst, frees);
    const bool outerOrder = std::exchange(launchIsOrdered, orders);
    const mcError_t error = runNodes(*nodes, id);
    launchIsOrdered = outerOrder;
    launchFreesFirst = outer;
    return error;
  };
  const mcError_t error =
      submit(stream, "graph", (std::to_string(exec->nodes->size()) + " nodes").c_str(), run, exec->flags);
  if (orders && error == mcSuccess) afterLaunch(*exec->nodes, stream);
  return error;
}

mcError_t mcGraphExecGetId(mcGraphExec_t exec, unsigned int* id) {
  if (!execs.contains(exec) || id == nullptr) return fail(mcErrorInvalidValue);
  *id = exec->id;
  return mcSuccess;
}

mcError_t mcGraphExecFreesFirst(mcGraphExec_t exec) {
  if (!execs.contains(exec)) return fail(mcErrorInvalidValue);
  exec->freesFirst = true;
  return mcSuccess;
}

mcError_t mcGraphExecSetFlags(mcGraphExec_t exec, unsigned long long flags) {
  if (!execs.contains(exec)) return fail(mcErrorInvalidValue);
  exec->programFlags = flags;
  return mcSuccess;
}

mcError_t mcGraphExecGetFlags(mcGraphExec_t exec, unsigned long long* flags) {
  if (!execs.contains(exec) || flags == nullptr) return fail(mcErrorInvalidValue);
  *flags = exec->programFlags;
  return mcSuccess;
}

mcError_t mcGraphUpload(mcGraphExec_t exec, mcStream_t stream) {
  return execs.contains(exec) ? checkUncaptured(stream) : fail(mcErrorInvalidValue);
}

mcError_t mcGraphExecDestroy(mcGraphExec_t exec) {
  if (resourcesAreWatched() && execs.contains(exec)) {
    mcResource told{};
    told.event = mcGraphExecDestroys;
    told.exec = exec;
    tell(told);
  }
  return execs.destroy(exec) ? checkSticky() : fail(mcErrorInvalidValue);
}

mcError_t mcGraphExecReplace(mcGraphExec_t exec, mcGraphNode_t node, mcGraphNode_t by) {
  if (!nodeHandles.contains(by)) return fail(mcErrorInvalidValue);
  const mcError_t error = changeNode(exec, node, [by](ExecNode* found) {
    if (found->kind != by->kind || !found->bodies.empty() || !by->bodies.empty()) return mcErrorInvalidValue;
    found->label = by->label;
    found->work = by->work;
    found->device = by->device;
    found->flags = by->flags;
    return mcSuccess;
  });
  if (error == mcSuccess) exec->flags |= by->flags & mcTaskWaits;
  return error;
}

mcError_t mcGraphExecReplaceChild(mcGraphExec_t exec, mcGraphNode_t node, mcGraph_t child) {
  if (!graphs.contains(child)) return fail(mcErrorInvalidValue);
  unsigned flags = 0;
  Belongings all;
  const mcError_t error = changeNode(exec, node, [&](ExecNode* found) {
    if (found->kind != "graph" || found->bodies.size() != 1) return mcErrorInvalidValue;
    ExecNodes wanted;
    const mcError_t problem = copyForLaunch(*child, &wanted, &flags, &all);
    if (problem != mcSuccess) return problem;
    unsigned long long different = 0;
    if (compare(found->bodies.front(), wanted, &different) != mcGraphUpdateSuccess) return mcErrorInvalidValue;
    takeWork(&found->bodies.front(), wanted);
    return mcSuccess;
  });
  if (error != mcSuccess) return error;
  exec->flags |= flags & mcTaskWaits;
  exec->hasLaunchWork = hasLaunchWork(*exec->nodes);
  // The program's objects last as long as a graph that may use them, the child's among them.
  const auto objects = std::make_shared<UserObjects>();
  objects->share(*exec->objects);
  objects->share(*all.objects);
  exec->objects = objects;
  return mcSuccess;
}

namespace {
// Of other kinds, CUDA neither says nor changes whether they run.
bool mayBeDisabled(const ExecNode& node) {
  return node.kind == "kernel" || node.kind == "memcpy" || node.kind == "memset";
}
}  // namespace

mcError_t mcGraphExecEnable(mcGraphExec_t exec, mcGraphNode_t node, int enabled) {
  return changeNode(exec, node, [enabled](ExecNode* found) {
    if (!mayBeDisabled(*found)) return mcErrorInvalidValue;
    found->enabled = enabled != 0;
    return mcSuccess;
  });
}

mcError_t mcGraphExecEnabled(mcGraphExec_t exec, mcGraphNode_t node, int* enabled) {
  if (enabled == nullptr) return fail(mcErrorInvalidValue);
  return changeNode(exec, node, [enabled](const ExecNode* found) {
    if (!mayBeDisabled(*found)) return mcErrorInvalidValue;
    *enabled = found->enabled ? 1 : 0;
    return mcSuccess;
  });
}

mcError_t mcGraphExecUpdate(mcGraphExec_t exec, mcGraph_t graph, mcGraphUpdateResult* result, mcGraphNode_t* node) {
  MC_RETURN_IF_STICKY();
  if (!execs.contains(exec) || !graphs.contains(graph) || result == nullptr) return fail(mcErrorInvalidValue);
  if (node != nullptr) *node = nullptr;
  *result = mcGraphUpdateError;
  unsigned flags = 0;
  ExecNodes wanted;
  Belongings all;
  const mcError_t error = copyForLaunch(*graph, &wanted, &flags, &all);
  if (error != mcSuccess) return fail(error);
  unsigned long long different = 0;
  *result = compare(*exec->nodes, wanted, &different);
  if (*result != mcGraphUpdateSuccess) {
    for (const auto& candidate : graph->nodes) {
      if (node != nullptr && candidate->id == different) *node = candidate.get();
    }
    return fail(mcErrorGraphExecUpdateFailure);
  }
  auto updated = std::make_shared<ExecNodes>(*exec->nodes);
  takeWork(updated.get(), wanted);
  exec->nodes = std::move(updated);
  exec->objects = std::move(all.objects);
  exec->flags = flags & mcTaskWaits;
  return mcSuccess;
}
