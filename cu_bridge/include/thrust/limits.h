// thrust::numeric_limits is the C++ library's.
#pragma once

#include <limits>

namespace thrust {
using std::numeric_limits;
}  // namespace thrust
