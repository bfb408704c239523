#include "fast/LayoutCopy.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "arguments/Names.h"

namespace macatorch {
namespace {

constexpr int64_t kLeast = 1 << 12;  // elements; below, TensorIterator is as fast
constexpr int64_t kGrain = 1 << 15;  // elements a thread takes at least

template <typename T>
constexpr int64_t kSide = 64 / sizeof(T);  // a line of the cache

template <typename T>
using Tile = std::array<std::array<T, kSide<T>>, kSide<T>>;

/// Column `c` of a tile, as a row.
template <typename T>
void store_columns(const Tile<T>& tile, T* to, int64_t step) {
  for (int64_t c = 0; c < kSide<T>; ++c) {
    std::array<T, kSide<T>> line;
    for (int64_t r = 0; r < kSide<T>; ++r) {
      line[r] = tile[r][c];
    }
    std::memcpy(to + c * step, line.data(), sizeof line);
  }
}

/// The same in squares of 4 by 4, each of which is eight instructions.
template <>
void store_columns(const Tile<uint32_t>& tile, uint32_t* to, int64_t step) {
  using Four = uint32_t __attribute__((vector_size(16)));
  for (int64_t c = 0; c < kSide<uint32_t>; c += 4) {
    for (int64_t r = 0; r < kSide<uint32_t>; r += 4) {
      std::array<Four, 4> row;
      for (int64_t i = 0; i < 4; ++i) {
        std::memcpy(&row[i], tile[r + i].data() + c, sizeof(Four));
      }
      const Four low01 = __builtin_shuffle(row[0], row[1], Four{0, 4, 1, 5});
      const Four low23 = __builtin_shuffle(row[2], row[3], Four{0, 4, 1, 5});
      const Four high01 = __builtin_shuffle(row[0], row[1], Four{2, 6, 3, 7});
      const Four high23 = __builtin_shuffle(row[2], row[3], Four{2, 6, 3, 7});
      const std::array<Four, 4> column{
          __builtin_shuffle(low01, low23, Four{0, 1, 4, 5}), __builtin_shuffle(low01, low23, Four{2, 3, 6, 7}),
          __builtin_shuffle(high01, high23, Four{0, 1, 4, 5}), __builtin_shuffle(high01, high23, Four{2, 3, 6, 7})};
      for (int64_t i = 0; i < 4; ++i) {
        std::memcpy(to + (c + i) * step + r, &column[i], sizeof(Four));
      }
    }
  }
}

/// Up to kSide rows of a matrix of `rows` by `columns`, from row `first` on. Whole lines are read and written: rows
/// that are a power of two apart share a set of the cache, which does not hold a tile of them.
template <typename T>
void transpose_band(const T* from, T* to, int64_t rows, int64_t columns, int64_t first) {
  const int64_t height = std::min(kSide<T>, rows - first);
  alignas(64) Tile<T> tile;
  for (int64_t next = 0; next < columns; next += kSide<T>) {
    const int64_t c = std::min(next, columns - kSide<T>);  // the last tile overlaps the one before
    for (int64_t r = 0; r < height; ++r) {
      std::memcpy(tile[r].data(), from + (first + r) * columns + c, sizeof tile[r]);
    }
    T* const corner = to + c * rows + first;
    if (height == kSide<T>) {
      store_columns<T>(tile, corner, rows);
      continue;
    }
    for (int64_t i = 0; i < kSide<T>; ++i) {
      for (int64_t r = 0; r < height; ++r) {
        corner[i * rows + r] = tile[r][i];
      }
    }
  }
}

/// `count` matrices of `rows` by `columns`, each transposed.
template <typename T>
bool transpose(const void* from, void* to, int64_t count, int64_t rows, int64_t columns) {
  if (std::min(rows, columns) < std::max<int64_t>(kSide<T>, 16)) {
    return false;
  }
  const int64_t bands = (rows + kSide<T> - 1) / kSide<T>;
  const int64_t grain = std::max<int64_t>(1, kGrain / (kSide<T> * columns));
  at::parallel_for(0, count * bands, grain, [&](int64_t begin, int64_t end) {
    for (int64_t band = begin; band < end; ++band) {
      const int64_t matrix = band / bands * rows * columns;
      transpose_band(static_cast<const T*>(from) + matrix, static_cast<T*>(to) + matrix, rows, columns,
                     band % bands * kSide<T>);
    }
  });
  return true;
}

/// True if the channels of `tensor`, its dimension 1, lie side by side and the other dimensions follow in their order.
bool is_channels_last(const at::Tensor& tensor) {
  int64_t expected = tensor.size(1);
  if (tensor.stride(1) != 1) {
    return false;
  }
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (d != 1) {
      if (tensor.size(d) != 1 && tensor.stride(d) != expected) {
        return false;
      }
      expected *= tensor.size(d);
    }
  }
  return true;
}

}  // namespace

bool copy_transposed(const at::Tensor& to, const at::Tensor& from) {
  if (from.dim() < 3 || from.numel() < kLeast || to.scalar_type() != from.scalar_type() ||
      to.layout() != at::kStrided || from.layout() != at::kStrided || to.sizes() != from.sizes() ||
      to.is_conj() != from.is_conj() || to.is_neg() != from.is_neg() || to.is_quantized() || from.is_quantized() ||
      !to.is_cpu() || !from.is_cpu() || from._is_zerotensor() || has_names(to) || has_names(from)) {
    return false;
  }
  const bool gathers = to.is_contiguous() && is_channels_last(from);
  if (!gathers && !(from.is_contiguous() && is_channels_last(to))) {
    return false;
  }
  const int64_t channels = from.size(1), pixels = from.numel() / from.size(0) / channels;
  const auto* const source = static_cast<const char*>(from.const_data_ptr());
  auto* const target = static_cast<char*>(to.data_ptr());
  const auto bytes = static_cast<std::ptrdiff_t>(from.nbytes());
  if (source < target + bytes && target < source + bytes) {
    return false;
  }
  const int64_t rows = gathers ? pixels : channels, columns = gathers ? channels : pixels;
  switch (from.element_size()) {
    case 1: return transpose<uint8_t>(source, target, from.size(0), rows, columns);
    case 2: return transpose<uint16_t>(source, target, from.size(0), rows, columns);
    case 4: return transpose<uint32_t>(source, target, from.size(0), rows, columns);
    case 8: return transpose<uint64_t>(source, target, from.size(0), rows, columns);
    default: return false;
  }
}

at::Tensor in_format(const at::Tensor& tensor, at::MemoryFormat format) {
  if (tensor.is_contiguous(format)) {
    return tensor;
  }
  at::Tensor result = at::empty_like(tensor, std::nullopt, std::nullopt, std::nullopt, std::nullopt, format);
  if (!copy_transposed(result, tensor)) {
    result.copy_(tensor);
  }
  return result;
}

}  // namespace macatorch
