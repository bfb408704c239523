// cub's parts for threads, grids and runs, and the algorithms of a device that came late.
#include <cub/block/block_radix_rank.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/cub.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_spmv.cuh>
#include <cub/device/device_transform.cuh>
#include <cub/grid/grid_barrier.cuh>
#include <cub/grid/grid_even_share.cuh>
#include <cub/grid/grid_queue.cuh>
#include <cub/thread/thread_reduce.cuh>
#include <cub/thread/thread_scan.cuh>
#include <cub/thread/thread_search.cuh>
#include <cub/thread/thread_sort.cuh>
#include <cuda/std/tuple>
#include <vector>

#include "../check.h"

constexpr int threads = 64;

__global__ void alone() {
  const int values[5] = {3, 1, 4, 1, 5};
  EXPECT(cub::ThreadReduce(values, cub::Sum()) == 14 && cub::ThreadReduce(values, cub::Max(), 9) == 9);
  EXPECT(cub::internal::ThreadReduce<3>(&values[1], cub::Sum()) == 6);
  int scanned[5];
  EXPECT(cub::internal::ThreadScanExclusive(values, scanned, cub::Sum(), 10) == 24);
  EXPECT(scanned[0] == 10 && scanned[1] == 13 && scanned[4] == 19);
  EXPECT(cub::internal::ThreadScanInclusive(values, scanned, cub::Sum()) == 14 && scanned[2] == 8 && scanned[4] == 14);
  int keys[5] = {3, 1, 4, 1, 5}, places[5] = {0, 1, 2, 3, 4};
  cub::StableOddEvenSort(keys, places, [](int x, int y) { return x < y; });
  EXPECT(keys[0] == 1 && keys[4] == 5 && places[0] == 1 && places[1] == 3 && places[2] == 0);
  EXPECT(cub::LowerBound(keys, 5, 1) == 0 && cub::UpperBound(keys, 5, 1) == 2 && cub::LowerBound(keys, 5, 6) == 5);
  const int a[4] = {1, 3, 5, 7}, b[3] = {3, 4, 9};
  for (int diagonal = 0; diagonal <= 7; ++diagonal) {
    int2 at;
    cub::MergePathSearch(diagonal, a, b, 4, 3, at);
    int i = 0, j = 0;
    for (int step = 0; step < diagonal; ++step) (i < 4 && (j == 3 || !(b[j] < a[i]))) ? ++i : ++j;
    EXPECT(at.x == i && at.y == j);
  }
}

__global__ void runs() {
  using Decode = cub::BlockRunLengthDecode<int, threads, 2, 4>;
  __shared__ typename Decode::TempStorage storage;
  const int t = threadIdx.x;
  int items[2] = {2 * t, 2 * t + 1}, lengths[2] = {t % 3, (t + 1) % 5}, total = 0;
  Decode decode(storage, items, lengths, total);
  int wanted = 0;
  for (int i = 0; i < threads; ++i) wanted += i % 3 + (i + 1) % 5;
  EXPECT(total == wanted);
  for (int from = 0; from < total; from += threads * 4) {
    int decoded[4], offsets[4];
    decode.RunLengthDecode(decoded, offsets, from);
    for (int k = 0; k < 4; ++k) {
      int place = from + t * 4 + k, run = 0;
      if (place >= total) continue;
      for (;; ++run) {
        const int length = run % 2 == 0 ? run / 2 % 3 : (run / 2 + 1) % 5;
        if (place < length) break;
        place -= length;
      }
      EXPECT(decoded[k] == run && offsets[k] == place);
    }
  }
}

