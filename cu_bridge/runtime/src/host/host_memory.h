// Whether the host can back another allocation, so that the host's OOM killer never gets to answer.
#pragma once

#include <cstddef>

namespace mc {

// Whether everything on the ledger can be backed, as far as it is not written yet, and `more` bytes beside it.
bool hostCanBack(size_t more);

// How much more could be charged, at most `wanted`.
size_t hostAvailable(size_t wanted);

}  // namespace mc
