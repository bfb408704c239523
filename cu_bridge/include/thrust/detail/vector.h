// device_vector and its allocators, host_vector.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "algorithms.h"

namespace thrust {

template <class T>
device_ptr<T> device_malloc(std::size_t count) {
  void* memory = nullptr;
  const cudaError_t error = ::cudaMalloc(&memory, count * sizeof(T));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  if (error != cudaSuccess) throw system_error(error);
  return device_ptr<T>(static_cast<T*>(memory));
}
inline device_ptr<char> device_malloc(std::size_t bytes) { return device_malloc<char>(bytes); }
template <class T>
void device_free(device_ptr<T> pointer) {
  const cudaError_t error = ::cudaFree(const_cast<std::remove_cv_t<T>*>(pointer.get()));
  if (error != cudaSuccess) throw system_error(error);
}

// With objects in it: made, and destroyed, on the host, whose memory it is.
template <class T>
device_ptr<T> device_new(std::size_t count = 1) {
  const device_ptr<T> made = device_malloc<T>(count);
  for (std::size_t i = 0; i < count; ++i) new (static_cast<void*>(made.get() + i)) T();
  return made;
}
template <class T>
void device_delete(device_ptr<T> first, std::size_t count = 1) {
  for (std::size_t i = 0; i < count; ++i) first.get()[i].~T();
  device_free(first);
}

template <class T>
class device_allocator {
 public:
  using value_type = T;
  using pointer = device_ptr<T>;
  using const_pointer = device_ptr<const T>;
  using reference = device_reference<T>;
  using const_reference = device_reference<const T>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  template <class U>
  struct rebind {
    using other = device_allocator<U>;
  };
  device_allocator() = default;
  template <class U>
  device_allocator(const device_allocator<U>&) {}
  pointer allocate(size_type count) { return device_malloc<T>(count); }
  void deallocate(pointer memory, size_type) { device_free(memory); }
  friend bool operator==(const device_allocator&, const device_allocator&) { return true; }
  friend bool operator!=(const device_allocator&, const device_allocator&) { return false; }
};
template <class T>
using device_malloc_allocator = device_allocator<T>;

// Memory that host and device both reach by its address.
template <class T>
class universal_allocator : public device_allocator<T> {
 public:
  template <class U>
  struct rebind {
    using other = universal_allocator<U>;
  };
  universal_allocator() = default;
  template <class U>
  universal_allocator(const universal_allocator<U>&) {}
  device_ptr<T> allocate(std::size_t count) {
    void* memory = nullptr;
    const cudaError_t error = ::cudaMallocManaged(&memory, count * sizeof(T));
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    if (error != cudaSuccess) throw system_error(error);
    return device_ptr<T>(static_cast<T*>(memory));
  }
};

template <class T, class Allocator = device_allocator<T>>
class device_vector {
 public:
  using value_type = T;
  using allocator_type = Allocator;
  using pointer = device_ptr<T>;
  using const_pointer = device_ptr<const T>;
  using reference = device_reference<T>;
  using const_reference = device_reference<const T>;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;
  using reverse_iterator = thrust::reverse_iterator<iterator>;
  using const_reverse_iterator = thrust::reverse_iterator<const_iterator>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  device_vector() = default;
  explicit device_vector(const Allocator& allocator) : allocator_(allocator) {}
  explicit device_vector(size_type count, const Allocator& allocator = Allocator()) : allocator_(allocator) {
    resize(count);
  }
  device_vector(size_type count, const T& value, const Allocator& allocator = Allocator()) : allocator_(allocator) {
    resize(count, value);
  }
  template <class I, class = typename std::iterator_traits<I>::iterator_category>
  device_vector(I first, I last, const Allocator& allocator = Allocator()) : allocator_(allocator) {
    assign(first, last);
  }
  device_vector(std::initializer_list<T> values, const Allocator& allocator = Allocator()) : allocator_(allocator) {
    assign(values.begin(), values.end());
  }
  device_vector(const device_vector& other) : allocator_(other.allocator_) { assign(other.begin(), other.end()); }
  device_vector(device_vector&& other) noexcept { swap(other); }
  template <class U, class A>
  device_vector(const device_vector<U, A>& other) {
    assign(other.begin(), other.end());
  }
  template <class U, class A>
  device_vector(const std::vector<U, A>& other) {
    assign(other.begin(), other.end());
  }
  ~device_vector() {
    if (memory_ != nullptr) free_memory();
  }