template <bool Descending>
__global__ void ranks() {
  using Rank = cub::BlockRadixRank<threads, 4, Descending>;
  __shared__ typename Rank::TempStorage storage;
  __shared__ unsigned int sorted[threads * 2];
  unsigned int keys[2] = {(threadIdx.x * 7919U) % 251 << 2, (threadIdx.x * 31U) % 97 << 2};
  int places[2], begin[Rank::BINS_TRACKED_PER_THREAD];
  Rank(storage).RankKeys(keys, places, cub::BFEDigitExtractor<unsigned int>(2, 4), begin);
  for (int k = 0; k < 2; ++k) sorted[places[k]] = (keys[k] >> 2 & 15) * 1000 + threadIdx.x * 2 + k;
  __syncthreads();
  // By the digit, and within one as they stood.
  for (int i = threadIdx.x + 1; i < threads * 2; i += threads) {
    const unsigned int before = sorted[i - 1] / 1000, after = sorted[i] / 1000;
    EXPECT(before == after ? sorted[i - 1] < sorted[i] : (before < after) != Descending);
  }
  if (threadIdx.x == 0) {
    int before = 0;  // keys that come before those of digit 0
    while (before < threads * 2 && sorted[before] >= 1000) ++before;
    EXPECT(begin[0] == (Descending ? before : 0));
  }
}

__global__ void queue_takes(cub::GridQueue<int> queue, int* seen) {
  for (int item = queue.Drain(1); item < 100; item = queue.Drain(1)) seen[item] = 1;
}
__global__ void queue_fills(cub::GridQueue<int> queue) { queue.Fill(2); }

__global__ void shares(cub::GridEvenShare<int> share, int* counts) {
  share.BlockInit<16, cub::GRID_MAPPING_RAKE>(blockIdx.x);
  for (int i = share.block_offset + threadIdx.x; i < share.block_end; i += blockDim.x) atomicAdd(&counts[i], 1);
  share.BlockInit<16, cub::GRID_MAPPING_STRIP_MINE>(blockIdx.x);
  for (int begin = share.block_offset; begin < share.block_end; begin += share.block_stride) {
    if (threadIdx.x < 16 && begin + static_cast<int>(threadIdx.x) < share.num_items) {
      atomicAdd(&counts[begin + threadIdx.x], 1);
    }
  }
}

__global__ void meet(cub::GridBarrier barrier, int* arrived) {
  if (threadIdx.x == 0) atomicAdd(arrived, 1);
  barrier.Sync();
  EXPECT(*reinterpret_cast<volatile int*>(arrived) == static_cast<int>(gridDim.x));
}

template <class T>
T* device(const std::vector<T>& values) {
  T* memory = nullptr;
  CHECK(cudaMalloc(&memory, values.size() * sizeof(T)) == cudaSuccess);
  CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return memory;
}
template <class T>
std::vector<T> host(const T* memory, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}

// Places of elements and begins of segments, which programs with scans of their own count on.
template <int Threads>
__global__ void segments(int* sums) {
  using Layout = cub::BlockRakingLayout<int, Threads>;
  __shared__ typename Layout::TempStorage storage;
  const unsigned t = threadIdx.x;
  *Layout::PlacementPtr(storage, t) = static_cast<int>(t * t);
  __syncthreads();
  if (t >= Layout::RAKING_THREADS) return;
  const int* const own = Layout::RakingPtr(storage, t);
  for (int i = 0; i < Layout::SEGMENT_LENGTH && t * Layout::SEGMENT_LENGTH + i < Threads; ++i) sums[t] += own[i];
}
template <int Threads>
void check_segments(int length, int segments_of, bool padded) {
  using Layout = cub::BlockRakingLayout<int, Threads>;
  CHECK(Layout::SEGMENT_LENGTH == length && Layout::RAKING_THREADS == segments_of);
  CHECK(Layout::GRID_ELEMENTS == segments_of * (length + padded));
  int* const sums = device(std::vector<int>(32));
  segments<Threads><<<1, Threads>>>(sums);
  std::vector<int> wanted(32);
  for (int t = 0; t < Threads; ++t) wanted[t / length] += t * t;
  CHECK(host(sums, 32) == wanted);
}

struct Weighted {
  __host__ __device__ float operator()(float a, int b) const { return a * b + 1; }
};
struct Below {
  int limit;
  __host__ __device__ bool operator()(int value) const { return value < limit; }
};

