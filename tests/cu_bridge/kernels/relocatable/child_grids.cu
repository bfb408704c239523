// Launches from device code: recursion, templates, order in a stream, tail launches, waiting, another file's kernel.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"

// ---- A quicksort that launches itself on both parts -----------------------------------------------------------------
template <class T>
__global__ void quicksort(T* data, int left, int right, int depth) {
  if (right - left < 8 || depth == 20) {
    for (int i = left; i <= right; ++i) {
      int least = i;
      for (int j = i + 1; j <= right; ++j) least = data[j] < data[least] ? j : least;
      const T swapped = data[i];
      data[i] = data[least];
      data[least] = swapped;
    }
    return;
  }
  const T pivot = data[(left + right) / 2];
  int low = left, high = right;
  while (low <= high) {
    while (data[low] < pivot) ++low;
    while (data[high] > pivot) --high;
    if (low <= high) {
      const T swapped = data[low];
      data[low++] = data[high];
      data[high--] = swapped;
    }
  }
  if (left < high) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    quicksort<<<1, 1, 0, stream>>>(data, left, high, depth + 1);
    cudaStreamDestroy(stream);
  }
  if (low < right) quicksort<T><<<1, 1>>>(data, low, right, depth + 1);
}

static void sorts() {
  constexpr int n = 5000;
  int* data;
  cudaMallocManaged(&data, n * sizeof *data);
  for (int i = 0; i < n; ++i) data[i] = static_cast<int>((i * 2654435761U) >> 12);
  std::vector<int> sorted(data, data + n);
  std::sort(sorted.begin(), sorted.end());
  quicksort<<<1, 1>>>(data, 0, n - 1, 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(std::equal(sorted.begin(), sorted.end(), data));
}

// ---- Arguments of every kind, parameters without a name, shared memory, barriers in parent and child ----------------
struct Place {
  double x;
  short row[5];
};

template <int scale, class... Rest>
__global__ void child(int* out, const Place place, int, Rest... rest) {
  extern __shared__ int tile[];
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  tile[threadIdx.x] = static_cast<int>(threadIdx.x) * scale;
  __syncthreads();
  atomicAdd(&total, tile[blockDim.x - 1 - threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[place.row[4] + blockIdx.x] = total + static_cast<int>(place.x) + static_cast<int>((0 + ... + rest));
  }
}

__device__ void launch_from_a_function(int* out, short at) {
  const Place place{1.5, {0, 0, 0, 0, at}};
  child<2><<<dim3(2), 64, 64 * sizeof(int)>>>(out, place, 7, 10L, 0.5F);
}

__global__ void parent(int* out) {
  __shared__ int seen[32];
  seen[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (seen[31 - threadIdx.x] % 8 == 0) {
    launch_from_a_function(out, static_cast<short>((blockIdx.x * 4 + seen[31 - threadIdx.x] / 8) * 2));
    EXPECT(cudaGetLastError() == cudaSuccess);
  }
}

static void arguments() {
  int* out;
  cudaMallocManaged(&out, 48 * sizeof *out);
  parent<<<6, 32>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 48; ++i) CHECK(out[i] == 64 * 63 + 1 + 10);
}

// ---- Order: children by launch, their own children before the next one, tail launches last --------------------------
__device__ int sequence[64];
__device__ int steps = 0;

__global__ void note(int what) { sequence[steps++] = what; }
__global__ void notes_twice(int what) {
  note<<<1, 1>>>(what + 1);
  note<<<1, 1, 0, cudaStreamFireAndForget>>>(what + 2);
  sequence[steps++] = what;
}
__global__ void ordered() {
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(99);
  notes_twice<<<1, 1>>>(10);
  notes_twice<<<1, 1>>>(20);
  sequence[steps++] = 0;
}
__global__ void loops(int* count, int left) {
  ++*count;
  if (left > 1) loops<<<1, 1, 0, cudaStreamTailLaunch>>>(count, left - 1);
}

static void order() {
  ordered<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int found[64], count = 0;
  CHECK(cudaMemcpyFromSymbol(found, sequence, sizeof found) == cudaSuccess);
  CHECK(cudaMemcpyFromSymbol(&count, steps, sizeof count) == cudaSuccess);
  const int wanted[] = {0, 10, 11, 12, 20, 21, 22, 99};
  CHECK(count == 8 && std::equal(wanted, wanted + 8, found));
  int* turns;
  cudaMallocManaged(&turns, sizeof *turns);
  loops<<<1, 1>>>(turns, 20000);  // a chain, no recursion
  CHECK(cudaDeviceSynchronize() == cudaSuccess && *turns == 20000);
}

// ---- Waiting for what the block has launched; copies and fills behind it --------------------------------------------
__global__ void square(int* values) { values[threadIdx.x] *= values[threadIdx.x]; }
__global__ void waits(int* values, int* copy) {
  if (threadIdx.x == 0) square<<<1, 32>>>(values);
  __syncthreads();
  if (threadIdx.x == 0) {
    cudaDeviceSynchronize();
    EXPECT(values[5] == 25);
    square<<<1, 32>>>(values);
    cudaMemcpyAsync(copy, values, 32 * sizeof *values, cudaMemcpyDeviceToDevice, 0);
    square<<<1, 2>>>(values);
    cudaMemsetAsync(values + 1, 0, sizeof *values, 0);
  }
  __syncthreads();
  EXPECT(copy[threadIdx.x] == static_cast<int>(threadIdx.x * threadIdx.x * threadIdx.x * threadIdx.x));
}

static void waiting() {
  int *values, *copy;
  cudaMallocManaged(&values, 32 * sizeof *values);
  cudaMallocManaged(&copy, 32 * sizeof *copy);
  std::iota(values, values + 32, 0);
  waits<<<1, 32>>>(values, copy);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(values[1] == 0 && values[3] == 81);
}

// ---- Launches that are not possible: the device code hears of it, the program does not ------------------------------
__global__ void impossible(int* out) {
  note<<<0, 32>>>(1);
  out[0] = cudaGetLastError();
  note<<<1, 2048>>>(1);
  out[1] = cudaGetLastError();
  out[2] = cudaGetLastError();
}

static void refused() {
  int* out;
  cudaMallocManaged(&out, 3 * sizeof *out);
  impossible<<<1, 1>>>(out);
  CHECK(cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  CHECK(out[0] == cudaErrorInvalidConfiguration && out[1] == cudaErrorInvalidConfiguration && out[2] == cudaSuccess);
}

// ---- In a graph, and on a stream that waits -------------------------------------------------------------------------
__global__ void adds(int* out, int value) { atomicAdd(out, value); }
__global__ void adds_by_children(int* out) { adds<<<2, 4>>>(out, static_cast<int>(blockIdx.x) + 1); }

static void recorded() {
  int* out;
  cudaMallocManaged(&out, sizeof *out);
  *out = 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t launched;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  adds_by_children<<<3, 1, 0, stream>>>(out);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&launched, graph, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(launched, stream);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && *out == 3 * 8 * (1 + 2 + 3));
  cudaLaunchHostFunc(stream, [](void*) {}, nullptr);
  adds_by_children<<<1, 1, 0, stream>>>(out);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && *out == 3 * 8 * 6 + 8);
}

int main() {
  sorts();
  arguments();
  order();
  waiting();
  refused();
  recorded();
  return summary();
}
