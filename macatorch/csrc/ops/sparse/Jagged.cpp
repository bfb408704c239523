#include <ATen/ATen.h>

#include "registered/Specs.h"

namespace macatorch {
namespace {

/// For each place of a padded tensor, shape (batch, max_lengths...), the row of the jagged one, and whether there is
/// one. Offsets of the outer level count entries of the inner one; those of the innermost count rows.
struct Places {
  at::Tensor row, there;
};

Places places(at::TensorList offsets, at::IntArrayRef max_lengths) {
  TORCH_CHECK(!offsets.empty() && offsets.size() == max_lengths.size(), "num_jagged_dim, ", offsets.size(),
              ", does not fit ", max_lengths.size(), " max_lengths");
  const at::TensorOptions options = offsets.front().options().dtype(at::kLong);
  at::Tensor row = at::arange(offsets.front().numel() - 1, options);
  at::Tensor there = at::ones_like(row, at::kBool);
  for (size_t level = 0; level < offsets.size(); ++level) {
    const at::Tensor ends = offsets[level].to(at::kLong);
    // What is not there reads the first entry; it is masked in the end.
    const at::Tensor entry = at::where(there, row, at::zeros({}, options));
    const at::Tensor next = ends.take(entry).unsqueeze(-1) + at::arange(max_lengths[level], options);
    there = there.unsqueeze(-1).logical_and(next < ends.take((entry + 1).clamp_max(ends.numel() - 1)).unsqueeze(-1));
    row = next;
  }
  return {at::where(there, row, at::zeros({}, options)), there};
}

/// Rows (rows, width) or (rows) in a tensor (batch, max_lengths..., width): what is longer is cut off, what is shorter
/// is filled up.
at::Tensor to_padded(const at::Tensor& values, at::TensorList offsets, c10::SymIntArrayRef max_lengths,
                     double padding) {
  const bool plain = values.dim() == 1;
  const at::Tensor rows = plain ? values.unsqueeze(-1) : values;
  TORCH_CHECK(rows.dim() == 2, "values must be 1-D or 2-D, got ", values.dim(), " dimensions");
  const Places places = macatorch::places(offsets, C10_AS_INTARRAYREF_SLOW(max_lengths));
  std::vector<int64_t> sizes = places.row.sizes().vec();
  sizes.push_back(rows.size(1));
  at::Tensor padded = at::full(sizes, padding, rows.options());
  if (rows.size(0) != 0 && padded.numel() != 0) {
    const at::Tensor taken = rows.index_select(0, places.row.flatten()).view(sizes);
    padded = at::where(places.there.unsqueeze(-1), taken, padded);
  }
  return plain ? padded.squeeze(-1) : padded;
}

/// The rows of a padded tensor, shape (total, width); those that were cut off are zero. Where `total` is not given, it
/// is the last offset, for which the device is waited for.
at::Tensor from_padded(const at::Tensor& dense, at::TensorList offsets, std::optional<c10::SymInt> total) {
  const auto levels = static_cast<int64_t>(offsets.size());
  TORCH_CHECK(levels != 0 && dense.dim() >= levels + 1, "a dense tensor of ", dense.dim(), " dimensions has no ",
              levels, " jagged ones");
  const bool plain = dense.dim() == levels + 1;
  const at::Tensor padded = plain ? dense.unsqueeze(-1) : dense;
  const int64_t rows = total.has_value() ? total->expect_int() : offsets.back()[-1].item<int64_t>();
  at::Tensor values = at::zeros({rows, padded.size(-1)}, padded.options());
  if (values.numel() != 0 && padded.numel() != 0) {
    // From the innermost level out: which entry a row belongs to, and its place there.
    at::Tensor row = at::arange(rows, padded.options().dtype(at::kLong));
    at::Tensor there = at::ones_like(row, at::kBool), place = at::zeros_like(row);
    int64_t stride = 1;
    for (int64_t level = levels; level-- > 0;) {
      const at::Tensor ends = offsets[static_cast<size_t>(level)].to(at::kLong);
      const at::Tensor entry = at::searchsorted(ends, row, /*out_int32=*/false, /*right=*/true) - 1;
      const at::Tensor inside = entry.ge(0).logical_and(entry.lt(ends.numel() - 1));
      const at::Tensor known = at::where(inside, entry, at::zeros_like(entry));
      const at::Tensor within = row - ends.take(known);
      there = there.logical_and(inside).logical_and(within.lt(padded.size(level + 1)));
      place = place + within * stride;
      stride *= padded.size(level + 1);
      row = known;
    }
    place = at::where(there, place + row * stride, at::zeros_like(place));
    const at::Tensor taken = padded.reshape({-1, padded.size(-1)}).index_select(0, place);
    values = at::where(there.unsqueeze(-1), taken, values);
  }
  return plain ? values.squeeze(-1) : values;
}

}  // namespace
}  // namespace macatorch

#include "registered/sparse/Jagged.h"
