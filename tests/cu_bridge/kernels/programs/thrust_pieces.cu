// thrust: iterators that programs write, memory resources, algorithms that return at once.
#include <thrust/async/copy.h>
#include <thrust/async/for_each.h>
#include <thrust/async/reduce.h>
#include <thrust/async/scan.h>
#include <thrust/async/sort.h>
#include <thrust/async/transform.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/iterator_adaptor.h>
#include <thrust/iterator/iterator_facade.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_input_output_iterator.h>
#include <thrust/mr/allocator.h>
#include <thrust/mr/device_memory_resource.h>
#include <thrust/mr/disjoint_pool.h>
#include <thrust/mr/new.h>
#include <thrust/mr/pool.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/system/cuda/experimental/pinned_allocator.h>
#include <thrust/system/cuda/memory_resource.h>
#include <thrust/system_error.h>
#include <thrust/transform.h>
#include <thrust/type_traits/is_contiguous_iterator.h>

#include "../check.h"

// Each element `n` times.
template <class Iterator>
class repeated : public thrust::iterator_adaptor<repeated<Iterator>, Iterator> {
 public:
  using super_t = thrust::iterator_adaptor<repeated<Iterator>, Iterator>;
  __host__ __device__ repeated(const Iterator& it, int n) : super_t(it), begin_(it), n_(n) {}
  friend class thrust::iterator_core_access;

 private:
  int n_;
  const Iterator begin_;
  __host__ __device__ typename super_t::reference dereference() const {
    return *(begin_ + (this->base() - begin_) / n_);
  }
};

// The squares from a number on.
class squares : public thrust::iterator_facade<squares, int, thrust::any_system_tag,
                                               thrust::random_access_traversal_tag, int> {
 public:
  __host__ __device__ explicit squares(int at) : at_(at) {}

 private:
  friend class thrust::iterator_core_access;
  __host__ __device__ int dereference() const { return at_ * at_; }
  __host__ __device__ void increment() { ++at_; }
  __host__ __device__ void decrement() { --at_; }
  __host__ __device__ void advance(std::ptrdiff_t n) { at_ += static_cast<int>(n); }
  __host__ __device__ bool equal(const squares& other) const { return at_ == other.at_; }
  __host__ __device__ std::ptrdiff_t distance_to(const squares& other) const { return other.at_ - at_; }
  int at_;
};

struct Half {
  __host__ __device__ float operator()(float x) const { return x / 2; }
};
struct Negative {
  __host__ __device__ float operator()(float x) const { return -x; }
};
struct Twice {
  __host__ __device__ int operator()(int x) const { return 2 * x; }
};
struct PutBackwards {
  int* target;
  template <class Index>
  __host__ __device__ void operator()(Index i, int value) const {
    target[9 - i] = value;
  }
};
struct Increment {
  __host__ __device__ void operator()(int& x) const { ++x; }
};

static void iterators() {
  thrust::device_vector<int> v(4), out(12);
  thrust::sequence(v.begin(), v.end(), 5);
  using Repeated = repeated<thrust::device_vector<int>::iterator>;
  const Repeated first(v.begin(), 3), last(v.begin() + 12, 3);
  thrust::copy(thrust::device, first, first + 12, out.begin());
  for (int i = 0; i < 12; ++i) CHECK(out[i] == 5 + i / 3);
  CHECK(first[4] == 6 && *(first + 11) == 8);
  const squares from(1);
  CHECK(thrust::reduce(thrust::device, from, squares(5), 0) == 30 && squares(5) - from == 4);
  squares walk(3);
  CHECK(*walk++ == 9 && *walk == 16 && *--walk == 9 && walk[2] == 25 && walk < squares(4) && walk != squares(4));
  using Category = std::iterator_traits<squares>::iterator_category;
  CHECK((std::is_same<Category, std::random_access_iterator_tag>::value));

  thrust::device_vector<float> x(3, 8.0F);
  const auto both = thrust::make_transform_input_output_iterator(x.begin(), Half(), Negative());
  thrust::transform(both, both + 3, both, thrust::negate<float>());
  CHECK(x[0] == 4.0F && x[2] == 4.0F);  // -(-(8 / 2))
  thrust::device_vector<int> target(10);
  thrust::copy(thrust::device, from, from + 10,
               thrust::make_tabulate_output_iterator(PutBackwards{thrust::raw_pointer_cast(target.data())}));
  for (int i = 0; i < 10; ++i) CHECK(target[9 - i] == (i + 1) * (i + 1));
  CHECK(thrust::is_contiguous_iterator<thrust::device_vector<int>::iterator>::value &&
        thrust::is_contiguous_iterator<thrust::host_vector<int>::iterator>::value &&
        !thrust::is_contiguous_iterator<squares>::value);
}

