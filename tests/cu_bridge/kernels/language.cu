// What CUDA C++ means by its words.
#include "case.h"

#include <type_traits>

__host__ __device__ int side() {
#ifdef __CUDA_ARCH__
  return __CUDA_ARCH__;
#else
  return -1;
#endif
}
__global__ void ask(int* out) { *out = side(); }
CASE(cuda_arch_tells_the_sides_apart) {
  Array<int> out(1);
  ask<<<1, 1>>>(out.data());
  DONE();
  EXPECT(out.get()[0] == 800 && side() == -1);
}

template <class T>
struct Side {
  // A member of a class template: both passes have one, and neither may take the other's place.
  static __host__ __device__ __noinline__ int of() {
#ifdef __CUDA_ARCH__
    return 1;
#else
    return 2;
#endif
  }
};
__global__ void ask_member(int* out) { *out = Side<float>::of(); }
CASE(inline_functions_of_the_two_sides_stay_apart) {
  Array<int> out(1);
  ask_member<<<1, 1>>>(out.data());
  DONE();
  EXPECT(out.get()[0] == 1 && Side<float>::of() == 2);
}

struct Node {
  int value;
  Node* next;
  __device__ virtual int get() { return value; }
};
struct Twice : Node {
  __device__ int get() override { return value * 2; }
};
__global__ void objects(int* out) {
  Twice a;
  a.value = threadIdx.x;
  Node b;
  b.value = 100;
  a.next = &b;
  Node* list = &a;
  int sum = 0;
  while (list) {
    sum += list->get();
    list = list == &b ? nullptr : list->next;
  }
  out[threadIdx.x] = sum;
}
CASE(virtual_functions_and_pointers) {
  Array<int> out(16);
  objects<<<1, 16>>>(out.data());
  DONE();
  for (int i = 0; i < 16; ++i) EXPECT(out.get()[i] == i * 2 + 100);
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursive(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
CASE(recursion) {
  Array<int> out(16);
  recursive<<<1, 16>>>(out.data());
  DONE();
  int a = 0, b = 1;
  for (int i = 0; i < 16; ++i) {
    EXPECT(out.get()[i] == a);
    int c = a + b;
    a = b;
    b = c;
  }
}

__global__ void on_the_heap(int** slots, int* out) {
  int* mine = static_cast<int*>(malloc(4 * sizeof(int)));
  for (int i = 0; i < 4; ++i) mine[i] = threadIdx.x * i;
  slots[threadIdx.x] = mine;
  __syncthreads();
  int* other = slots[(threadIdx.x + 1) % blockDim.x];
  out[threadIdx.x] = other[1] + other[2] + other[3];
  __syncthreads();
  free(mine);
}
CASE(malloc_and_free_in_kernels) {
  Array<int*> slots(32);
  Array<int> out(32);
  on_the_heap<<<1, 32>>>(slots.data(), out.data());
  DONE();
  for (int i = 0; i < 32; ++i) EXPECT(out.get()[i] == (i + 1) % 32 * 6);
}

template <class T>
__global__ void by_type(T* out) {
  if constexpr (std::is_same<T, float>::value) {
    out[threadIdx.x] = 0.5f;
  } else {
    auto f = [](T x) { return x * 2; };
    out[threadIdx.x] = f(T(21));
  }
}
CASE(if_constexpr_and_lambdas_in_kernels) {
  Array<float> f(4);
  Array<int> i(4);
  by_type<<<1, 4>>>(f.data());
  by_type<<<1, 4>>>(i.data());
  DONE();
  EXPECT(f.get()[3] == 0.5f && i.get()[3] == 42);
}

__global__ void vectors(const float4* in, float4* out, int2* pair) {
  float4 v = in[threadIdx.x];
  out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
  pair[threadIdx.x] = make_int2(threadIdx.x, int(v.x));
}
CASE(vector_types) {
  auto in = Array<float4>::of(8, [](size_t i) { return make_float4(i, i + 1, i + 2, i + 3); });
  Array<float4> out(8);
  Array<int2> pair(8);
  vectors<<<1, 8>>>(in.data(), out.data(), pair.data());
  DONE();
  for (int i = 0; i < 8; ++i) {
    EXPECT(out.get()[i].x == i + 3 && out.get()[i].w == i);
    EXPECT(pair.get()[i].x == i && pair.get()[i].y == i);
  }
}

__global__ void unnamed(int*, float, int* out, int (*)[4], const int, unsigned int) { out[threadIdx.x] = 1; }
__global__ void odd_parameters(int (*rows)[4], float (*function)(float), const int* __restrict__ x, int y[],
                               unsigned z) {
  (void)function;
  y[threadIdx.x] = rows[1][threadIdx.x % 4] + x[0] + z;
}
CASE(parameters_of_odd_shapes) {
  Array<int> out(4), rows(8, 5), x(1, 2);
  unnamed<<<1, 4>>>(nullptr, 1.0f, out.data(), nullptr, 3, 4u);
  EXPECT(out.get()[3] == 1);
  odd_parameters<<<1, 4>>>(reinterpret_cast<int (*)[4]>(rows.data()), nullptr, x.data(), out.data(), 10u);
  DONE();
  EXPECT(out.get()[3] == 17);
}

__global__ void strings(char* out) {
  const char* text = "__global__ <<<1, 2>>> 'x' \" ; }";
  const char* raw = R"(__shared__ { " )";
  char quote = '"', brace = '{';
  int grouped = 1'000'000;
  out[0] = text[0];
  out[1] = raw[13];
  out[2] = quote;
  out[3] = brace;
  out[4] = grouped == 1000000 ? 'y' : 'n';
}
CASE(words_in_strings_stay) {
  Array<char> out(5);
  strings<<<1, 1>>>(out.data());
  DONE();
  EXPECT(std::memcmp(out.get().data(), "_\"\"{y", 5) == 0);
}

__global__ void large_frame(int* out) {
  int local[4000];
  for (int i = 0; i < 4000; ++i) local[i] = i + threadIdx.x;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 4000; i += 100) sum += local[i];
  out[threadIdx.x] = sum;
}
CASE(large_local_arrays_across_a_barrier) {
  Array<int> out(64);
  large_frame<<<1, 64>>>(out.data());
  DONE();
  for (int t = 0; t < 64; ++t) EXPECT(out.get()[t] == 78000 + 40 * t);
}

