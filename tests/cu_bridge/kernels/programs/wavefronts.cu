// Blocks that go over a table as a wave: each begins when its neighbours above and to the left have said by a counter
// that they are done. Nothing but the lockstep of a warp keeps its first lane from saying so before the others have
// stored their values: what a program must not count on, but what holds on hardware.
#include <cstdio>
#include <vector>

namespace {

constexpr int kLanes = 32, kRows = 4, kColumns = 24, kTables = 2;
constexpr int kWidth = kRows * kLanes + 1, kCells = kColumns * kWidth;

__device__ void relax(unsigned* done, volatile float* table, int row, int column) {
  const int at = row * kLanes + threadIdx.x + 1;
  if (row > 0) {
    do {
    } while (atomicAdd(done + column, 0) < row);
  }
  if (column > 0) {
    do {
    } while (atomicAdd(done + column - 1, 0) <= row);
  }
  const float left = column > 0 ? table[(column - 1) * kWidth + at] : 1.0f;
  float above = row > 0 ? table[column * kWidth + row * kLanes] : 1.0f, value = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane == threadIdx.x) value = above * 0.5f + left * 0.25f + 1.0f;
    const float next = __shfl_up_sync(0xffffffffu, value, 1);
    if (lane + 1 == threadIdx.x) above = next;
  }
  table[column * kWidth + at] = value;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(done + column, 1);
  }
}

// A wait in an `if` that not all threads take: the threads have stacks of their own.
__global__ void twoWaves(unsigned* done, volatile float* table) {
  if (threadIdx.y == 0) relax(done, table, blockIdx.x, blockIdx.y);
  if (threadIdx.y == 1) relax(done + kColumns, table + kCells, blockIdx.x, blockIdx.y);
}

// The same in loops over the threads.
__global__ void waves(unsigned* done, volatile float* table) {
  const int row = blockIdx.x, column = blockIdx.y, at = row * kLanes + threadIdx.x + 1;
  done += blockIdx.z * kColumns;
  table += blockIdx.z * kCells;
  if (row > 0) {
    do {
    } while (atomicAdd(done + column, 0) < row);
  }
  if (column > 0) {
    do {
    } while (atomicAdd(done + column - 1, 0) <= row);
  }
  const float left = column > 0 ? table[(column - 1) * kWidth + at] : 1.0f;
  float above = row > 0 ? table[column * kWidth + row * kLanes] : 1.0f, value = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane == threadIdx.x) value = above * 0.5f + left * 0.25f + 1.0f;
    const float next = __shfl_up_sync(0xffffffffu, value, 1);
    if (lane + 1 == threadIdx.x) above = next;
  }
  table[column * kWidth + at] = value;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(done + column, 1);
  }
}

int wrongCells(const std::vector<float>& found) {
  int wrong = 0;
  for (int table = 0; table < kTables; ++table) {
    std::vector<float> left(kWidth, 1.0f);
    for (int column = 0; column < kColumns; ++column) {
      float above = 1.0f;
      for (int at = 1; at < kWidth; ++at) {
        above = left[at] = above * 0.5f + left[at] * 0.25f + 1.0f;
        if (!(found[table * kCells + column * kWidth + at] == above)) ++wrong;
      }
    }
  }
  return wrong;
}

}  // namespace

int main() {
  unsigned* done;
  float* table;
  cudaMalloc(&done, kTables * kColumns * sizeof(unsigned));
  cudaMalloc(&table, kTables * kCells * sizeof(float));
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    cudaMemset(done, 0, kTables * kColumns * sizeof(unsigned));
    cudaMemset(table, 0xff, kTables * kCells * sizeof(float));
    if (round % 2 == 0) {
      twoWaves<<<dim3(kRows, kColumns), dim3(kLanes, kTables)>>>(done, table);
    } else {
      waves<<<dim3(kRows, kColumns, kTables), kLanes>>>(done, table);
    }
    std::vector<float> found(kTables * kCells);
    if (cudaMemcpy(found.data(), table, found.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    wrong += wrongCells(found);
  }
  std::printf("%d cells are wrong\n", wrong);
  return wrong != 0;
}
