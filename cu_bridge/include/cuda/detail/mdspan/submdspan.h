// Parts of an mdspan: an index takes a direction away, a pair or a strided_slice shortens it, full_extent leaves it.
#pragma once

#include <tuple>

#include "view.h"

namespace cuda {
namespace std {

struct full_extent_t {
  explicit full_extent_t() = default;
};
inline constexpr full_extent_t full_extent{};

// Every `stride`-th of the `extent` elements that begin at `offset`.
template <class Offset, class Extent, class Stride>
struct strided_slice {
  using offset_type = Offset;
  using extent_type = Extent;
  using stride_type = Stride;
  [[no_unique_address]] Offset offset{};
  [[no_unique_address]] Extent extent{};
  [[no_unique_address]] Stride stride{};
};
template <class Offset, class Extent, class Stride>
strided_slice(Offset, Extent, Stride) -> strided_slice<Offset, Extent, Stride>;

namespace mdspan_detail {

enum class Slice { kIndex, kFull, kRange, kStrided };

template <class T>
inline constexpr bool is_strided_slice = false;
template <class Offset, class Extent, class Stride>
inline constexpr bool is_strided_slice<strided_slice<Offset, Extent, Stride>> = true;

template <class Index, class T>
__host__ __device__ constexpr Slice kind_of() {
  if (::std::is_convertible_v<T, Index>) return Slice::kIndex;
  if (::std::is_convertible_v<T, full_extent_t>) return Slice::kFull;
  return is_strided_slice<T> ? Slice::kStrided : Slice::kRange;
}

template <class Index>
struct Part {
  Index first, extent, step;
};

template <class Index, class T>
__host__ __device__ constexpr Part<Index> part(const T& slice, Index whole) {
  constexpr Slice kind = kind_of<Index, T>();
  if constexpr (kind == Slice::kIndex) {
    return {static_cast<Index>(slice), 1, 1};
  } else if constexpr (kind == Slice::kFull) {
    return {0, whole, 1};
  } else if constexpr (kind == Slice::kStrided) {
    const Index extent = static_cast<Index>(slice.extent), step = static_cast<Index>(slice.stride);
    return {static_cast<Index>(slice.offset), extent == 0 ? extent : static_cast<Index>(1 + (extent - 1) / step), step};
  } else {
    const auto& [first, end] = slice;
    return {static_cast<Index>(first), static_cast<Index>(static_cast<Index>(end) - static_cast<Index>(first)), 1};
  }
}

// The extents of the part: what is left whole keeps the number of its type.
template <class Index, class Kept, class Source, ::std::size_t R, class... Slices>
struct PartExtents;
template <class Index, ::std::size_t... Kept, class Source, ::std::size_t R>
struct PartExtents<Index, ::std::index_sequence<Kept...>, Source, R> {
  using type = extents<Index, Kept...>;
};
template <class Index, ::std::size_t... Kept, class Source, ::std::size_t R, class First, class... Rest>
struct PartExtents<Index, ::std::index_sequence<Kept...>, Source, R, First, Rest...> {
  static constexpr Slice kKind = kind_of<Index, First>();
  static constexpr ::std::size_t kExtent = kKind == Slice::kFull ? Source::static_extent(R) : dynamic_extent;
  using More = ::std::conditional_t<kKind == Slice::kIndex, ::std::index_sequence<Kept...>,
                                    ::std::index_sequence<Kept..., kExtent>>;
  using type = typename PartExtents<Index, More, Source, R + 1, Rest...>::type;
};

// Whether the part of a dense layout is dense in the same order: whole directions behind one that is in one piece.
template <class Layout, class Index, class... Slices>
__host__ __device__ constexpr bool stays_dense() {
  constexpr ::std::size_t count = sizeof...(Slices);
  const Slice kinds[count + 1] = {kind_of<Index, Slices>()..., Slice::kIndex};
  ::std::size_t kept = 0;
  for (::std::size_t i = 0; i < count; ++i) kept += kinds[i] != Slice::kIndex;
  const bool right = ::std::is_same_v<Layout, layout_right>;
  if (!right && !::std::is_same_v<Layout, layout_left>) return false;
  for (::std::size_t i = 0; i < kept; ++i) {
    const Slice kind = kinds[right ? count - 1 - i : i];
    const bool last = i + 1 == kept;
    if (kind != Slice::kFull && !(last && kind == Slice::kRange)) return false;
  }
  return true;
}

}  // namespace mdspan_detail

template <class T, class Extents, class Layout, class Accessor, class... Slices,
          ::std::enable_if_t<sizeof...(Slices) == Extents::rank(), int> = 0>
__host__ __device__ constexpr auto submdspan(const mdspan<T, Extents, Layout, Accessor>& source, Slices... slices) {
  using Index = typename Extents::index_type;
  using Parts = typename mdspan_detail::PartExtents<Index, ::std::index_sequence<>, Extents, 0, Slices...>::type;
  constexpr ::std::size_t rank = Extents::rank(), kept = Parts::rank();
  using mdspan_detail::Slice;
  const Slice kinds[rank + 1] = {mdspan_detail::kind_of<Index, Slices>()..., Slice::kIndex};
  ::std::size_t next = 0;
  mdspan_detail::Part<Index> parts[rank + 1] = {};
  ((parts[next] = mdspan_detail::part<Index>(slices, source.extent(next)), ++next), ...);
  ::std::array<Index, kept> lengths{}, strides{};
  ::std::size_t place = 0, offset = 0;
  for (::std::size_t r = 0; r < rank; ++r) {
    const Index stride = source.stride(r);
    offset += static_cast<::std::size_t>(parts[r].first) * static_cast<::std::size_t>(stride);
    if (kinds[r] == Slice::kIndex) continue;
    lengths[place] = parts[r].extent;
    strides[place++] = static_cast<Index>(stride * parts[r].step);
  }
  const Parts extents(lengths);
  const auto data = source.accessor().offset(source.data_handle(), offset);
  using Offset = typename Accessor::offset_policy;
  if constexpr (mdspan_detail::stays_dense<Layout, Index, Slices...>()) {
    using Mapping = typename Layout::template mapping<Parts>;
    return mdspan<T, Parts, Layout, Offset>(data, Mapping(extents), Offset(source.accessor()));
  } else {
    using Mapping = layout_stride::mapping<Parts>;
    return mdspan<T, Parts, layout_stride, Offset>(data, Mapping(extents, strides), Offset(source.accessor()));
  }
}

template <class Index, ::std::size_t... Extents, class... Slices>
__host__ __device__ constexpr auto submdspan_extents(const extents<Index, Extents...>& source, Slices... slices) {
  return submdspan(mdspan<char, extents<Index, Extents...>>(nullptr, source), slices...).extents();
}

}  // namespace std
}  // namespace cuda
