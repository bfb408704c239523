// Device-wide algorithms of cub, each called twice.
#include <cmath>
#include <cub/cub.cuh>
#include <vector>

#include "../check.h"
#define CALL(f, ...)                                                   \
  do {                                                                 \
    size_t bytes = 0;                                                  \
    CHECK(f(nullptr, bytes, __VA_ARGS__) == cudaSuccess && bytes > 0); \
    std::vector<char> t(bytes);                                        \
    CHECK(f(t.data(), bytes, __VA_ARGS__) == cudaSuccess);             \
  } while (0)
struct Big {
  __host__ __device__ bool operator()(int x) const { return x > 2; }
};
int main() {
  std::vector<int> in{3, -1, 2, 2, 5}, out(5), vals{0, 1, 2, 3, 4}, vout(5);
  int n = 5, sel = 0;
  CALL(cub::DeviceReduce::Sum, in.data(), out.data(), n);
  CHECK(out[0] == 11);
  CALL(cub::DeviceReduce::Max, in.data(), out.data(), n);
  CHECK(out[0] == 5);
  cub::KeyValuePair<int, int> kv;
  CALL(cub::DeviceReduce::ArgMin, in.data(), &kv, n);
  CHECK(kv.key == 1 && kv.value == -1);
  CALL(cub::DeviceScan::ExclusiveSum, in.data(), out.data(), n);
  CHECK(out[4] == 6 && out[0] == 0);
  CALL(cub::DeviceScan::InclusiveScan, in.data(), out.data(), cub::Max(), n);
  CHECK(out[3] == 3 && out[4] == 5);
  CALL(cub::DeviceRadixSort::SortPairs, in.data(), out.data(), vals.data(), vout.data(), n);
  CHECK(out[0] == -1 && vout[1] == 2 && vout[2] == 3);
  CALL(cub::DeviceRadixSort::SortKeysDescending, in.data(), out.data(), n, 0, 32, (cudaStream_t)0);
  CHECK(out[0] == 5 && out[4] == -1);
  std::vector<float> f{0.f, -0.f, -1.f, 1.f, -INFINITY}, fo(5);
  CALL(cub::DeviceRadixSort::SortKeys, f.data(), fo.data(), n);
  CHECK(fo[0] == -INFINITY && !std::signbit(fo[2]) && std::signbit(fo[3]));
  CALL(cub::DeviceSelect::If, in.data(), out.data(), &sel, n, Big());
  CHECK(sel == 2 && out[1] == 5);
  CALL(cub::DevicePartition::If, in.data(), out.data(), &sel, n, Big());
  CHECK(sel == 2 && out[4] == -1 && out[2] == 2);
  CALL(cub::DeviceSelect::Unique, in.data(), out.data(), &sel, n);
  CHECK(sel == 4 && out[3] == 5);
  std::vector<int> len(5);
  CALL(cub::DeviceRunLengthEncode::Encode, in.data(), out.data(), len.data(), &sel, n);
  CHECK(sel == 4 && len[2] == 2);
  std::vector<int> h(4);
  CALL(cub::DeviceHistogram::HistogramEven, in.data(), h.data(), 5, 0, 8, n);
  CHECK(h[1] == 3 && h[2] == 1 && h[0] == 0);
  int off[] = {0, 2, 5};
  CALL(cub::DeviceSegmentedReduce::Sum, in.data(), out.data(), 2, off, off + 1);
  CHECK(out[0] == 2 && out[1] == 9);
  CALL(cub::DeviceSegmentedRadixSort::SortPairsDescending, in.data(), out.data(), vals.data(), vout.data(), n, 2, off,
       off + 1, 0, 32, (cudaStream_t)0);
  CHECK(out[0] == 3 && out[2] == 5 && vout[3] == 2);
  std::vector<int> first(in), second(5), first_of(vals), second_of(5);
  cub::DoubleBuffer<int> keys(first.data(), second.data()), values(first_of.data(), second_of.data());
  CALL(cub::DeviceSegmentedRadixSort::SortPairsDescending, keys, values, n, 2, off, off + 1);
  CHECK(keys.Current() == second.data() && values.Current() == second_of.data());
  CHECK(second[0] == 3 && second[2] == 5 && second_of[3] == 2);
  CALL(cub::DeviceSegmentedSort::StableSortKeys, keys, n, 2, off, off + 1);
  CHECK(keys.Current() == first.data() && first[0] == -1 && first[1] == 3 && first[2] == 2 && first[4] == 5);
  CALL(cub::DeviceSegmentedRadixSort::SortPairs, keys, values, n, 2, off, off + 1, 31, 32, (cudaStream_t)0);
  CHECK(keys.Current()[0] == -1 && keys.Current()[1] == 3 && values.Current() == first_of.data());
  cub::DoubleBuffer<int> db(in.data(), out.data());
  CALL(cub::DeviceRadixSort::SortKeys, db, n);
  CHECK(db.Current()[0] == -1 && db.Current() == out.data());
  CALL(cub::DeviceMergeSort::SortPairs, vals.data(), vout.data(), n, [](int a, int b) { return a > b; });
  CHECK(vals[0] == 4);
  cub::TransformInputIterator<int, Big, int*> it(in.data(), Big());
  CALL(cub::DeviceReduce::Sum, it, out.data(), n);
  CHECK(out[0] == 2);
  CALL(cub::DeviceScan::ExclusiveScan, in.data(), out.data(), cub::Sum(), cub::FutureValue<int>(&n), n);
  CHECK(out[0] == 5);
  CALL(cub::DeviceScan::InclusiveSumByKey, vals.data(), in.data(), out.data(), n, cub::Equality(), (cudaStream_t)0);
  CHECK(out[4] == in[4]);
  return summary();
}
