// Whether a copy of an object's bytes is the object.
#pragma once

#include <type_traits>

namespace thrust {

template <class T>
struct proclaim_trivially_relocatable : std::false_type {};
template <class T>
struct is_trivially_relocatable
    : std::bool_constant<std::is_trivially_copyable<T>::value || proclaim_trivially_relocatable<T>::value> {};
template <class From, class To>
struct is_trivially_relocatable_to
    : std::bool_constant<std::is_same<From, To>::value && is_trivially_relocatable<To>::value> {};

}  // namespace thrust
