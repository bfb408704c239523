// Memory resources, pools over them, and allocators that take from them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "vector.h"

namespace thrust {
namespace mr {

#ifndef THRUST_MR_DEFAULT_ALIGNMENT
#define THRUST_MR_DEFAULT_ALIGNMENT alignof(std::max_align_t)
#endif

template <class Pointer = void*>
class memory_resource {
 public:
  using pointer = Pointer;
  virtual ~memory_resource() = default;
  Pointer allocate(std::size_t bytes, std::size_t alignment = THRUST_MR_DEFAULT_ALIGNMENT) {
    return do_allocate(bytes, alignment);
  }
  void deallocate(Pointer memory, std::size_t bytes, std::size_t alignment = THRUST_MR_DEFAULT_ALIGNMENT) noexcept {
    do_deallocate(memory, bytes, alignment);
  }
  bool is_equal(const memory_resource& other) const noexcept { return do_is_equal(other); }

  virtual Pointer do_allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void do_deallocate(Pointer memory, std::size_t bytes, std::size_t alignment) = 0;
  virtual bool do_is_equal(const memory_resource& other) const noexcept { return this == &other; }
};
template <class Pointer>
bool operator==(const memory_resource<Pointer>& a, const memory_resource<Pointer>& b) noexcept {
  return &a == &b || a.is_equal(b);
}
template <class Pointer>
bool operator!=(const memory_resource<Pointer>& a, const memory_resource<Pointer>& b) noexcept {
  return !(a == b);
}

template <class Resource>
Resource* get_global_resource() {
  static Resource resource;
  return &resource;
}

// The host's heap.
class new_delete_resource final : public memory_resource<> {
 public:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return ::operator new(bytes, std::align_val_t(alignment));
  }
  void do_deallocate(void* memory, std::size_t, std::size_t alignment) override {
    ::operator delete(memory, std::align_val_t(alignment));
  }
};

}  // namespace mr

namespace detail {

inline void check_allocation(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  if (error != cudaSuccess) throw system_error(error);
}

struct device_memory_kind {
  static cudaError_t allocate(void** memory, std::size_t bytes) { return ::cudaMalloc(memory, bytes); }
  static cudaError_t release(void* memory) { return ::cudaFree(memory); }
};
struct managed_memory_kind {
  static cudaError_t allocate(void** memory, std::size_t bytes) { return ::cudaMallocManaged(memory, bytes); }
  static cudaError_t release(void* memory) { return ::cudaFree(memory); }
};
struct pinned_memory_kind {
  static cudaError_t allocate(void** memory, std::size_t bytes) { return ::cudaMallocHost(memory, bytes); }
  static cudaError_t release(void* memory) { return ::cudaFreeHost(memory); }
};

template <class Kind, class Pointer = device_ptr<void>>
class cuda_memory_resource final : public mr::memory_resource<Pointer> {
 public:
  Pointer do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    check_allocation(Kind::allocate(&memory, bytes));
    return Pointer(memory);
  }
  void do_deallocate(Pointer memory, std::size_t, std::size_t) override {
    const cudaError_t error = Kind::release(raw(memory));
    if (error != cudaSuccess) throw system_error(error);
  }

 private:
  static void* raw(void* memory) { return memory; }
  template <class T>
  static void* raw(device_ptr<T> memory) {
    return memory.get();
  }
};

}  // namespace detail

using device_memory_resource = detail::cuda_memory_resource<detail::device_memory_kind>;
using universal_memory_resource = detail::cuda_memory_resource<detail::managed_memory_kind>;
using universal_host_pinned_memory_resource = detail::cuda_memory_resource<detail::pinned_memory_kind>;
using host_memory_resource = mr::new_delete_resource;
// Of resources whose pointers are plain: those of the device say so.
template <class Upstream>
class device_ptr_memory_resource final : public mr::memory_resource<device_ptr<void>> {
 public:
  device_ptr_memory_resource() : upstream_(mr::get_global_resource<Upstream>()) {}
  explicit device_ptr_memory_resource(Upstream* upstream) : upstream_(upstream) {}
  device_ptr<void> do_allocate(std::size_t bytes, std::size_t alignment) override {
    return device_ptr<void>(raw(upstream_->allocate(bytes, alignment)));
  }
  void do_deallocate(device_ptr<void> memory, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(typename Upstream::pointer(memory.get()), bytes, alignment);
  }

 private:
  static void* raw(void* memory) { return memory; }
  template <class T>
  static void* raw(device_ptr<T> memory) {
    return memory.get();
  }
  Upstream* upstream_;
};

