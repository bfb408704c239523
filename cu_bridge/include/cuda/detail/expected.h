// cuda::std::expected before C++23, where the C++ library has none. The interface is that of C++23.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <variant>

#include "../../host_defines.h"
#include "std.h"

namespace cuda {
namespace std {

template <class T, class E>
class expected;

struct unexpect_t {
  explicit unexpect_t() = default;
};
inline constexpr unexpect_t unexpect{};

template <class E>
class unexpected {
 public:
  template <class Given = E, ::std::enable_if_t<!::std::is_same_v<::std::decay_t<Given>, unexpected> &&
                                                    !::std::is_same_v<::std::decay_t<Given>, ::std::in_place_t> &&
                                                    ::std::is_constructible_v<E, Given>,
                                                int> = 0>
  __host__ __device__ constexpr explicit unexpected(Given&& given) : error_(::std::forward<Given>(given)) {}
  template <class... Given, ::std::enable_if_t<::std::is_constructible_v<E, Given...>, int> = 0>
  __host__ __device__ constexpr explicit unexpected(::std::in_place_t, Given&&... given)
      : error_(::std::forward<Given>(given)...) {}

  __host__ __device__ constexpr E& error() & noexcept { return error_; }
  __host__ __device__ constexpr const E& error() const& noexcept { return error_; }
  __host__ __device__ constexpr E&& error() && noexcept { return ::std::move(error_); }
  __host__ __device__ constexpr const E&& error() const&& noexcept { return ::std::move(error_); }

  template <class Other>
  __host__ __device__ friend constexpr bool operator==(const unexpected& a, const unexpected<Other>& b) {
    return a.error_ == b.error();
  }

 private:
  E error_;
};
template <class E>
unexpected(E) -> unexpected<E>;

template <class E>
class bad_expected_access;
template <>
class bad_expected_access<void> : public ::std::exception {
 public:
  const char* what() const noexcept override { return "bad access to cuda::std::expected"; }
};
template <class E>
class bad_expected_access : public bad_expected_access<void> {
 public:
  explicit bad_expected_access(E error) : error_(::std::move(error)) {}
  const E& error() const& noexcept { return error_; }

 private:
  E error_;
};

namespace expected_detail {

template <class T>
inline constexpr bool is_expected = false;
template <class T, class E>
inline constexpr bool is_expected<expected<T, E>> = true;
template <class T>
inline constexpr bool is_unexpected = false;
template <class E>
inline constexpr bool is_unexpected<unexpected<E>> = true;

template <class Function, class... Given>
using Result = ::std::remove_cv_t<::std::remove_reference_t<::std::invoke_result_t<Function, Given...>>>;

// Device code has no exceptions.
template <class E>
__host__ __device__ inline void refuse([[maybe_unused]] const E& error) {
#ifdef __CUDA_ARCH__
  __trap();
#else
  throw bad_expected_access<E>(error);
#endif
}

// What expected values of all types share. A void one holds a monostate.
template <class Self, class Value, class E>
class Base {
 public:
  using error_type = E;
  using unexpected_type = unexpected<E>;

  __host__ __device__ constexpr bool has_value() const noexcept { return held_.index() == 0; }
  __host__ __device__ constexpr explicit operator bool() const noexcept { return has_value(); }
  __host__ __device__ constexpr E& error() & noexcept { return ::std::get_if<1>(&held_)->error(); }
  __host__ __device__ constexpr const E& error() const& noexcept { return ::std::get_if<1>(&held_)->error(); }
  __host__ __device__ constexpr E&& error() && noexcept { return ::std::move(error()); }
  template <class Given = E>
  __host__ __device__ constexpr E error_or(Given&& given) const {
    return has_value() ? static_cast<E>(::std::forward<Given>(given)) : error();
  }
  __host__ __device__ constexpr void swap(Self& other) { held_.swap(other.held_); }
  __host__ __device__ friend constexpr void swap(Self& a, Self& b) { a.swap(b); }

  template <class Function>
  __host__ __device__ constexpr auto or_else(Function&& function) const {
    using Other = Result<Function, const E&>;
    static_assert(is_expected<Other>, "or_else takes a function that returns an expected");
    if (!has_value()) return ::std::invoke(::std::forward<Function>(function), error());
    return Other(self());
  }

