// cub's iterators, in terms of thrust's.
#pragma once

#include "../util_type.cuh"

CUB_NAMESPACE_BEGIN

template <class Value, class Offset = std::ptrdiff_t>
class CountingInputIterator
    : public ::thrust::detail::iterator_base<CountingInputIterator<Value, Offset>, Value, Value, Offset> {
 public:
  __host__ __device__ explicit CountingInputIterator(const Value& value) : value_(value) {}
  __host__ __device__ Value dereference() const { return value_; }
  __host__ __device__ void advance(Offset n) { value_ = static_cast<Value>(value_ + static_cast<Value>(n)); }
  __host__ __device__ Offset distance(const CountingInputIterator& to) const {
    return static_cast<Offset>(to.value_ - value_);
  }

 private:
  Value value_;
};

template <class Value, class Offset = std::ptrdiff_t>
class ConstantInputIterator
    : public ::thrust::detail::iterator_base<ConstantInputIterator<Value, Offset>, Value, Value, Offset> {
 public:
  __host__ __device__ explicit ConstantInputIterator(Value value, Offset position = 0)
      : value_(value), position_(position) {}
  __host__ __device__ Value dereference() const { return value_; }
  __host__ __device__ void advance(Offset n) { position_ += n; }
  __host__ __device__ Offset distance(const ConstantInputIterator& to) const { return to.position_ - position_; }

 private:
  Value value_;
  Offset position_;
};

template <class Value, class Conversion, class Iterator, class Offset = std::ptrdiff_t>
class TransformInputIterator
    : public ::thrust::detail::iterator_base<TransformInputIterator<Value, Conversion, Iterator, Offset>, Value, Value,
                                             Offset> {
 public:
  __host__ __device__ TransformInputIterator(Iterator base, Conversion conversion)
      : conversion_(conversion), base_(base) {}
  __host__ __device__ Value dereference() const { return conversion_(*base_); }
  __host__ __device__ void advance(Offset n) { base_ += n; }
  __host__ __device__ Offset distance(const TransformInputIterator& to) const {
    return static_cast<Offset>(to.base_ - base_);
  }

 private:
  // A conversion need not be const.
  mutable Conversion conversion_;
  Iterator base_;
};

template <class Iterator, class Offset = std::ptrdiff_t, class OutputValue = detail::value_of<Iterator>>
class ArgIndexInputIterator
    : public ::thrust::detail::iterator_base<ArgIndexInputIterator<Iterator, Offset, OutputValue>,
                                             KeyValuePair<Offset, OutputValue>, KeyValuePair<Offset, OutputValue>,
                                             Offset> {
 public:
  __host__ __device__ explicit ArgIndexInputIterator(Iterator base, Offset offset = 0) : base_(base), offset_(offset) {}
  __host__ __device__ KeyValuePair<Offset, OutputValue> dereference() const {
    return {offset_, static_cast<OutputValue>(base_[offset_])};
  }
  __host__ __device__ void advance(Offset n) { offset_ += n; }
  __host__ __device__ Offset distance(const ArgIndexInputIterator& to) const { return to.offset_ - offset_; }
  __host__ __device__ void normalize() {
    base_ += offset_;
    offset_ = 0;
  }

 private:
  Iterator base_;
  Offset offset_;
};

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

template <CacheLoadModifier Modifier, class Iterator>
__host__ __device__ detail::value_of<Iterator> ThreadLoad(Iterator iterator) {
  return *iterator;
}
template <CacheStoreModifier Modifier, class Iterator, class T>
__host__ __device__ void ThreadStore(Iterator iterator, T value) {
  *iterator = value;
}

template <CacheLoadModifier Modifier, class Value, class Offset = std::ptrdiff_t>
class CacheModifiedInputIterator
    : public ::thrust::detail::iterator_base<CacheModifiedInputIterator<Modifier, Value, Offset>,
                                             std::remove_cv_t<Value>, std::remove_cv_t<Value>, Offset> {
 public:
  __host__ __device__ explicit CacheModifiedInputIterator(const Value* pointer) : ptr(pointer) {}
  __host__ __device__ std::remove_cv_t<Value> dereference() const { return *ptr; }
  __host__ __device__ void advance(Offset n) { ptr += n; }
  __host__ __device__ Offset distance(const CacheModifiedInputIterator& to) const {
    return static_cast<Offset>(to.ptr - ptr);
  }
  const Value* ptr;
};
template <CacheStoreModifier Modifier, class Value, class Offset = std::ptrdiff_t>
class CacheModifiedOutputIterator
    : public ::thrust::detail::iterator_base<CacheModifiedOutputIterator<Modifier, Value, Offset>, Value, Value&,
                                             Offset> {
 public:
  __host__ __device__ explicit CacheModifiedOutputIterator(Value* pointer) : pointer_(pointer) {}
  __host__ __device__ Value& dereference() const { return *pointer_; }
  __host__ __device__ void advance(Offset n) { pointer_ += n; }
  __host__ __device__ Offset distance(const CacheModifiedOutputIterator& to) const {
    return static_cast<Offset>(to.pointer_ - pointer_);
  }

 private:
  Value* pointer_;
};

template <class Offset = std::ptrdiff_t>
class DiscardOutputIterator
    : public ::thrust::detail::iterator_base<DiscardOutputIterator<Offset>, ::thrust::detail::any_assign,
                                             ::thrust::detail::any_assign, Offset> {
 public:
  __host__ __device__ explicit DiscardOutputIterator(Offset position = 0) : position_(position) {}
  __host__ __device__::thrust::detail::any_assign dereference() const { return {}; }
  __host__ __device__ void advance(Offset n) { position_ += n; }
  __host__ __device__ Offset distance(const DiscardOutputIterator& to) const { return to.position_ - position_; }

 private:
  Offset position_;
};

CUB_NAMESPACE_END
