// Where in memory an mdspan's elements are: rows after each other, columns after each other, or with a stride for each
// direction.
#pragma once

#include "extents.h"

namespace cuda {
namespace std {

struct layout_left {
  template <class Extents>
  class mapping;
};
struct layout_right {
  template <class Extents>
  class mapping;
};
struct layout_stride {
  template <class Extents>
  class mapping;
};

namespace mdspan_detail {

// What the two dense layouts share. kRight: the last index is next to itself in memory.
template <class Layout, class Extents, bool kRight>
class DenseMapping {
  static_assert(is_extents<Extents>, "a layout is of cuda::std::extents");

 public:
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using size_type = typename Extents::size_type;
  using rank_type = typename Extents::rank_type;
  using layout_type = Layout;

  constexpr DenseMapping() noexcept = default;
  __host__ __device__ constexpr DenseMapping(const Extents& given) noexcept : extents_(given) {}

  __host__ __device__ constexpr const Extents& extents() const noexcept { return extents_; }
  __host__ __device__ constexpr index_type required_span_size() const noexcept {
    index_type size = 1;
    for (rank_type r = 0; r < Extents::rank(); ++r) size *= extents_.extent(r);
    return size;
  }
  template <class... Given,
            ::std::enable_if_t<sizeof...(Given) == Extents::rank() && are_indices<index_type, Given...>, int> = 0>
  __host__ __device__ constexpr index_type operator()(Given... given) const noexcept {
    const index_type at[] = {static_cast<index_type>(given)..., 0};
    index_type place = 0;
    if constexpr (kRight) {
      for (rank_type r = 0; r < Extents::rank(); ++r) place = place * extents_.extent(r) + at[r];
    } else {
      for (rank_type r = Extents::rank(); r-- > 0;) place = place * extents_.extent(r) + at[r];
    }
    return place;
  }
  __host__ __device__ constexpr index_type stride(rank_type r) const noexcept {
    index_type step = 1;
    for (rank_type i = kRight ? r + 1 : 0; i < (kRight ? Extents::rank() : r); ++i) step *= extents_.extent(i);
    return step;
  }

  __host__ __device__ static constexpr bool is_always_unique() noexcept { return true; }
  __host__ __device__ static constexpr bool is_always_exhaustive() noexcept { return true; }
  __host__ __device__ static constexpr bool is_always_strided() noexcept { return true; }
  __host__ __device__ static constexpr bool is_unique() noexcept { return true; }
  __host__ __device__ static constexpr bool is_exhaustive() noexcept { return true; }
  __host__ __device__ static constexpr bool is_strided() noexcept { return true; }

  template <class Other>
  __host__ __device__ friend constexpr bool operator==(const DenseMapping& a,
                                                       const DenseMapping<Layout, Other, kRight>& b) noexcept {
    return a.extents() == b.extents();
  }
  template <class Other>
  __host__ __device__ friend constexpr bool operator!=(const DenseMapping& a,
                                                       const DenseMapping<Layout, Other, kRight>& b) noexcept {
    return !(a == b);
  }

 protected:
  // For a conversion from a layout with strides, which must be those of this one.
  template <class Strided>
  __host__ __device__ constexpr void require_strides_of(const Strided& other) const {
    for (rank_type r = 0; r < Extents::rank(); ++r) require(static_cast<index_type>(other.stride(r)) == stride(r));
  }

 private:
  [[no_unique_address]] Extents extents_;
};

}  // namespace mdspan_detail

template <class Extents>
class layout_right::mapping : public mdspan_detail::DenseMapping<layout_right, Extents, true> {
 public:
  constexpr mapping() noexcept = default;
  __host__ __device__ constexpr mapping(const Extents& given) noexcept
      : mdspan_detail::DenseMapping<layout_right, Extents, true>(given) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr mapping(const mapping<Other>& other) noexcept : mapping(Extents(other.extents())) {}
  // In at most one direction both orders are the same.
  template <class Other, ::std::enable_if_t<Extents::rank() <= 1 && ::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr mapping(const layout_left::mapping<Other>& other) noexcept
      : mapping(Extents(other.extents())) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr explicit mapping(const layout_stride::mapping<Other>& other) noexcept
      : mapping(Extents(other.extents())) {
    this->require_strides_of(other);
  }
};

template <class Extents>
class layout_left::mapping : public mdspan_detail::DenseMapping<layout_left, Extents, false> {
 public:
  constexpr mapping() noexcept = default;
  __host__ __device__ constexpr mapping(const Extents& given) noexcept
      : mdspan_detail::DenseMapping<layout_left, Extents, false>(given) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr mapping(const mapping<Other>& other) noexcept : mapping(Extents(other.extents())) {}
  template <class Other, ::std::enable_if_t<Extents::rank() <= 1 && ::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr mapping(const layout_right::mapping<Other>& other) noexcept
      : mapping(Extents(other.extents())) {}
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<Extents, Other>, int> = 0>
  __host__ __device__ constexpr explicit mapping(const layout_stride::mapping<Other>& other) noexcept
      : mapping(Extents(other.extents())) {
    this->require_strides_of(other);
  }
};

template <class Extents>
class layout_stride::mapping {
  static_assert(mdspan_detail::is_extents<Extents>, "a layout is of cuda::std::extents");

