#include "memory/graph_memory.h"

#include <map>
#include <memory>
#include <utility>

#include "capture/capture.h"
#include "capture/graph_node.h"
#include "memory/device_memory.h"
#include "state/locked.h"
#include "state/state.h"

namespace mc {
namespace {

struct GraphBlock {
  void* memory = nullptr;
  GraphBlock() = default;
  ~GraphBlock();
  GraphBlock(const GraphBlock&) = delete;
  GraphBlock& operator=(const GraphBlock&) = delete;
};

struct GraphBlocks {
  std::map<const void*, std::weak_ptr<GraphBlock>> all;
  std::map<const void*, std::shared_ptr<GraphBlock>> out;  // of launches, not freed yet
};

GraphBlock::~GraphBlock() {
  if (memory == nullptr) return;
  Writing<GraphBlocks>()->all.erase(memory);
  releaseMemory(memory, mcMemoryDevice);
}

std::shared_ptr<GraphBlock> blockOf(const void* pointer) {
  const Reading<GraphBlocks> blocks;
  const auto found = blocks->all.find(pointer);
  return found == blocks->all.end() ? nullptr : found->second.lock();
}

mcError_t takeOut(const std::shared_ptr<GraphBlock>& block) {
  const bool again = !Writing<GraphBlocks>()->out.emplace(block->memory, block).second;
  if (!again || launchFreesFirst) return mcSuccess;
  return failWith(mcErrorInvalidValue, "the graph is launched again before the memory of its last launch is freed");
}

// The last owner of a block may be in the table, whose lock its end takes.
bool putBack(const void* pointer) {
  std::shared_ptr<GraphBlock> last;
  const Writing<GraphBlocks> blocks;
  const auto found = blocks->out.find(pointer);
  if (found == blocks->out.end()) return false;
  last = std::move(found->second);
  blocks->out.erase(found);
  return true;
}

}  // namespace

mcError_t allocateInCapture(void** pointer, int device, size_t bytes, mcStream_t stream) {
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  const auto block = std::make_shared<GraphBlock>();
  void* memory = nullptr;
  const mcError_t error = allocateOn(device, mcMemoryDevice, 0, bytes, &memory);
  if (error != mcSuccess) return error;
  block->memory = memory;
  Writing<GraphBlocks>()->all[memory] = block;
  const std::string label = std::to_string(bytes) + " bytes";
  const mcError_t refused = submit(stream, kAllocatingNode, label.c_str(), [block] { return takeOut(block); });
  if (refused == mcSuccess) *pointer = memory;
  return refused;
}

bool freeInCapture(void* pointer, mcStream_t stream, mcError_t* result) {
  const std::shared_ptr<GraphBlock> block = blockOf(pointer);
  if (block == nullptr) return false;
  *result = submit(stream, kFreeingNode, "", [block] {
    if (putBack(block->memory)) return mcSuccess;
    return failWith(mcErrorInvalidValue, "a node of the graph frees memory that is free");
  });
  return true;
}

bool takeFromGraph(const void* pointer, std::function<void()>* giveBack) {
  const std::shared_ptr<GraphBlock> block = blockOf(pointer);
  if (block == nullptr) return false;
  if (Reading<GraphBlocks>()->out.count(pointer) != 0) {
    *giveBack = [pointer] { putBack(pointer); };
  }
  return true;
}

}  // namespace mc
