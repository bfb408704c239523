#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Matrix products that upstream has for CUDA only. All of them are computed in the accumulate dtype: Note [Precision].

bool is_float8(at::ScalarType dtype) { return dtype == at::kFloat8_e4m3fn || dtype == at::kFloat8_e5m2; }

// ---- A result of another dtype than the operands (torch 2.8 and later) ---------------------------------------------

/// Ends a call with a result, or with its values in `out`.
void give(Arguments& given, DeviceCall& call, const at::Tensor& value) {
  const at::Tensor out = given.tensor("out");
  if (!out.defined()) {
    given.give(call.result(value));
    return;
  }
  write_out(call(out, true), value);
  call.write_back();
  given.give(out);
}

/// mm, bmm, addmm and baddbmm with out_dtype.
void product_of_dtype(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), out = given.tensor("out");
  const bool adds = !given["beta"].isNone(), batched = given.tensor("batch1").defined();
  const at::Tensor left = batched ? given.tensor("batch1") : adds ? given.tensor("mat1") : self;
  const at::Tensor right = given.tensor(batched ? "batch2" : "mat2");
  const at::ScalarType dtype = *given.dtype("out_dtype");
  TORCH_CHECK(left.scalar_type() == right.scalar_type(),
              "expected mat1 and mat2 to have the same dtype, but got: ", left.dtype(), " != ", right.dtype());
  TORCH_CHECK(dtype == left.scalar_type() || (dtype == at::kFloat && is_half(left.scalar_type())),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
  TORCH_CHECK(!adds || self.scalar_type() == dtype || self.scalar_type() == left.scalar_type(),
              "self dtype must match either out_dtype or mat1 dtype");
  DeviceCall call(left);
  const at::Tensor a = widen(call(left)), b = widen(call(right));
  at::Tensor value;
  if (adds) {
    const at::Scalar beta = given["beta"].toScalar(), alpha = given["alpha"].toScalar();
    const at::Tensor start = widen(call(self));
    value = batched ? at::baddbmm(start, a, b, beta, alpha) : at::addmm(start, a, b, beta, alpha);
  } else {
    value = self.dim() == 3 ? at::bmm(a, b) : at::mm(a, b);
  }
  TORCH_CHECK(!out.defined() || out.scalar_type() == dtype,
              "out_dtype must be the same as the dtype of the provided out tensor");
  give(given, call, value.to(dtype));
}

// ---- A product and an activation ------------------------------------------------------------------------------------

/// _addmm_activation and its out= form. CUDA's GELU is the tanh form here, whatever the layer asked for.
void addmm_activation(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), left = given.tensor("mat1"), right = given.tensor("mat2");
  const at::ScalarType dtype = left.scalar_type();
  // Operands of several dtypes are left to addmm, which refuses them.
  const bool low = is_half(dtype) && self.scalar_type() == dtype && right.scalar_type() == dtype;
  const auto operand = [&](const at::Tensor& tensor) { return low ? widen(tensor) : tensor; };
  at::Tensor value =
      at::addmm(operand(self), operand(left), operand(right), given["beta"].toScalar(), given["alpha"].toScalar());
  given.flag("use_gelu") ? at::gelu_(value, "tanh") : at::relu_(value);
  given.give(write_same_out(given.tensor("out"), value.to(dtype)));
}

// ---- Scaled products ------------------------------------------------------------------------------------------------

/// The entries of a matrix (rows, columns) times their scales: one for all, one a row or column, or one for each block
/// of 128 along a side.
at::Tensor scaled(const at::Tensor& matrix, const at::Tensor& scale) {
  constexpr int64_t kBlock = 128;
  const at::Tensor values = matrix.to(at::kFloat);
  if (scale.numel() == 1) {
    return values * scale.to(at::kFloat).reshape({});
  }
  at::Tensor factors = scale.to(at::kFloat);
  for (const int64_t dim : {0, 1}) {
    const int64_t wanted = matrix.size(dim), there = factors.size(dim);
    if (there != wanted && there != 1) {
      TORCH_CHECK(there == (wanted + kBlock - 1) / kBlock, "Invalid scaling configuration: a scale of shape ",
                  scale.sizes(), " does not fit a matrix of shape ", matrix.sizes());
      factors = factors.repeat_interleave(kBlock, dim).narrow(dim, 0, wanted);
    }
  }
  return values * factors;
}

