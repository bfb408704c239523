// Whether a type says where an algorithm runs.
#pragma once

#include "../detail/policy.h"

namespace thrust {

template <class T>
using is_execution_policy = detail::is_policy<T>;
template <class T>
constexpr bool is_execution_policy_v = is_execution_policy<T>::value;

}  // namespace thrust
