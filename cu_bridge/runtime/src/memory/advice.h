// What a program has said about its managed memory.
#pragma once

#include <cstdint>

namespace mc {

// The allocation with this number is gone.
void forgetAdvice(uint64_t allocation);

}  // namespace mc
