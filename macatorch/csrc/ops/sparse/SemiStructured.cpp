#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Note [2:4 sparsity]
// Of every four neighbours in a row at most two are not zero (of two floats, at most one). A matrix (m, k) is kept as
// its values (m, k / 2) and, for each group of four, a code of two 2-bit places. There are two layouts, as upstream's
// Python states them (torch/sparse/_semi_structured_conversions.py, semi_structured.py): CUTLASS has the codes in a
// matrix of its own, four or eight to an integer and reordered; cuSPARSELt has values and codes in one tensor. How
// cuSPARSELt lays out its codes is not documented; here they follow the values, two to a byte.

/// Bits 0 to 3 of `mask` say which of four are there; the two places to keep, the lower one in the lower bits.
uint8_t code_of(unsigned mask) {
  const bool m0 = (mask & 1) != 0, m1 = (mask & 2) != 0, m3 = (mask & 8) != 0;
  const unsigned first = unsigned(!m0 && m1) | unsigned(!m0 && !m1) << 1;
  const unsigned second = unsigned((m0 && m1) || (!m0 && !m1) || m3) | unsigned((!m0 && m1) || !m1) << 1;
  return static_cast<uint8_t>(first | second << 2);
}

struct Compressed {
  at::Tensor values;  // (m, k / 2)
  at::Tensor codes;   // (m, groups), one a byte
};

int64_t group_size(at::ScalarType dtype) { return dtype == at::kFloat ? 2 : 4; }

/// The places of one group: of floats, which are one of two, as if each were a pair of halves.
at::Tensor codes_of(const at::Tensor& kept, int64_t group) {
  const at::Tensor bytes = kept.to(at::kByte).contiguous();
  const int64_t rows = kept.size(0), groups = kept.size(1) / group;
  at::Tensor codes = at::empty({rows, groups}, at::TensorOptions().dtype(at::kByte));
  const auto* from = bytes.const_data_ptr<uint8_t>();
  auto* to = codes.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < codes.numel(); ++i, from += group) {
    unsigned mask = 0;
    for (int64_t j = 0; j < group; ++j) {
      if (from[j] != 0) {
        mask |= group == 2 ? 3u << (2 * j) : 1u << j;
      }
    }
    to[i] = code_of(mask);
  }
  return codes;
}

/// Columns of the kept values, (m, k / 2).
at::Tensor columns_of(const at::Tensor& codes, int64_t group) {
  const at::Tensor wide = codes.to(at::kLong);
  const at::Tensor base = at::arange(codes.size(1)).mul_(group);
  const at::Tensor first = wide.bitwise_and(3);
  if (group == 2) {
    return first.floor_divide(2).add_(base);
  }
  return at::stack({first.add(base), wide.bitwise_right_shift(2).add_(base)}, 2).flatten(1);
}

/// float8 has few operators: values are moved as bytes.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::isFloat8Type(tensor.scalar_type()) ? tensor.view(at::kByte) : tensor;
}

Compressed compress(const at::Tensor& dense, const at::Tensor& kept) {
  const int64_t group = group_size(dense.scalar_type());
  TORCH_CHECK(dense.dim() == 2 && dense.size(1) % group == 0,
              "2:4 sparsity: expected a matrix whose columns come in groups of ", group, ", got shape ", dense.sizes());
  const at::Tensor codes = codes_of(kept, group);
  return {as_bytes(dense).gather(1, columns_of(codes, group)).view(dense.scalar_type()), codes};
}

Compressed compress(const at::Tensor& dense) { return compress(dense, as_bytes(dense).ne(0)); }

at::Tensor expand(const Compressed& compressed) {
  const int64_t group = group_size(compressed.values.scalar_type());
  const at::Tensor values = as_bytes(compressed.values);
  at::Tensor dense = at::zeros({values.size(0), values.size(1) * 2}, values.options());
  dense.scatter_(1, columns_of(compressed.codes, group), values);
  return dense.view(compressed.values.scalar_type());
}

// ---- CUTLASS's layout -----------------------------------------------------------------------------------------------

bool wide_words(at::ScalarType dtype) { return dtype == at::kChar; }

/// Where each word of a (rows, columns) matrix of codes goes.
at::Tensor word_places(int64_t rows, int64_t columns, bool wide) {
  const int64_t group = wide ? 16 : 32, interweave = wide ? 2 : 4;
  at::Tensor places = at::empty({rows, columns}, at::TensorOptions().dtype(at::kLong));
  auto* to = places.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      int64_t row = i / group * group + i % 8 * interweave + i % group / 8;
      int64_t column = j;
      // The off-diagonal words of each block of two by two are swapped.
      if (row % 2 == 0 && column % 2 == 1) {
        ++row;
        --column;
      } else if (row % 2 == 1 && column % 2 == 0) {
        --row;
        ++column;
      }
      *to++ = column / 2 * rows * 2 + row * 2 + column % 2;
    }
  }
  return places.view({-1});
}