void check_scaled(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 2, "mat1 must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
              b.size(0), "x", b.size(1), ")");
  TORCH_CHECK(is_float8(a.scalar_type()) && is_float8(b.scalar_type()),
              "_scaled_mm: expected float8_e4m3fn or float8_e5m2 matrices, got ", a.dtype(), " and ", b.dtype());
  TORCH_CHECK(a.scalar_type() != at::kFloat8_e5m2 || b.scalar_type() != at::kFloat8_e5m2,
              "Multiplication of two Float8_e5m2 matrices is not supported");
  TORCH_CHECK(a.size(1) % 16 == 0, "Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: (",
              a.size(0), "x", a.size(1), ").");
  TORCH_CHECK(b.size(0) % 16 == 0 && b.size(1) % 16 == 0, "mat2 shape (", b.size(0), "x", b.size(1),
              ") must be divisible by 16");
}

void check_scale_dtypes(const at::Tensor& scale_a, const at::Tensor& scale_b) {
  TORCH_CHECK(scale_a.scalar_type() == at::kFloat && scale_b.scalar_type() == at::kFloat,
              "Both scale_a and scale_b must be float (fp32) tensors; block formats with other scales are not computed "
              "on the simulated device");
}

/// Up to 2.4 a scale may be left out.
at::Tensor scale_or_one(const Arguments& given, const char* name) {
  const at::Tensor scale = given.tensor(name);
  return scale.defined() ? scale : at::ones({}, given.tensor("self").options().dtype(at::kFloat));
}

/// Up to 2.4 there is a second result: the largest magnitude of the product.
bool gives_largest(const c10::OperatorHandle& op) { return op.schema().returns().size() == 2; }

void scaled_mm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), mat2 = given.tensor("mat2");
  check_scaled(self, mat2);
  const at::Tensor scale_a = scale_or_one(given, "scale_a"), scale_b = scale_or_one(given, "scale_b");
  check_scale_dtypes(scale_a, scale_b);
  TORCH_CHECK(scale_a.numel() == 1 || scale_a.dim() == 2, "For non-tensorwise scaling, scale tensors must be 2D");
  TORCH_CHECK(scale_b.numel() == 1 || scale_b.dim() == 2, "For non-tensorwise scaling, scale tensors must be 2D");
  const at::Tensor bias = given.tensor("bias");
  TORCH_CHECK(!bias.defined() || bias.numel() == mat2.size(1), "Bias must be size ", mat2.size(1), " but got ",
              bias.defined() ? bias.numel() : 0);
  at::Tensor out = given.tensor("out");
  const at::ScalarType dtype =
      given.dtype("out_dtype").value_or(out.defined() ? out.scalar_type() : self.scalar_type());
  TORCH_CHECK(!out.defined() || out.scalar_type() == dtype, "out_dtype must match output matrix type");
  DeviceCall call(self);
  at::Tensor value = at::mm(scaled(call(self), call(scale_a)), scaled(call(mat2), call(scale_b)));
  if (bias.defined()) {
    value.add_(call(bias));
  }
  // cuBLASLt takes the largest magnitude before the result's scale.
  at::Tensor largest;
  if (gives_largest(op)) {
    largest = value.numel() == 0 ? at::zeros({}, value.options()) : value.abs().amax();
  }
  const at::Tensor scale_result = given.tensor("scale_result");
  if (scale_result.defined() && is_float8(dtype)) {
    value.mul_(call(scale_result));
  }
  if (!largest.defined()) {
    give(given, call, round_to(value, dtype));
  } else if (!out.defined()) {
    given.give(call.result(round_to(value, dtype)), call.result(largest));
  } else {
    const at::Tensor out_amax = given.tensor("out_amax");
    write_out(call(out, true), round_to(value, dtype));
    write_out(call(out_amax, true), largest);
    call.write_back();
    given.give(out, out_amax);
  }
}