static void memory() {
  thrust::host_vector<int, thrust::cuda::experimental::pinned_allocator<int>> pinned(100, 3);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, pinned.data()) == cudaSuccess && attributes.type == cudaMemoryTypeHost);

  using Resource = thrust::device_ptr_memory_resource<thrust::device_memory_resource>;
  using Pool = thrust::mr::disjoint_unsynchronized_pool_resource<thrust::device_memory_resource,
                                                                 thrust::mr::new_delete_resource>;
  thrust::device_memory_resource device;
  void* first = nullptr;
  {
    Pool pool(&device, thrust::mr::get_global_resource<thrust::mr::new_delete_resource>());
    using Allocator = thrust::mr::allocator<int, Pool>;
    {
      thrust::device_vector<int, Allocator> v(1000, Allocator(&pool));
      thrust::sequence(v.begin(), v.end());
      CHECK(thrust::reduce(v.begin(), v.end()) == 499500);
      first = thrust::raw_pointer_cast(v.data());
      CHECK(cudaPointerGetAttributes(&attributes, first) == cudaSuccess &&
            attributes.type == cudaMemoryTypeDevice);
    }
    thrust::device_vector<int, Allocator> again(900, Allocator(&pool));
    CHECK(thrust::raw_pointer_cast(again.data()) == first);  // given out again
  }
  CHECK(cudaPointerGetAttributes(&attributes, first) == cudaSuccess &&
        attributes.type == cudaMemoryTypeUnregistered);  // back with the device
  thrust::device_vector<int, thrust::mr::stateless_resource_allocator<int, Resource>> plain(10, 4);
  CHECK(thrust::reduce(plain.begin(), plain.end()) == 40);
  thrust::universal_memory_resource managed;
  const thrust::device_ptr<void> both = managed.allocate(64);
  CHECK(cudaPointerGetAttributes(&attributes, both.get()) == cudaSuccess &&
        attributes.type == cudaMemoryTypeManaged);
  managed.deallocate(both, 64);
}

static void asynchronous() {
  thrust::device_vector<int> v(1000), out(1000);
  thrust::sequence(v.begin(), v.end());
  auto sum = thrust::async::reduce(v.begin(), v.end());
  auto large = thrust::async::reduce(v.begin(), v.end(), -1, thrust::maximum<int>());
  CHECK(sum.get() == 499500 && sum.valid_content() && large.extract() == 999 && !large.valid_content());
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  auto moved = thrust::async::transform(thrust::device.on(stream), v.begin(), v.end(), out.begin(), Twice());
  auto counted = thrust::async::for_each(thrust::device.on(stream), out.begin(), out.end(), Increment());
  CHECK(moved.stream().native_handle() == stream);
  counted.wait();
  CHECK(moved.ready() && out[0] == 1 && out[999] == 1999);
  thrust::async::sort(out.begin(), out.end(), thrust::greater<int>()).wait();
  CHECK(out[0] == 1999 && out[999] == 1);
  thrust::async::inclusive_scan(v.begin(), v.end(), out.begin()).wait();
  CHECK(out[999] == 499500 && out[3] == 6);
  auto copied = thrust::async::copy(thrust::device, thrust::device, v.begin(), v.end(), out.begin());
  thrust::when_all(copied, counted).wait();
  CHECK(out[999] == 999);
  // Nobody keeps it: its end waits.
  static_cast<void>(thrust::async::reduce(v.begin(), v.end()));
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

static void errors() {
  bool caught = false;
  try {
    throw thrust::system_error(cudaErrorInvalidValue, thrust::cuda_category(), "here");
  } catch (const thrust::system_error& error) {
    caught = true;
    CHECK(error.code().value() == cudaErrorInvalidValue && error.code() == cudaErrorInvalidValue);
    CHECK(std::string(error.what()).find("here") == 0 && error.code().category() == thrust::cuda_category());
    CHECK(std::string(error.what()).find(cudaGetErrorString(cudaErrorInvalidValue)) != std::string::npos);
  }
  CHECK(caught);
}

int main() {
  errors();
  iterators();
  memory();
  asynchronous();
  return summary();
}
