// Iterators that compute what they point at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pointer.h"

namespace thrust {

template <class Iterator>
using iterator_value_t = typename std::iterator_traits<Iterator>::value_type;
template <class Iterator>
struct iterator_value {
  using type = iterator_value_t<Iterator>;
};
template <class Iterator>
struct iterator_reference {
  using type = typename std::iterator_traits<Iterator>::reference;
};
template <class Iterator>
struct iterator_difference {
  using type = typename std::iterator_traits<Iterator>::difference_type;
};
template <class Iterator>
struct iterator_pointer {
  using type = typename std::iterator_traits<Iterator>::pointer;
};
template <class Iterator>
struct iterator_system {
  using type = std::conditional_t<detail::on_device<Iterator>::value, device_system_tag, any_system_tag>;
};
template <class Iterator>
struct iterator_traversal {
  using type = typename std::iterator_traits<Iterator>::iterator_category;
};
struct use_default {};

namespace detail {

// What a random-access iterator is beyond dereferencing and moving: Derived has dereference(), advance(n),
// distance(to).
template <class Derived, class Value, class Reference, class Difference = std::ptrdiff_t>
class iterator_base {
 public:
  using value_type = Value;
  using reference = Reference;
  using difference_type = Difference;
  using pointer = std::conditional_t<std::is_reference<Reference>::value, std::remove_reference_t<Reference>*, void>;
  using iterator_category = std::random_access_iterator_tag;

  __host__ __device__ Reference operator*() const { return self().dereference(); }
  // Through a pointer where there is something to point at.
  __host__ __device__ auto operator->() const {
    if constexpr (std::is_lvalue_reference<Reference>::value) {
      return &self().dereference();
    } else {
      struct Holder {
        Value value;
        __host__ __device__ Value* operator->() { return &value; }
      };
      return Holder{self().dereference()};
    }
  }
  template <class Index>
  __host__ __device__ Reference operator[](Index n) const {
    return *(self() + static_cast<Difference>(n));
  }
  __host__ __device__ Derived& operator++() { return self() += 1; }
  __host__ __device__ Derived& operator--() { return self() += -1; }
  __host__ __device__ Derived operator++(int) {
    Derived old = self();
    self() += 1;
    return old;
  }
  __host__ __device__ Derived operator--(int) {
    Derived old = self();
    self() += -1;
    return old;
  }
  __host__ __device__ Derived& operator+=(Difference n) {
    self().advance(n);
    return self();
  }
  __host__ __device__ Derived& operator-=(Difference n) { return self() += -n; }
  friend __host__ __device__ Derived operator+(Derived it, Difference n) { return it += n; }
  friend __host__ __device__ Derived operator+(Difference n, Derived it) { return it += n; }
  friend __host__ __device__ Derived operator-(Derived it, Difference n) { return it += -n; }
  friend __host__ __device__ Difference operator-(const Derived& a, const Derived& b) { return b.distance(a); }
  friend __host__ __device__ bool operator==(const Derived& a, const Derived& b) { return b.distance(a) == 0; }
  friend __host__ __device__ bool operator!=(const Derived& a, const Derived& b) { return b.distance(a) != 0; }
  friend __host__ __device__ bool operator<(const Derived& a, const Derived& b) { return b.distance(a) < 0; }
  friend __host__ __device__ bool operator>(const Derived& a, const Derived& b) { return b.distance(a) > 0; }
  friend __host__ __device__ bool operator<=(const Derived& a, const Derived& b) { return b.distance(a) <= 0; }
  friend __host__ __device__ bool operator>=(const Derived& a, const Derived& b) { return b.distance(a) >= 0; }

