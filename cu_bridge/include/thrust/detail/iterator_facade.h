// Iterators that programs write: of five functions (iterator_facade), or as another with changes (iterator_adaptor).
#pragma once

#include "iterators.h"

namespace thrust {

// What a derived class makes its friend, so that its functions need not be public.
class iterator_core_access {
 public:
  template <class Facade>
  static __host__ __device__ decltype(auto) dereference(const Facade& it) {
    return it.dereference();
  }
  template <class Facade>
  static __host__ __device__ void increment(Facade& it) {
    it.increment();
  }
  template <class Facade>
  static __host__ __device__ void decrement(Facade& it) {
    it.decrement();
  }
  template <class Facade, class Difference>
  static __host__ __device__ void advance(Facade& it, Difference n) {
    it.advance(n);
  }
  template <class A, class B>
  static __host__ __device__ bool equal(const A& a, const B& b) {
    return a.equal(b);
  }
  template <class A, class B>
  static __host__ __device__ auto distance_to(const A& from, const B& to) {
    return from.distance_to(to);
  }
};

struct incrementable_traversal_tag {};
struct single_pass_traversal_tag : incrementable_traversal_tag {};
struct forward_traversal_tag : single_pass_traversal_tag {};
struct bidirectional_traversal_tag : forward_traversal_tag {};
struct random_access_traversal_tag : bidirectional_traversal_tag {};

namespace detail {
// The standard's category of a traversal, or the category itself.
template <class Traversal>
using category_of = std::conditional_t<
    std::is_convertible<Traversal, random_access_traversal_tag>::value ||
        std::is_convertible<Traversal, std::random_access_iterator_tag>::value,
    std::random_access_iterator_tag,
    std::conditional_t<std::is_convertible<Traversal, bidirectional_traversal_tag>::value ||
                           std::is_convertible<Traversal, std::bidirectional_iterator_tag>::value,
                       std::bidirectional_iterator_tag,
                       std::conditional_t<std::is_convertible<Traversal, forward_traversal_tag>::value ||
                                              std::is_convertible<Traversal, std::forward_iterator_tag>::value,
                                          std::forward_iterator_tag, std::input_iterator_tag>>>;
}  // namespace detail

template <class Derived, class Value, class System, class Traversal, class Reference, class Difference = std::ptrdiff_t>
class iterator_facade {
 public:
  using value_type = std::remove_cv_t<Value>;
  using reference = Reference;
  using difference_type = Difference;
  using pointer =
      std::conditional_t<std::is_lvalue_reference<Reference>::value, std::remove_reference_t<Reference>*, void>;
  using iterator_category = detail::category_of<Traversal>;
  using system = System;

  __host__ __device__ Reference operator*() const { return iterator_core_access::dereference(self()); }
  __host__ __device__ auto operator->() const {
    if constexpr (std::is_lvalue_reference<Reference>::value) {
      return &iterator_core_access::dereference(self());
    } else {
      struct Holder {
        value_type value;
        __host__ __device__ value_type* operator->() { return &value; }
      };
      return Holder{iterator_core_access::dereference(self())};
    }
  }
  __host__ __device__ Reference operator[](Difference n) const { return *(self() + n); }
  __host__ __device__ Derived& operator++() {
    iterator_core_access::increment(self());
    return self();
  }
  __host__ __device__ Derived operator++(int) {
    Derived old = self();
    iterator_core_access::increment(self());
    return old;
  }
  __host__ __device__ Derived& operator--() {
    iterator_core_access::decrement(self());
    return self();
  }
  __host__ __device__ Derived operator--(int) {
    Derived old = self();
    iterator_core_access::decrement(self());
    return old;
  }
  __host__ __device__ Derived& operator+=(Difference n) {
    iterator_core_access::advance(self(), n);
    return self();
  }
  __host__ __device__ Derived& operator-=(Difference n) {
    iterator_core_access::advance(self(), -n);
    return self();
  }
  __host__ __device__ Derived operator-(Difference n) const {
    Derived moved = self();
    iterator_core_access::advance(moved, -n);
    return moved;
  }
  friend __host__ __device__ Derived operator+(const Derived& it, Difference n) {
    Derived moved = it;
    iterator_core_access::advance(moved, n);
    return moved;
  }
  friend __host__ __device__ Derived operator+(Difference n, const Derived& it) { return it + n; }
  friend __host__ __device__ Difference operator-(const Derived& a, const Derived& b) {
    return iterator_core_access::distance_to(b, a);
  }
  friend __host__ __device__ bool operator==(const Derived& a, const Derived& b) {
    return iterator_core_access::equal(a, b);
  }
  friend __host__ __device__ bool operator!=(const Derived& a, const Derived& b) { return !(a == b); }
  friend __host__ __device__ bool operator<(const Derived& a, const Derived& b) { return a - b < 0; }
  friend __host__ __device__ bool operator>(const Derived& a, const Derived& b) { return a - b > 0; }
  friend __host__ __device__ bool operator<=(const Derived& a, const Derived& b) { return a - b <= 0; }
  friend __host__ __device__ bool operator>=(const Derived& a, const Derived& b) { return a - b >= 0; }

 protected:
  __host__ __device__ Derived& derived() { return self(); }
  __host__ __device__ const Derived& derived() const { return self(); }

