// The view itself, and how it gets at an element.
#pragma once

#include <memory>

#include "layouts.h"

namespace cuda {
namespace std {

template <class T>
struct default_accessor {
  using offset_policy = default_accessor;
  using element_type = T;
  using reference = T&;
  using data_handle_type = T*;

  constexpr default_accessor() noexcept = default;
  template <class Other, ::std::enable_if_t<::std::is_convertible_v<Other (*)[], T (*)[]>, int> = 0>
  __host__ __device__ constexpr default_accessor(default_accessor<Other>) noexcept {}
  __host__ __device__ constexpr reference access(T* data, ::std::size_t i) const noexcept { return data[i]; }
  __host__ __device__ constexpr T* offset(T* data, ::std::size_t i) const noexcept { return data + i; }
};

// The first element lies at a multiple of this many bytes.
template <class T, ::std::size_t Bytes>
struct aligned_accessor {
  static_assert((Bytes & (Bytes - 1)) == 0 && Bytes >= alignof(T), "an alignment is a power of two, and the type's");

  using offset_policy = default_accessor<T>;
  using element_type = T;
  using reference = T&;
  using data_handle_type = T*;
  static constexpr ::std::size_t byte_alignment = Bytes;

  constexpr aligned_accessor() noexcept = default;
  template <class Other, ::std::size_t Theirs,
            ::std::enable_if_t<Theirs >= Bytes&& ::std::is_convertible_v<Other (*)[], T (*)[]>, int> = 0>
  __host__ __device__ constexpr aligned_accessor(aligned_accessor<Other, Theirs>) noexcept {}
  template <class Other, ::std::enable_if_t<::std::is_convertible_v<Other (*)[], T (*)[]>, int> = 0>
  __host__ __device__ constexpr explicit aligned_accessor(default_accessor<Other>) noexcept {}
  __host__ __device__ constexpr operator default_accessor<T>() const noexcept { return {}; }
  __host__ __device__ constexpr reference access(T* data, ::std::size_t i) const noexcept {
    return static_cast<T*>(__builtin_assume_aligned(data, Bytes))[i];
  }
  __host__ __device__ constexpr T* offset(T* data, ::std::size_t i) const noexcept { return data + i; }
};

template <class T, class Extents, class Layout = layout_right, class Accessor = default_accessor<T>>
class mdspan {
  static_assert(mdspan_detail::is_extents<Extents>, "the second argument of an mdspan is cuda::std::extents");
  static_assert(::std::is_same_v<T, typename Accessor::element_type>, "the accessor is of another type of element");

 public:
  using extents_type = Extents;
  using layout_type = Layout;
  using accessor_type = Accessor;
  using mapping_type = typename Layout::template mapping<Extents>;
  using element_type = T;
  using value_type = ::std::remove_cv_t<T>;
  using index_type = typename Extents::index_type;
  using size_type = typename Extents::size_type;
  using rank_type = typename Extents::rank_type;
  using data_handle_type = typename Accessor::data_handle_type;
  using reference = typename Accessor::reference;

 private:
  template <class OtherLayout, class Theirs>
  using MappingOf = typename OtherLayout::template mapping<Theirs>;
  template <class OtherLayout, class Theirs, class OtherAccessor>
  static constexpr bool kConverts = ::std::is_constructible_v<mapping_type, const MappingOf<OtherLayout, Theirs>&> &&
                                    ::std::is_constructible_v<Accessor, const OtherAccessor&>;

