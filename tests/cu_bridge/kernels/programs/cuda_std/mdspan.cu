// Views with several directions: sizes, products of matrices in both orders, parts, conversions.
#include <cuda/mdspan>
#include <cuda/std/array>
#include <cuda/std/mdspan>
#include <cuda/std/span>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <cstdlib>
#include <string>

#include "../../check.h"

namespace cs = cuda::std;
using cs::dextents;
using cs::extents;
using cs::full_extent;
using cs::mdspan;

static_assert(sizeof(mdspan<float, extents<int, 3, 4>>) == sizeof(float*));
static_assert(sizeof(mdspan<float, dextents<int, 2>>) == sizeof(float*) + 8);
static_assert(extents<int, 3, cs::dynamic_extent>::rank_dynamic() == 1 && extents<int>::rank() == 0);
static_assert(cs::is_same_v<cs::dims<2>, dextents<cs::size_t, 2>>);
static_assert(!cs::is_constructible_v<extents<int, 3>, extents<int, 4>>);
// Strides are not dropped unasked.
using Strided = mdspan<int, dextents<int, 1>, cs::layout_stride>;
static_assert(cs::is_convertible_v<mdspan<int, extents<int, 3>>, Strided>);
static_assert(!cs::is_convertible_v<Strided, mdspan<int, dextents<int, 1>>>);
static_assert(cs::is_constructible_v<mdspan<int, dextents<int, 1>>, Strided>);

using Rows = mdspan<float, dextents<int, 2>>;
using Columns = mdspan<const float, dextents<int, 2>, cs::layout_left>;

__global__ void product(mdspan<const float, dextents<int, 2>> a, Columns b, Rows c) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= c.extent(0) || j >= c.extent(1)) return;
  const auto row = cs::submdspan(a, i, full_extent);
  const auto column = cs::submdspan(b, full_extent, j);
  float sum = 0;
  for (int k = 0; k < a.extent(1); ++k) sum += row(k) * column[k];
  c(i, j) = sum;
}

__global__ void parts() {
  __shared__ int numbers[60];
  const mdspan<int, extents<int, 3, 4, 5>> cube(numbers);
  for (int i = threadIdx.x; i < 60; i += blockDim.x) numbers[i] = i;
  __syncthreads();
  EXPECT((cube(2, 3, 4) == 59 && cube[cs::array<int, 3>{1, 2, 3}] == 33));
  EXPECT(cube.size() == 60 && cube.stride(0) == 20 && cube.stride(2) == 1 && !cube.empty());

  const auto part = cs::submdspan(cube, cs::strided_slice{0, 3, 2}, 1, cs::pair{1, 4});
  static_assert(part.rank() == 2 && cs::is_same_v<decltype(part)::layout_type, cs::layout_stride>);
  EXPECT(part.extent(0) == 2 && part.extent(1) == 3 && !part.is_exhaustive());
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT(part(i, j) == 40 * i + 5 + 1 + j);
  }
  const auto planes = cs::submdspan(cube, cs::pair{1, 3}, full_extent, full_extent);
  static_assert(cs::is_same_v<decltype(planes)::layout_type, cs::layout_right>);
  static_assert(planes.static_extent(1) == 4 && planes.static_extent(0) == cs::dynamic_extent);
  EXPECT(planes(0, 0, 0) == 20 && planes.size() == 40);
  const auto last = cs::submdspan(cube, 2, 3, 4);
  EXPECT(last.rank() == 0 && last() == 59);

  const cuda::restrict_mdspan<int, extents<int, 60>> line(numbers);
  EXPECT(line(59) == 59);
  const mdspan<const int, dextents<int, 3>> constant = cube;
  EXPECT(constant(1, 1, 1) == 26 && constant.extents() == cube.extents());
  const mdspan<int, dextents<int, 3>, cs::layout_stride> strided = cube;
  EXPECT(strided(2, 1, 0) == 45 && strided.is_exhaustive() && strided.mapping() == cube.mapping());
  const mdspan<int, dextents<int, 2>, cs::layout_left> turned(numbers, 5, 12);
  EXPECT(turned(4, 11) == 59 && turned(1, 2) == 11 && turned.stride(1) == 5);
  const auto columns = cs::submdspan(turned, full_extent, cs::pair{2, 5});
  static_assert(cs::is_same_v<decltype(columns)::layout_type, cs::layout_left>);
  EXPECT(columns(0, 0) == 10 && columns.extent(1) == 3);
}

// Neither are they dropped when asked for and wrong, nor a length.
__global__ void wrong_stride(int* data) {
  const mdspan<int, extents<int, 4, 5>> rows(data);
  const auto column = cs::submdspan(rows, full_extent, 1);
  *data = mdspan<int, dextents<int, 1>>(column)(1);
}
__global__ void wrong_length(int* data) { *data = mdspan<int, extents<int, 5>>(mdspan(data, 4))(0); }

int main(int count, char** arguments) {
  if (count > 1) {  // what the device cannot go on behind
    (arguments[1][0] == 's' ? wrong_stride : wrong_length)<<<1, 1>>>(nullptr);
    return cudaDeviceSynchronize() == cudaErrorLaunchFailure ? 7 : 1;
  }
  const int m = 37, k = 19, n = 23;
  float *a, *b, *c;
  CHECK(cudaMallocManaged(&a, m * k * sizeof(float)) == cudaSuccess);
  CHECK(cudaMallocManaged(&b, k * n * sizeof(float)) == cudaSuccess);
  CHECK(cudaMallocManaged(&c, m * n * sizeof(float)) == cudaSuccess);
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 5);
  const Rows left(a, m, k), result(c, m, n);
  product<<<dim3(2, 3), dim3(16, 16)>>>(left, Columns(b, k, n), result);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[j * k + l];
      CHECK(result(i, j) == sum);
    }
  }
  parts<<<2, 32>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);

  int five[5] = {1, 2, 3, 4, 5};
  const mdspan line(five);
  static_assert(line.static_extent(0) == 5);
  const mdspan cube(a, 3, 4, 5);
  static_assert(cs::is_same_v<decltype(cube), const mdspan<float, dextents<cs::size_t, 3>>>);
  const mdspan typed(a, cs::layout_left::mapping(extents<int, 3, 4>()));
  CHECK(line[4] == 5 && cube.extent(2) == 5 && &typed(1, 2) == a + 7);
  const cs::array<int, 2> lengths{2, 3};
  const mdspan<int, extents<int, 2, cs::dynamic_extent>> two(five, lengths), same(five, 3);
  CHECK(two.extents() == same.extents() && two(1, 0) == 4);
  const auto part = cs::submdspan(mdspan<int, extents<int, 1, 5>>(five), 0, cs::strided_slice{0, 5, 1});
  CHECK((mdspan<int, dextents<int, 1>>(part)(3) == 4));
  for (const char* mistake : {" stride", " length"}) {
    CHECK(WEXITSTATUS(std::system((std::string(arguments[0]) + mistake).c_str())) == 7);
  }
  return summary();
}