// Grouped products: the groups of a 2-D operand lie behind one another along the rows of the left one, the columns of
// the right one, or, where both are 2-D, along what is summed; `offs` has the end of each.

std::vector<int64_t> ends_of(DeviceCall& call, const at::Tensor& offs) {
  const at::Tensor values = call(offs).to(at::kLong).contiguous();
  const auto* data = values.const_data_ptr<int64_t>();
  return {data, data + values.numel()};
}

/// The product of float operands, and its shape as upstream's: (rows, N), (M, columns), (G, M, N).
at::Tensor grouped_product(const at::Tensor& a, const at::Tensor& b, const std::vector<int64_t>& ends) {
  if (a.dim() == 3 && b.dim() == 3) {
    return at::bmm(a, b);
  }
  const auto groups = static_cast<int64_t>(ends.size());
  TORCH_CHECK(a.dim() == 2 || a.size(0) == groups, "matrix batch sizes have to match");
  TORCH_CHECK(b.dim() == 2 || b.size(0) == groups, "matrix batch sizes have to match");
  const int64_t rows = a.size(-2), columns = b.size(-1);
  at::Tensor out = a.dim() == 2 && b.dim() == 2 ? at::zeros({groups, rows, columns}, a.options())
                                                : at::zeros({rows, columns}, a.options());
  int64_t from = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t length = ends[g] - from;
    TORCH_CHECK(length >= 0, "grouped product: offs must not decrease");
    if (a.dim() == 2 && b.dim() == 2) {
      out.select(0, g).copy_(at::mm(a.narrow(1, from, length), b.narrow(0, from, length)));
    } else if (a.dim() == 2) {
      out.narrow(0, from, length).copy_(at::mm(a.narrow(0, from, length), b.select(0, g)));
    } else {
      out.narrow(1, from, length).copy_(at::mm(a.select(0, g), b.narrow(1, from, length)));
    }
    from = ends[g];
  }
  return out;
}

/// Scales of the rows of the left operand (`rows`), or of the columns of the right one. Where both are 2-D each group
/// has its own, behind one another.
at::Tensor with_group_scales(const at::Tensor& matrix, const at::Tensor& scale, const std::vector<int64_t>& ends,
                             bool both_flat, bool rows) {
  at::Tensor values = matrix.to(at::kFloat);
  const int64_t length = matrix.size(rows ? -2 : -1);
  if (!both_flat) {
    return values * (rows ? scale.unsqueeze(-1) : scale.unsqueeze(-2));
  }
  TORCH_CHECK(scale.numel() == length * static_cast<int64_t>(ends.size()),
              "grouped product: expected one scale per group and row or column, got ", scale.numel());
  const at::Tensor of_groups = scale.view({-1, length});
  int64_t from = 0;
  for (size_t g = 0; g < ends.size(); ++g) {
    const at::Tensor own = of_groups.select(0, static_cast<int64_t>(g));
    values.narrow(rows ? 1 : 0, from, ends[g] - from).mul_(rows ? own.unsqueeze(1) : own.unsqueeze(0));
    from = ends[g];
  }
  return values;
}

