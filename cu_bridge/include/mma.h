// Matrix products of a warp. The lanes of a warp share an address space, so a lane reads the fragments of the others
// where they lie; which lane holds which element is not promised by CUDA either.
#pragma once
#define __CUDA_MMA_H__

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "mxmaca/warp_table.h"

#ifdef __CUDACC__
namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

namespace detail {
template <class T>
struct storage {
  using type = T;
};
template <>
struct storage<precision::tf32> {
  using type = float;
};
template <class Use, int M, int N, int K>
struct shape;
template <int M, int N, int K>
struct shape<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct shape<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct shape<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};
// The products are exact in float (double for double, int for integers), the sums are rounded there.
template <class T>
struct work {
  using type = float;
};
template <>
struct work<double> {
  using type = double;
};
template <>
struct work<signed char> {
  using type = int;
};
template <>
struct work<unsigned char> {
  using type = int;
};
inline __device__ float number(__half v) { return __half2float(v); }
inline __device__ float number(__nv_bfloat16 v) { return __bfloat162float(v); }
inline __device__ float number(float v) { return v; }
inline __device__ double number(double v) { return v; }
inline __device__ int number(int v) { return v; }
inline __device__ int number(signed char v) { return v; }
inline __device__ int number(unsigned char v) { return v; }
inline __device__ void set(__half& target, float v) { target = __float2half(v); }
inline __device__ void set(float& target, float v) { target = v; }
inline __device__ void set(double& target, double v) { target = v; }
inline __device__ void set(int& target, int v) { target = v; }
}  // namespace detail

inline __device__ float __float_to_tf32(float value) {
  // To 10 stored bits, ties away from zero.
  const unsigned bits = __float_as_uint(value);
  return value - value != 0 ? value : __uint_as_float((bits + 0x1000U) & 0xffffe000U);
}

// Element e of the matrix in rows is number e / 32 of lane e % 32.
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  using element_type = typename detail::storage<T>::type;
  static constexpr int rows = detail::shape<Use, M, N, K>::rows, columns = detail::shape<Use, M, N, K>::columns;
  static_assert(rows * columns % 32 == 0, "wmma: no such shape");
  static constexpr int num_elements = rows * columns / 32;
  element_type x[num_elements];
};

namespace detail {
template <class Fragment, class Get>
__device__ void each(Fragment& fragment, Get get) {
  const int lane = static_cast<int>(mxmaca::lane());
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int element = i * 32 + lane;
    get(fragment.x[i], element / Fragment::columns, element % Fragment::columns);
  }
}
template <class Fragment>
__device__ auto element(const void* const* lanes, int row, int column) {
  const int e = row * Fragment::columns + column;
  return static_cast<const Fragment*>(lanes[e % 32])->x[e / 32];
}
}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout, class Value>
__device__ void fill_fragment(fragment<Use, M, N, K, T, Layout>& target, const Value& value) {
  for (auto& x : target.x) x = value;
}
template <class Use, int M, int N, int K, class T, class Layout, class From>
__device__ void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& target, const From* from, unsigned stride) {
  static_assert(!std::is_void<Layout>::value, "wmma: an accumulator is loaded with its layout");
  __syncwarp();
  detail::each(target, [=](auto& x, int row, int column) {
    x = from[std::is_same<Layout, row_major>::value ? static_cast<size_t>(row) * stride + static_cast<size_t>(column)
                                                    : static_cast<size_t>(column) * stride + static_cast<size_t>(row)];
  });
}
template <int M, int N, int K, class T, class From>
__device__ void load_matrix_sync(fragment<accumulator, M, N, K, T>& target, const From* from, unsigned stride,
                                 layout_t layout) {
  __syncwarp();
  detail::each(target, [=](auto& x, int row, int column) {
    x = from[layout == mem_row_major ? static_cast<size_t>(row) * stride + static_cast<size_t>(column)
                                     : static_cast<size_t>(column) * stride + static_cast<size_t>(row)];
  });
}
template <int M, int N, int K, class T, class To>
__device__ void store_matrix_sync(To* to, const fragment<accumulator, M, N, K, T>& source, unsigned stride,
                                  layout_t layout) {
  detail::each(source, [=](const auto& x, int row, int column) {
    to[layout == mem_row_major ? static_cast<size_t>(row) * stride + static_cast<size_t>(column)
                               : static_cast<size_t>(column) * stride + static_cast<size_t>(row)] = x;
  });
  __syncwarp();
}
// d = a * b + c; d may be c.
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class D, class C>
__device__ void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                         const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c) {
  using A = fragment<matrix_a, M, N, K, T, LayoutA>;
  using B = fragment<matrix_b, M, N, K, T, LayoutB>;
  using Work = typename detail::work<typename detail::storage<T>::type>::type;
  mxmaca::WarpTable& table = mxmaca::warp_table();
  table.first[mxmaca::lane()] = &a;
  table.second[mxmaca::lane()] = &b;
  __syncwarp();
  D results[fragment<accumulator, M, N, K, D>::num_elements];
  const int lane = static_cast<int>(mxmaca::lane());
  for (int i = 0; i < d.num_elements; ++i) {
    const int row = (i * 32 + lane) / N, column = (i * 32 + lane) % N;
    Work sum = static_cast<Work>(detail::number(c.x[i]));
    for (int k = 0; k < K; ++k) {
      Work left = detail::number(detail::element<A>(table.first, row, k));
      Work right = detail::number(detail::element<B>(table.second, k, column));
      if constexpr (std::is_same<T, precision::tf32>::value) {
        // The hardware reads the upper bits only.
        left = __uint_as_float(__float_as_uint(left) & 0xffffe000U);
        right = __uint_as_float(__float_as_uint(right) & 0xffffe000U);
      }
      sum += left * right;
    }
    detail::set(results[i], sum);
  }
  __syncwarp();
  for (int i = 0; i < d.num_elements; ++i) d.x[i] = results[i];
}

}  // namespace wmma
}  // namespace nvcuda
#endif
