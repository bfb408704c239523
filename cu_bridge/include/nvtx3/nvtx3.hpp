// NVTX for C++: ranges that end with their scope, domains, registered names, categories and colours. A profiler of the
// simulated device is told of the message and the domain; colours, payloads and categories have no place there.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "nvToolsExt.h"

#define NVTX3_CPP_DEFINITIONS_V1_0  // programs ask whether the namespace v1 is there

namespace nvtx3 {
inline namespace v1 {

struct rgb {
  using component_type = std::uint8_t;
  constexpr rgb(component_type r, component_type g, component_type b) noexcept : red(r), green(g), blue(b) {}
  component_type red, green, blue;
};
struct argb : rgb {
  constexpr argb(component_type a, component_type r, component_type g, component_type b) noexcept
      : rgb(r, g, b), alpha(a) {}
  component_type alpha;
};
class color {
 public:
  using value_type = std::uint32_t;
  constexpr explicit color(value_type code) noexcept : value_(code) {}
  constexpr color(argb c) noexcept
      : value_(static_cast<value_type>(c.alpha) << 24 | static_cast<value_type>(c.red) << 16 |
               static_cast<value_type>(c.green) << 8 | c.blue) {}
  constexpr color(rgb c) noexcept : color(argb(255, c.red, c.green, c.blue)) {}
  constexpr value_type get_value() const noexcept { return value_; }

 private:
  value_type value_;
};

class payload {
 public:
  template <class Number>
  constexpr explicit payload(Number) noexcept {}
};

class category {
 public:
  using id_type = std::uint32_t;
  constexpr explicit category(id_type id) noexcept : id_(id) {}
  constexpr id_type get_id() const noexcept { return id_; }

 private:
  id_type id_;
};
template <class Domain>
class named_category_in : public category {
 public:
  named_category_in(id_type id, const char*) noexcept : category(id) {}
  template <class Category>
  static const named_category_in& get() noexcept {
    static const named_category_in one(Category::id, Category::name);
    return one;
  }
};

struct domain {
  struct global {};
};
namespace detail {
template <class Domain, class = void>
struct domain_name {
  static const char* get() { return nullptr; }
};
template <class Domain>
struct domain_name<Domain, decltype(static_cast<void>(Domain::name))> {
  static const char* get() { return Domain::name; }
};
}  // namespace detail
using named_category = named_category_in<domain::global>;

// A message that many ranges have.
template <class Domain>
class registered_string_in {
 public:
  explicit registered_string_in(const char* text) : text_(text) {}
  explicit registered_string_in(std::string text) : text_(std::move(text)) {}
  template <class Message>
  static const registered_string_in& get() {
    static const registered_string_in one(Message::message);
    return one;
  }
  const char* c_str() const noexcept { return text_.c_str(); }

 private:
  std::string text_;
};
using registered_string = registered_string_in<domain::global>;

class message {
 public:
  constexpr message(const char* text) noexcept : text_(text) {}
  message(const std::string& text) noexcept : text_(text.c_str()) {}
  template <class Domain>
  message(const registered_string_in<Domain>& text) noexcept : text_(text.c_str()) {}
  constexpr const char* c_str() const noexcept { return text_; }

 private:
  const char* text_;
};

class event_attributes {
 public:
  constexpr event_attributes() noexcept = default;
  template <class... More>
  explicit event_attributes(const message& text, const More&... more) noexcept : event_attributes(more...) {
    text_ = text.c_str();
  }
  template <class... More>
  explicit event_attributes(const color&, const More&... more) noexcept : event_attributes(more...) {}
  template <class... More>
  explicit event_attributes(const payload&, const More&... more) noexcept : event_attributes(more...) {}
  template <class... More>
  explicit event_attributes(const category&, const More&... more) noexcept : event_attributes(more...) {}
  // What a message is made of.
  template <class... More>
  explicit event_attributes(const char* text, const More&... more) noexcept : event_attributes(more...) {
    text_ = text;
  }
  template <class... More>
  explicit event_attributes(const std::string& text, const More&... more) noexcept : event_attributes(more...) {
    text_ = text.c_str();
  }
  template <class Domain, class... More>
  explicit event_attributes(const registered_string_in<Domain>& text, const More&... more) noexcept
      : event_attributes(more...) {
    text_ = text.c_str();
  }
  const char* text() const noexcept { return text_; }

 private:
  const char* text_ = "";
};

namespace detail {
inline std::int64_t tell(int kind, const char* domain, const char* text, unsigned long long range) {
  return mxmacaProfileMark != nullptr ? mxmacaProfileMark(kind, domain, text, range) : 0;
}
enum { kMark = 1, kPush = 2, kPop = 3, kStart = 4, kEnd = 5 };
}  // namespace detail

// From its making to its end, in one thread.
template <class Domain>
class scoped_range_in {
 public:
  explicit scoped_range_in(const event_attributes& attributes) noexcept {
    detail::tell(detail::kPush, detail::domain_name<Domain>::get(), attributes.text(), 0);
  }
  template <class... Arguments>
  explicit scoped_range_in(const Arguments&... arguments) noexcept
      : scoped_range_in(event_attributes(arguments...)) {}
  scoped_range_in() noexcept : scoped_range_in(event_attributes()) {}
  void* operator new(std::size_t) = delete;
  scoped_range_in(const scoped_range_in&) = delete;
  scoped_range_in& operator=(const scoped_range_in&) = delete;
  ~scoped_range_in() noexcept { detail::tell(detail::kPop, detail::domain_name<Domain>::get(), nullptr, 0); }
};
using scoped_range = scoped_range_in<domain::global>;
template <class Domain>
using thread_range_in = scoped_range_in<Domain>;
using thread_range = scoped_range;

// From its making to its end, in any thread.
template <class Domain>
class unique_range_in {
 public:
  explicit unique_range_in(const event_attributes& attributes) noexcept
      : range_(static_cast<nvtxRangeId_t>(
            detail::tell(detail::kStart, detail::domain_name<Domain>::get(), attributes.text(), 0))) {}
  template <class... Arguments>
  explicit unique_range_in(const Arguments&... arguments) noexcept
      : unique_range_in(event_attributes(arguments...)) {}
  unique_range_in(unique_range_in&& other) noexcept : range_(std::exchange(other.range_, 0)) {}
  unique_range_in& operator=(unique_range_in&& other) noexcept {
    std::swap(range_, other.range_);
    return *this;
  }
  ~unique_range_in() noexcept {
    if (range_ != 0) detail::tell(detail::kEnd, detail::domain_name<Domain>::get(), nullptr, range_);
  }

 private:
  nvtxRangeId_t range_;
};
using unique_range = unique_range_in<domain::global>;

template <class Domain, class... Arguments>
void mark_in(const Arguments&... arguments) noexcept {
  detail::tell(detail::kMark, detail::domain_name<Domain>::get(), event_attributes(arguments...).text(), 0);
}
template <class... Arguments>
void mark(const Arguments&... arguments) noexcept {
  mark_in<domain::global>(arguments...);
}

struct range_handle {
  nvtxRangeId_t value;
  constexpr explicit operator bool() const noexcept { return value != 0; }
};
template <class Domain, class... Arguments>
range_handle start_range_in(const Arguments&... arguments) noexcept {
  return {static_cast<nvtxRangeId_t>(detail::tell(detail::kStart, detail::domain_name<Domain>::get(),
                                                  event_attributes(arguments...).text(), 0))};
}
template <class... Arguments>
range_handle start_range(const Arguments&... arguments) noexcept {
  return start_range_in<domain::global>(arguments...);
}
template <class Domain>
void end_range_in(range_handle range) noexcept {
  detail::tell(detail::kEnd, detail::domain_name<Domain>::get(), nullptr, range.value);
}
inline void end_range(range_handle range) noexcept { end_range_in<domain::global>(range); }

}  // namespace v1
}  // namespace nvtx3

#define NVTX3_FUNC_RANGE() ::nvtx3::scoped_range const nvtx3_range__(__func__)
#define NVTX3_FUNC_RANGE_IN(Domain) ::nvtx3::scoped_range_in<Domain> const nvtx3_range__(__func__)