__global__ void clocks(long long* out) {
  long long before = clock64();
  __nanosleep(10);
  out[0] = clock64() - before;
}
CASE(the_clock_goes_on) {
  Array<long long> out(1, -1);
  clocks<<<1, 1>>>(out.data());
  DONE();
  EXPECT(out.get()[0] > 0);
}

__global__ void ptx_free(unsigned* out) {
  unsigned x = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) x = x * 3 + 1;
  asm volatile("" ::: "memory");
  out[threadIdx.x] = x;
}
CASE(pragmas_and_compiler_barriers) {
  Array<unsigned> out(8);
  ptx_free<<<1, 8>>>(out.data());
  DONE();
  for (unsigned i = 0; i < 8; ++i) EXPECT(out.get()[i] == ((((i * 3 + 1) * 3 + 1) * 3 + 1) * 3 + 1));
}

// ---- Shifts by the width of the operand or more ---------------------------------------------------------------------
struct Stream {
  unsigned long long words;
  __device__ Stream& operator<<(unsigned word) {
    words = words * 16 + word;
    return *this;
  }
};
template <class T>
struct Boxed {
  T value;
};
template <int N>
struct Bits {
  unsigned low : 5, high : 27;
  static const int count = 1 << N;
};
enum class Way { Up, Down };
__device__ int operator<<(Way way, int by) { return way == Way::Down ? -by : by; }
enum { kOne = 1 };
template <class T>
__device__ T moved(T value, int by) {
  return by < 0 ? value >> -by : value << by;
}
__global__ void shifts(const int* amounts, long long* out) {
  const int n = amounts[threadIdx.x], kSize = 4;
  long long* o = out + threadIdx.x * 16;
  Boxed<Boxed<int>> nested = {{-5}};
  Bits<3> bits;
  bits.low = 21;
  unsigned char narrow = 200;
  unsigned all = ~0u;
  int table[Bits<(kSize >> 1)>::count << 1] = {0};
  volatile int negative = -5;
  Stream stream{1};
  const unsigned word = n & 15;
  stream << word << (word ^ 1);
  o[0] = 1 << n;
  o[1] = nested.value.value >> n;
  o[2] = 1ull << n | 0ull;
  o[3] = narrow >> n;
  o[4] = bits.low << n;
  o[5] = moved(0x12345678u, n) ^ moved(0x12345678u, -n);
  all >>= n;
  o[6] = all;
  all = 5;
  all <<= n + 1;
  o[7] = all;
  o[8] = negative >> n + 1;
  o[9] = static_cast<long long>(stream.words);
  o[10] = sizeof table / sizeof table[0];
  o[11] = ((all = 3) << (n > 40 ? 2 : n)) + (n < 9 >> 1);
  bits.high = 3;
  bits.high <<= word;
  o[12] = bits.high;
  o[13] = -1ll >> n;
  bits.low = word;
  o[14] = 6 << bits.low;
  o[15] = (Way::Down << n) + (kOne << n);
}
CASE(shifts_by_the_width_or_more_shift_everything_out) {
  Array<int> amounts = Array<int>::of(6, [](size_t i) { return std::vector<int>{0, 5, 31, 32, 64, -1}[i]; });
  Array<long long> out(6 * 16, 0);
  shifts<<<1, 6>>>(amounts.data(), out.data());
  DONE();
  const std::vector<int> given{0, 5, 31, 32, 64, -1};
  const auto left = [](unsigned long long value, unsigned by, unsigned bits) {
    const unsigned long long whole = by < bits ? value << by : 0;
    return bits == 64 ? whole : whole & 0xffffffffull;
  };
  const auto right = [](long long value, unsigned by) { return by < 64 ? value >> by : value < 0 ? -1ll : 0ll; };
  const auto& v = out.get();
  for (int i = 0; i < 6; ++i) {
    const unsigned n = static_cast<unsigned>(given[i]);
    const long long* o = &v[i * 16];
    EXPECT(o[0] == static_cast<int>(left(1, n, 32)));
    EXPECT(o[1] == right(-5, n < 32 ? n : 63));
    EXPECT(o[2] == static_cast<long long>(left(1, n, 64)));
    EXPECT(o[3] == (n < 32 ? 200 >> n : 0));
    EXPECT(o[4] == static_cast<int>(left(21, n, 32)) || o[4] == static_cast<long long>(left(21, n, 32)));
    const unsigned up = static_cast<unsigned>(left(0x12345678u, n, 32)), down = n < 32 ? 0x12345678u >> n : 0;
    // A negative amount turns the direction.
    EXPECT(o[5] == (given[i] < 0 ? (0x12345678u >> 1 ^ 0x12345678u << 1) : static_cast<long long>(up ^ down)));
    EXPECT(o[6] == (n < 32 ? ~0u >> n : 0));
    EXPECT(o[7] == static_cast<long long>(left(5, n + 1, 32)));
    EXPECT(o[8] == right(-5, n + 1 < 32 ? n + 1 : 63));
    EXPECT(o[9] == (16 + (n & 15)) * 16 + ((n & 15) ^ 1));
    EXPECT(o[10] == 8);
    EXPECT(o[12] == ((3u << (n & 15)) & 0x7ffffff));
    EXPECT(o[13] == -1);
    EXPECT(o[14] == 6 << (n & 15));
    EXPECT(o[15] == static_cast<int>(left(1, n, 32) - n));
  }
}

