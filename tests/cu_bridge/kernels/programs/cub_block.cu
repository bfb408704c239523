// cub's collectives of a block and a warp.
#include <cub/cub.cuh>

#include "../check.h"

constexpr int threads = 128, items = 4;

__global__ void collectives(int* out) {
  using Reduce = cub::BlockReduce<int, threads>;
  using Scan = cub::BlockScan<int, threads>;
  using Sort = cub::BlockRadixSort<int, threads, items, int>;
  using Exchange = cub::BlockExchange<int, threads, items>;
  using Load = cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_TRANSPOSE>;
  using Heads = cub::BlockDiscontinuity<int, threads>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
    typename Exchange::TempStorage exchange;
    typename Load::TempStorage load;
    typename Heads::TempStorage heads;
  } storage;
  const int i = threadIdx.x;

  const int total = Reduce(storage.reduce).Sum(i);
  if (i == 0) EXPECT(total == threads * (threads - 1) / 2);
  __syncthreads();
  const int largest = Reduce(storage.reduce).Reduce(i ^ 5, cub::Max(), 100);
  if (i == 0) EXPECT(largest == 103);
  __syncthreads();

  int before, aggregate;
  Scan(storage.scan).ExclusiveSum(i, before, aggregate);
  EXPECT(before == i * (i - 1) / 2 && aggregate == threads * (threads - 1) / 2);
  __syncthreads();

  int keys[items], values[items], ranks[items];
  for (int k = 0; k < items; ++k) {
    keys[k] = (i * items + k) * 37 % 512 - 256;
    values[k] = i * items + k;
    ranks[k] = k + 1;
  }
  Scan(storage.scan).InclusiveSum(ranks, ranks);
  EXPECT(ranks[3] == (i + 1) * 10 && ranks[0] == i * 10 + 1);
  __syncthreads();

  Sort(storage.sort).Sort(keys, values);
  for (int k = 0; k < items; ++k) {
    EXPECT(keys[k] == i * items + k - 256 && values[k] * 37 % 512 - 256 == keys[k]);
  }
  __syncthreads();
  Exchange(storage.exchange).BlockedToStriped(keys);
  for (int k = 0; k < items; ++k) EXPECT(keys[k] == k * threads + i - 256);
  __syncthreads();

  int heads[2], marks[2] = {i / 3, (i + 1) / 3};
  Heads(storage.heads).FlagHeads(heads, marks, cub::Inequality());
  EXPECT(heads[1] == ((i + 1) / 3 != i / 3) && (i > 0 || heads[0] == 1));
  __syncthreads();

  Load(storage.load).Load(out, keys, 500, -1);
  EXPECT(keys[3] == (i * items + 3 < 500 ? i * items + 3 : -1));
}

__global__ void warps() {
  using Reduce = cub::WarpReduce<float>;
  using Scan = cub::WarpScan<int, 16>;
  using Sort = cub::WarpMergeSort<int, 2, 32>;
  __shared__ typename Reduce::TempStorage reduce[4];
  __shared__ typename Scan::TempStorage scan[8];
  __shared__ typename Sort::TempStorage sort[4];
  const int i = threadIdx.x, lane = i % 32;
  const float sum = Reduce(reduce[i / 32]).Sum(static_cast<float>(i));
  if (lane == 0) EXPECT(sum == 32.0f * i + 496);
  int inclusive, all;
  Scan(scan[i / 16]).InclusiveSum(1, inclusive, all);
  EXPECT(inclusive == i % 16 + 1 && all == 16);
  int keys[2] = {63 - 2 * lane, 62 - 2 * lane};
  Sort(sort[i / 32]).Sort(keys, [] __device__(int a, int b) { return a < b; });
  EXPECT(keys[0] == 2 * lane && keys[1] == 2 * lane + 1);
  const float tail = Reduce(reduce[i / 32]).TailSegmentedSum(1.0f, lane % 8 == 7);
  if (lane % 8 == 0) EXPECT(tail == 8.0f);
}

// An operator that takes references to values which it might change.
struct Minus {
  template <class T>
  __device__ T operator()(T& a, T& b) const {
    return a - b;
  }
};
template <int items>
__global__ void differences() {
  using Differences = cub::BlockAdjacentDifference<int, 64>;
  __shared__ typename Differences::TempStorage storage;
  const auto square = [](int i) { return i * i; };
  const int first = threadIdx.x * items, last = 64 * items - 1;
  int values[items], left[items], right[items];
  for (int i = 0; i < items; ++i) values[i] = square(first + i);
  Differences(storage).SubtractLeft(values, left, Minus());
  __syncthreads();
  Differences(storage).SubtractRight(values, right, Minus(), square(last + 1));
  for (int i = 0; i < items; ++i) {
    const int at = first + i;
    EXPECT(left[i] == (at == 0 ? 0 : 2 * at - 1));
    EXPECT(right[i] == -(2 * at + 1));
  }
}

// Memory of the program's own behind that of a collective, in one piece of dynamic shared memory: it stays aligned.
template <class Load>
__global__ void behind(const int* in) {
  extern __shared__ char memory[];
  int4* const own = reinterpret_cast<int4*>(memory + sizeof(typename Load::TempStorage));
  int values[4];
  Load(reinterpret_cast<typename Load::TempStorage&>(memory)).Load(in, values);
  own[threadIdx.x] = make_int4(values[0], values[1], values[2], values[3]);
  __syncthreads();
  const int4 other = own[blockDim.x - 1 - threadIdx.x];
  const int first = 4 * (static_cast<int>(blockDim.x) - 1 - static_cast<int>(threadIdx.x));
  EXPECT(other.x == first && other.y == first + 1 && other.z == first + 2 && other.w == first + 3);
}
template <cub::BlockLoadAlgorithm algorithm>
void load_before_own_memory(const int* data) {
  using Load = cub::BlockLoad<int, 64, 4, algorithm>;
  behind<Load><<<2, 64, sizeof(typename Load::TempStorage) + 64 * sizeof(int4)>>>(data);
}

int main() {
  int* data;
  cudaMallocManaged(&data, 512 * sizeof *data);
  for (int i = 0; i < 512; ++i) data[i] = i;
  collectives<<<3, threads>>>(data);
  warps<<<2, 128>>>();
  differences<1><<<2, 64>>>();
  differences<5><<<2, 64>>>();
  load_before_own_memory<cub::BLOCK_LOAD_DIRECT>(data);
  load_before_own_memory<cub::BLOCK_LOAD_TRANSPOSE>(data);
  load_before_own_memory<cub::BLOCK_LOAD_WARP_TRANSPOSE>(data);
  return summary();
}