 public:
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using size_type = typename Extents::size_type;
  using rank_type = typename Extents::rank_type;
  using layout_type = layout_stride;

  // As rows after each other.
  __host__ __device__ constexpr mapping() noexcept : mapping(layout_right::mapping<Extents>()) {}
  template <class Given, ::std::enable_if_t<mdspan_detail::are_indices<index_type, const Given&>, int> = 0>
  __host__ __device__ constexpr mapping(const Extents& given,
                                        const ::std::array<Given, Extents::rank()>& strides) noexcept
      : extents_(given) {
    for (rank_type r = 0; r < Extents::rank(); ++r) strides_.set(r, static_cast<index_type>(strides[r]));
  }
  template <class Given, ::std::enable_if_t<mdspan_detail::are_indices<index_type, const Given&>, int> = 0>
  __host__ __device__ constexpr mapping(const Extents& given, span<Given, Extents::rank()> strides) noexcept
      : extents_(given) {
    for (rank_type r = 0; r < Extents::rank(); ++r) strides_.set(r, static_cast<index_type>(strides[r]));
  }
  // Of any other mapping that has strides.
  template <class Other, ::std::enable_if_t<::std::is_constructible_v<Extents, typename Other::extents_type> &&
                                                Other::is_always_strided() && Other::is_always_unique(),
                                            int> = 0>
  __host__ __device__ constexpr mapping(const Other& other) noexcept : extents_(other.extents()) {
    for (rank_type r = 0; r < Extents::rank(); ++r) strides_.set(r, static_cast<index_type>(other.stride(r)));
  }

  __host__ __device__ constexpr const Extents& extents() const noexcept { return extents_; }
  __host__ __device__ constexpr ::std::array<index_type, Extents::rank()> strides() const noexcept {
    ::std::array<index_type, Extents::rank()> all{};
    for (rank_type r = 0; r < Extents::rank(); ++r) all[r] = strides_.get(r);
    return all;
  }
  __host__ __device__ constexpr index_type stride(rank_type r) const noexcept { return strides_.get(r); }
  __host__ __device__ constexpr index_type required_span_size() const noexcept {
    index_type last = 0;
    for (rank_type r = 0; r < Extents::rank(); ++r) {
      if (extents_.extent(r) == 0) return 0;
      last += (extents_.extent(r) - 1) * strides_.get(r);
    }
    return last + 1;
  }
  template <class... Given,
            ::std::enable_if_t<sizeof...(Given) == Extents::rank() && mdspan_detail::are_indices<index_type, Given...>,
                               int> = 0>
  __host__ __device__ constexpr index_type operator()(Given... given) const noexcept {
    const index_type at[] = {static_cast<index_type>(given)..., 0};
    index_type place = 0;
    for (rank_type r = 0; r < Extents::rank(); ++r) place += at[r] * strides_.get(r);
    return place;
  }

  __host__ __device__ static constexpr bool is_always_unique() noexcept { return true; }
  __host__ __device__ static constexpr bool is_always_exhaustive() noexcept { return false; }
  __host__ __device__ static constexpr bool is_always_strided() noexcept { return true; }
  __host__ __device__ static constexpr bool is_unique() noexcept { return true; }
  __host__ __device__ static constexpr bool is_strided() noexcept { return true; }
  __host__ __device__ constexpr bool is_exhaustive() const noexcept {
    index_type elements = 1;
    for (rank_type r = 0; r < Extents::rank(); ++r) elements *= extents_.extent(r);
    return required_span_size() == elements;
  }

  template <class Other,
            ::std::enable_if_t<Other::extents_type::rank() == Extents::rank() && Other::is_always_strided(), int> = 0>
  __host__ __device__ friend constexpr bool operator==(const mapping& a, const Other& b) noexcept {
    if (a.extents() != b.extents()) return false;
    for (rank_type r = 0; r < Extents::rank(); ++r) {
      if (a.stride(r) != static_cast<index_type>(b.stride(r))) return false;
    }
    return true;
  }

 private:
  [[no_unique_address]] Extents extents_;
  [[no_unique_address]] mdspan_detail::Numbers<index_type, Extents::rank()> strides_;
};

}  // namespace std
}  // namespace cuda
