// Callbacks about streams, graphs and their nodes.

#include "profiling/node_types.h"
#include "records.h"

namespace mxmaca::cupti {
namespace {

// What a callback is handed, in CUPTI's layout.
struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;
};

// The descriptor of what concerns graphs.
struct GraphData {
  void* graph;
  void* originalGraph;
  void* node;
  void* originalNode;
  int nodeType;
  void* dependency;
  void* exec;
};
static_assert(sizeof(ResourceData) == 24 && sizeof(GraphData) == 56, "CUPTI's layout");

void callBack(uint32_t id, const mcResource& resource) {
  const std::vector<Wanted> wanted = wantedBy(kResource, id);
  if (wanted.empty()) return;
  GraphData graph{};
  graph.graph = resource.graph;
  graph.originalGraph = resource.originalGraph;
  graph.node = resource.node;
  graph.originalNode = resource.originalNode;
  graph.nodeType = resource.kind == nullptr ? 0 : nodeType(resource.kind);
  graph.dependency = resource.dependency;
  graph.exec = resource.exec;
  const bool ofStream = id == kStreamCreated || id == kStreamDestroys;
  ResourceData data{currentContext(), resource.stream, ofStream ? nullptr : &graph};
  for (const Wanted& to : wanted) to.callback(to.userData, kResource, id, &data);
}

}  // namespace

void callBackOfResource(const mcResource* resource) {
  switch (resource->event) {
    case mcStreamCreated: return callBack(kStreamCreated, *resource);
    case mcStreamDestroys: return callBack(kStreamDestroys, *resource);
    case mcGraphCreated: return callBack(kGraphCreated, *resource);
    case mcGraphDestroys: return callBack(kGraphDestroys, *resource);
    case mcGraphCloned: return callBack(kGraphCloned, *resource);
    case mcGraphNodeCreated: {
      mcResource before = *resource;
      before.node = nullptr;
      callBack(kNodeCreateStarts, before);
      return callBack(kNodeCreated, *resource);
    }
    case mcGraphNodeDestroys: return callBack(kNodeDestroys, *resource);
    case mcGraphNodeCloned: return callBack(kNodeCloned, *resource);
    case mcGraphDependencyCreated: return callBack(kDependencyCreated, *resource);
    case mcGraphDependencyDestroys: return callBack(kDependencyDestroys, *resource);
    case mcGraphExecCreated: return callBack(kExecCreated, *resource);
    case mcGraphExecDestroys: return callBack(kExecDestroys, *resource);
  }
}

}  // namespace mxmaca::cupti
