// Whether the host can back another allocation, so that the host's OOM killer never gets to answer.
#pragma once

#include <cstddef>

namespace mc {

// `bytes` more, beside everything that is allocated but not written yet.
bool hostCanBack(size_t bytes);

// How much hostCanBack would grant.
size_t hostAvailable();

}  // namespace mc
