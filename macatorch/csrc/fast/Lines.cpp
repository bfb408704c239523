#include "fast/Lines.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "alias/DeviceCall.h"
#include "fast/Processor.h"

namespace macatorch {

// Note [Sums of lines]
// A row of a sparse matrix times a dense one is a sum of the dense one's rows, each times a number; a row of a filtered
// plane is a sum of the plane's rows, shifted. Upstream's kernel for coordinate lists adds the rows one by one, so that
// the sum goes through memory for every element of the matrix, and oneDNN pads a result of one channel to 8 or 16. Here
// a piece of the sum stays in registers while the lines go by; with sparse matrices one such piece of all rows is
// computed before the next, with those pieces of the dense rows side by side in the cache. Products and sums are
// rounded one after the other, in the order of upstream's kernel, and do not depend on the processor.

namespace {

constexpr int64_t kLeastWork = int64_t{1} << 13;     // multiplications: below, there is nothing to gain
constexpr int64_t kWorkOfThread = int64_t{1} << 15;  // multiplications
constexpr int64_t kUsesOfCopy = 4;                   // of a dense row's piece, which are worth a copy of it
constexpr int64_t kLeastPlane = int64_t{1} << 12;    // elements of a filtered plane
constexpr int64_t kMostPlanes = 2;
constexpr int64_t kMostTaps = 64;  // numbers that make one of the result
constexpr int kVectors = 8;        // in which a sum is kept

/// `numbers[k]` times the line at `base + places[k] * pitch`, for each k below `count`.
template <class T>
struct Lines {
  const T* numbers;
  const int64_t* places;
  int64_t count;
  const T* base;
  int64_t pitch;
};

/// Adds lines to kParts vectors of `out`.
template <class T, int kBytes, int kParts>
__attribute__((always_inline)) inline void add_vectors(T* out, const Lines<T>& lines, int64_t column) {
  typedef T Vector __attribute__((vector_size(kBytes)));
  Vector sum[kParts];
  __builtin_memcpy(sum, out + column, sizeof sum);
  for (int64_t k = 0; k < lines.count; ++k) {
    const T number = lines.numbers[k];
    const T* line = lines.base + lines.places[k] * lines.pitch + column;
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      Vector values;
      __builtin_memcpy(&values, line + part * (kBytes / sizeof(T)), sizeof values);
      sum[part] += values * number;
    }
  }
  __builtin_memcpy(out + column, sum, sizeof sum);
}

/// Adds lines to `length` elements of `out`.
template <class T, int kBytes>
__attribute__((always_inline)) inline void add_lines(T* out, const Lines<T>& lines, int64_t length) {
  constexpr int64_t lanes = kBytes / sizeof(T);
  int64_t column = 0;
  for (; column + kVectors * lanes <= length; column += kVectors * lanes) {
    add_vectors<T, kBytes, kVectors>(out, lines, column);
  }
  for (; column + 2 * lanes <= length; column += 2 * lanes) {
    add_vectors<T, kBytes, 2>(out, lines, column);
  }
  for (; column < length; ++column) {
    T sum = out[column];
    for (int64_t k = 0; k < lines.count; ++k) {
      const T product = lines.numbers[k] * lines.base[lines.places[k] * lines.pitch + column];
      sum += product;
    }
    out[column] = sum;
  }
}

template <class T>
using AddLines = void (*)(T* out, const Lines<T>& lines, int64_t length);

template <class T>
void add_lines_anywhere(T* out, const Lines<T>& lines, int64_t length) {
  add_lines<T, 16>(out, lines, length);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2"))) void add_lines_avx2(T* out, const Lines<T>& lines, int64_t length) {
  add_lines<T, 32>(out, lines, length);
}
#endif

/// What adds lines on this processor, and how many elements it keeps in registers.
template <class T>
std::pair<AddLines<T>, int64_t> chosen() {
#if defined(__x86_64__)
  if (has_avx2()) {
    return {add_lines_avx2<T>, kVectors * 32 / sizeof(T)};
  }
#endif
  return {add_lines_anywhere<T>, kVectors * 16 / sizeof(T)};
}

/// A sparse matrix by rows, in host memory.
struct Rows {
  std::vector<int64_t> first;  // of each row, and the end of the last
  at::Tensor columns, values;  // int64, and the dtype of the product
};

/// The elements of a coordinate list row by row, those of one row in the order of the list. None if an index is out of
/// range.
std::optional<Rows> rows_of(const at::Tensor& indices, const at::Tensor& values, int64_t height, int64_t width) {
  const at::Tensor places = indices.contiguous();
  const int64_t count = values.size(0);
  const int64_t *row = places.const_data_ptr<int64_t>(), *column = row + count;
  Rows rows{std::vector<int64_t>(static_cast<size_t>(height) + 1), places.select(0, 1), values.contiguous()};
  bool in_order = true;
  for (int64_t k = 0; k < count; ++k) {
    if (row[k] < 0 || row[k] >= height || column[k] < 0 || column[k] >= width) {
      return std::nullopt;
    }
    in_order &= k == 0 || row[k - 1] <= row[k];
    ++rows.first[static_cast<size_t>(row[k]) + 1];
  }
  for (size_t i = 1; i < rows.first.size(); ++i) {
    rows.first[i] += rows.first[i - 1];
  }
  if (!in_order) {
    std::vector<int64_t> next(rows.first.begin(), rows.first.end() - 1);
    const at::Tensor order = at::empty({count}, places.options());
    int64_t* from = order.mutable_data_ptr<int64_t>();
    for (int64_t k = 0; k < count; ++k) {
      from[next[static_cast<size_t>(row[k])]++] = k;
    }
    rows.columns = rows.columns.index_select(0, order);
    rows.values = rows.values.index_select(0, order);
  }
  return rows;
}

/// The same of a CSR matrix.
std::optional<Rows> rows_of_compressed(const at::Tensor& first, const at::Tensor& columns, const at::Tensor& values,
                                       int64_t width) {
  const at::Tensor wide = first.to(at::kLong).contiguous();
  Rows rows{std::vector<int64_t>(wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.size(0)),
            columns.to(at::kLong).contiguous(), values.contiguous()};
  const int64_t* column = rows.columns.const_data_ptr<int64_t>();
  const bool in_range =
      std::all_of(column, column + rows.columns.size(0), [&](int64_t place) { return place >= 0 && place < width; });
  const bool ascends = rows.first.front() == 0 && rows.first.back() == rows.columns.size(0) &&
                       std::is_sorted(rows.first.begin(), rows.first.end());
  return in_range && ascends ? std::make_optional(std::move(rows)) : std::nullopt;
}

template <class T>
void add_product(const at::Tensor& result, const Rows& rows, const at::Tensor& right) {
  const auto [add, piece] = chosen<T>();
  const int64_t height = result.size(0), length = result.size(1);
  T* out = result.mutable_data_ptr<T>();
  const T *base = right.const_data_ptr<T>(), *values = rows.values.const_data_ptr<T>();
  const int64_t* columns = rows.columns.const_data_ptr<int64_t>();
  const int64_t work = std::max<int64_t>(rows.columns.size(0) * length, 1);
  const int64_t grain = std::max<int64_t>(kWorkOfThread * height / work, 1);
  const int64_t* first = rows.first.data();
  at::parallel_for(0, height, grain, [&, add = add, piece = piece](int64_t begin, int64_t end) {
    // Rows of a power of two would meet in few sets of the cache.
    const bool copies = length > piece && first[end] - first[begin] >= kUsesOfCopy * right.size(0);
    std::vector<T> copy(copies ? static_cast<size_t>(right.size(0) * piece) : 0);
    for (int64_t column = 0; column < length; column += piece) {
      const int64_t count = std::min(piece, length - column);
      for (int64_t row = 0; copies && row < right.size(0); ++row) {
        std::copy_n(base + row * length + column, count, copy.data() + row * piece);
      }
      const T* const from = copies ? copy.data() : base + column;
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = first[row];
        const Lines<T> lines{values + start, columns + start, first[row + 1] - start, from, copies ? piece : length};
        add(out + row * length + column, lines, count);
      }
    }
  });
}

