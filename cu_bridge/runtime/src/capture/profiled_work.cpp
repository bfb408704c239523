// What a profiler is told about submitted work.

#include <cstdlib>
#include <cstring>

#include "capture/capture.h"

namespace mc {
namespace {

struct KnownKind {
  const char* kind;
  mcWorkKind work;
  mcCall call;
};
constexpr KnownKind kKinds[] = {
    {"kernel", mcWorkKernel, mcCallLaunchKernel},    {"operator", mcWorkKernel, mcCallLaunchKernel},
    {"memcpy", mcWorkCopy, mcCallMemcpyAsync},       {"memset", mcWorkFill, mcCallMemsetAsync},
    {"host", mcWorkHost, mcCallLaunchHostFunction},  {"graph", mcWorkHost, mcCallGraphLaunch},
    {"event record", mcWorkHost, mcCallEventRecord}, {"event wait", mcWorkHost, mcCallStreamWaitEvent},
    {"free", mcWorkHost, mcCallFreeAsync},           {"empty", mcWorkHost, mcCallOther},
    {"mem alloc", mcWorkHost, mcCallMallocAsync},    {"mem free", mcWorkHost, mcCallFreeAsync},
};

// A collective is a kernel too.
const KnownKind& knownKind(const char* kind) {
  static constexpr KnownKind kOther{"", mcWorkKernel, mcCallOther};
  for (const KnownKind& known : kKinds) {
    if (std::strcmp(known.kind, kind) == 0) return known;
  }
  return kOther;
}

ProfiledWork workOf(const char* kind) {
  ProfiledWork result;
  result.record.kind = knownKind(kind).work;
  result.record.grid = result.record.block = {1, 1, 1};
  return result;
}

}  // namespace

mcCall callOf(const char* kind) { return knownKind(kind).call; }

ProfiledWork profiledWork(const char* kind, const char* label) {
  ProfiledWork result = workOf(kind);
  result.name = *label == '\0' ? kind : label;
  // The label of a node that copies or fills is its size.
  if (result.record.kind == mcWorkCopy || result.record.kind == mcWorkFill) {
    result.record.bytes = std::strtoull(label, nullptr, 10);
  }
  return result;
}

ProfiledWork profiledWork(const char* kind, const KernelLabel& kernel) {
  ProfiledWork result = workOf(kind);
  result.name = kernel.name;
  result.record.grid = kernel.grid;
  result.record.block = kernel.block;
  result.record.sharedBytes = kernel.sharedBytes;
  result.record.staticSharedBytes = kernel.staticSharedBytes;
  return result;
}

ProfiledWork profiledWork(const char* kind, const CopyLabel& copy) {
  ProfiledWork result = workOf(kind);
  result.record.bytes = copy.bytes;
  result.record.source = copy.source;
  result.record.target = copy.target;
  return result;
}

ProfiledWork profiledWork(const char* kind, const FillLabel& fill) {
  ProfiledWork result = workOf(kind);
  result.record.bytes = fill.bytes;
  result.record.value = fill.value;
  return result;
}

}  // namespace mc