  device_vector& operator=(const device_vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(device_vector&& other) noexcept {
    swap(other);
    return *this;
  }
  template <class U, class A>
  device_vector& operator=(const device_vector<U, A>& other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class U, class A>
  device_vector& operator=(const std::vector<U, A>& other) {
    assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }

  iterator begin() { return iterator(memory_); }
  iterator end() { return iterator(memory_ + size_); }
  const_iterator begin() const { return const_iterator(memory_); }
  const_iterator end() const { return const_iterator(memory_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  reference operator[](size_type i) { return reference(memory_ + i); }
  const_reference operator[](size_type i) const { return const_reference(memory_ + i); }
  reference front() { return (*this)[0]; }
  const_reference front() const { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  const_reference back() const { return (*this)[size_ - 1]; }
  pointer data() { return pointer(memory_); }
  const_pointer data() const { return const_pointer(memory_); }
  size_type size() const { return size_; }
  size_type capacity() const { return capacity_; }
  size_type max_size() const { return static_cast<size_type>(-1) / (2 * sizeof(T)); }
  bool empty() const { return size_ == 0; }
  Allocator get_allocator() const { return allocator_; }

  void reserve(size_type count) {
    if (count <= capacity_) return;
    if (count > max_size()) throw std::length_error("thrust::device_vector: too many elements");
    auto fresh = allocator_.allocate(count);
    T* const memory = thrust::raw_pointer_cast(fresh);
    for (size_type i = 0; i < size_; ++i) new (memory + i) T(std::move(memory_[i]));
    const size_type size = size_;
    if (memory_ != nullptr) free_memory();
    memory_ = memory;
    size_ = size;
    capacity_ = count;
  }
  void resize(size_type count) { resize(count, T()); }
  void resize(size_type count, const T& value) {
    const T copy = value;
    if (count > capacity_) reserve(count);
    for (size_type i = size_; i < count; ++i) new (memory_ + i) T(copy);
    for (size_type i = count; i < size_; ++i) memory_[i].~T();
    size_ = count;
  }
  void clear() { resize(0); }
  void shrink_to_fit() {
    device_vector exact(begin(), end());
    swap(exact);
  }
  void push_back(const T& value) {
    const T copy = value;
    if (size_ == capacity_) reserve(size_ == 0 ? 8 : 2 * size_);
    new (memory_ + size_++) T(copy);
  }
  void pop_back() { resize(size_ - 1); }
  template <class I, class = typename std::iterator_traits<I>::iterator_category>
  void assign(I first, I last) {
    const size_type count = static_cast<size_type>(std::distance(first, last));
    if (count > capacity_) {
      clear();
      reserve(count);
    }
    resize(count);
    if (count > 0) thrust::copy(first, last, begin());
  }
  void assign(size_type count, const T& value) {
    const T copy = value;
    clear();
    resize(count, copy);
  }
  iterator insert(iterator position, const T& value) {
    const T copy = value;
    const difference_type at = position - begin();
    push_back(copy);
    for (difference_type i = static_cast<difference_type>(size_) - 1; i > at; --i)
      memory_[i] = std::move(memory_[i - 1]);
    memory_[at] = copy;
    return begin() + at;
  }
  template <class I, class = typename std::iterator_traits<I>::iterator_category>
  void insert(iterator position, I first, I last) {
    std::vector<T> values(first, last);
    difference_type at = position - begin();
    for (const T& value : values) insert(begin() + at++, value);
  }
  iterator erase(iterator position) { return erase(position, position + 1); }
  iterator erase(iterator first, iterator last) {
    const difference_type at = first - begin(), gone = last - first;
    for (size_type i = static_cast<size_type>(at); i + static_cast<size_type>(gone) < size_; ++i) {
      memory_[i] = std::move(memory_[i + static_cast<size_type>(gone)]);
    }
    resize(size_ - static_cast<size_type>(gone));
    return begin() + at;
  }
  void swap(device_vector& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(allocator_, other.allocator_);
  }
  friend void swap(device_vector& a, device_vector& b) noexcept { a.swap(b); }

 private:
  void free_memory() {
    for (size_type i = 0; i < size_; ++i) memory_[i].~T();
    using Pointer = decltype(allocator_.allocate(1));
    // After the runtime has gone at the end of the process there is nobody to tell.
    try {
      allocator_.deallocate(Pointer(memory_), capacity_);
    } catch (const system_error&) {
    }
    memory_ = nullptr;
    size_ = capacity_ = 0;
  }

  T* memory_ = nullptr;
  size_type size_ = 0, capacity_ = 0;
  Allocator allocator_;
};
template <class T, class A, class U, class B>
bool operator==(const device_vector<T, A>& a, const device_vector<U, B>& b) {
  return a.size() == b.size() && thrust::equal(a.begin(), a.end(), b.begin());
}
template <class T, class A, class U, class B>
bool operator!=(const device_vector<T, A>& a, const device_vector<U, B>& b) {
  return !(a == b);
}
template <class T, class A, class U, class B>
bool operator==(const device_vector<T, A>& a, const std::vector<U, B>& b) {
  return a.size() == b.size() && thrust::equal(a.begin(), a.end(), b.begin());
}
template <class T, class A, class U, class B>
bool operator==(const std::vector<U, B>& b, const device_vector<T, A>& a) {
  return a == b;
}

template <class T>
using universal_vector = device_vector<T, universal_allocator<T>>;

// The C++ library's vector, which can also be filled from the device.
template <class T, class Allocator = std::allocator<T>>
class host_vector : public std::vector<T, Allocator> {
 public:
  using Base = std::vector<T, Allocator>;
  using Base::Base;
  host_vector() = default;
  host_vector(const Base& other) : Base(other) {}
  template <class U, class A>
  host_vector(const device_vector<U, A>& other) : Base(other.size()) {
    thrust::copy(other.begin(), other.end(), this->begin());
  }
  template <class U, class A>
  host_vector(const std::vector<U, A>& other) : Base(other.begin(), other.end()) {}
  template <class U, class A>
  host_vector& operator=(const device_vector<U, A>& other) {
    this->resize(other.size());
    thrust::copy(other.begin(), other.end(), this->begin());
    return *this;
  }
  template <class U, class A>
  host_vector& operator=(const std::vector<U, A>& other) {
    this->assign(other.begin(), other.end());
    return *this;
  }
};

}  // namespace thrust
