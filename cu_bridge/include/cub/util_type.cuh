// Types and operators that the rest of cub is written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "../cuda_runtime.h"

#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../mxmaca/warp_words.h"
#include "../thrust/detail/iterators.h"
#include "config.cuh"

CUB_NAMESPACE_BEGIN

struct NullType {
  using value_type = NullType;
  template <class T>
  __host__ __device__ NullType& operator=(const T&) {
    return *this;
  }
  __host__ __device__ bool operator==(const NullType&) const { return true; }
  __host__ __device__ bool operator!=(const NullType&) const { return false; }
};

template <int A>
struct Int2Type {
  enum { VALUE = A };
};

template <class Key, class Value>
struct KeyValuePair {
  using Key_ = Key;
  using Value_ = Value;
  Key key;
  Value value;
  KeyValuePair() = default;
  __host__ __device__ KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
  __host__ __device__ bool operator!=(const KeyValuePair& other) const {
    return value != other.value || key != other.key;
  }
  __host__ __device__ bool operator==(const KeyValuePair& other) const { return !(*this != other); }
};

// Two buffers that take turns.
template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  __host__ __device__ DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  __host__ __device__ T* Current() const { return d_buffers[selector]; }
  __host__ __device__ T* Alternate() const { return d_buffers[selector ^ 1]; }
};

// An initial value that is in device memory by the time the algorithm runs.
template <class T, class Iterator = T*>
struct FutureValue {
  using value_type = T;
  using iterator_type = Iterator;
  __host__ __device__ explicit FutureValue(Iterator iterator) : iterator_(iterator) {}
  __host__ __device__ operator T() const { return *iterator_; }

 private:
  Iterator iterator_;
};

template <class T>
struct Uninitialized {
  alignas(T) unsigned char storage[sizeof(T)];
  __host__ __device__ T& Alias() { return reinterpret_cast<T&>(*this); }
};

struct MemBoundTag {};

enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };

namespace detail {

template <class T>
struct is_half : std::bool_constant<std::is_same<T, __half>::value || std::is_same<T, __nv_bfloat16>::value> {};
template <std::size_t Size>
struct bits_of_size;
template <>
struct bits_of_size<1> {
  using type = uint8_t;
};
template <>
struct bits_of_size<2> {
  using type = uint16_t;
};
template <>
struct bits_of_size<4> {
  using type = uint32_t;
};
template <>
struct bits_of_size<8> {
  using type = uint64_t;
};

template <class T>
constexpr Category category_of() {
  if (std::is_floating_point<T>::value || is_half<T>::value) return FLOATING_POINT;
  if (!std::is_integral<T>::value) return NOT_A_NUMBER;
  return std::is_signed<T>::value ? SIGNED_INTEGER : UNSIGNED_INTEGER;
}

template <class Iterator>
using value_of = ::thrust::iterator_value_t<Iterator>;
// The value type of an output, or of the input where the output says none.
template <class Output, class Input>
struct output_value {
  using T = value_of<Output>;
  using type = std::conditional_t<std::is_void<T>::value || std::is_same<T, ::thrust::detail::any_assign>::value,
                                  value_of<Input>, T>;
};
template <class Output, class Input>
using output_value_t = typename output_value<Output, Input>::type;

}  // namespace detail

template <Category C, bool Primitive, bool Null, class Bits, class T>
struct BaseTraits {
  static constexpr Category CATEGORY = C;
  enum { PRIMITIVE = Primitive, NULL_TYPE = Null };
};

// A number as an unsigned one of the same order: what a radix sort sees.
template <class T, class = void>
struct NumericTraits : BaseTraits<NOT_A_NUMBER, false, false, T, T> {};
template <class T>
struct NumericTraits<T, std::enable_if_t<detail::category_of<T>() != NOT_A_NUMBER>>
    : BaseTraits<detail::category_of<T>(), true, false, typename detail::bits_of_size<sizeof(T)>::type, T> {
  using UnsignedBits = typename detail::bits_of_size<sizeof(T)>::type;
  static constexpr UnsignedBits HIGH_BIT = static_cast<UnsignedBits>(UnsignedBits{1} << (8 * sizeof(T) - 1));
  static constexpr UnsignedBits LOWEST_KEY = 0;
  static constexpr UnsignedBits MAX_KEY = static_cast<UnsignedBits>(-1);
  static __host__ __device__ UnsignedBits TwiddleIn(UnsignedBits key) {
    switch (detail::category_of<T>()) {
      case SIGNED_INTEGER: return key ^ HIGH_BIT;
      case FLOATING_POINT:
        return (key & HIGH_BIT) != 0 ? static_cast<UnsignedBits>(~key) : static_cast<UnsignedBits>(key ^ HIGH_BIT);
      default: return key;
    }
  }
  static __host__ __device__ UnsignedBits TwiddleOut(UnsignedBits key) {
    switch (detail::category_of<T>()) {
      case SIGNED_INTEGER: return key ^ HIGH_BIT;
      case FLOATING_POINT:
        return (key & HIGH_BIT) != 0 ? static_cast<UnsignedBits>(key ^ HIGH_BIT) : static_cast<UnsignedBits>(~key);
      default: return key;
    }
  }
  static __host__ __device__ T Max() { return limit(true); }
  static __host__ __device__ T Lowest() { return limit(false); }

 private:
  static __host__ __device__ T limit(bool max) {
    if constexpr (detail::is_half<T>::value) {
      // The largest finite one; lowest is its negative.
      const uint16_t bits =
          static_cast<uint16_t>((std::is_same<T, __half>::value ? 0x7bff : 0x7f7f) | (max ? 0 : 0x8000));
      return ::mxmaca::bit_cast<T>(bits);
    } else {
      return max ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    }
  }
};
template <class T>
struct Traits : NumericTraits<std::remove_cv_t<T>> {};
template <class T>
struct FpLimits {
  static __host__ __device__ T Max() { return Traits<T>::Max(); }
  static __host__ __device__ T Lowest() { return Traits<T>::Lowest(); }
};

