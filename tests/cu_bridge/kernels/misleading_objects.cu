// Kernels that look as if a variable were the same for all threads, or a call harmless: functions of objects, counters
// with the name of another variable, functions that no name shows, shuffles that read what their statement changes.
#include <vector>

#include "case.h"

// Of the program's own, and wider than what the device shuffles.
static __device__ double2 __shfl_xor_sync(unsigned mask, double2 value, int bits) {
  return make_double2(__shfl_xor_sync(mask, value.y, bits), __shfl_xor_sync(mask, value.x, bits));
}

namespace {
const int kThreads = 64;

struct Sum {
  int value;
  __host__ __device__ Sum(int begin) : value(begin) {}
  __device__ void include(int more) { value += more; }
  template <class T>
  __device__ void include_as(T more) {
    value += static_cast<int>(more);
  }
};
struct Four {
  int parts[4];
  __host__ __device__ Four(int begin) : parts{begin, begin, begin, begin} {}
  __host__ __device__ int& operator[](int i) { return parts[i]; }
};
struct Reference {
  int& of;
};
struct AddOnWarp {
  __device__ int operator()(int value) const { return value + __shfl_xor_sync(0xffffffff, value, 1); }
};

typedef int (*Function)(int&);
__device__ int five_more(int& value) { return value += 5; }
__device__ Function functions[1] = {five_more};

__device__ void go_on(const int*& place, int by) { place += by; }
__device__ int use(int value) { return value + 1; }
template <class Use>
__device__ int apply(Use use, int value) {
  return use(value);
}
template <class T>
__device__ T twice(T value) {
  return value * 2;
}
template <>
__device__ int twice<int>(int value) {
  return value + __shfl_sync(0xffffffff, value, threadIdx.x & 31);
}
struct Shape {
  __device__ virtual int size(int value) const { return value; }
};
struct Pairs final : Shape {
  __device__ int size(int value) const override { return value + __shfl_xor_sync(0xffffffff, value, 1); }
};
template <class Kernel, class Expected, class... More>
void compare(Kernel kernel, Expected expected, More... more) {
  Array<int> in = Array<int>::of(kThreads, [&](size_t i) { return static_cast<int>(i) * 37 % 101; });
  Array<int> out(kThreads, -1);
  kernel<<<1, kThreads>>>(in.data(), out.data(), more...);
  DONE();
  const auto values = in.get();
  const auto found = out.get();
  for (int t = 0; t < kThreads; ++t) EXPECT(found[t] == expected(values, t));
}
typedef const std::vector<int>& In;
}  // namespace

__global__ void counters(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = 0;
  int i = in[t];
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    s[t] += i;
    __syncthreads();
  }
  out[t] = i * 1000 + s[t];
}
CASE(the_counter_of_a_loop_that_waits_has_the_name_of_a_variable) {
  compare(counters, [](In in, int t) { return in[t] * 1000 + 3; }, 3);
}

__global__ void sums(const int* in, int* out, int n, Sum parameter) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  Sum first = n, second = n;
  s[t] = in[t];
  __syncthreads();
  first.include(s[t ^ 1]);
  second.include_as<float>(s[t ^ 1]);
  parameter.include(s[t ^ 2]);
  __syncthreads();
  out[t] = first.value * 10000 + second.value * 100 + parameter.value;
}
CASE(a_function_of_an_object_changes_it) {
  compare(sums, [](In in, int t) { return (3 + in[t ^ 1]) * 10100 + 4 + in[t ^ 2]; }, 3, Sum(4));
}

__global__ void parts(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  Four four = n;
  s[t] = in[t];
  __syncthreads();
  four[0] = s[t ^ 1];
  __syncthreads();
  out[t] = four[0] * 1000 + four[1];
}
CASE(an_object_is_changed_through_its_brackets) {
  compare(parts, [](In in, int t) { return in[t ^ 1] * 1000 + 3; }, 3);
}

__global__ void references(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  int v = n;
  s[t] = in[t];
  __syncthreads();
  Reference reference{v};
  reference.of += s[t ^ 1];
  __syncthreads();
  out[t] = v;
}
CASE(an_object_refers_to_a_variable) {
  compare(references, [](In in, int t) { return 3 + in[t ^ 1]; }, 3);
}

__global__ void unnamed(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  int v = n, w = n;
  s[t] = in[t];
  Function function = functions[0];
  __syncthreads();
  if (s[t ^ 1] & 1) functions[0](v);
  if (s[t ^ 1] & 1) (*function)(w);
  __syncthreads();
  out[t] = v * 100 + w + s[t ^ 2];
}
CASE(a_function_behind_a_pointer_changes_its_argument) {
  compare(unnamed, [](In in, int t) { return (in[t ^ 1] & 1 ? 808 : 303) + in[t ^ 2]; }, 3);
}

__global__ void advanced(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  const int* place = in;
  s[t] = in[t];
  __syncthreads();
  go_on(place, s[t ^ 1] % n);
  __syncthreads();
  out[t] = *place;
}
CASE(a_function_changes_a_pointer_to_constants) {
  compare(advanced, [](In in, int t) { return in[in[t ^ 1] % 3]; }, 3);
}

__global__ void applied(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = apply(AddOnWarp(), use(s[t ^ 2]));
  out[t] += twice<int>(s[t]);
}
__global__ void made(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = AddOnWarp{}(s[t ^ 2]);
}
__global__ void overridden(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t];
  Pairs pairs;
  const Shape* shape = &pairs;
  __syncthreads();
  out[t] = shape->size(s[t ^ 2]);
}
CASE(functions_wait_that_do_not_show_it) {
  compare(applied, [](In in, int t) { return in[t ^ 2] + 1 + in[t ^ 3] + 1 + 2 * in[t]; });
  compare(made, [](In in, int t) { return in[t ^ 2] + in[t ^ 3]; });
  compare(overridden, [](In in, int t) { return in[t ^ 2] + in[t ^ 3]; });
}

__global__ void lanes(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t] & 31;
  int v = in[t], w = n;
  __syncwarp();
  s[t] = __shfl_sync(0xffffffff, t, s[(t & 32) | ((t + 31) & 31)]);
  __syncwarp();
  out[t] = s[t] * 1000 + v + w;
}
__global__ void changed_first(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  int v = in[t], w = n;
  __syncwarp();
  v = t, w = __shfl_xor_sync(0xffffffff, v, 1);
  out[t] = w;
}
CASE(a_shuffle_reads_what_its_statement_changes) {
  compare(lanes, [](In in, int t) { return ((t & 32) + (in[(t & 32) | ((t + 31) & 31)] & 31)) * 1000 + in[t] + 3; }, 3);
  compare(changed_first, [](In, int t) { return t ^ 1; }, 3);
}

__global__ void wide_lanes(const int* in, int* out) {
  const int t = threadIdx.x;
  double2 v = make_double2(in[t], t);
  double2 w = __shfl_xor_sync(0xffffffff, v, 1);
  out[t] = static_cast<int>(w.x * 1000 + w.y);
}
CASE(a_shuffle_is_the_programs_own) {
  compare(wide_lanes, [](In in, int t) { return (t ^ 1) * 1000 + in[t ^ 1]; });
}

__global__ void guarded_division(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[t ^ 1];
  if (n == 0) return;
  const int quotient = 100 / n;
  out[t] = quotient;
}
CASE(a_division_by_zero_stands_behind_a_return) {
  compare(guarded_division, [](In in, int t) { return in[t ^ 1]; }, 0);
}
