// Stream-ordered allocation. A block that is freed can be given out again as soon as the work before its free is done.
#pragma once

#include <functional>

namespace mc {

// A block that a pool has given out and that the program frees.
struct FreedBlock {
  bool ofPool = false;               // it is a pool's, given out or not
  std::function<void()> giveBack{};  // to its pool; empty if it was not given out
};
// From now on the block is free in the program's eyes.
FreedBlock takeFromProgram(void* pointer);

}  // namespace mc