 public:
  constexpr mdspan() = default;
  template <class... Given,
            ::std::enable_if_t<
                (sizeof...(Given) == Extents::rank() || sizeof...(Given) == Extents::rank_dynamic()) &&
                    mdspan_detail::are_indices<index_type, Given...>&& ::std::is_constructible_v<mapping_type, Extents>,
                int> = 0>
  __host__ __device__ constexpr explicit mdspan(data_handle_type data, Given... given)
      : data_(data), mapping_(Extents(static_cast<index_type>(given)...)) {}
  template <class Given, ::std::size_t Count,
            ::std::enable_if_t<(Count == Extents::rank() || Count == Extents::rank_dynamic()) &&
                                   mdspan_detail::are_indices<index_type, const Given&>,
                               int> = 0>
  __host__ __device__ constexpr mdspan(data_handle_type data, const ::std::array<Given, Count>& given)
      : data_(data), mapping_(Extents(given)) {}
  template <class Given, ::std::size_t Count,
            ::std::enable_if_t<(Count == Extents::rank() || Count == Extents::rank_dynamic()) &&
                                   mdspan_detail::are_indices<index_type, const Given&>,
                               int> = 0>
  __host__ __device__ constexpr mdspan(data_handle_type data, span<Given, Count> given)
      : data_(data), mapping_(Extents(given)) {}
  __host__ __device__ constexpr mdspan(data_handle_type data, const Extents& given) : data_(data), mapping_(given) {}
  __host__ __device__ constexpr mdspan(data_handle_type data, const mapping_type& mapping)
      : data_(data), mapping_(mapping) {}
  __host__ __device__ constexpr mdspan(data_handle_type data, const mapping_type& mapping, const Accessor& accessor)
      : data_(data), mapping_(mapping), accessor_(accessor) {}
  // Implicit where that of the mappings is: one that has strides may have others than a dense layout.
  template <class Other, class Theirs, class OtherLayout, class OtherAccessor,
            ::std::enable_if_t<kConverts<OtherLayout, Theirs, OtherAccessor>&& ::std::is_convertible_v<
                                   const MappingOf<OtherLayout, Theirs>&, mapping_type>,
                               int> = 0>
  __host__ __device__ constexpr mdspan(const mdspan<Other, Theirs, OtherLayout, OtherAccessor>& other)
      : data_(other.data_handle()), mapping_(other.mapping()), accessor_(other.accessor()) {}
  template <class Other, class Theirs, class OtherLayout, class OtherAccessor,
            ::std::enable_if_t<kConverts<OtherLayout, Theirs, OtherAccessor> &&
                                   !::std::is_convertible_v<const MappingOf<OtherLayout, Theirs>&, mapping_type>,
                               int> = 0>
  __host__ __device__ constexpr explicit mdspan(const mdspan<Other, Theirs, OtherLayout, OtherAccessor>& other)
      : data_(other.data_handle()), mapping_(other.mapping()), accessor_(other.accessor()) {}

  // Several indices in brackets came with C++23; in parentheses they are taken by every language.
  template <class... Given,
            ::std::enable_if_t<sizeof...(Given) == Extents::rank() && mdspan_detail::are_indices<index_type, Given...>,
                               int> = 0>
  __host__ __device__ constexpr reference operator()(Given... given) const {
    return accessor_.access(data_, static_cast<::std::size_t>(mapping_(static_cast<index_type>(given)...)));
  }
#if defined(__cpp_multidimensional_subscript)
  template <class... Given,
            ::std::enable_if_t<sizeof...(Given) == Extents::rank() && mdspan_detail::are_indices<index_type, Given...>,
                               int> = 0>
  __host__ __device__ constexpr reference operator[](Given... given) const {
    return (*this)(given...);
  }
#else
  template <class Given,
            ::std::enable_if_t<Extents::rank() == 1 && mdspan_detail::are_indices<index_type, Given>, int> = 0>
  __host__ __device__ constexpr reference operator[](Given given) const {
    return (*this)(given);
  }
#endif
  template <class Given, ::std::enable_if_t<mdspan_detail::are_indices<index_type, const Given&>, int> = 0>
  __host__ __device__ constexpr reference operator[](const ::std::array<Given, Extents::rank()>& at) const {
    return at_array(at.data(), ::std::make_index_sequence<Extents::rank()>());
  }
  template <class Given, ::std::enable_if_t<mdspan_detail::are_indices<index_type, const Given&>, int> = 0>
  __host__ __device__ constexpr reference operator[](span<Given, Extents::rank()> at) const {
    return at_array(at.data(), ::std::make_index_sequence<Extents::rank()>());
  }

