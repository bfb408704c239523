#pragma once

namespace macatorch {

/// Operators outside of aten: upstream's quantised ones, and those of libraries that are loaded later.
void register_foreign();

}  // namespace macatorch
