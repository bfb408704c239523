// How the blocks of a grid share work, and how they meet.
#pragma once

#include "../util_type.cuh"

CUB_NAMESPACE_BEGIN

enum GridMappingStrategy { GRID_MAPPING_RAKE, GRID_MAPPING_STRIP_MINE, GRID_MAPPING_DYNAMIC };

// Tiles shared out over blocks, so that no two shares differ by more than one tile.
template <class Offset>
struct GridEvenShare {
  Offset num_items = 0;
  int grid_size = 0;
  // The block's share, once BlockInit has been called.
  Offset block_offset = 0;
  Offset block_end = 0;
  Offset block_stride = 0;

  __host__ __device__ void DispatchInit(Offset items, int most_blocks, int items_of_tile) {
    const Offset tiles = items / items_of_tile + (items % items_of_tile != 0 ? 1 : 0);
    block_offset = block_end = num_items = items;
    grid_size = static_cast<int>(tiles < static_cast<Offset>(most_blocks) ? tiles : static_cast<Offset>(most_blocks));
    const Offset each = grid_size != 0 ? tiles / grid_size : 0;
    larger_shares_ = static_cast<int>(tiles - each * grid_size);
    share_ = each * items_of_tile;
    larger_share_ = share_ + items_of_tile;
  }

#ifdef __CUDACC__
  template <int ItemsOfTile>
  __device__ void BlockInit() {
    BlockInit<ItemsOfTile, GRID_MAPPING_RAKE>(static_cast<int>(blockIdx.x));
  }
#endif
  template <int ItemsOfTile, GridMappingStrategy Strategy>
  __host__ __device__ void BlockInit(int block) {
    if constexpr (Strategy == GRID_MAPPING_STRIP_MINE) {
      block_stride = static_cast<Offset>(grid_size) * ItemsOfTile;
      block_offset = static_cast<Offset>(block) * ItemsOfTile;
      block_end = num_items;
    } else {
      block_stride = ItemsOfTile;
      if (block < larger_shares_) {
        block_offset = block * larger_share_;
        block_end = block_offset + larger_share_;
      } else if (block < grid_size) {
        block_offset = larger_shares_ * larger_share_ + (block - larger_shares_) * share_;
        block_end = num_items < block_offset + share_ ? num_items : block_offset + share_;
      }
      if (block_end > num_items) block_end = num_items;
    }
  }
  template <int ItemsOfTile, GridMappingStrategy Strategy>
  __host__ __device__ void BlockInit(int block, Offset, Offset) {
    BlockInit<ItemsOfTile, Strategy>(block);
  }
  template <int ItemsOfTile>
  __host__ __device__ void BlockInit(Offset begin, Offset end) {
    block_offset = begin;
    block_end = end;
    block_stride = ItemsOfTile;
  }

 private:
  int larger_shares_ = 0;
  Offset share_ = 0, larger_share_ = 0;
};

// Counters in device memory: blocks fill a queue, or take from one.
template <class Offset>
class GridQueue {
 public:
  static __host__ __device__ std::size_t AllocationSize() { return 2 * sizeof(Offset); }
  __host__ __device__ GridQueue() = default;
  __host__ __device__ explicit GridQueue(void* storage) : counters_(static_cast<Offset*>(storage)) {}

#ifdef __CUDACC__
  __device__ Offset Drain(Offset count) { return atomicAdd(counters_ + kDrain, count); }
  __device__ Offset Fill(Offset count) { return atomicAdd(counters_ + kFill, count); }
#endif
  __host__ cudaError_t FillAndResetDrain(Offset size, cudaStream_t stream = nullptr) {
    const Offset counters[2] = {size, 0};
    return cudaMemcpyAsync(counters_, counters, sizeof counters, cudaMemcpyHostToDevice, stream);
  }
  __host__ cudaError_t ResetDrain(cudaStream_t stream = nullptr) {
    return cudaMemsetAsync(counters_ + kDrain, 0, sizeof(Offset), stream);
  }
  __host__ cudaError_t ResetFill(cudaStream_t stream = nullptr) {
    return cudaMemsetAsync(counters_ + kFill, 0, sizeof(Offset), stream);
  }
  __host__ cudaError_t FillSize(Offset& size, cudaStream_t stream = nullptr) {
    const cudaError_t error = cudaMemcpyAsync(&size, counters_ + kFill, sizeof(Offset), cudaMemcpyDeviceToHost, stream);
    return error != cudaSuccess ? error : cudaStreamSynchronize(stream);
  }

 private:
  enum { kFill, kDrain };
  Offset* counters_ = nullptr;
};

#ifdef __CUDACC__
// All blocks of a grid meet. As with every such barrier they have to run at once: a launch that is not cooperative
// fails here, where on a GPU it works if the blocks happen to fit.
class GridBarrier {
 public:
  using SyncFlag = unsigned int;
  __device__ void Sync() const { ::mxmaca::grid_sync(); }
};
class GridBarrierLifetime : public GridBarrier {
 public:
  cudaError_t HostReset() { return cudaSuccess; }
  cudaError_t Setup(int) { return cudaSuccess; }  // there is nothing to allocate
};
#endif

CUB_NAMESPACE_END