 private:
  __host__ __device__ Derived& self() { return static_cast<Derived&>(*this); }
  __host__ __device__ const Derived& self() const { return static_cast<const Derived&>(*this); }
};

template <class Iterator>
using reference_of = decltype(*std::declval<const Iterator&>());

}  // namespace detail

// ---- counting -------------------------------------------------------------------------------------------------------
template <class Incrementable, class System = use_default, class Traversal = use_default,
          class Difference = use_default>
class counting_iterator : public detail::iterator_base<counting_iterator<Incrementable, System, Traversal, Difference>,
                                                       Incrementable, Incrementable> {
 public:
  using system = any_system_tag;
  counting_iterator() = default;
  __host__ __device__ constexpr explicit counting_iterator(Incrementable start) : value_(start) {}
  __host__ __device__ constexpr Incrementable base() const { return value_; }
  __host__ __device__ Incrementable dereference() const { return value_; }
  __host__ __device__ void advance(std::ptrdiff_t n) { value_ = static_cast<Incrementable>(value_ + n); }
  __host__ __device__ std::ptrdiff_t distance(const counting_iterator& to) const {
    return static_cast<std::ptrdiff_t>(to.value_) - static_cast<std::ptrdiff_t>(value_);
  }

 private:
  Incrementable value_{};
};
template <class Incrementable>
__host__ __device__ counting_iterator<Incrementable> make_counting_iterator(Incrementable start) {
  return counting_iterator<Incrementable>(start);
}

// ---- constant -------------------------------------------------------------------------------------------------------
template <class Value, class Incrementable = use_default, class System = use_default>
class constant_iterator : public detail::iterator_base<constant_iterator<Value, Incrementable, System>, Value, Value> {
 public:
  using system = any_system_tag;
  constant_iterator() = default;
  __host__ __device__ constant_iterator(const Value& value, std::ptrdiff_t position = 0)
      : value_(value), position_(position) {}
  __host__ __device__ const Value& value() const { return value_; }
  __host__ __device__ Value dereference() const { return value_; }
  __host__ __device__ void advance(std::ptrdiff_t n) { position_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const constant_iterator& to) const { return to.position_ - position_; }