int main() {
  alone<<<1, 1>>>();
  runs<<<2, threads>>>();
  ranks<false><<<1, threads>>>();
  ranks<true><<<1, threads>>>();
  check_segments<16>(1, 16, false);
  check_segments<64>(2, 32, false);
  check_segments<96>(3, 32, false);
  check_segments<100>(4, 25, true);
  check_segments<128>(4, 32, true);

  int *const counters = device(std::vector<int>(2)), *const seen = device(std::vector<int>(100));
  cub::GridQueue<int> queue(counters);
  CHECK(cub::GridQueue<int>::AllocationSize() == 2 * sizeof(int));
  CHECK(queue.FillAndResetDrain(100) == cudaSuccess);
  queue_takes<<<4, 8>>>(queue, seen);
  CHECK(host(seen, 100) == std::vector<int>(100, 1));
  CHECK(queue.ResetFill() == cudaSuccess);
  queue_fills<<<3, 5>>>(queue);
  int filled = 0;
  CHECK(queue.FillSize(filled) == cudaSuccess && filled == 30);

  cub::GridEvenShare<int> share;
  share.DispatchInit(1003, 5, 16);
  CHECK(share.grid_size == 5);
  int* const counts = device(std::vector<int>(1003));
  shares<<<5, 32>>>(share, counts);
  CHECK(host(counts, 1003) == std::vector<int>(1003, 2));

  int* const arrived = device(std::vector<int>(1));
  cub::GridBarrierLifetime barrier;
  CHECK(barrier.Setup(4) == cudaSuccess);
  void* arguments[] = {&barrier, const_cast<int**>(&arrived)};
  CHECK(cudaLaunchCooperativeKernel(meet, 4, 32, arguments) == cudaSuccess);

  std::vector<float> x(50);
  std::vector<int> n(50);
  for (int i = 0; i < 50; ++i) x[i] = 0.5F * i, n[i] = i * 7 % 50;
  float *const fx = device(x), *const out = device(x);
  int* const in = device(n);
  CHECK(cub::DeviceTransform::Transform(::cuda::std::make_tuple(fx, in), out, 50, Weighted()) == cudaSuccess);
  const std::vector<float> made = host(out, 50);
  for (int i = 0; i < 50; ++i) CHECK(made[i] == x[i] * n[i] + 1);

  std::vector<int> low, middle, rest;
  for (int value : n) (value < 10 ? low : value < 30 ? middle : rest).push_back(value);
  int* const parts[3] = {device(n), device(n), device(n)};
  size_t bytes = 0;
  void* room = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    CHECK(cub::DevicePartition::If(room, bytes, in, parts[0], parts[1], parts[2], counters, 50, Below{10}, Below{30}) ==
          cudaSuccess);
    if (pass == 0) CHECK(cudaMalloc(&room, bytes) == cudaSuccess);
  }
  CHECK(host(counters, 2) == (std::vector<int>{10, 20}) && host(parts[0], 10) == low && host(parts[1], 20) == middle &&
        host(parts[2], 20) == rest);

  int *const a = device(std::vector<int>{1, 3, 5, 7}), *const b = device(std::vector<int>{3, 4, 9});
  int *const av = device(std::vector<int>{0, 1, 2, 3}), *const bv = device(std::vector<int>{10, 11, 12});
  int *const merged = device(std::vector<int>(7)), *const merged_values = device(std::vector<int>(7));
  CHECK(cub::DeviceMerge::MergePairs(room, bytes, a, av, 4, b, bv, 3, merged, merged_values) == cudaSuccess);
  CHECK(host(merged, 7) == (std::vector<int>{1, 3, 3, 4, 5, 7, 9}));
  CHECK(host(merged_values, 7) == (std::vector<int>{0, 1, 10, 11, 2, 3, 12}));
  CHECK(cub::DeviceMerge::MergeKeys(room, bytes, a, 4, b, 3, merged_values) == cudaSuccess);
  CHECK(host(merged_values, 7) == host(merged, 7));

  float *const y = device(std::vector<float>(3)), *const entries = device(std::vector<float>{2, 3, 4, 5});
  int *const offsets = device(std::vector<int>{0, 2, 2, 4}), *const columns = device(std::vector<int>{0, 2, 1, 2});
  float* const v = device(std::vector<float>{1, 10, 100});
  CHECK(cub::DeviceSpmv::CsrMV(room, bytes, entries, offsets, columns, v, y, 3, 3, 4) == cudaSuccess);
  CHECK(host(y, 3) == (std::vector<float>{302, 0, 540}));
  return summary();
}