void scaled_grouped(Arguments& given, const at::Tensor& scale_a, const at::Tensor& scale_b) {
  const at::Tensor self = given.tensor("self"), mat2 = given.tensor("mat2");
  const at::Tensor offs = given.tensor("offs");
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "mat_a has to be 2 or 3d");
  TORCH_CHECK(mat2.dim() == 2 || mat2.dim() == 3, "mat_b has to be 2 or 3d");
  TORCH_CHECK(is_float8(self.scalar_type()) && is_float8(mat2.scalar_type()), "Expected float8 matrices, got ",
              self.dtype(), " and ", mat2.dtype());
  TORCH_CHECK((self.dim() == 3 && mat2.dim() == 3) != offs.defined(),
              "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  TORCH_CHECK(!given.tensor("bias").defined(), "Bias not supported yet");
  TORCH_CHECK(!given.tensor("scale_result").defined(), "Scale result not supported yet");
  check_scale_dtypes(scale_a, scale_b);
  const at::ScalarType dtype = given.dtype("out_dtype").value_or(at::kBFloat16);
  const at::Tensor out = given.tensor("out");
  TORCH_CHECK(!out.defined() || out.scalar_type() == dtype, "out_dtype must match output matrix type");
  DeviceCall call(self);
  const std::vector<int64_t> ends = offs.defined() ? ends_of(call, offs) : std::vector<int64_t>();
  const bool both_flat = self.dim() == 2 && mat2.dim() == 2;
  const at::Tensor a = with_group_scales(call(self), call(scale_a), ends, both_flat, true);
  const at::Tensor b = with_group_scales(call(mat2), call(scale_b), ends, both_flat, false);
  give(given, call, grouped_product(a, b, ends).to(dtype));
}

void scaled_grouped_mm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  scaled_grouped(given, given.tensor("scale_a"), given.tensor("scale_b"));
}

void scaled_grouped_mm_v2(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr int64_t kRowWise = 1;
  Arguments given(op, stack);
  const std::vector<at::Tensor> scale_a = given.tensors("scale_a");
  const std::vector<at::Tensor> scale_b = given.tensors("scale_b");
  const std::vector<int64_t> recipe_a = given["recipe_a"].toIntVector();
  const std::vector<int64_t> recipe_b = given["recipe_b"].toIntVector();
  TORCH_CHECK(scale_a.size() == 1 && scale_b.size() == 1 && recipe_a == std::vector<int64_t>{kRowWise} &&
                  recipe_b == std::vector<int64_t>{kRowWise},
              "_scaled_grouped_mm_v2: the simulated device computes row-wise scales only");
  scaled_grouped(given, scale_a[0], scale_b[0]);
}

// ---- 4-bit weights --------------------------------------------------------------------------------------------------

// Note [Packed 4-bit weights]
// The packed form is that of upstream's CUDA kernel, so that weights saved on another machine can be read: a matrix of
// (n, k) 4-bit numbers in tiles of 8 by 16; tile (i, j * inner + 2 * p) and its right neighbour lie in word (i, j, t,
// p) of a tensor (n / 8, k / (inner * 16), 32, inner / 2), each of 32 lanes t having row t / 4 and eight columns.

constexpr int64_t kTileRows = 8, kTileColumns = 16, kLanes = 32;

/// Where in a word the k-th of a lane's eight numbers is, in bits; and its column in two neighbouring tiles.
constexpr int kShift[8] = {0, 16, 4, 20, 8, 24, 12, 28};
constexpr int64_t kColumn[8] = {0, 1, 8, 9, 16, 17, 24, 25};

/// Calls visit(word, shift, row, column) for every number of a packed matrix.
template <class Visit>
void for_each_number(int64_t n, int64_t k, int64_t inner, const Visit& visit) {
  const int64_t blocks = k / (inner * kTileColumns);
  for (int64_t i = 0; i < n / kTileRows; ++i) {
    for (int64_t j = 0; j < blocks; ++j) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        for (int64_t p = 0; p < inner / 2; ++p) {
          const int64_t word = ((i * blocks + j) * kLanes + lane) * (inner / 2) + p;
          const int64_t column = (j * inner + 2 * p) * kTileColumns + (lane % 4) * 2;
          for (int number = 0; number < 8; ++number) {
            visit(word, kShift[number], i * kTileRows + lane / 4, column + kColumn[number]);
          }
        }
      }
    }
  }
}