at::Tensor words_of(const at::Tensor& codes, at::ScalarType dtype) {
  const bool wide = wide_words(dtype);
  const int64_t per_word = wide ? 8 : 4, rows = codes.size(0), columns = codes.size(1) / per_word;
  TORCH_CHECK(rows % (wide ? 16 : 32) == 0, "Number of rows of dense matrix ", rows, " must be divisible by ",
              wide ? 16 : 32);
  TORCH_CHECK(codes.size(1) % per_word == 0, "Number of columns of dense matrix must be divisible by ",
              per_word * group_size(dtype));
  const at::Tensor shifts = at::arange(per_word).mul_(4);
  const at::Tensor words =
      codes.to(at::kLong).view({rows, columns, per_word}).bitwise_left_shift(shifts).sum(2).view({-1});
  at::Tensor result = at::empty({rows * columns}, words.options());
  result.scatter_(0, word_places(rows, columns, wide), words);
  return result.to(wide ? at::kInt : at::kShort).view({rows, columns});
}

at::Tensor codes_of_words(const at::Tensor& meta, at::ScalarType dtype) {
  const bool wide = wide_words(dtype);
  TORCH_CHECK(meta.scalar_type() == (wide ? at::kInt : at::kShort), "2:4 sparsity: metadata of ", dtype,
              " values must be of dtype ", wide ? at::kInt : at::kShort, ", got ", meta.dtype());
  const int64_t per_word = wide ? 8 : 4, rows = meta.size(0), columns = meta.size(1);
  const at::Tensor words = meta.contiguous().view({-1}).to(at::kLong).gather(0, word_places(rows, columns, wide));
  return words.view({rows, columns, 1})
      .bitwise_right_shift(at::arange(per_word).mul_(4))
      .bitwise_and(15)
      .to(at::kByte)
      .flatten(1);
}

at::Tensor cutlass_dense(const at::Tensor& values, const at::Tensor& meta) {
  return expand({values.contiguous(), codes_of_words(meta, values.scalar_type())});
}

// ---- Products -------------------------------------------------------------------------------------------------------

/// What a product is computed in: exact for bytes, float for low precision.
at::Tensor in_accumulator(const at::Tensor& tensor) {
  return tensor.to(tensor.scalar_type() == at::kChar ? at::kDouble : at::kFloat);
}

void cutlass_linear(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor input = given.tensor("input");
  DeviceCall call(input);
  const at::Tensor x = call(input);
  const at::Tensor weight = cutlass_dense(call(given.tensor("weight")), call(given.tensor("meta")));
  TORCH_CHECK(x.size(-1) == weight.size(1), "_sparse_semi_structured_linear: input has ", x.size(-1),
              " features, and the weight ", weight.size(1));
  at::Tensor value = at::matmul(in_accumulator(x), in_accumulator(weight).t());
  if (const at::Tensor bias = call(given.tensor("bias")); bias.defined()) {
    value.add_(bias);
  }
  const c10::IValue activation = given["activation"];
  const std::string name = activation.isNone() ? "none" : activation.toStringRef();
  TORCH_CHECK(name == "none" || name == "relu" || name == "silu", "_sparse_semi_structured_linear: Activation \"", name,
              "\" is not supported");
  if (name == "relu") {
    value.relu_();
  } else if (name == "silu") {
    value = at::silu(value);
  }
  given.give(call.result(round_to(value, given.dtype("out_dtype").value_or(input.scalar_type()))));
}

/// Tensor Cores take bytes in one order alone: the other matrix has to be given transposed.
bool takes_order(const at::Tensor& right) { return right.scalar_type() != at::kChar || !right.is_contiguous(); }

/// mat1 @ mat2, plus a vector with an entry for each row.
void cutlass_product(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  TORCH_CHECK(
      takes_order(given.tensor("mat2")),
      "spgemm_cutlass_dispatch_layouts: Combination of row-major and row-major layouts for input tensors is not "
      "supported for Char; give the dense matrix as the transpose of a contiguous one");
  DeviceCall call(given.tensor("mat1"));
  const at::Tensor left = cutlass_dense(call(given.tensor("mat1")), call(given.tensor("mat1_meta")));
  const at::Tensor right = call(given.tensor("mat2"));
  at::Tensor value = at::mm(in_accumulator(left), in_accumulator(right));
  if (const at::Tensor input = call(given.tensor("input")); input.defined()) {
    TORCH_CHECK(input.dim() == 1 && input.size(0) == left.size(0),
                "_sparse_semi_structured_addmm: expected an input of ", left.size(0), " entries, got shape ",
                input.sizes());
    value.mul_(given["alpha"].toScalar()).add_(input.to(value.scalar_type()).unsqueeze(1), given["beta"].toScalar());
  }
  given.give(call.result(round_to(value, given.dtype("out_dtype").value_or(right.scalar_type()))));
}

