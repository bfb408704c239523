// cuda::std is the C++ library of the host compiler, which device code here may use in full.
#pragma once

#include <cstddef>

namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
}  // namespace cuda