template <int N, int Current = N, int Count = 0>
struct Log2 {
  enum { VALUE = Log2<N, (Current >> 1), Count + 1>::VALUE };
};
template <int N, int Count>
struct Log2<N, 0, Count> {
  enum { VALUE = (1 << (Count - 1) < N) ? Count : Count - 1 };
};
template <int N>
struct PowerOfTwo {
  enum { VALUE = ((N & (N - 1)) == 0) };
};

// ---- Operators ------------------------------------------------------------------------------------------------------
struct Equality {
  template <class A, class B>
  __host__ __device__ constexpr bool operator()(A&& a, B&& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class A, class B>
  __host__ __device__ constexpr bool operator()(A&& a, B&& b) const {
    return a != b;
  }
};
template <class Op>
struct InequalityWrapper {
  Op op;
  __host__ __device__ explicit InequalityWrapper(Op given) : op(given) {}
  template <class A, class B>
  __host__ __device__ bool operator()(A&& a, B&& b) {
    return !op(a, b);
  }
};
struct Sum {
  template <class A, class B>
  __host__ __device__ constexpr auto operator()(const A& a, const B& b) const -> std::decay_t<decltype(a + b)> {
    return a + b;
  }
};
struct Difference {
  template <class A, class B>
  __host__ __device__ constexpr auto operator()(const A& a, const B& b) const -> std::decay_t<decltype(a - b)> {
    return a - b;
  }
};
struct Division {
  template <class A, class B>
  __host__ __device__ constexpr auto operator()(const A& a, const B& b) const -> std::decay_t<decltype(a / b)> {
    return a / b;
  }
};
struct Max {
  template <class A, class B>
  __host__ __device__ constexpr std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class A, class B>
  __host__ __device__ constexpr std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return b < a ? b : a;
  }
};
struct ArgMax {
  template <class T, class Offset>
  __host__ __device__ KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a,
                                                         const KeyValuePair<Offset, T>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T, class Offset>
  __host__ __device__ KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a,
                                                         const KeyValuePair<Offset, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
template <class B>
struct CastOp {
  template <class A>
  __host__ __device__ B operator()(A&& a) const {
    return static_cast<B>(a);
  }
};
template <class Op>
class SwizzleScanOp {
 public:
  __host__ __device__ explicit SwizzleScanOp(Op op) : op_(op) {}
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) {
    return op_(b, a);
  }

 private:
  Op op_;
};
// Sums of values within runs of equal keys; the pair's key tells a run's begin.
template <class Op>
struct ReduceBySegmentOp {
  Op op;
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair& a, const Pair& b) {
    Pair result;
    result.key = a.key + b.key;
    result.value = b.key != 0 ? b.value : op(a.value, b.value);
    return result;
  }
};
template <class Op>
struct ReduceByKeyOp {
  Op op;
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair& a, const Pair& b) {
    Pair result = b;
    if (a.key == b.key) result.value = op(a.value, b.value);
    return result;
  }
};

// ---- Where a thread is ----------------------------------------------------------------------------------------------
#ifdef __CUDACC__
__device__ inline unsigned RowMajorTid(int x, int y, int) {
  return (threadIdx.z * static_cast<unsigned>(y) + threadIdx.y) * static_cast<unsigned>(x) + threadIdx.x;
}
__device__ inline unsigned LaneId() {
  return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31;
}
__device__ inline unsigned WarpId() {
  return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) >> 5;
}
template <int LogicalThreads>
__device__ inline unsigned WarpMask(unsigned warp) {
  constexpr bool power = PowerOfTwo<LogicalThreads>::VALUE && LogicalThreads < 32;
  const unsigned members = LogicalThreads >= 32 ? 0xffffffffU : (1U << (LogicalThreads & 31)) - 1;
  return power ? members << (warp % (32 / LogicalThreads) * LogicalThreads) : members;
}

namespace detail {
using ::mxmaca::shuffle_words;
template <class T>
__device__ T shuffle_down(const T& value, unsigned offset, int width, unsigned mask) {
  return shuffle_words(value, [=](auto word) { return __shfl_down_sync(mask, word, offset, width); });
}
template <class T>
__device__ T shuffle_up(const T& value, unsigned offset, int width, unsigned mask) {
  return shuffle_words(value, [=](auto word) { return __shfl_up_sync(mask, word, offset, width); });
}
template <class T>
__device__ T shuffle_index(const T& value, int lane, int width, unsigned mask) {
  return shuffle_words(value, [=](auto word) { return __shfl_sync(mask, word, lane, width); });
}
}  // namespace detail

template <int LogicalThreads, class T>
__device__ T ShuffleDown(const T& value, int offset, int, unsigned mask) {
  return detail::shuffle_down(value, static_cast<unsigned>(offset), LogicalThreads, mask);
}
template <int LogicalThreads, class T>
__device__ T ShuffleUp(const T& value, int offset, int, unsigned mask) {
  return detail::shuffle_up(value, static_cast<unsigned>(offset), LogicalThreads, mask);
}
template <int LogicalThreads, class T>
__device__ T ShuffleIndex(const T& value, int lane, unsigned mask) {
  return detail::shuffle_index(value, lane, LogicalThreads, mask);
}
#endif

CUB_NAMESPACE_END
