// Stream-ordered allocation. Work is complete when launched, so a freed block can be given out again at once.
#pragma once

namespace mc {

// Whether the block came from a pool, which then has it again.
bool returnToPool(void* pointer);

}  // namespace mc