// Casts to integers: what the type does not hold is nvcc's, whose small types have the low bits of 32.
struct Meter {
  float value;
  __device__ operator int() { return 7; }
};
__device__ float halved(float x) { return x / 2; }
template <class T>
__device__ int whole(T x) {
  return (int)x;
}
__global__ void casts(const float* f, const double* d, long long* out, int n) {
  const int i = threadIdx.x;
  long long* o = out + i * 20;
  Meter meter{f[i]};
  const int size[(int)2.9] = {3, 4};
  auto taken = [](int) { return 3; };
  o[0] = (int)f[i];
  o[1] = static_cast<unsigned int>(f[i]);
  o[2] = int(f[i]) + n - 2;
  o[3] = (long long)f[i];
  o[4] = (int)d[i];
  o[5] = (unsigned char)f[i];
  o[6] = (short)f[i];
  o[7] = 1 - (int)halved(f[i]) / n;
  o[8] = ~(int)f[i];
  o[9] = (float)(int)f[i];
  o[10] = whole(d[i]) == (int)d[i];
  o[11] = (int)meter + size[1] + (int)sizeof(int) * n + taken((int)f[i]);
  o[12] = (size_t)out == (unsigned long)&out[0] && (size_t)size == (size_t)&size[0] && (size_t)whole<float> != 0;
  switch (n) {
    case (int)2.0f: o[13] = (unsigned)-1 >> (int)31.5;
  }
  o[14] = (n + 1) - (int)f[i] * 0;
  o[15] = !(int)f[i];
  o[16] = static_cast<unsigned long long>(d[i]) >> 1;
  const float large = 3e9f;  // what the compiler knows
  o[18] = ((int)large == 2147483647) + ((int)-large == -2147483647 - 1);
  o[19] = (long long)NAN + (int)NAN;
  for (int k = (int)-1.5f; k < (int)2.5; ++k) o[17] += (int)f[i] > k;
}
CASE(casts_to_integers_saturate) {
  const std::vector<float> given{NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e20f, 300.7f, -1.5f, 0.f};
  Array<float> f = Array<float>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<double> d = Array<double>::of(given.size(), [&](size_t i) { return given[i]; });
  Array<long long> out(given.size() * 20, 0);
  casts<<<1, 9>>>(f.data(), d.data(), out.data(), 2);
  DONE();
  const auto clamped = [](double value, double low, double high, long long nan) {
    return std::isnan(value) ? nan : static_cast<long long>(std::fmin(std::fmax(value, low), high));
  };
  const auto& v = out.get();
  for (size_t i = 0; i < given.size(); ++i) {
    const double x = given[i];
    const long long* o = &v[i * 20];
    const long long word = clamped(x, -2147483648., 2147483647., 0), unsigned_word = clamped(x, 0, 4294967295., 0);
    EXPECT(o[0] == word && o[2] == word);
    EXPECT(o[1] == unsigned_word);
    const long long least = -0x7fffffffffffffffLL - 1;
    EXPECT(o[3] == (x > 9e18 ? 0x7fffffffffffffffLL : x < -9e18 || std::isnan(x) ? least : static_cast<long long>(x)));
    EXPECT(o[4] == (std::isnan(x) ? -2147483648LL : word));
    EXPECT(o[5] == (unsigned_word & 255));
    EXPECT(o[6] == static_cast<short>(word));
    EXPECT(o[7] == 1 - clamped(x / 2, -2147483648., 2147483647., 0) / 2);
    EXPECT(o[8] == ~word);
    EXPECT(o[9] == static_cast<long long>(static_cast<float>(word)));
    EXPECT(o[10] == 1);
    EXPECT(o[11] == 7 + 4 + 8 + 3);
    EXPECT(o[12] == 1);
    EXPECT(o[13] == 1);
    EXPECT(o[14] == 3);
    EXPECT(o[15] == (word == 0));
    const unsigned long long top = std::isnan(x) ? 1ull << 63
                                   : x < 0       ? 0
                                   : x > 1.8e19  ? ~0ull
                                                 : static_cast<unsigned long long>(x);
    EXPECT(o[16] == static_cast<long long>(top >> 1));
    EXPECT(o[18] == 2);
    EXPECT(o[19] == least);
    EXPECT(o[17] == (word > -1) + (word > 0) + (word > 1));
  }
}