 private:
  Value value_{};
  std::ptrdiff_t position_ = 0;
};
template <class Value>
__host__ __device__ constant_iterator<Value> make_constant_iterator(const Value& value, std::ptrdiff_t position = 0) {
  return constant_iterator<Value>(value, position);
}

// ---- transform ------------------------------------------------------------------------------------------------------
namespace detail {
template <class Function, class Iterator>
using transformed = decltype(std::declval<const Function&>()(*std::declval<const Iterator&>()));
template <class Given, class Computed>
using or_default = std::conditional_t<std::is_same<Given, use_default>::value, Computed, Given>;
}  // namespace detail

template <class Function, class Iterator, class Reference = use_default, class Value = use_default>
class transform_iterator
    : public detail::iterator_base<
          transform_iterator<Function, Iterator, Reference, Value>,
          detail::or_default<Value,
                             std::decay_t<detail::or_default<Reference, detail::transformed<Function, Iterator>>>>,
          detail::or_default<Reference, detail::transformed<Function, Iterator>>> {
 public:
  using system = detail::system_of<Iterator>;
  transform_iterator() = default;
  __host__ __device__ transform_iterator(Iterator base, Function function) : base_(base), function_(function) {}
  __host__ __device__ explicit transform_iterator(Iterator base) : base_(base), function_() {}
  __host__ __device__ const Iterator& base() const { return base_; }
  __host__ __device__ const Function& functor() const { return function_; }
  __host__ __device__ detail::or_default<Reference, detail::transformed<Function, Iterator>> dereference() const {
    return function_(*base_);
  }
  __host__ __device__ void advance(std::ptrdiff_t n) { base_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const transform_iterator& to) const { return to.base_ - base_; }
  // A lambda cannot be assigned; its iterator can.
  transform_iterator(const transform_iterator&) = default;
  __host__ __device__ transform_iterator& operator=(const transform_iterator& other) {
    base_ = other.base_;
    if constexpr (std::is_copy_assignable<Function>::value) {
      function_ = other.function_;
    }
    return *this;
  }

 private:
  Iterator base_;
  Function function_;
};
template <class Function, class Iterator>
__host__ __device__ transform_iterator<Function, Iterator> make_transform_iterator(Iterator base, Function function) {
  return transform_iterator<Function, Iterator>(base, function);
}

// Writes function(value) where it points.
template <class Function, class Iterator>
class transform_output_iterator;
namespace detail {
template <class Function, class Iterator>
struct transform_output_reference {
  Function function;
  Iterator base;
  template <class T>
  __host__ __device__ const transform_output_reference& operator=(const T& value) const {
    *base = function(value);
    return *this;
  }
};
}  // namespace detail
template <class Function, class Iterator>
class transform_output_iterator : public detail::iterator_base<transform_output_iterator<Function, Iterator>, void,
                                                               detail::transform_output_reference<Function, Iterator>> {
 public:
  using system = detail::system_of<Iterator>;
  __host__ __device__ transform_output_iterator(Iterator base, Function function) : base_(base), function_(function) {}
  __host__ __device__ detail::transform_output_reference<Function, Iterator> dereference() const {
    return {function_, base_};
  }
  __host__ __device__ void advance(std::ptrdiff_t n) { base_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const transform_output_iterator& to) const { return to.base_ - base_; }
  __host__ __device__ auto operator->() const = delete;

 private:
  Iterator base_;
  Function function_;
};
template <class Function, class Iterator>
__host__ __device__ transform_output_iterator<Function, Iterator> make_transform_output_iterator(Iterator base,
                                                                                                 Function function) {
  return transform_output_iterator<Function, Iterator>(base, function);
}

// ---- permutation ----------------------------------------------------------------------------------------------------
template <class Element, class Index>
class permutation_iterator : public detail::iterator_base<permutation_iterator<Element, Index>,
                                                          iterator_value_t<Element>, detail::reference_of<Element>> {
 public:
  using system = detail::system_of<Element, Index>;
  permutation_iterator() = default;
  __host__ __device__ permutation_iterator(Element element, Index index) : element_(element), index_(index) {}
  __host__ __device__ const Index& base() const { return index_; }
  __host__ __device__ detail::reference_of<Element> dereference() const {
    return *(element_ + static_cast<std::ptrdiff_t>(*index_));
  }
  __host__ __device__ void advance(std::ptrdiff_t n) { index_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const permutation_iterator& to) const { return to.index_ - index_; }

 private:
  Element element_;
  Index index_;
};
template <class Element, class Index>
__host__ __device__ permutation_iterator<Element, Index> make_permutation_iterator(Element element, Index index) {
  return permutation_iterator<Element, Index>(element, index);
}

// ---- reverse --------------------------------------------------------------------------------------------------------
template <class Iterator>
class reverse_iterator : public detail::iterator_base<reverse_iterator<Iterator>, iterator_value_t<Iterator>,
                                                      detail::reference_of<Iterator>> {
 public:
  using system = detail::system_of<Iterator>;
  reverse_iterator() = default;
  __host__ __device__ explicit reverse_iterator(Iterator base) : base_(base) {}
  __host__ __device__ const Iterator& base() const { return base_; }
  __host__ __device__ detail::reference_of<Iterator> dereference() const { return *(base_ - 1); }
  __host__ __device__ void advance(std::ptrdiff_t n) { base_ -= n; }
  __host__ __device__ std::ptrdiff_t distance(const reverse_iterator& to) const { return base_ - to.base_; }

 private:
  Iterator base_;
};
template <class Iterator>
__host__ __device__ reverse_iterator<Iterator> make_reverse_iterator(Iterator base) {
  return reverse_iterator<Iterator>(base);
}

// ---- discard --------------------------------------------------------------------------------------------------------
namespace detail {
struct any_assign {
  template <class T>
  __host__ __device__ const any_assign& operator=(const T&) const {
    return *this;
  }
  any_assign() = default;
  any_assign(const any_assign&) = default;
  __host__ __device__ any_assign& operator=(const any_assign&) { return *this; }
};
}  // namespace detail
template <class System = use_default>
class discard_iterator
    : public detail::iterator_base<discard_iterator<System>, detail::any_assign, detail::any_assign> {
 public:
  using system = any_system_tag;
  __host__ __device__ explicit discard_iterator(std::ptrdiff_t position = 0) : position_(position) {}
  __host__ __device__ detail::any_assign dereference() const { return {}; }
  __host__ __device__ void advance(std::ptrdiff_t n) { position_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const discard_iterator& to) const { return to.position_ - position_; }

 private:
  std::ptrdiff_t position_;
};
inline __host__ __device__ discard_iterator<> make_discard_iterator(std::ptrdiff_t position = 0) {
  return discard_iterator<>(position);
}

// ---- zip ------------------------------------------------------------------------------------------------------------
template <class Tuple>
class zip_iterator;
template <class... Iterators>
class zip_iterator<std::tuple<Iterators...>>
    : public detail::iterator_base<zip_iterator<std::tuple<Iterators...>>, std::tuple<iterator_value_t<Iterators>...>,
                                   std::tuple<detail::reference_of<Iterators>...>> {
 public:
  using system = detail::system_of<Iterators...>;
  using iterator_tuple = std::tuple<Iterators...>;
  zip_iterator() = default;
  __host__ __device__ zip_iterator(std::tuple<Iterators...> iterators) : iterators_(iterators) {}
  __host__ __device__ const std::tuple<Iterators...>& get_iterator_tuple() const { return iterators_; }
  __host__ __device__ std::tuple<detail::reference_of<Iterators>...> dereference() const {
    return std::apply([](const Iterators&... its) { return std::tuple<detail::reference_of<Iterators>...>(*its...); },
                      iterators_);
  }
  __host__ __device__ void advance(std::ptrdiff_t n) {
    std::apply([n](Iterators&... its) { ((its += n), ...); }, iterators_);
  }
  __host__ __device__ std::ptrdiff_t distance(const zip_iterator& to) const {
    return std::get<0>(to.iterators_) - std::get<0>(iterators_);
  }

 private:
  std::tuple<Iterators...> iterators_;
};
template <class... Iterators>
__host__ __device__ zip_iterator<std::tuple<Iterators...>> make_zip_iterator(std::tuple<Iterators...> iterators) {
  return zip_iterator<std::tuple<Iterators...>>(iterators);
}
template <class First, class... Rest, class = decltype(*std::declval<First>())>
__host__ __device__ zip_iterator<std::tuple<First, Rest...>> make_zip_iterator(First first, Rest... rest) {
  return zip_iterator<std::tuple<First, Rest...>>(std::make_tuple(first, rest...));
}

// Calls function with the members of a tuple: for zipped ranges.
template <class Function>
class zip_function {
 public:
  __host__ __device__ zip_function(Function function) : function_(function) {}
  template <class Tuple>
  __host__ __device__ decltype(auto) operator()(Tuple&& arguments) const {
    return std::apply(function_, std::forward<Tuple>(arguments));
  }

 private:
  Function function_;
};
template <class Function>
__host__ __device__ zip_function<std::decay_t<Function>> make_zip_function(Function&& function) {
  return zip_function<std::decay_t<Function>>(std::forward<Function>(function));
}

// Marks a range as the system's; the iterator itself stays.
template <class System, class Iterator>
__host__ __device__ auto retag(Iterator iterator) {
  return iterator;
}

namespace detail {
template <class... Iterators>
__host__ __device__ auto unwrapped(zip_iterator<std::tuple<Iterators...>> zip) {
  return std::apply(
      [](const Iterators&... its) { return thrust::make_zip_iterator(std::make_tuple(unwrapped(its)...)); },
      zip.get_iterator_tuple());
}
template <class Function, class Iterator, class Reference, class Value>
__host__ __device__ auto unwrapped(transform_iterator<Function, Iterator, Reference, Value> it) {
  using Base = decltype(unwrapped(it.base()));
  return transform_iterator<Function, Base, Reference, Value>(unwrapped(it.base()), it.functor());
}
}  // namespace detail

}  // namespace thrust
