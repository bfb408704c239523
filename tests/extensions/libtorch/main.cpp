// A program without Python: torch's C++ library, a kernel of its own, and CUDA's run time.
#include <ATen/ATen.h>
#include <cuda_runtime.h>

#include <cstdio>

at::Tensor saxpy(double a, const at::Tensor& x, const at::Tensor& y);

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1) return 1;
  const at::Tensor x = at::arange(1000, at::TensorOptions(at::kCUDA).dtype(at::kFloat)), y = at::ones_like(x);
  const bool right = at::equal(saxpy(2.0, x, y), x * 2 + y);
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
