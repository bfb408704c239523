#pragma once

#include <torch/version.h>

/// Whether the release that is built against is this one or a later one.
#define MACATORCH_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