at::Tensor convert_weight_to_int4pack(const at::Tensor& self, int64_t inner) {
  TORCH_CHECK(self.dim() == 2, "_convert_weight_to_int4pack: expected a matrix");
  TORCH_CHECK(self.scalar_type() == at::kByte, "_convert_weight_to_int4pack: expected in.dtype() == at::kByte");
  TORCH_CHECK(inner == 2 || inner == 4 || inner == 8, "innerKTiles must be 2, 4 or 8");
  const int64_t n = self.size(0), k = self.size(1) * 2;
  TORCH_CHECK(n % kTileRows == 0, "_convert_weight_to_int4pack: expected n to be divisible by ", kTileRows);
  TORCH_CHECK(k % (inner * kTileColumns) == 0, "_convert_weight_to_int4pack: expected k to be divisible by ",
              inner * kTileColumns);
  DeviceCall call(self);
  const at::Tensor weights = call(self).contiguous();
  const auto* from = weights.const_data_ptr<uint8_t>();
  at::Tensor packed =
      at::zeros({n / kTileRows, k / (inner * kTileColumns), kLanes, inner / 2}, at::TensorOptions().dtype(at::kInt));
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_data_ptr<int32_t>());
  for_each_number(n, k, inner, [&](int64_t word, int shift, int64_t row, int64_t column) {
    // Two numbers a byte, the one of the even column in the upper half.
    const uint8_t byte = from[row * (k / 2) + column / 2];
    to[word] |= static_cast<uint32_t>(column % 2 == 0 ? byte >> 4 : byte & 0xf) << shift;
  });
  return call.result(packed);
}

at::Tensor weight_int4pack_mm(const at::Tensor& self, const at::Tensor& mat2, int64_t group,
                              const at::Tensor& scales_and_zeros) {
  constexpr int64_t kMiddle = 8;  // the number that stands for the zero point
  TORCH_CHECK(self.dim() == 2 && self.scalar_type() == at::kBFloat16,
              "_weight_int4pack_mm: expected A to be a bf16 matrix");
  TORCH_CHECK(mat2.dim() == 4 && mat2.scalar_type() == at::kInt && mat2.size(2) == kLanes,
              "_weight_int4pack_mm: expected B as _convert_weight_to_int4pack makes it");
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256,
              "_weight_int4pack_mm: expected group size to be 32, 64, 128 or 256, got ", group);
  const int64_t n = mat2.size(0) * kTileRows, inner = mat2.size(3) * 2;
  const int64_t k = mat2.size(1) * inner * kTileColumns;
  TORCH_CHECK(self.size(1) == k, "_weight_int4pack_mm: A has ", self.size(1), " columns, and B packs ", k);
  TORCH_CHECK(scales_and_zeros.dim() == 3 && scales_and_zeros.size(0) * group == k && scales_and_zeros.size(1) == n &&
                  scales_and_zeros.size(2) == 2,
              "_weight_int4pack_mm: expected qScaleAndZeros of shape (", k / group, ", ", n, ", 2), got ",
              scales_and_zeros.sizes());
  DeviceCall call(self);
  const at::Tensor packed = call(mat2).contiguous();
  const auto* from = reinterpret_cast<const uint32_t*>(packed.const_data_ptr<int32_t>());
  at::Tensor weights = at::empty({n, k}, at::TensorOptions().dtype(at::kFloat));
  auto* to = weights.mutable_data_ptr<float>();
  for_each_number(n, k, inner, [&](int64_t word, int shift, int64_t row, int64_t column) {
    to[row * k + column] = static_cast<float>(static_cast<int64_t>((from[word] >> shift) & 0xf) - kMiddle);
  });
  const at::Tensor parameters = call(scales_and_zeros).to(at::kFloat).permute({1, 0, 2});  // (n, groups, 2)
  weights = weights.view({n, k / group, group})
                .mul_(parameters.select(2, 0).unsqueeze(2))
                .add_(parameters.select(2, 1).unsqueeze(2))
                .view({n, k})
                .to(at::kBFloat16);
  return call.result(at::mm(call(self).to(at::kFloat), weights.to(at::kFloat).t()).to(at::kBFloat16));
}