bool is_dense_operand(const at::Tensor& tensor, const at::Tensor& left) {
  return is_bare(tensor) && tensor.device() == left.device() && tensor.scalar_type() == left.scalar_type();
}

bool takes_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right) {
  const bool list = left.layout() == at::kSparse;
  if ((!list && left.layout() != at::kSparseCsr) || !is_on_device(left) || left.dim() != 2 ||
      (left.scalar_type() != at::kFloat && left.scalar_type() != at::kDouble)) {
    return false;
  }
  if (list ? left.sparse_dim() != 2 : left.crow_indices().dim() != 1) {
    return false;
  }
  return is_dense_operand(right, left) && right.dim() == 2 && left.size(1) == right.size(0) &&
         left._nnz() * right.size(1) >= kLeastWork &&
         (!self.defined() ||
          (is_dense_operand(self, left) && at::is_expandable_to(self.sizes(), {left.size(0), right.size(1)})));
}

template <class T>
void filter_plane(T* out, const at::Tensor& input, const T* numbers, const std::vector<int64_t>& places,
                  at::IntArrayRef out_sizes) {
  const AddLines<T> add = chosen<T>().first;
  const int64_t rows = out_sizes[0], length = out_sizes[1], width = input.size(-1);
  const T* base = input.const_data_ptr<T>();
  const int64_t taps = static_cast<int64_t>(places.size());
  const int64_t grain = std::max<int64_t>(kWorkOfThread / std::max<int64_t>(length * taps, 1), 1);
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      add(out + row * length, Lines<T>{numbers, places.data(), taps, base + row * width, 1}, length);
    }
  });
}

}  // namespace