std::tuple<at::Tensor, at::Tensor> to_semi_structured(const at::Tensor& dense) {
  DeviceCall call(dense);
  const at::Tensor matrix = call(dense);
  TORCH_CHECK(matrix.dim() == 2, "_to_sparse_semi_structured: Expected dense argument to be 2D tensor, got ",
              matrix.dim(), " dims");
  const Compressed compressed = compress(matrix);
  return call.results(compressed.values, words_of(compressed.codes, matrix.scalar_type()));
}

// ---- cuSPARSELt's layout --------------------------------------------------------------------------------------------

/// Sixteenths of the dense tensor's elements that the compressed one has.
int64_t sixteenths(at::ScalarType dtype) { return c10::elementSize(dtype) == 1 ? 10 : 9; }

at::Tensor joined(const Compressed& compressed) {
  const at::ScalarType dtype = compressed.values.scalar_type();
  at::Tensor result =
      at::zeros({compressed.values.numel() * 2 * sixteenths(dtype) / 16}, as_bytes(compressed.values).options());
  result.narrow(0, 0, compressed.values.numel()).copy_(as_bytes(compressed.values).reshape({-1}));
  const at::Tensor codes = compressed.codes.reshape({-1});
  auto* bytes = static_cast<uint8_t*>(result.mutable_data_ptr()) + compressed.values.nbytes();
  const auto* from = codes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < codes.numel(); ++i) {
    bytes[i / 2] |= static_cast<uint8_t>(from[i] << (i % 2 * 4));
  }
  return result.view(dtype);
}

at::Tensor parted(const at::Tensor& whole, int64_t columns) {
  const at::ScalarType dtype = whole.scalar_type();
  const at::Tensor flat = as_bytes(whole.contiguous()).reshape({-1});
  const int64_t count = flat.numel() * 16 / sixteenths(dtype);
  TORCH_CHECK(columns > 0 && count % columns == 0, "_cslt_sparse_mm: the compressed matrix does not have ", columns,
              " columns");
  const int64_t rows = count / columns, groups = columns / group_size(dtype);
  at::Tensor codes = at::empty({rows, groups}, at::TensorOptions().dtype(at::kByte));
  const auto* bytes = static_cast<const uint8_t*>(flat.const_data_ptr()) + count / 2 * flat.element_size();
  auto* to = codes.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < codes.numel(); ++i) {
    to[i] = bytes[i / 2] >> (i % 2 * 4) & 15;
  }
  return expand({flat.narrow(0, 0, count / 2).view({rows, columns / 2}).view(dtype), codes});
}

at::Tensor cslt_compress(const at::Tensor& input) {
  DeviceCall call(input);
  return call.result(joined(compress(call(input).contiguous())));
}

void cslt_mm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor right = given.tensor("dense_B");
  TORCH_CHECK(takes_order(right),
              "CUDA error: operation not supported when calling `cusparseLtMatmulDescriptorInit`: of int8 the dense "
              "matrix has to be the transpose of a contiguous one");
  DeviceCall call(right);
  const at::Tensor b = call(right);
  const at::Tensor a = parted(call(given.tensor("compressed_A")), b.size(0));
  at::Tensor value = at::mm(in_accumulator(a), in_accumulator(b));
  if (const at::Tensor alpha = given.tensor("alpha"); alpha.defined()) {
    const at::Tensor factor = call.alias(alpha).to(value.scalar_type());
    value.mul_(factor.numel() == 1 ? factor.reshape({}) : factor.reshape({-1, 1}));
  }
  if (const at::Tensor bias = call(given.tensor("bias")); bias.defined()) {
    value.add_(bias.to(value.scalar_type()).unsqueeze(1));
  }
  value = round_to(value, given.dtype("out_dtype").value_or(right.scalar_type()));
  given.give(call.result(given.flag("transpose_result") ? value.t().contiguous() : value));
}

/// There is one algorithm here, of the number 0.
void cslt_search(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Arguments(op, stack).give(int64_t(0)); }

// ---- Pruning in tiles of four by four, so that the transposed matrix is 2:4 sparse too ------------------------------

constexpr int64_t kTile = 4;