// ---- 8- and 4-bit weights laid out for CUTLASS ---------------------------------------------------------------------

// Note [Weights of _mixed_dtypes_linear]
// What torch/quantization/_quantized_conversions.py makes of a matrix of n rows and k numbers: the bytes of a row are
// permuted in groups of 16, rows are interleaved two (8 bits) or four (4 bits) at a time in runs of 16 or 8 words, and
// the numbers of a word are shuffled and offset, so that they are not negative.

constexpr std::array<int64_t, 16> kByteOrder8{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
constexpr std::array<int64_t, 16> kByteOrder4{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

/// The numbers (n, k) as floats, of bytes as they are laid out; `bits` is 8 or 4.
at::Tensor unpacked(const uint8_t* from, int64_t n, int64_t k, int64_t bits) {
  at::Tensor weights = at::empty({n, k}, at::TensorOptions().dtype(at::kFloat));
  auto* to = weights.mutable_data_ptr<float>();
  const std::array<int64_t, 16>& order = bits == 8 ? kByteOrder8 : kByteOrder4;
  const int64_t bytes = k * bits / 8, words = bytes / 4, rows = bits == 8 ? 2 : 4, run = 32 / rows;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t byte = 0; byte < bytes; ++byte) {
      const int64_t place = byte / 16 * 16 + order[static_cast<size_t>(byte % 16)];
      const int64_t word = place / 4, part = place % 4;
      const uint8_t* at =
          from + 4 * (row / rows * words * rows + word / run * rows * run + row % rows * run + word % run);
      if (bits == 8) {
        const int64_t shuffled = part == 1 ? 2 : part == 2 ? 1 : part;
        to[row * k + byte] = static_cast<float>(at[shuffled] - 128);
      } else {
        const int64_t shift = part % 2 * 4;
        to[row * k + 2 * byte] = static_cast<float>((at[part / 2] >> shift & 0xf) - 8);
        to[row * k + 2 * byte + 1] = static_cast<float>((at[2 + part / 2] >> shift & 0xf) - 8);
      }
    }
  }
  return weights;
}

/// input (..., k) times weights of n columns, each with a scale (n); plus a bias (n); then relu, silu or nothing.
at::Tensor mixed_dtypes_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
                               const std::optional<at::Tensor>& bias, std::optional<c10::string_view> activation) {
  const char* const name = "_mixed_dtypes_linear: ";
  TORCH_CHECK(is_half(input.scalar_type()) && input.dim() >= 2, name,
              "expected an input (..., k) of Half or BFloat16, got ", input.scalar_type(), " with ", input.dim(),
              " dimensions");
  TORCH_CHECK(
      weight.scalar_type() == at::kByte && weight.dim() == 2 && weight.is_contiguous(), name,
      "expected a contiguous weight matrix of Byte, as quantized_weight_reorder_for_mixed_dtypes_linear_cutlass "
      "makes it");
  TORCH_CHECK(scale.dim() == 1 && scale.scalar_type() == input.scalar_type(), name, "expected scales (n) of ",
              input.scalar_type(), ", got ", scale.scalar_type(), " with ", scale.dim(), " dimensions");
  const int64_t n = scale.size(0), k = input.size(-1);
  TORCH_CHECK(weight.size(0) == k && (weight.size(1) == n || weight.size(1) * 2 == n), name, "expected a weight of (",
              k, ", ", n, ") for 8 bits or (", k, ", ", n / 2, ") for 4, got ", weight.sizes());
  TORCH_CHECK(k % 64 == 0 && n % 64 == 0, name, "k and n have to be multiples of 64, got ", k, " and ", n);
  TORCH_CHECK(
      !bias || !bias->defined() || (bias->sizes() == scale.sizes() && bias->scalar_type() == input.scalar_type()), name,
      "expected a bias (n) of ", input.scalar_type());
  const std::string after(activation ? std::string(activation->data(), activation->size()) : "none");
  TORCH_CHECK(after == "none" || after == "relu" || after == "silu", name, "unknown activation '", after,
              "'; known are none, relu and silu");
  DeviceCall call(input);
  const at::Tensor bytes = call(weight);
  at::Tensor weights = unpacked(bytes.const_data_ptr<uint8_t>(), n, k, weight.size(1) == n ? 8 : 4);
  // As the kernel: the scaled weight is rounded, the product is not.
  weights = weights.mul_(call(scale).to(at::kFloat).unsqueeze(1)).to(input.scalar_type()).to(at::kFloat);
  at::Tensor result = at::matmul(call(input).to(at::kFloat), weights.t());
  if (bias && bias->defined()) {
    result.add_(call(*bias).to(at::kFloat));
  }
  if (after == "relu") {
    result.relu_();
  } else if (after == "silu") {
    at::silu_(result);
  }
  return call.result(result.to(input.scalar_type()));
}