 protected:
  template <class... Given>
  __host__ __device__ constexpr explicit Base(Given&&... given) : held_(::std::forward<Given>(given)...) {}
  __host__ __device__ constexpr const Self& self() const { return static_cast<const Self&>(*this); }

  ::std::variant<Value, unexpected<E>> held_;
};

}  // namespace expected_detail

template <class T, class E>
class expected : public expected_detail::Base<expected<T, E>, T, E> {
  using Base = expected_detail::Base<expected<T, E>, T, E>;

 public:
  using value_type = T;
  template <class Other>
  using rebind = expected<Other, E>;

  template <class Given = T, ::std::enable_if_t<::std::is_default_constructible_v<Given>, int> = 0>
  __host__ __device__ constexpr expected() : Base(::std::in_place_index<0>) {}
  template <class Given = T, ::std::enable_if_t<!::std::is_same_v<::std::decay_t<Given>, expected> &&
                                                    !::std::is_same_v<::std::decay_t<Given>, ::std::in_place_t> &&
                                                    !::std::is_same_v<::std::decay_t<Given>, unexpect_t> &&
                                                    !expected_detail::is_expected<::std::decay_t<Given>> &&
                                                    !expected_detail::is_unexpected<::std::decay_t<Given>> &&
                                                    ::std::is_constructible_v<T, Given>,
                                                int> = 0>
  __host__ __device__ constexpr expected(Given&& given)
      : Base(::std::in_place_index<0>, ::std::forward<Given>(given)) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<E, const Other&>, int> = 0>
  __host__ __device__ constexpr expected(const unexpected<Other>& other)
      : Base(::std::in_place_index<1>, ::std::in_place, other.error()) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<E, Other>, int> = 0>
  __host__ __device__ constexpr expected(unexpected<Other>&& other)
      : Base(::std::in_place_index<1>, ::std::in_place, ::std::move(other).error()) {}
  template <class... Given>
  __host__ __device__ constexpr explicit expected(::std::in_place_t, Given&&... given)
      : Base(::std::in_place_index<0>, ::std::forward<Given>(given)...) {}
  template <class... Given>
  __host__ __device__ constexpr explicit expected(unexpect_t, Given&&... given)
      : Base(::std::in_place_index<1>, ::std::in_place, ::std::forward<Given>(given)...) {}
  template <
      class Other, class Theirs,
      ::std::enable_if_t<!::std::is_same_v<expected<Other, Theirs>, expected> &&
                             ::std::is_constructible_v<T, const Other&> && ::std::is_constructible_v<E, const Theirs&>,
                         int> = 0>
  __host__ __device__ constexpr expected(const expected<Other, Theirs>& other)
      : expected(other.has_value() ? expected(::std::in_place, *other) : expected(unexpect, other.error())) {}

  template <class... Given>
  __host__ __device__ constexpr T& emplace(Given&&... given) {
    return this->held_.template emplace<0>(::std::forward<Given>(given)...);
  }

  __host__ __device__ constexpr T* operator->() noexcept { return ::std::get_if<0>(&this->held_); }
  __host__ __device__ constexpr const T* operator->() const noexcept { return ::std::get_if<0>(&this->held_); }
  __host__ __device__ constexpr T& operator*() & noexcept { return *::std::get_if<0>(&this->held_); }
  __host__ __device__ constexpr const T& operator*() const& noexcept { return *::std::get_if<0>(&this->held_); }
  __host__ __device__ constexpr T&& operator*() && noexcept { return ::std::move(**this); }
  __host__ __device__ constexpr T& value() & {
    if (!this->has_value()) expected_detail::refuse(this->error());
    return **this;
  }
  __host__ __device__ constexpr const T& value() const& {
    if (!this->has_value()) expected_detail::refuse(this->error());
    return **this;
  }
  __host__ __device__ constexpr T&& value() && {
    if (!this->has_value()) expected_detail::refuse(this->error());
    return ::std::move(**this);
  }
  template <class Given = T>
  __host__ __device__ constexpr T value_or(Given&& given) const {
    return this->has_value() ? **this : static_cast<T>(::std::forward<Given>(given));
  }

