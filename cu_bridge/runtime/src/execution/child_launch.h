// Launches from device code (dynamic parallelism).
//
// Note: when child grids run
// ~~~~~~~~~~~~~~~~~~~~~~~~~~
// CUDA lets a child grid begin at any time after its launch, and holds the parent grid's end back until all its child
// grids have ended. Here a child grid runs when all blocks of the grid that launched it have ended, or when a thread of
// the block that launched it waits for the device. They run one after the other: by block, then in the order of the
// launches; the children of a child before the next one. That is an order which every stream of the block allows. Tail
// launches come last, as CUDA has it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/kept_arguments.h"

namespace mc {

struct ChildLaunch {
  mcKernelEntry kernel;
  mcDim3 grid, block;
  size_t sharedBytes;
  bool tail;  // runs when all other children of its parent have ended
  uint64_t parentBlock;
  std::shared_ptr<KeptArguments> arguments;
};

// What the blocks of one grid have launched, and nobody has run yet.
class ChildLaunches {
 public:
  void add(ChildLaunch child);
  // All of them, or those of one block without its tail launches, in the order in which they run.
  std::vector<ChildLaunch> take();
  std::vector<ChildLaunch> takeOf(uint64_t parentBlock);

 private:
  std::mutex mutex_;
  std::vector<ChildLaunch> launches_;
};

}  // namespace mc