/// Keeps the largest entries of a tile, two a row and two a column, in the order of their size.
void prune_tile(const float* sizes, int64_t stride, uint8_t* kept) {
  std::array<int, kTile * kTile> order{};
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](int place) { return sizes[place / kTile * stride + place % kTile]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return size(a) > size(b); });
  std::array<int, kTile> in_row{}, in_column{};
  for (const int place : order) {
    int& row = in_row[place / kTile];
    int& column = in_column[place % kTile];
    const bool keep = row < 2 && column < 2;
    row += keep;
    column += keep;
    kept[place / kTile * stride + place % kTile] = keep;
  }
}

at::Tensor pruned(const at::Tensor& matrix, const std::string& algorithm) {
  const bool by_value = algorithm == "largest_values_greedy";
  TORCH_CHECK(by_value || algorithm.empty() || algorithm == "largest_abs_values_greedy",
              "_sparse_semi_structured_tile: Unknown algorithm \"", algorithm,
              "\"; the simulated device has largest_values_greedy and largest_abs_values_greedy");
  TORCH_CHECK(matrix.dim() == 2 && matrix.size(0) % 8 == 0 && matrix.size(1) % 8 == 0,
              "_sparse_semi_structured_tile: expected a matrix in tiles of 8 by 8, got shape ", matrix.sizes());
  const at::Tensor values = matrix.to(at::kFloat);
  const at::Tensor sizes = (by_value ? values : values.abs()).contiguous();
  at::Tensor kept = at::empty(sizes.sizes(), at::TensorOptions().dtype(at::kByte));
  const auto* from = sizes.const_data_ptr<float>();
  auto* to = kept.mutable_data_ptr<uint8_t>();
  const int64_t columns = matrix.size(1);
  for (int64_t i = 0; i < matrix.size(0); i += kTile) {
    for (int64_t j = 0; j < columns; j += kTile) {
      prune_tile(from + i * columns + j, columns, to + i * columns + j);
    }
  }
  return matrix.masked_fill(kept.logical_not(), 0);
}

/// Which entries are there, eight to a byte: (m / 8, k / 8, tile of four by four, its half).
at::Tensor bitmask_of(const at::Tensor& kept) {
  const at::Tensor bits = kept.to(at::kLong)
                              .view({kept.size(0) / 8, 2, kTile, kept.size(1) / 8, 2, kTile})
                              .permute({0, 3, 1, 4, 2, 5})
                              .reshape({kept.size(0) / 8, kept.size(1) / 8, 4, 2, 8});
  return bits.bitwise_left_shift(at::arange(8)).sum(-1).to(at::kByte);
}

at::Tensor kept_of(const at::Tensor& bitmask, at::IntArrayRef shape) {
  const at::Tensor bits = bitmask.to(at::kLong)
                              .reshape({shape[0] / 8, shape[1] / 8, 4, 2, 1})
                              .bitwise_right_shift(at::arange(8))
                              .bitwise_and(1);
  return bits.reshape({shape[0] / 8, shape[1] / 8, 2, 2, kTile, kTile})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape(shape)
      .to(at::kBool);
}

void tile(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  DeviceCall call(given.tensor("input"));
  const at::Tensor matrix = pruned(call(given.tensor("input")), given["algorithm"].toStringRef());
  const at::ScalarType dtype = matrix.scalar_type();
  const Compressed straight = compress(matrix.contiguous());
  const Compressed across = compress(matrix.t().contiguous());
  const at::Tensor bitmask = call.result(bitmask_of(matrix.ne(0)));
  if (given.flag("use_cutlass")) {
    given.give(call.result(straight.values), call.result(words_of(straight.codes, dtype)), call.result(across.values),
               call.result(words_of(across.codes, dtype)), bitmask);
  } else {
    given.give(call.result(joined(straight)), at::Tensor(), call.result(joined(across)), at::Tensor(), bitmask);
  }
}

/// The kept entries of another matrix, packed as rows and as columns.
std::tuple<at::Tensor, at::Tensor> apply(const at::Tensor& input, const at::Tensor& bitmask) {
  DeviceCall call(input);
  const at::Tensor matrix = call(input);
  const at::Tensor kept = kept_of(call(bitmask), matrix.sizes());
  const at::Tensor masked = matrix.masked_fill(kept.logical_not(), 0);
  return call.results(compress(masked.contiguous(), kept).values,
                      compress(masked.t().contiguous(), kept.t().contiguous()).values);
}

at::Tensor apply_dense(const at::Tensor& input, const at::Tensor& bitmask) {
  DeviceCall call(input);
  const at::Tensor matrix = call(input);
  return call.result(matrix.masked_fill(kept_of(call(bitmask), matrix.sizes()).logical_not(), 0));
}

}  // namespace
}  // namespace macatorch

#include "registered/sparse/SemiStructured.h"