 private:
  __host__ __device__ Derived& self() { return static_cast<Derived&>(*this); }
  __host__ __device__ const Derived& self() const { return static_cast<const Derived&>(*this); }
};

namespace detail {
template <class Derived, class Base, class Value, class System, class Traversal, class Reference, class Difference>
using adaptor_facade = iterator_facade<
    Derived, or_default<Value, iterator_value_t<Base>>, or_default<System, system_of<Base>>,
    or_default<Traversal, typename std::iterator_traits<Base>::iterator_category>,
    or_default<Reference, std::conditional_t<std::is_same<Value, use_default>::value, reference_of<Base>, Value&>>,
    or_default<Difference, typename std::iterator_traits<Base>::difference_type>>;
}  // namespace detail

template <class Derived, class Base, class Value = use_default, class System = use_default,
          class Traversal = use_default, class Reference = use_default, class Difference = use_default>
class iterator_adaptor : public detail::adaptor_facade<Derived, Base, Value, System, Traversal, Reference, Difference> {
  using Facade = detail::adaptor_facade<Derived, Base, Value, System, Traversal, Reference, Difference>;
  friend class iterator_core_access;

 public:
  using base_type = Base;
  using typename Facade::difference_type;
  using typename Facade::reference;

  iterator_adaptor() = default;
  __host__ __device__ explicit iterator_adaptor(const Base& base) : base_(base) {}
  __host__ __device__ const Base& base() const { return base_; }

 protected:
  using super_t = iterator_adaptor;
  __host__ __device__ const Base& base_reference() const { return base_; }
  __host__ __device__ Base& base_reference() { return base_; }

 private:
  __host__ __device__ reference dereference() const { return *base_; }
  template <class OtherDerived, class... Other>
  __host__ __device__ bool equal(const iterator_adaptor<OtherDerived, Other...>& other) const {
    return base_ == other.base();
  }
  __host__ __device__ void advance(difference_type n) { base_ += n; }
  __host__ __device__ void increment() { ++base_; }
  __host__ __device__ void decrement() { --base_; }
  template <class OtherDerived, class... Other>
  __host__ __device__ difference_type distance_to(const iterator_adaptor<OtherDerived, Other...>& other) const {
    return other.base() - base_;
  }

  Base base_{};
};

// ---- Iterators made of functions ------------------------------------------------------------------------------------

namespace detail {
// Reads in(value), writes out(value).
template <class In, class Out, class Iterator>
struct transform_both_reference {
  using value_type = std::decay_t<transformed<In, Iterator>>;
  In in;
  Out out;
  Iterator base;
  __host__ __device__ operator value_type() const { return in(*base); }
  template <class T>
  __host__ __device__ const transform_both_reference& operator=(const T& value) const {
    *base = out(value);
    return *this;
  }
  __host__ __device__ const transform_both_reference& operator=(const transform_both_reference& other) const {
    return *this = static_cast<value_type>(other);
  }
  transform_both_reference(const transform_both_reference&) = default;
  __host__ __device__ transform_both_reference(In i, Out o, Iterator b) : in(i), out(o), base(b) {}
};
// Calls function(place, value) for what is written.
template <class Function>
struct tabulate_reference {
  Function function;
  std::ptrdiff_t place;
  template <class T>
  __host__ __device__ const tabulate_reference& operator=(const T& value) const {
    function(place, value);
    return *this;
  }
};
}  // namespace detail

template <class In, class Out, class Iterator>
class transform_input_output_iterator
    : public detail::iterator_base<transform_input_output_iterator<In, Out, Iterator>,
                                   std::decay_t<detail::transformed<In, Iterator>>,
                                   detail::transform_both_reference<In, Out, Iterator>> {
 public:
  using system = detail::system_of<Iterator>;
  __host__ __device__ transform_input_output_iterator(Iterator base, In in, Out out)
      : base_(base), in_(in), out_(out) {}
  __host__ __device__ const Iterator& base() const { return base_; }
  __host__ __device__ detail::transform_both_reference<In, Out, Iterator> dereference() const {
    return {in_, out_, base_};
  }
  __host__ __device__ void advance(std::ptrdiff_t n) { base_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const transform_input_output_iterator& to) const {
    return to.base_ - base_;
  }

 private:
  Iterator base_;
  In in_;
  Out out_;
};
template <class In, class Out, class Iterator>
__host__ __device__ transform_input_output_iterator<In, Out, Iterator> make_transform_input_output_iterator(
    Iterator base, In in, Out out) {
  return {base, in, out};
}

template <class Function, class System = use_default, class Difference = std::ptrdiff_t>
class tabulate_output_iterator : public detail::iterator_base<tabulate_output_iterator<Function, System, Difference>,
                                                              void, detail::tabulate_reference<Function>> {
 public:
  using system = any_system_tag;
  __host__ __device__ explicit tabulate_output_iterator(Function function, std::ptrdiff_t place = 0)
      : function_(function), place_(place) {}
  __host__ __device__ detail::tabulate_reference<Function> dereference() const { return {function_, place_}; }
  __host__ __device__ void advance(std::ptrdiff_t n) { place_ += n; }
  __host__ __device__ std::ptrdiff_t distance(const tabulate_output_iterator& to) const { return to.place_ - place_; }
  __host__ __device__ auto operator->() const = delete;

 private:
  Function function_;
  std::ptrdiff_t place_;
};
template <class Function>
__host__ __device__ tabulate_output_iterator<Function> make_tabulate_output_iterator(Function function) {
  return tabulate_output_iterator<Function>(function);
}

}  // namespace thrust
