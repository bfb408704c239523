// Pairs: the C++ library's under thrust's names.
#pragma once

#include <utility>

#include "detail/config.h"

namespace thrust {
using std::get;
using std::make_pair;
using std::pair;
using std::tuple_element;
using std::tuple_size;
}  // namespace thrust
