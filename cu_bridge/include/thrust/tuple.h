// Tuples: the C++ library's under thrust's names.
#pragma once

#include <tuple>
#include <utility>

#include "detail/config.h"
#include "pair.h"

namespace thrust {
using std::get;
using std::ignore;
using std::make_tuple;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
}  // namespace thrust
