// Names that the C library has as well: device code means CUDA's, and host code of the same file the C library's.
// No include: what is used here is there without one.
#include "case.h"

#include <ctime>

__device__ clock_t spent(int rounds) {
  const clock_t begin = clock();
  volatile int sum = 0;
  for (int i = 0; i < rounds; ++i) sum = sum + i;
  return std::clock() - begin;
}
__global__ void clock_values(long long* out) {
  static_assert(std::is_same<decltype(clock()), clock_t>::value && std::is_same<decltype(clock64()), long long>::value,
                "the types of CUDA's headers");
  const long long a = clock64();
  const clock_t b = clock();
  const long long c = clock64();
  const clock_t d = ::clock();
  if (threadIdx.x == 0) {
    out[0] = a <= b && b <= c && c <= d;
    out[1] = spent(10);
    out[2] = spent(100000);
    out[3] = d - a;
  }
  __syncthreads();
  out[4 + threadIdx.x] = clock();
}
CASE(clock_counts_the_devices_cycles) {
  const std::clock_t before = std::clock();
  Array<long long> out(4 + 64);
  clock_values<<<1, 64>>>(out.data());
  DONE();
  auto& v = out.get();
  EXPECT(v[0] == 1);
  EXPECT(v[1] >= 0 && v[2] > 10 * v[1] && v[2] > 100000 / 8);
  // On Arm the counter ticks more slowly than instructions pass.
  EXPECT(v[3] >= 0 && v[3] < (1LL << 32));
  for (int t = 0; t < 64; ++t) EXPECT(v[4 + t] > v[3]);
  // The host's clock still counts the process's time.
  EXPECT(std::clock() - before >= 0 && std::clock() < 3600 * CLOCKS_PER_SEC);
}

__global__ void prints(int* out) {
  out[0] = printf("no argument\n");
  out[1] = printf("%d and %5.2f%% of %s\n", 1, 2.5, "three");
  out[2] = printf("%*d|%-8lld|%zu|%c\n", 6, 7, 8LL, size_t(9), 'x');
  out[3] = printf("%%\n");
}
CASE(printf_returns_the_number_of_arguments) {
  Array<int> out(4, -5);
  prints<<<1, 1>>>(out.data());
  DONE();
  auto& v = out.get();
  EXPECT(v[0] == 0 && v[1] == 3 && v[2] == 5 && v[3] == 0);
  EXPECT(std::printf("  as long as it is: %d\n", 5) == 22);
}

__global__ void allocates(int* out) {
  const int t = threadIdx.x;
  int* const mine = static_cast<int*>(malloc(100 * sizeof(int)));
  out[t] = mine != nullptr && reinterpret_cast<unsigned long long>(mine) % 16 == 0;
  memset(mine, 0, 100 * sizeof(int));
  for (int i = 0; i < 100; ++i) mine[i] += i * t;
  int copy[100];
  memcpy(copy, mine, sizeof copy);
  for (int i = 0; i < 100; ++i) out[t] += copy[i] != i * t;
  free(mine);
  assert(out[t] == 1);
}
CASE(memory_functions_are_the_devices) {
  Array<int> out(64);
  allocates<<<1, 64>>>(out.data());
  DONE();
  for (int t = 0; t < 64; ++t) EXPECT(out.get()[t] == 1);
}

// The overloads that CUDA has without an include: nothing becomes an integer, or a double, on the way.
template <class Wanted, class Got>
__device__ void typed(Got) {
  static_assert(std::is_same<Wanted, Got>::value, "another overload than CUDA's");
}
__global__ void overloads(double* out) {
  float f = -2.75f;
  double d = -2.75;
  int i = -3;
  unsigned u = 4000000000u;
  long long l = -5;
  typed<float>(abs(f));
  typed<double>(abs(d));
  typed<int>(abs(i));
  typed<long long>(abs(l));
  typed<float>(min(f, 1.0f));
  typed<double>(max(f, d));
  typed<int>(max(i, 2));
  typed<unsigned>(max(i, u));
  typed<unsigned>(min(u, i));
  typed<long long>(min(l, 3LL));
  typed<unsigned long long>(max(7ull, l));
  typed<unsigned long>(min(size_t(3), 4ul));
  typed<float>(sqrt(4.0f));
  typed<double>(sqrt(4));
  typed<float>(exp(f));
  typed<float>(pow(2.0f, 3.0f));
  typed<double>(pow(2, 3));
  typed<float>(floor(f));
  typed<float>(round(f));
  typed<float>(fma(f, f, f));
  typed<float>(fmod(f, 2.0f));
  typed<float>(fmin(f, f));
  typed<double>(fmax(f, d));
  typed<float>(atan2(f, f));
  typed<float>(ldexp(f, 3));
  typed<float>(rsqrt(4.0f));
  typed<long>(lround(f));
  typed<long long>(llrint(f));
  out[0] = abs(f);
  out[1] = abs(d);
  out[2] = max(i, u);
  out[3] = min(u, i);
  out[4] = max(7ull, l);
  out[5] = isnan(f) || isinf(d) || !signbit(f) || !isfinite(f);
  out[6] = round(f) + floor(d) + labs(-4L) + llabs(l) + fabs(f);
}
CASE(overloads_are_chosen_as_in_cuda) {
  Array<double> out(7);
  overloads<<<1, 1>>>(out.data());
  DONE();
  auto& v = out.get();
  EXPECT(v[0] == 2.75 && v[1] == 2.75 && v[2] == 4294967293.0 && v[3] == 4000000000.0);
  EXPECT(v[4] == 18446744073709551611.0 && v[5] == 0 && v[6] == -3 - 3 + 4 + 5 + 2.75);
}
