// thrust: vectors, iterators, policies, algorithms.
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_delete.h>
#include <thrust/device_new.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/limits.h>
#include <thrust/optional.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include <thrust/universal_vector.h>
#include <vector>
#include "../check.h"
struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct AddPair {
  __host__ __device__ float operator()(const thrust::tuple<int, float>& t) const {
    return thrust::get<0>(t) + thrust::get<1>(t);
  }
};
struct Even {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};
int main() {
  thrust::device_vector<int> v(100);
  thrust::sequence(v.begin(), v.end());
  CHECK(thrust::reduce(v.begin(), v.end()) == 4950);
  CHECK(thrust::reduce(thrust::device, v.begin(), v.end(), 0, thrust::maximum<int>()) == 99);
  thrust::transform(v.begin(), v.end(), v.begin(), Square());
  CHECK(v[5] == 25 && v.back() == 9801);
  thrust::host_vector<int> h = v;
  CHECK(h[9] == 81);
  thrust::sort(v.begin(), v.end(), thrust::greater<int>());
  CHECK(v[0] == 9801 && v.front() == 9801);
  v[0] = 3;
  v[1] += 4;
  CHECK(v[0] == 3 && v[1] == 98 * 98 + 4);
  thrust::device_vector<int> keys = std::vector<int>{3, 1, 2, 1, 3};
  thrust::device_vector<float> values{1.f, 2.f, 3.f, 4.f, 5.f};
  thrust::sort_by_key(thrust::cuda::par.on(0), keys.begin(), keys.end(), values.begin());
  CHECK(values[0] == 2.f && values[1] == 4.f && values[2] == 3.f);
  thrust::device_vector<int> ok(5);
  thrust::device_vector<float> ov(5);
  auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), ok.begin(), ov.begin());
  CHECK(ends.first - ok.begin() == 3 && ov[0] == 6.f && ov[2] == 6.f && ok[1] == 2);
  auto zipped = thrust::make_zip_iterator(thrust::make_tuple(keys.begin(), values.begin()));
  thrust::device_vector<float> sums(5);
  thrust::transform(zipped, zipped + 5, sums.begin(), AddPair());
  CHECK(sums[0] == 3.f && sums[4] == 8.f);
  thrust::sort(zipped, zipped + 5,
               [] __host__ __device__(const thrust::tuple<int, float>& a, const thrust::tuple<int, float>& b) {
                 return thrust::get<1>(a) < thrust::get<1>(b);
               });
  CHECK(keys[0] == 3 && values[4] == 5.f && keys[4] == 3);
  thrust::device_vector<int> scan(5);
  thrust::exclusive_scan(keys.begin(), keys.end(), scan.begin(), 10);
  CHECK(scan[0] == 10 && scan[1] == 13 && scan[4] == 17);
  thrust::inclusive_scan(thrust::device, keys.begin(), keys.end(), keys.begin());
  CHECK(keys[4] == 10);
  int* raw = thrust::raw_pointer_cast(keys.data());
  CHECK(thrust::lower_bound(thrust::device, raw, raw + 5, 4) == raw + 1);
  thrust::device_vector<int> found(3);
  thrust::upper_bound(keys.begin(), keys.end(), thrust::counting_iterator<int>(3), thrust::counting_iterator<int>(6),
                      found.begin());
  CHECK(found[0] == 1 && found[1] == 2 && found[2] == 2);
  auto squares = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Square());
  CHECK(thrust::reduce(squares, squares + 10) == 285);
  CHECK(thrust::transform_reduce(keys.begin(), keys.end(), Square(), 0, thrust::plus<int>()) == 9 + 16 + 36 + 49 + 100);
  CHECK(thrust::inner_product(keys.begin(), keys.end(), keys.begin(), 0) == 210);
  thrust::device_vector<int> map{4, 0, 3};
  auto permuted = thrust::make_permutation_iterator(keys.begin(), map.begin());
  CHECK(permuted[0] == 10 && *(permuted + 1) == 3);
  CHECK(thrust::copy_if(keys.begin(), keys.end(), scan.begin(), Even()) - scan.begin() == 3);
  CHECK(thrust::count_if(keys.begin(), keys.end(), Even()) == 3);
  CHECK(thrust::max_element(keys.begin(), keys.end()) - keys.begin() == 4);
  int a[] = {1, 2, 2, 4}, b[] = {2, 3, 4}, c[8];
  CHECK(thrust::set_union(thrust::host, a, a + 4, b, b + 3, c) == c + 5 && c[3] == 3);
  CHECK(thrust::set_difference(thrust::host, a, a + 4, b, b + 3, c) == c + 2 && c[1] == 2);
  CHECK(thrust::merge(a, a + 4, b, b + 3, c) == c + 7 && c[6] == 4);
  CHECK(thrust::unique(a, a + 4) == a + 3);
  CHECK(thrust::stable_partition(keys.begin(), keys.end(), Even()) - keys.begin() == 3 && keys[0] == 4);
  thrust::default_random_engine rng(3);
  thrust::uniform_real_distribution<float> u(0, 1);
  float x = u(rng);
  CHECK(x >= 0 && x < 1);
  thrust::device_vector<float> big(1 << 20, 0.1f);
  float s = thrust::reduce(big.begin(), big.end(), 0.0f);
  CHECK(s > 104857.5f && s < 104857.75f);

  // Functions as expressions.
  using namespace thrust::placeholders;
  thrust::device_vector<int> left{5, 1, 4, 1, 3}, right{2, 7, 1, 8, 2}, made(5);
  CHECK(thrust::count_if(left.begin(), left.end(), _1 > 2) == 3);
  CHECK(thrust::count_if(left.begin(), left.end(), 1 < _1 && !(_1 % 2 == 0)) == 2);
  thrust::transform(left.begin(), left.end(), right.begin(), made.begin(), 10 * _1 - _2 / 2);
  CHECK(made[0] == 49 && made[1] == 7 && made[4] == 29);
  thrust::for_each(made.begin(), made.end(), _1 += 1);
  CHECK(made[0] == 50 && made[1] == 8 && made[4] == 30);
  CHECK(thrust::transform_reduce(left.begin(), left.end(), -_1 * _1, 0, _1 + _2) == -52);
  CHECK(thrust::remove_if(left.begin(), left.end(), _1 == 1) - left.begin() == 3 && left[1] == 4);

  thrust::universal_vector<int> shared(4, 7);
  int* const address = thrust::raw_pointer_cast(shared.data());
  address[2] = 9;
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, address) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeManaged && thrust::reduce(shared.begin(), shared.end()) == 30);

  struct Counted {
    int value = 5;
    ~Counted() { value = -1; }
  };
  const thrust::device_ptr<Counted> objects = thrust::device_new<Counted>(3);
  CHECK(objects.get()[2].value == 5);
  thrust::device_delete(objects, 3);
  const thrust::optional<int> none = thrust::nullopt;
  CHECK(!none && thrust::numeric_limits<short>::max() == 32767);
  return summary();
}