namespace system {
namespace cuda {
using memory_resource = thrust::device_memory_resource;
using universal_memory_resource = thrust::universal_memory_resource;
using universal_host_pinned_memory_resource = thrust::universal_host_pinned_memory_resource;
}  // namespace cuda
}  // namespace system
namespace cuda {
using memory_resource = thrust::device_memory_resource;
using universal_memory_resource = thrust::universal_memory_resource;
using universal_host_pinned_memory_resource = thrust::universal_host_pinned_memory_resource;
}  // namespace cuda

namespace mr {

// ---- Allocators -----------------------------------------------------------------------------------------------------

namespace detail {
template <class Pointer, class T>
struct rebound {
  using type = T*;
};
template <class V, class T>
struct rebound<device_ptr<V>, T> {
  using type = device_ptr<T>;
};
template <class T>
void* raw(T* memory) {
  return memory;
}
template <class T>
void* raw(device_ptr<T> memory) {
  return memory.get();
}
}  // namespace detail

template <class T, class Resource>
class allocator {
 public:
  using value_type = T;
  using void_pointer = typename Resource::pointer;
  using pointer = typename detail::rebound<void_pointer, T>::type;
  using const_pointer = typename detail::rebound<void_pointer, const T>::type;
  using reference = decltype(*std::declval<pointer>());
  using const_reference = decltype(*std::declval<const_pointer>());
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  template <class U>
  struct rebind {
    using other = allocator<U, Resource>;
  };
  allocator(Resource* resource) : resource_(resource) {}
  template <class U>
  allocator(const allocator<U, Resource>& other) : resource_(other.resource()) {}
  pointer allocate(size_type count) {
    return pointer(static_cast<T*>(detail::raw(resource_->do_allocate(count * sizeof(T), alignof(T)))));
  }
  void deallocate(pointer memory, size_type count) noexcept {
    resource_->do_deallocate(void_pointer(detail::raw(memory)), count * sizeof(T), alignof(T));
  }
  Resource* resource() const { return resource_; }
  friend bool operator==(const allocator& a, const allocator& b) { return *a.resource_ == *b.resource_; }
  friend bool operator!=(const allocator& a, const allocator& b) { return !(a == b); }

 private:
  Resource* resource_;
};

// Of a resource that there is once in the program.
template <class T, class Resource>
class stateless_resource_allocator : public allocator<T, Resource> {
 public:
  template <class U>
  struct rebind {
    using other = stateless_resource_allocator<U, Resource>;
  };
  stateless_resource_allocator() : allocator<T, Resource>(get_global_resource<Resource>()) {}
  template <class U>
  stateless_resource_allocator(const stateless_resource_allocator<U, Resource>&) : stateless_resource_allocator() {}
};

// ---- Pools ----------------------------------------------------------------------------------------------------------

struct pool_options {
  std::size_t min_blocks_per_chunk = 16;
  std::size_t min_bytes_per_chunk = 1024;
  std::size_t max_blocks_per_chunk = std::size_t{1} << 20;
  std::size_t max_bytes_per_chunk = std::size_t{1} << 30;
  std::size_t smallest_block_size = THRUST_MR_DEFAULT_ALIGNMENT;
  std::size_t largest_block_size = std::size_t{1} << 20;
  std::size_t alignment = THRUST_MR_DEFAULT_ALIGNMENT;
  bool cache_oversized = true;
  std::size_t cached_size_cutoff_factor = 16;
  std::size_t cached_alignment_cutoff_factor = 16;
  bool validate() const {
    return smallest_block_size <= largest_block_size && min_blocks_per_chunk <= max_blocks_per_chunk &&
           min_bytes_per_chunk <= max_bytes_per_chunk && (alignment & (alignment - 1)) == 0 && alignment != 0;
  }
};

// Keeps what is given back, by its size, and gives it out again; everything goes back to the upstream with the pool.
// Its book lies on the host, whatever the upstream's memory is, so that the disjoint forms are the same.
template <class Upstream>
class unsynchronized_pool_resource : public memory_resource<typename Upstream::pointer> {
 public:
  using pointer = typename Upstream::pointer;
  static pool_options get_default_options() { return {}; }
  explicit unsynchronized_pool_resource(Upstream* upstream, pool_options options = get_default_options())
      : upstream_(upstream), options_(options) {}
  explicit unsynchronized_pool_resource(pool_options options = get_default_options())
      : unsynchronized_pool_resource(get_global_resource<Upstream>(), options) {}
  template <class Bookkeeper, class = decltype(std::declval<Bookkeeper&>().allocate(1))>
  unsynchronized_pool_resource(Upstream* upstream, Bookkeeper*, pool_options options = get_default_options())
      : unsynchronized_pool_resource(upstream, options) {}
  unsynchronized_pool_resource(const unsynchronized_pool_resource&) = delete;
  unsynchronized_pool_resource& operator=(const unsynchronized_pool_resource&) = delete;
  ~unsynchronized_pool_resource() override { release(); }

