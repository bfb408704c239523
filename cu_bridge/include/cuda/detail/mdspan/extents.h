// How long an mdspan is in each direction, as numbers of the type or of the object. The interface is that of C++23.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "../../../host_defines.h"
#include "../../std/span"
#include "../std.h"

namespace cuda {
namespace std {

namespace mdspan_detail {

// What the standard leaves undefined: lengths and strides that are not those of the type.
__host__ __device__ constexpr void require(bool right) {
  if (right) return;
#ifdef __CUDA_ARCH__
  __trap();
#else
  ::std::fputs("cuda::std::mdspan: a length or stride is not that of the type that it is converted to\n", stderr);
  ::std::abort();
#endif
}

template <class Index, ::std::size_t Count>
struct Numbers {
  Index value[Count] = {};
  __host__ __device__ constexpr Index get(::std::size_t i) const { return value[i]; }
  __host__ __device__ constexpr void set(::std::size_t i, Index number) { value[i] = number; }
};
template <class Index>
struct Numbers<Index, 0> {
  __host__ __device__ constexpr Index get(::std::size_t) const { return 0; }
  __host__ __device__ constexpr void set(::std::size_t, Index) {}
};

template <class Index, class... Given>
inline constexpr bool are_indices =
    (... && (::std::is_convertible_v<Given, Index> && ::std::is_nothrow_constructible_v<Index, Given>));

}  // namespace mdspan_detail

template <class Index, ::std::size_t... Extents>
class extents {
  static_assert(::std::is_integral_v<Index> && !::std::is_same_v<Index, bool>, "an index is an integer");

 public:
  using index_type = Index;
  using size_type = ::std::make_unsigned_t<Index>;
  using rank_type = ::std::size_t;

  __host__ __device__ static constexpr rank_type rank() noexcept { return sizeof...(Extents); }
  __host__ __device__ static constexpr rank_type rank_dynamic() noexcept {
    return (rank_type{0} + ... + rank_type{Extents == dynamic_extent});
  }
  __host__ __device__ static constexpr ::std::size_t static_extent(rank_type r) noexcept {
    constexpr ::std::size_t all[] = {Extents..., 0};
    return all[r];
  }
  __host__ __device__ constexpr index_type extent(rank_type r) const noexcept {
    const ::std::size_t fixed = static_extent(r);
    return fixed == dynamic_extent ? dynamic_.get(place(r)) : static_cast<index_type>(fixed);
  }

  constexpr extents() noexcept = default;

  // All of them, or those that are no numbers of the type.
  template <class... Given,
            ::std::enable_if_t<(sizeof...(Given) == sizeof...(Extents) ||
                                sizeof...(Given) == (::std::size_t{0} + ... + (Extents == dynamic_extent))) &&
                                   sizeof...(Given) != 0 && mdspan_detail::are_indices<Index, Given...>,
                               int> = 0>
  __host__ __device__ constexpr explicit extents(Given... given) noexcept {
    const index_type numbers[] = {static_cast<index_type>(given)...};
    take(numbers, sizeof...(Given));
  }
  template <class Given, ::std::size_t Count,
            ::std::enable_if_t<(Count == sizeof...(Extents) ||
                                Count == (::std::size_t{0} + ... + (Extents == dynamic_extent))) &&
                                   mdspan_detail::are_indices<Index, const Given&>,
                               int> = 0>
  __host__ __device__ constexpr extents(const ::std::array<Given, Count>& given) noexcept {
    take(given.data(), Count);
  }
  template <class Given, ::std::size_t Count,
            ::std::enable_if_t<(Count == sizeof...(Extents) ||
                                Count == (::std::size_t{0} + ... + (Extents == dynamic_extent))) &&
                                   mdspan_detail::are_indices<Index, const Given&>,
                               int> = 0>
  __host__ __device__ constexpr extents(span<Given, Count> given) noexcept {
    take(given.data(), Count);
  }
  template <
      class Other, ::std::size_t... Theirs,
      ::std::enable_if_t<sizeof...(Theirs) == sizeof...(Extents) &&
                             (... && (Theirs == dynamic_extent || Extents == dynamic_extent || Theirs == Extents)),
                         int> = 0>
  __host__ __device__ constexpr extents(const extents<Other, Theirs...>& other) noexcept {
    for (rank_type r = 0; r < rank(); ++r) {
      set(r, static_cast<index_type>(other.extent(r)));
    }
  }

  template <class Other, ::std::size_t... Theirs>
  __host__ __device__ friend constexpr bool operator==(const extents& a, const extents<Other, Theirs...>& b) noexcept {
    if (sizeof...(Theirs) != sizeof...(Extents)) return false;
    for (rank_type r = 0; r < rank(); ++r) {
      if (static_cast<::std::size_t>(a.extent(r)) != static_cast<::std::size_t>(b.extent(r))) return false;
    }
    return true;
  }
  template <class Other, ::std::size_t... Theirs>
  __host__ __device__ friend constexpr bool operator!=(const extents& a, const extents<Other, Theirs...>& b) noexcept {
    return !(a == b);
  }

 private:
  static constexpr ::std::size_t kDynamic = (::std::size_t{0} + ... + ::std::size_t{Extents == dynamic_extent});

  // Where among the numbers of the object this extent is.
  __host__ __device__ static constexpr rank_type place(rank_type r) {
    rank_type found = 0;
    for (rank_type i = 0; i < r; ++i) found += static_extent(i) == dynamic_extent;
    return found;
  }
  __host__ __device__ constexpr void set(rank_type r, index_type extent) {
    if (static_extent(r) == dynamic_extent) {
      dynamic_.set(place(r), extent);
    } else {
      mdspan_detail::require(static_cast<::std::size_t>(extent) == static_extent(r));
    }
  }
  template <class Given>
  __host__ __device__ constexpr void take(const Given* given, ::std::size_t count) {
    for (rank_type r = 0; r < rank(); ++r) {
      if (count != rank() && static_extent(r) != dynamic_extent) continue;
      set(r, static_cast<index_type>(given[count == rank() ? r : place(r)]));
    }
  }

  [[no_unique_address]] mdspan_detail::Numbers<Index, kDynamic> dynamic_;
};

namespace mdspan_detail {

template <class Index, class Ranks>
struct AllDynamic;
template <class Index, ::std::size_t... Ranks>
struct AllDynamic<Index, ::std::index_sequence<Ranks...>> {
  using type = extents<Index, (static_cast<void>(Ranks), dynamic_extent)...>;
};

template <class T>
inline constexpr bool is_extents = false;
template <class Index, ::std::size_t... Extents>
inline constexpr bool is_extents<extents<Index, Extents...>> = true;

}  // namespace mdspan_detail

template <class Index, ::std::size_t Rank>
using dextents = typename mdspan_detail::AllDynamic<Index, ::std::make_index_sequence<Rank>>::type;
template <::std::size_t Rank, class Index = ::std::size_t>
using dims = dextents<Index, Rank>;

template <class... Given>
extents(Given...) -> extents<::std::size_t, (static_cast<void>(sizeof(Given)), dynamic_extent)...>;

}  // namespace std
}  // namespace cuda
