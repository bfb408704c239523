// Values that may be errors, on both sides.
#include <cuda/std/expected>
#include <string>

#include "../../check.h"

namespace cs = cuda::std;

enum class Why { negative, large };

__host__ __device__ cs::expected<float, Why> root(float x) {
  if (x < 0) return cs::unexpected(Why::negative);
  if (x > 100) return cs::unexpected<Why>(Why::large);
  return sqrtf(x);
}
__host__ __device__ cs::expected<void, int> small(int i) {
  if (i > 2) return cs::unexpected<int>(i);
  return {};
}

struct AddOne {
  __host__ __device__ float operator()(float x) const { return x + 1; }
};
struct Again {
  __host__ __device__ cs::expected<float, Why> operator()(float x) const { return root(x * 10); }
};
struct Seven {
  __host__ __device__ cs::expected<float, Why> operator()(Why) const { return 7.0f; }
};

__host__ __device__ float all(float x) {
  const auto result = root(x).transform(AddOne()).and_then(Again());
  const float first = result ? *result : -1.0f - static_cast<float>(static_cast<int>(result.error()));
  return first + 100 * root(x).or_else(Seven()).value() + 1000 * root(x).value_or(2);
}

__global__ void kernel(const float* in, float* out) {
  out[threadIdx.x] = all(in[threadIdx.x]);
  const int i = static_cast<int>(threadIdx.x);
  EXPECT(small(i).has_value() == (i <= 2) && small(i).error_or(9) == (i <= 2 ? 9 : i));
}
__global__ void wrong(float* out) { *out = root(-1).value(); }

int main() {
  const float numbers[] = {4, -1, 200, 9, 99, 0, 16, 25};
  float *in, *out;
  CHECK(cudaMallocManaged(&in, sizeof numbers) == cudaSuccess);
  CHECK(cudaMallocManaged(&out, sizeof numbers) == cudaSuccess);
  for (int i = 0; i < 8; ++i) in[i] = numbers[i];
  kernel<<<1, 8>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 8; ++i) CHECK(out[i] == all(in[i]));
  CHECK(all(-1) == -1 + 700 + 2000 && all(200) == -2 + 700 + 2000 && all(0) == sqrtf(10));

  bool caught = false;
  try {
    root(-3).value();
  } catch (const cs::bad_expected_access<Why>& error) {
    caught = error.error() == Why::negative;
  }
  CHECK(caught);
  cs::expected<std::string, int> text("abc"), error = cs::unexpected(4);
  swap(text, error);
  CHECK(text.error() == 4 && error->size() == 3 && error == "abc" && text == cs::unexpected(4) && !(text == error));
  const cs::expected<std::string, long> wider = text;
  CHECK(wider.error() == 4);
  text.emplace("de");
  CHECK(text.value() == "de" && *std::move(text) == "de");
  const cs::expected<int, std::string> moved(cs::unexpect, 3, 'x');
  CHECK(moved.transform_error([](const std::string& why) { return why.size(); }).error() == 3);

  const int before = failures + (summary() != 0);  // the device cannot say more after what follows
  wrong<<<1, 1>>>(out);
  return before != 0 || cudaDeviceSynchronize() != cudaErrorLaunchFailure;
}