  // What is still given out goes as well.
  void release() {
    for (const Block& block : blocks_) {
      upstream_->do_deallocate(pointer(block.memory), block.bytes, block.alignment);
    }
    blocks_.clear();
    free_.clear();
  }
  pointer do_allocate(std::size_t bytes, std::size_t alignment) override {
    const Size size = sizeOf(bytes, alignment);
    std::vector<void*>& free = free_[size];
    if (!free.empty()) {
      void* const memory = free.back();
      free.pop_back();
      return pointer(memory);
    }
    void* const memory = detail::raw(upstream_->do_allocate(size.first, size.second));
    blocks_.push_back({memory, size.first, size.second});
    return pointer(memory);
  }
  void do_deallocate(pointer memory, std::size_t bytes, std::size_t alignment) override {
    free_[sizeOf(bytes, alignment)].push_back(detail::raw(memory));
  }

 private:
  using Size = std::pair<std::size_t, std::size_t>;  // bytes, alignment
  struct Block {
    void* memory;
    std::size_t bytes, alignment;
  };
  // Small sizes are rounded to powers of two.
  Size sizeOf(std::size_t bytes, std::size_t alignment) const {
    alignment = alignment < options_.alignment ? options_.alignment : alignment;
    if (bytes > options_.largest_block_size) return {bytes, alignment};
    std::size_t size = options_.smallest_block_size == 0 ? 1 : options_.smallest_block_size;
    while (size < bytes) size *= 2;
    return {size, alignment};
  }
  Upstream* upstream_;
  pool_options options_;
  std::vector<Block> blocks_;
  std::map<Size, std::vector<void*>> free_;
};

template <class Upstream>
class synchronized_pool_resource : public memory_resource<typename Upstream::pointer> {
 public:
  using pointer = typename Upstream::pointer;
  static pool_options get_default_options() { return {}; }
  template <class... Arguments>
  explicit synchronized_pool_resource(Arguments&&... arguments) : pool_(std::forward<Arguments>(arguments)...) {}
  void release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    pool_.release();
  }
  pointer do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pool_.do_allocate(bytes, alignment);
  }
  void do_deallocate(pointer memory, std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    pool_.do_deallocate(memory, bytes, alignment);
  }

 private:
  std::mutex mutex_;
  unsynchronized_pool_resource<Upstream> pool_;
};
template <class Upstream, class Bookkeeper>
class disjoint_unsynchronized_pool_resource : public unsynchronized_pool_resource<Upstream> {
  using unsynchronized_pool_resource<Upstream>::unsynchronized_pool_resource;
};
template <class Upstream, class Bookkeeper>
class disjoint_synchronized_pool_resource : public synchronized_pool_resource<Upstream> {
  using synchronized_pool_resource<Upstream>::synchronized_pool_resource;
};

// One for each thread and upstream.
template <class Upstream>
unsynchronized_pool_resource<Upstream>& tls_pool(Upstream* upstream = nullptr) {
  static thread_local unsynchronized_pool_resource<Upstream> pool(
      upstream != nullptr ? upstream : get_global_resource<Upstream>());
  return pool;
}
template <class Upstream, class Bookkeeper>
unsynchronized_pool_resource<Upstream>& tls_disjoint_pool(Upstream* upstream = nullptr, Bookkeeper* = nullptr) {
  return tls_pool(upstream);
}

}  // namespace mr

// Page-locked memory of the host, for containers of the host.
namespace system {
namespace cuda {
namespace experimental {
template <class T>
class pinned_allocator {
 public:
  using value_type = T;
  using pointer = T*;
  using const_pointer = const T*;
  using reference = T&;
  using const_reference = const T&;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  template <class U>
  struct rebind {
    using other = pinned_allocator<U>;
  };
  pinned_allocator() = default;
  template <class U>
  pinned_allocator(const pinned_allocator<U>&) {}
  T* allocate(size_type count, const void* = nullptr) {
    void* memory = nullptr;
    thrust::detail::check_allocation(::cudaMallocHost(&memory, count * sizeof(T)));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_type) { ::cudaFreeHost(memory); }
  friend bool operator==(const pinned_allocator&, const pinned_allocator&) { return true; }
  friend bool operator!=(const pinned_allocator&, const pinned_allocator&) { return false; }
};
}  // namespace experimental
}  // namespace cuda
}  // namespace system
namespace cuda {
namespace experimental {
using thrust::system::cuda::experimental::pinned_allocator;
}
}  // namespace cuda

}  // namespace thrust