std::optional<at::Tensor> sparse_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right,
                                         const at::Scalar& beta, const at::Scalar& alpha) {
  if (!takes_product(self, left, right)) {
    return std::nullopt;
  }
  const bool list = left.layout() == at::kSparse;
  const at::Tensor first = list ? left._indices() : left.crow_indices();
  const at::Tensor second = list ? first : left.col_indices();
  const at::Tensor elements = list ? left._values() : left.values();
  DeviceCall call(left);
  const at::Tensor values = call(elements).resolve_neg(), dense = call(right).resolve_neg().contiguous();
  const int64_t height = left.size(0), width = left.size(1);
  std::optional<Rows> rows =
      list ? rows_of(call(first), values, height, width) : rows_of_compressed(call(first), call(second), values, width);
  if (!rows) {
    return std::nullopt;
  }
  if (!alpha.equal(1)) {
    rows->values = rows->values.mul(alpha);
  }
  const std::array<int64_t, 2> shape{height, right.size(1)};
  const bool empty = !self.defined() || beta.equal(0);
  at::Tensor result = empty ? at::zeros(shape, dense.options()) : call(self).expand(shape).mul(beta).contiguous();
  if (dense.scalar_type() == at::kFloat) {
    add_product<float>(result, *rows, dense);
  } else {
    add_product<double>(result, *rows, dense);
  }
  return call.result(std::move(result));
}

std::optional<at::Tensor> plane_convolution(const at::Tensor& input, const at::Tensor& weight,
                                            const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                                            c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                                            const c10::SymInt& groups) {
  const auto all = [](c10::SymIntArrayRef numbers, int64_t wanted) {
    return std::all_of(numbers.begin(), numbers.end(), [&](const c10::SymInt& number) { return number == wanted; });
  };
  const at::ScalarType dtype = input.scalar_type();
  if (transposed || input.dim() != 4 || weight.dim() != 4 || weight.size(0) < 1 || weight.size(0) > kMostPlanes ||
      groups != 1 || (dtype != at::kFloat && dtype != at::kDouble) || weight.scalar_type() != dtype ||
      (bias && bias->defined() &&
       (bias->scalar_type() != dtype || bias->dim() != 1 || bias->size(0) != weight.size(0))) ||
      !all(stride, 1) || !all(padding, 0) || !all(dilation, 1) || input.size(1) != weight.size(1) ||
      !input.is_contiguous() || input.is_neg() || weight.is_neg()) {
    return std::nullopt;
  }
  const int64_t taps = weight.size(1) * weight.size(2) * weight.size(3);
  const std::array<int64_t, 2> plane{input.size(2) - weight.size(2) + 1, input.size(3) - weight.size(3) + 1};
  if (taps < 1 || taps > kMostTaps || plane[0] < 1 || plane[1] < 1 || plane[0] * plane[1] < kLeastPlane) {
    return std::nullopt;
  }
  std::vector<int64_t> places;
  for (int64_t channel = 0; channel < weight.size(1); ++channel) {
    for (int64_t row = 0; row < weight.size(2); ++row) {
      for (int64_t column = 0; column < weight.size(3); ++column) {
        places.push_back((channel * input.size(2) + row) * input.size(3) + column);
      }
    }
  }
  at::Tensor result = at::zeros({input.size(0), weight.size(0), plane[0], plane[1]}, input.options());
  if (bias && bias->defined()) {
    result.add_(bias->view({1, -1, 1, 1}));
  }
  const at::Tensor numbers = weight.contiguous();
  for (int64_t image = 0; image < input.size(0); ++image) {
    for (int64_t channel = 0; channel < weight.size(0); ++channel) {
      const at::Tensor out = result.select(0, image).select(0, channel), from = input.select(0, image);
      if (dtype == at::kFloat) {
        filter_plane(out.mutable_data_ptr<float>(), from, numbers.const_data_ptr<float>() + channel * taps, places,
                     plane);
      } else {
        filter_plane(out.mutable_data_ptr<double>(), from, numbers.const_data_ptr<double>() + channel * taps, places,
                     plane);
      }
    }
  }
  return result;
}

}  // namespace macatorch
