#include <ATen/ATen.h>

#include "registered/Specs.h"

namespace macatorch {
namespace {

// cuDNN's grid sampler is bilinear, pads with zeros and aligns corners; grid_sample chooses it by itself.

constexpr int64_t kBilinear = 0;
constexpr int64_t kZeros = 0;

at::Tensor grid_sampler(const at::Tensor& input, const at::Tensor& grid) {
  return at::grid_sampler_2d(input, grid, kBilinear, kZeros, true);
}

std::tuple<at::Tensor, at::Tensor> grid_sampler_backward(const at::Tensor& input, const at::Tensor& grid,
                                                         const at::Tensor& grad_output) {
  return at::grid_sampler_2d_backward(grad_output, input, grid, kBilinear, kZeros, true, {true, true});
}

at::Tensor affine_grid(const at::Tensor& theta, int64_t n, int64_t c, int64_t h, int64_t w) {
  return at::affine_grid_generator(theta, {n, c, h, w}, true);
}

at::Tensor affine_grid_backward(const at::Tensor& grad, int64_t n, int64_t c, int64_t h, int64_t w) {
  return at::affine_grid_generator_backward(grad, {n, c, h, w}, true);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/GridSampler.h"