// ---- 8-bit integers ------------------------------------------------------------------------------------------------

/// What cuBLASLt multiplies, and upstream asks before it.
void check_integer_product(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  TORCH_CHECK(self.dim() == 2, "Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(mat2.dim() == 2, "Expected mat2 to be of dimension 2 but got ", mat2.dim());
  TORCH_CHECK(self.size(0) > 16, "self.size(0) needs to be greater than 16, but got ", self.size(0));
  TORCH_CHECK(self.size(1) > 0 && self.size(1) % 8 == 0,
              "self.size(1) needs to be greater than 0 and a multiple of 8, but got ", self.size(1));
  TORCH_CHECK(self.size(1) == mat2.size(0), "self.size(1) needs to match mat2.size(0) but got ", self.size(1), " and ",
              mat2.size(0));
  TORCH_CHECK(mat2.size(1) > 0 && mat2.size(1) % 8 == 0,
              "mat2.size(1) needs to be greater than 0 and a multiple of 8, but got ", mat2.size(1));
  for (const at::Tensor& factor : {self, mat2}) {
    TORCH_CHECK(factor.scalar_type() == at::kChar, "expected scalar type Char but found ", factor.scalar_type());
  }
  if (out.defined()) {
    TORCH_CHECK(out.scalar_type() == at::kInt, "Expected result dtype to be of type kInt but got ", out.dtype());
    TORCH_CHECK(out.dim() == 2, "Expected result to be of dimension 2 but got ", out.dim());
    TORCH_CHECK(out.size(0) == self.size(0), "Expected result.size(0) to be ", self.size(0), " but got ", out.size(0));
    TORCH_CHECK(out.size(1) == mat2.size(1), "Expected result.size(1) to be ", mat2.size(1), " but got ", out.size(1));
    TORCH_CHECK(out.is_contiguous(), "Expected result to be contiguous.");
  }
  // Columns that begin at no multiple of 4 bytes.
  TORCH_CHECK(self.is_contiguous() || self.stride(0) != 1 || self.stride(1) % 4 == 0,
              "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasLtMatmul for a first factor of int8 that is "
              "transposed, with a leading dimension of ",
              self.stride(1));
}

template <const OperatorSpec& spec>
void integer_product(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  check_integer_product(given.tensor("self"), given.tensor("mat2"), given.tensor("out"));
  call_boxed(spec, op, stack);
}

/// Up to 2.1 there is no CPU kernel. Sums of up to 2^39 such products are exact in double.
void integer_product_in_double(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), mat2 = given.tensor("mat2");
  check_integer_product(self, mat2, given.tensor("out"));
  DeviceCall call(self);
  give(given, call, at::mm(call(self).to(at::kDouble), call(mat2).to(at::kDouble)).to(at::kInt));
}

}  // namespace
}  // namespace macatorch

#include "registered/linalg/MatrixProducts.h"
