// Conversions of floating-point numbers to integers that no cast says, and casts to types that the program names, give
// what the casts of language.cu give.
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "case.h"

namespace {

struct Box {
  int left;
  __device__ Box(float x) : left(x * 2) {}
};
struct Whole {
  int left;
  __device__ Whole(int x) : left(x) {}
  __device__ Whole(const char*) : left(0) {}
};
struct Bits {
  unsigned few : 12;
};
__device__ int doubled(float x) { return x * 2; }
__device__ int taken(int x) { return x; }
template <class T>
__device__ T through(float x) {
  T copy = x;
  copy = x + 0.f;
  copy += x;
  return copy;
}
template <class T>
__device__ T of_class_as_well(float x) {
  T copy(x);
  return copy;
}

__global__ void conversions(const float* f, const double* d, int* out) {
  __shared__ unsigned char bytes[16];
  const int i = threadIdx.x;
  const float x = f[i];
  int* right = out + i * 32;
  int k = 0, first, second;
  const int initialised = x;
  right[k++] = initialised == (int)x;
  right[k++] = doubled(x) == (int)(x * 2);
  right[k++] = taken(f[i] + 1) == (int)(f[i] + 1);
  right[k++] = Box(x).left == (int)(x * 2);
  first = second = d[i];
  right[k++] = first == (int)d[i] && second == first;
  first = 7;
  first += x;
  right[k++] = first == (int)(7 + x);
  int* moving = &second;
  second = 7;
  *moving++ -= d[i];
  right[k++] = second == (int)(7 - d[i]) && moving == &second + 1;
  auto lambda = [&](float y) -> unsigned { return y; };
  right[k++] = lambda(x) == (unsigned)x;
  bytes[i] = x;
  __syncthreads();
  right[k++] = bytes[i] == (unsigned char)x;
  __syncthreads();
  bytes[i] *= 1.5f;
  right[k++] = bytes[i] == (unsigned char)((unsigned char)x * 1.5f);
  short small(x);
  right[k++] = small == (short)x;
  long long wide = i < 100 ? x : 2;
  right[k++] = wide == (long long)x;
  right[k++] = through<int>(x) == (int)((int)x + x);
  right[k++] = through<unsigned short>(x) == (unsigned short)((unsigned short)x + x);
  right[k++] = through<float>(x) == x + x || x != x;
  right[k++] = through<bool>(x) == true || x == 0;
  right[k++] = (float)of_class_as_well<__half>(2.5f) == 2.5f && of_class_as_well<int>(2.5f) == 2;
  Bits bits{};
  bits.few = 40.75f;
  right[k++] = bits.few == 40;
  int steps = 0;
  for (int step = 2.5f * steps; step < 2; step += 1.25f) ++steps;
  right[k++] = steps == 2;
  const Whole whole(x);
  right[k++] = whole.left == (int)x && of_class_as_well<Whole>(x).left == (int)x;
  right[k++] = -1;
}

CASE(conversions_to_integers_saturate_without_a_cast) {
  const std::vector<float> given{NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e20f, 300.7f, -1.5f, 0.f};
  Array<float> f = Array<float>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<double> d = Array<double>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<int> out(given.size() * 32, 0);
  conversions<<<1, 9>>>(f.data(), d.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (size_t i = 0; i < given.size(); ++i) {
    int k = 0;
    while (v[i * 32 + k] == 1) ++k;
    EXPECT(k == 20 && v[i * 32 + k] == -1);
  }
}

typedef unsigned int Word;
using Index = long long;
using Position = Index;
struct Pixel {
  using Channel = unsigned char;
  short depth;
  __device__ explicit Pixel(float x) : depth((short)x) {}
};
template <class T>
struct Wider {
  using type = long long;
  template <class U>
  struct Of {
    using unsigned_type = std::make_unsigned_t<U>;
  };
};
template <class T>
using wide_as = typename Wider<T>::type;
enum class Level { low, high };

template <class T, typename U = T>
__device__ bool in_brackets(float x, const double* p) {
  const T first = (T)x, second = (U)*p, third = (T)(x * 2);
  return first == static_cast<T>(x) && second == static_cast<U>(*p) && third == T(x * 2);
}
template <class T>
__device__ auto dependent(float x) {
  return static_cast<typename Wider<T>::type>(x);
}
template <class T>
__device__ bool with_arguments(float x, const double* p) {
  T number = 0;
  const wide_as<T> wide = wide_as<T>(x);
  const bool by_call = std::make_unsigned_t<T>(x * 2) == (unsigned)(x * 2) && decltype(number)(x) == (T)x;
  const bool bracketed = (std::make_unsigned_t<T>)x == (unsigned)x && (decltype(number + 1L))*p == (long)*p &&
                         (typename Wider<Wider<T>>::type)x == (long long)x;
  return by_call && bracketed && wide == static_cast<wide_as<Wider<T>>>(x) && wide == (long long)x &&
         static_cast<decltype(number)>(*p) == (T)*p &&
         static_cast<typename Wider<T>::template Of<T>::unsigned_type>(x) == (unsigned)x;
}
template <class... T>
struct Sum {
  float number;
  __device__ explicit Sum(float x) : number(x) {}
};
// What looks like a cast to a type with arguments.
template <int N>
__device__ float value_of(float x) {
  return x * N;
}
__device__ bool no_casts(float x, int small_t, float* to) {
  const bool comparison = (small_t < 7) && (x > 0) && (small_t < 7 && x > (0));
  using sum_t = Sum<int, float>;
  decltype(x)* place = to;
  decltype((*place)) number = static_cast<decltype((*place))>(*to);
  number = 2.5f;
  return (value_of<2>)(1.5f) == 3 && value_of<2>(x + 1) == (x + 1) * 2 && static_cast<sum_t>(1.5f).number == 1.5f &&
         static_cast<Sum<int>>(2.5f).number == 2.5f && comparison == (small_t < 7 && x > 0) && *to == 2.5f &&
         (decltype(to))(void*)to == to && (decltype(to))0 == nullptr;
}
// Types that are no integers: C++ converts.
template <class T, class V>
__device__ T given(const V& x) {
  return (T)x;
}
template <class T, class V>
__device__ T given_by_name(V&& x) {
  return static_cast<T>(x);
}
template <class T>
__device__ T nothing() {
  return (T)0;
}

__global__ void named_types(const float* f, const double* d, int* out) {
  const int i = threadIdx.x;
  const float x = f[i];
  int* right = out + i * 32;
  int k = 0;
  right[k++] = (Word)x == (unsigned)x && static_cast<Word>(d[i]) == (unsigned)d[i] && Word(x * 2) == (unsigned)(x * 2);
  right[k++] = (Position)x == (long long)x && (Index)d[i] == (long long)d[i];
  right[k++] = (Pixel::Channel)x == (unsigned char)x && static_cast<std::int8_t>(x) == (signed char)x;
  right[k++] = given<int>(x) == (int)x && given<unsigned short>(d[i]) == (unsigned short)d[i];
  right[k++] = given_by_name<unsigned long long>(x) == (unsigned long long)x && given_by_name<short>(x) == (short)x;
  right[k++] =
      in_brackets<int>(x, d + i) && in_brackets<unsigned char>(x, d + i) && in_brackets<unsigned, int>(x, d + i);
  right[k++] = dependent<int>(x) == (long long)x;
  right[k++] = with_arguments<int>(x, d + i);
  float place = 0;
  right[k++] = no_casts(1.5f, 3, &place) && no_casts(-1.5f, 9, &place);
  const auto lambda = [&](auto y) { return (decltype(y))(Word)x; };
  right[k++] = lambda(0u) == (unsigned)x;
  right[k++] = -(int)f[i] == -1 * (int)x && !(int)(x * 2) == ((int)(x * 2) == 0);
  right[k++] = (long long)(Word)x == (long long)(unsigned)x && -(Index) * (f + i) == -1 * (long long)x;
  right[k++] = ~(int)-x == -1 - (int)(-x) && -(int)(x + 1) == -1 * (int)(x + 1);
  right[k++] = given<float>(d[i]) == (float)d[i] || x != x;
  right[k++] = given<bool>(x) == (x != 0) && given<bool>(0.5f);
  right[k++] = given<const float*>(f) == f && nothing<const float*>() == nullptr && nothing<int>() == 0;
  right[k++] = given<Level>(1) == Level::high && given_by_name<Pixel>(2.5f).depth == 2;
  int number = 3;
  given_by_name<int&>(number) = 5;
  right[k++] = number == 5 && (float)given<__half>(2.5f) == 2.5f && given<int>(__float2half(2.5f)) == 2;
  Bits bits{7};
  right[k++] = (Index)bits.few == 7 && given<Word>(bits.few) == 7;
  right[k++] = -1;
}

CASE(casts_to_types_of_the_program_saturate) {
  const std::vector<float> given{NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e20f, 300.7f, -1.5f, 0.f};
  Array<float> f = Array<float>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<double> d = Array<double>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<int> out(given.size() * 32, 0);
  named_types<<<1, 9>>>(f.data(), d.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (size_t i = 0; i < given.size(); ++i) {
    int k = 0;
    while (v[i * 32 + k] == 1) ++k;
    EXPECT(k == 19 && v[i * 32 + k] == -1);
  }
}

}  // namespace
