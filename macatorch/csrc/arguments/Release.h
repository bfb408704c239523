#pragma once

#include <c10/core/ScalarType.h>
#include <torch/version.h>

/// Whether the release that is built against is this one or a later one.
#define MACATORCH_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace macatorch {

#if MACATORCH_TORCH_AT_LEAST(2, 3)
constexpr at::ScalarType kUInt64 = at::ScalarType::UInt64;
#else
/// There is no such dtype, so that no tensor has it.
constexpr at::ScalarType kUInt64 = at::ScalarType::Undefined;
#endif

}  // namespace macatorch