  template <class Function>
  __host__ __device__ constexpr auto and_then(Function&& function) const {
    using Other = expected_detail::Result<Function, const T&>;
    static_assert(expected_detail::is_expected<Other>, "and_then takes a function that returns an expected");
    if (this->has_value()) return ::std::invoke(::std::forward<Function>(function), **this);
    return Other(unexpect, this->error());
  }
  template <class Function>
  __host__ __device__ constexpr auto transform(Function&& function) const {
    using Other = expected<expected_detail::Result<Function, const T&>, E>;
    if (!this->has_value()) return Other(unexpect, this->error());
    if constexpr (::std::is_void_v<typename Other::value_type>) {
      ::std::invoke(::std::forward<Function>(function), **this);
      return Other();
    } else {
      return Other(::std::in_place, ::std::invoke(::std::forward<Function>(function), **this));
    }
  }
  template <class Function>
  __host__ __device__ constexpr auto transform_error(Function&& function) const {
    using Other = expected<T, expected_detail::Result<Function, const E&>>;
    if (this->has_value()) return Other(::std::in_place, **this);
    return Other(unexpect, ::std::invoke(::std::forward<Function>(function), this->error()));
  }

  template <class Other, class Theirs>
  __host__ __device__ friend constexpr bool operator==(const expected& a, const expected<Other, Theirs>& b) {
    if (a.has_value() != b.has_value()) return false;
    return a.has_value() ? *a == *b : a.error() == b.error();
  }
  template <class Other, ::std::enable_if_t<!expected_detail::is_expected<Other>, int> = 0>
  __host__ __device__ friend constexpr bool operator==(const expected& a, const Other& b) {
    if constexpr (expected_detail::is_unexpected<Other>) {
      return !a.has_value() && a.error() == b.error();
    } else {
      return a.has_value() && *a == b;
    }
  }
};

template <class E>
class expected<void, E> : public expected_detail::Base<expected<void, E>, ::std::monostate, E> {
  using Base = expected_detail::Base<expected<void, E>, ::std::monostate, E>;

 public:
  using value_type = void;
  template <class Other>
  using rebind = expected<Other, E>;

  __host__ __device__ constexpr expected() : Base(::std::in_place_index<0>) {}
  __host__ __device__ constexpr explicit expected(::std::in_place_t) : expected() {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<E, const Other&>, int> = 0>
  __host__ __device__ constexpr expected(const unexpected<Other>& other)
      : Base(::std::in_place_index<1>, ::std::in_place, other.error()) {}
  template <class... Given>
  __host__ __device__ constexpr explicit expected(unexpect_t, Given&&... given)
      : Base(::std::in_place_index<1>, ::std::in_place, ::std::forward<Given>(given)...) {}

  __host__ __device__ constexpr void emplace() { this->held_.template emplace<0>(); }
  __host__ __device__ constexpr void operator*() const noexcept {}
  __host__ __device__ constexpr void value() const {
    if (!this->has_value()) expected_detail::refuse(this->error());
  }

  template <class Function>
  __host__ __device__ constexpr auto and_then(Function&& function) const {
    using Other = expected_detail::Result<Function>;
    static_assert(expected_detail::is_expected<Other>, "and_then takes a function that returns an expected");
    if (this->has_value()) return ::std::invoke(::std::forward<Function>(function));
    return Other(unexpect, this->error());
  }
  template <class Function>
  __host__ __device__ constexpr auto transform(Function&& function) const {
    using Other = expected<expected_detail::Result<Function>, E>;
    if (!this->has_value()) return Other(unexpect, this->error());
    if constexpr (::std::is_void_v<typename Other::value_type>) {
      ::std::invoke(::std::forward<Function>(function));
      return Other();
    } else {
      return Other(::std::in_place, ::std::invoke(::std::forward<Function>(function)));
    }
  }
  template <class Function>
  __host__ __device__ constexpr auto transform_error(Function&& function) const {
    using Other = expected<void, expected_detail::Result<Function, const E&>>;
    if (this->has_value()) return Other();
    return Other(unexpect, ::std::invoke(::std::forward<Function>(function), this->error()));
  }

  template <class Theirs>
  __host__ __device__ friend constexpr bool operator==(const expected& a, const expected<void, Theirs>& b) {
    return a.has_value() == b.has_value() && (a.has_value() || a.error() == b.error());
  }
  template <class Theirs>
  __host__ __device__ friend constexpr bool operator==(const expected& a, const unexpected<Theirs>& b) {
    return !a.has_value() && a.error() == b.error();
  }
};

}  // namespace std
}  // namespace cuda
