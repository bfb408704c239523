// device_ptr and device_reference: a pointer that says its memory is the device's.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>

#include "../../host_defines.h"
#include "../swap.h"
#include "config.h"

namespace thrust {

struct device_system_tag {};
struct host_system_tag {};
struct any_system_tag {};

template <class T>
class device_ptr;

template <class T>
class device_reference {
 public:
  using value_type = std::remove_cv_t<T>;
  using pointer = device_ptr<T>;
  __host__ __device__ explicit device_reference(T* address) : address_(address) {}
  device_reference(const device_reference&) = default;
  template <class U, class = std::enable_if_t<std::is_convertible<U*, T*>::value>>
  __host__ __device__ device_reference(const device_reference<U>& other) : address_(other.address()) {}

  __host__ __device__ operator value_type() const { return *address_; }
  __host__ __device__ const device_reference& operator=(const device_reference& other) const {
    *address_ = *other.address_;
    return *this;
  }
  __host__ __device__ device_reference& operator=(const device_reference& other) {
    *address_ = *other.address_;
    return *this;
  }
  template <class U>
  __host__ __device__ const device_reference& operator=(const device_reference<U>& other) const {
    *address_ = *other.address();
    return *this;
  }
  __host__ __device__ const device_reference& operator=(const value_type& value) const {
    *address_ = value;
    return *this;
  }
  __host__ __device__ device_ptr<T> operator&() const;
  __host__ __device__ T* address() const { return address_; }

#define MXMACA_ASSIGN(op)                                                         \
  template <class U>                                                              \
  __host__ __device__ const device_reference& operator op(const U& value) const { \
    *address_ op value;                                                           \
    return *this;                                                                 \
  }
  MXMACA_ASSIGN(+=)
  MXMACA_ASSIGN(-=)
  MXMACA_ASSIGN(*=)
  MXMACA_ASSIGN(/=)
  MXMACA_ASSIGN(%=)
  MXMACA_ASSIGN(&=)
  MXMACA_ASSIGN(|=)
  MXMACA_ASSIGN(^=)
  MXMACA_ASSIGN(<<=)
  MXMACA_ASSIGN(>>=)
#undef MXMACA_ASSIGN
  __host__ __device__ const device_reference& operator++() const {
    ++*address_;
    return *this;
  }
  __host__ __device__ const device_reference& operator--() const {
    --*address_;
    return *this;
  }
  __host__ __device__ value_type operator++(int) const { return (*address_)++; }
  __host__ __device__ value_type operator--(int) const { return (*address_)--; }
  friend __host__ __device__ void swap(device_reference a, device_reference b) {
    thrust::swap(*a.address_, *b.address_);
  }

 private:
  T* address_;
};

#define MXMACA_COMPARE(op)                                                                           \
  template <class A, class B>                                                                        \
  __host__ __device__ bool operator op(const device_reference<A>& a, const device_reference<B>& b) { \
    return *a.address() op * b.address();                                                            \
  }
MXMACA_COMPARE(==)
MXMACA_COMPARE(!=)
MXMACA_COMPARE(<)
MXMACA_COMPARE(>)
MXMACA_COMPARE(<=)
MXMACA_COMPARE(>=)
#undef MXMACA_COMPARE

template <class T>
class device_ptr {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr;
  using reference = std::conditional_t<std::is_void<T>::value, void,
                                       device_reference<std::conditional_t<std::is_void<T>::value, char, T>>>;
  using iterator_category = std::random_access_iterator_tag;
  using system = device_system_tag;
  using raw_pointer = T*;

  __host__ __device__ constexpr device_ptr() : address_(nullptr) {}
  __host__ __device__ constexpr device_ptr(std::nullptr_t) : address_(nullptr) {}
  __host__ __device__ explicit constexpr device_ptr(T* address) : address_(address) {}
  template <class U, class = std::enable_if_t<std::is_convertible<U*, T*>::value>>
  __host__ __device__ constexpr device_ptr(const device_ptr<U>& other) : address_(other.get()) {}

  __host__ __device__ constexpr T* get() const { return address_; }
  __host__ __device__ explicit constexpr operator bool() const { return address_ != nullptr; }
  __host__ __device__ reference operator*() const { return reference(address_); }
  __host__ __device__ T* operator->() const { return address_; }
  template <class Index>
  __host__ __device__ auto operator[](Index i) const {
    return device_reference<T>(address_ + i);
  }
  __host__ __device__ device_ptr& operator++() { return *this += 1; }
  __host__ __device__ device_ptr& operator--() { return *this -= 1; }
  __host__ __device__ device_ptr operator++(int) { return device_ptr(address_++); }
  __host__ __device__ device_ptr operator--(int) { return device_ptr(address_--); }
  __host__ __device__ device_ptr& operator+=(difference_type n) {
    address_ += n;
    return *this;
  }
  __host__ __device__ device_ptr& operator-=(difference_type n) {
    address_ -= n;
    return *this;
  }
  friend __host__ __device__ device_ptr operator+(device_ptr p, difference_type n) { return p += n; }
  friend __host__ __device__ device_ptr operator+(difference_type n, device_ptr p) { return p += n; }
  friend __host__ __device__ device_ptr operator-(device_ptr p, difference_type n) { return p -= n; }

 private:
  T* address_;
};

template <class A, class B>
__host__ __device__ std::ptrdiff_t operator-(const device_ptr<A>& a, const device_ptr<B>& b) {
  return a.get() - b.get();
}
#define MXMACA_COMPARE(op)                                                               \
  template <class A, class B>                                                            \
  __host__ __device__ bool operator op(const device_ptr<A>& a, const device_ptr<B>& b) { \
    return a.get() op b.get();                                                           \
  }
MXMACA_COMPARE(==)
MXMACA_COMPARE(!=)
MXMACA_COMPARE(<)
MXMACA_COMPARE(>)
MXMACA_COMPARE(<=)
MXMACA_COMPARE(>=)
#undef MXMACA_COMPARE

template <class T>
__host__ __device__ device_ptr<T> device_reference<T>::operator&() const {
  return device_ptr<T>(address_);
}

template <class T>
__host__ __device__ device_ptr<T> device_pointer_cast(T* pointer) {
  return device_ptr<T>(pointer);
}
template <class T>
__host__ __device__ device_ptr<T> device_pointer_cast(const device_ptr<T>& pointer) {
  return pointer;
}
template <class T>
__host__ __device__ T* raw_pointer_cast(T* pointer) {
  return pointer;
}
template <class T>
__host__ __device__ T* raw_pointer_cast(const device_ptr<T>& pointer) {
  return pointer.get();
}
template <class T>
__host__ __device__ T& raw_reference_cast(T& value) {
  return value;
}
template <class T>
__host__ __device__ T& raw_reference_cast(const device_reference<T>& value) {
  return *value.address();
}

namespace detail {
template <class T>
__host__ __device__ T* unwrapped(device_ptr<T> pointer) {
  return pointer.get();
}
template <class Iterator>
__host__ __device__ Iterator unwrapped(Iterator iterator) {
  return iterator;
}

// Whether an iterator says that it is the device's.
template <class Iterator, class = void>
struct on_device : std::false_type {};
template <class Iterator>
struct on_device<Iterator, std::void_t<typename Iterator::system>>
    : std::is_same<typename Iterator::system, device_system_tag> {};

// The system of an iterator made of others: the device's if one of them is.
template <class... Iterators>
using system_of = std::conditional_t<(on_device<Iterators>::value || ...), device_system_tag, any_system_tag>;
}  // namespace detail

}  // namespace thrust