  __host__ __device__ static constexpr rank_type rank() noexcept { return Extents::rank(); }
  __host__ __device__ static constexpr rank_type rank_dynamic() noexcept { return Extents::rank_dynamic(); }
  __host__ __device__ static constexpr ::std::size_t static_extent(rank_type r) noexcept {
    return Extents::static_extent(r);
  }
  __host__ __device__ constexpr index_type extent(rank_type r) const noexcept { return extents().extent(r); }
  __host__ __device__ constexpr size_type size() const noexcept {
    size_type count = 1;
    for (rank_type r = 0; r < rank(); ++r) count *= static_cast<size_type>(extent(r));
    return count;
  }
  __host__ __device__ constexpr bool empty() const noexcept { return size() == 0; }
  __host__ __device__ constexpr index_type stride(rank_type r) const { return mapping_.stride(r); }

  __host__ __device__ constexpr const Extents& extents() const noexcept { return mapping_.extents(); }
  __host__ __device__ constexpr const data_handle_type& data_handle() const noexcept { return data_; }
  __host__ __device__ constexpr const mapping_type& mapping() const noexcept { return mapping_; }
  __host__ __device__ constexpr const Accessor& accessor() const noexcept { return accessor_; }

  __host__ __device__ static constexpr bool is_always_unique() { return mapping_type::is_always_unique(); }
  __host__ __device__ static constexpr bool is_always_exhaustive() { return mapping_type::is_always_exhaustive(); }
  __host__ __device__ static constexpr bool is_always_strided() { return mapping_type::is_always_strided(); }
  __host__ __device__ constexpr bool is_unique() const { return mapping_.is_unique(); }
  __host__ __device__ constexpr bool is_exhaustive() const { return mapping_.is_exhaustive(); }
  __host__ __device__ constexpr bool is_strided() const { return mapping_.is_strided(); }

  __host__ __device__ friend constexpr void swap(mdspan& a, mdspan& b) noexcept {
    const mdspan kept = a;
    a = b;
    b = kept;
  }

 private:
  template <class Given, ::std::size_t... Places>
  __host__ __device__ constexpr reference at_array(const Given* at, ::std::index_sequence<Places...>) const {
    return (*this)(at[Places]...);
  }

  data_handle_type data_{};
  [[no_unique_address]] mapping_type mapping_;
  [[no_unique_address]] Accessor accessor_;
};

template <class Array, ::std::enable_if_t<::std::is_array_v<Array>&& ::std::rank_v<Array> == 1, int> = 0>
mdspan(Array&) -> mdspan<::std::remove_all_extents_t<Array>, extents<::std::size_t, ::std::extent_v<Array>>>;
template <class Pointer, ::std::enable_if_t<::std::is_pointer_v<::std::remove_reference_t<Pointer>>, int> = 0>
mdspan(Pointer&&) -> mdspan<::std::remove_pointer_t<::std::remove_reference_t<Pointer>>, extents<::std::size_t>>;
template <class T, class... Given,
          ::std::enable_if_t<sizeof...(Given) != 0 && (... && ::std::is_convertible_v<Given, ::std::size_t>), int> = 0>
explicit mdspan(T*, Given...) -> mdspan<T, dextents<::std::size_t, sizeof...(Given)>>;
template <class T, class Given, ::std::size_t Count>
mdspan(T*, span<Given, Count>) -> mdspan<T, dextents<::std::size_t, Count>>;
template <class T, class Given, ::std::size_t Count>
mdspan(T*, const ::std::array<Given, Count>&) -> mdspan<T, dextents<::std::size_t, Count>>;
template <class T, class Index, ::std::size_t... Extents>
mdspan(T*, const extents<Index, Extents...>&) -> mdspan<T, extents<Index, Extents...>>;
template <class T, class Mapping, class = typename Mapping::layout_type>
mdspan(T*, const Mapping&) -> mdspan<T, typename Mapping::extents_type, typename Mapping::layout_type>;
template <class Mapping, class Accessor>
mdspan(const typename Accessor::data_handle_type&, const Mapping&, const Accessor&)
    -> mdspan<typename Accessor::element_type, typename Mapping::extents_type, typename Mapping::layout_type, Accessor>;

}  // namespace std
}  // namespace cuda
