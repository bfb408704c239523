// thrust::optional is the C++ library's.
#pragma once

#include <optional>

namespace thrust {
using std::bad_optional_access;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
}  // namespace thrust
