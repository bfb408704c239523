#include "memory/graph_memory.h"

#include <algorithm>
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
  int device;
  size_t bytes;
  GraphBlock(int device, size_t bytes) : device(device), bytes(bytes) {}
  ~GraphBlock();
  GraphBlock(const GraphBlock&) = delete;
  GraphBlock& operator=(const GraphBlock&) = delete;
};

// Bytes of now, and the most that there have been.
struct Amount {
  uint64_t current = 0, high = 0;
  void add(uint64_t bytes) { high = std::max(high, current += bytes); }
};

// Of one device: what launches have taken, and what is there for graphs to take.
struct Amounts {
  Amount used, reserved;
};

struct GraphBlocks {
  std::map<const void*, std::weak_ptr<GraphBlock>> all;
  std::map<const void*, std::shared_ptr<GraphBlock>> out;  // of launches, not freed yet
  std::map<int, Amounts> amounts;
};

GraphBlock::~GraphBlock() {
  if (memory == nullptr) return;
  {
    const Writing<GraphBlocks> blocks;
    blocks->all.erase(memory);
    blocks->amounts[device].reserved.current -= bytes;
  }
  releaseMemory(memory, mcMemoryDevice);
}

std::shared_ptr<GraphBlock> blockOf(const void* pointer) {
  const Reading<GraphBlocks> blocks;
  const auto found = blocks->all.find(pointer);
  return found == blocks->all.end() ? nullptr : found->second.lock();
}

mcError_t takeOut(const std::shared_ptr<GraphBlock>& block) {
  bool again = false;
  {
    const Writing<GraphBlocks> blocks;
    again = !blocks->out.emplace(block->memory, block).second;
    if (!again) blocks->amounts[block->device].used.add(block->bytes);
  }
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
  blocks->amounts[last->device].used.current -= last->bytes;
  blocks->out.erase(found);
  return true;
}

}  // namespace

mcError_t allocateInCapture(void** pointer, int device, size_t bytes, mcStream_t stream) {
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return mcSuccess;
  const auto block = std::make_shared<GraphBlock>(device, bytes);
  void* memory = nullptr;
  const mcError_t error = allocateOn(device, mcMemoryDevice, 0, bytes, &memory);
  if (error != mcSuccess) return error;
  block->memory = memory;
  {
    const Writing<GraphBlocks> blocks;
    blocks->all[memory] = block;
    blocks->amounts[device].reserved.add(bytes);
  }
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

using namespace mc;

namespace {
mcError_t checkAmount(int device, mcGraphMemory which) {
  int count = 0;
  const mcError_t error = mcGetDeviceCount(&count);
  if (error != mcSuccess) return error;
  if (device < 0 || device >= count) return fail(mcErrorInvalidDevice);
  const bool known = which == mcGraphMemoryUsed || which == mcGraphMemoryReserved;
  return known ? mcSuccess : fail(mcErrorInvalidValue);
}
Amount& amountOf(Amounts& amounts, mcGraphMemory which) {
  return which == mcGraphMemoryUsed ? amounts.used : amounts.reserved;
}
}  // namespace

mcError_t mcGraphMemoryGet(int device, mcGraphMemory which, unsigned long long* current, unsigned long long* high) {
  if (current == nullptr || high == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = checkAmount(device, which);
  if (error != mcSuccess) return error;
  const Writing<GraphBlocks> blocks;
  const Amount& amount = amountOf(blocks->amounts[device], which);
  *current = amount.current;
  *high = amount.high;
  return mcSuccess;
}

mcError_t mcGraphMemoryResetHigh(int device, mcGraphMemory which) {
  const mcError_t error = checkAmount(device, which);
  if (error != mcSuccess) return error;
  const Writing<GraphBlocks> blocks;
  Amount& amount = amountOf(blocks->amounts[device], which);
  amount.high = amount.current;
  return mcSuccess;
}
