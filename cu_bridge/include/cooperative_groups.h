// Cooperative groups: the threads of a grid, a block, a tile of a warp, or those that happen to run together.
#pragma once
#define _COOPERATIVE_GROUPS_H_

#include <stdint.h>

#include <type_traits>

#include "cuda_runtime.h"

#ifdef __CUDACC__
#include "mxmaca/warp_words.h"

namespace cooperative_groups {
inline namespace __v1 {

class thread_block;
class coalesced_group;
template <unsigned Size, class Parent = void>
class thread_block_tile;

namespace details {
__device__ inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ inline unsigned block_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
__device__ inline unsigned warp_lane() { return block_rank() & 31; }
// The lanes that the warp of the calling thread has at all.
__device__ inline unsigned warp_members() {
  const unsigned first = block_rank() & ~31U, left = block_size() - first;
  return left >= 32 ? 0xffffffffU : (1U << left) - 1;
}
// The position of the n-th set bit.
__device__ inline int nth_bit(unsigned mask, unsigned n) {
  for (; n > 0; --n) mask &= mask - 1;
  return __builtin_ctz(mask);
}
}  // namespace details

// ---- Block ----------------------------------------------------------------------------------------------------------
class thread_block {
 public:
  static __device__ void sync() { __syncthreads(); }
  struct arrival_token {};
  // A block's barrier has no halves here: arriving does nothing yet, waiting is the whole barrier.
  __device__ arrival_token barrier_arrive() const { return {}; }
  __device__ void barrier_wait(arrival_token&&) const { __syncthreads(); }
  static __device__ unsigned thread_rank() { return details::block_rank(); }
  static __device__ unsigned num_threads() { return details::block_size(); }
  static __device__ unsigned size() { return details::block_size(); }
  static __device__ dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static __device__ dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static __device__ dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static __device__ dim3 dim_threads() { return group_dim(); }
};
__device__ inline thread_block this_thread_block() { return thread_block(); }

// ---- Grid -----------------------------------------------------------------------------------------------------------
class grid_group {
 public:
  __device__ bool is_valid() const { return true; }
  __device__ void sync() const { mxmaca::grid_sync(); }
  static __device__ unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static __device__ unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static __device__ unsigned long long thread_rank() {
    return block_rank() * details::block_size() + details::block_rank();
  }
  static __device__ unsigned long long num_threads() { return num_blocks() * details::block_size(); }
  static __device__ unsigned long long size() { return num_threads(); }
  static __device__ dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static __device__ dim3 dim_blocks() { return group_dim(); }
  static __device__ dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
__device__ inline grid_group this_grid() { return grid_group(); }

// ---- Groups within a warp -------------------------------------------------------------------------------------------
namespace details {

// What tiles and coalesced groups share: a mask of lanes; ranks count its set bits.
class lane_group {
 public:
  __device__ lane_group(unsigned mask) : mask_(mask) {}
  __device__ void sync() const { __syncwarp(mask_); }
  __device__ unsigned long long num_threads() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  __device__ unsigned long long size() const { return num_threads(); }
  __device__ unsigned long long thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1U << warp_lane()) - 1)));
  }
  __device__ int any(int predicate) const { return __ballot_sync(mask_, predicate) != 0; }
  __device__ int all(int predicate) const { return __ballot_sync(mask_, predicate) == mask_; }
  __device__ unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
  template <class T>
  __device__ T shfl(T value, int rank) const {
    return mxmaca::shuffle_from(mask_, value,
                                lane_of(static_cast<unsigned>(rank) % static_cast<unsigned>(num_threads())));
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    const unsigned rank = static_cast<unsigned>(thread_rank()) + delta;
    return mxmaca::shuffle_from(mask_, value, rank < num_threads() ? lane_of(rank) : static_cast<int>(warp_lane()));
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    const unsigned rank = static_cast<unsigned>(thread_rank());
    return mxmaca::shuffle_from(mask_, value, rank >= delta ? lane_of(rank - delta) : static_cast<int>(warp_lane()));
  }
  template <class T>
  __device__ unsigned match_any(T value) const {
    return packed(mxmaca::match_any(mask_, value));
  }
  template <class T>
  __device__ unsigned match_all(T value, int& predicate) const {
    predicate = mxmaca::match_any(mask_, value) == mask_;
    // Every lane must know whether all agreed.
    predicate = __ballot_sync(mask_, predicate) == mask_;
    return predicate != 0 ? packed(mask_) : 0;
  }
  __device__ unsigned lane_mask() const { return mask_; }

 protected:
  unsigned mask_;
  __device__ int lane_of(unsigned rank) const { return nth_bit(mask_, rank); }
  // Lanes of the warp to ranks of the group.
  __device__ unsigned packed(unsigned lanes) const {
    unsigned result = 0, bit = 1;
    for (unsigned left = mask_; left != 0; left &= left - 1, bit <<= 1) {
      if ((lanes & left & (0 - left)) != 0) result |= bit;
    }
    return result;
  }
};

// The threads of what a tile is a part of.
template <class Parent>
struct parent_size {
  static __device__ unsigned get() { return block_size(); }
};
template <unsigned Size, class Parent>
struct parent_size<thread_block_tile<Size, Parent>> {
  static __device__ unsigned get() { return Size; }
};

template <unsigned Size>
__device__ unsigned tile_mask() {
  const unsigned members = Size >= 32 ? 0xffffffffU : (1U << (Size & 31)) - 1;
  return (members << (warp_lane() & ~(Size - 1))) & warp_members();
}

}  // namespace details

class coalesced_group : public details::lane_group {
 public:
  __device__ explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : details::lane_group(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  __device__ unsigned meta_group_rank() const { return meta_rank_; }
  __device__ unsigned meta_group_size() const { return meta_size_; }

 private:
  unsigned meta_rank_, meta_size_;
};
__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned Size, class Parent>
class thread_block_tile : public details::lane_group {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0 && Size > 0,
                "a tile has a power of two of threads, 512 at most");

 public:
  __device__ thread_block_tile() : details::lane_group(details::tile_mask<Size>()) {}
  template <class Other>
  __device__ thread_block_tile(const thread_block_tile<Size, Other>& other) : details::lane_group(other.lane_mask()) {}
  static __device__ constexpr unsigned long long num_threads() { return Size; }
  static __device__ constexpr unsigned long long size() { return Size; }
  static __device__ unsigned long long thread_rank() { return details::warp_lane() & (Size - 1); }
  // Of a tile of a block: among the block's tiles; of a tile of a tile: among its siblings.
  static __device__ unsigned meta_group_rank() {
    return details::block_rank() % details::parent_size<Parent>::get() / Size;
  }
  static __device__ unsigned meta_group_size() { return (details::parent_size<Parent>::get() + Size - 1) / Size; }

  // Positions outside of the tile keep the caller's value, as the hardware's.
  template <class T>
  __device__ T shfl(T value, int rank) const {
    return mxmaca::shuffle_words(value, [=](auto word) { return __shfl_sync(this->mask_, word, rank, Size); });
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    return mxmaca::shuffle_words(value, [=](auto word) { return __shfl_down_sync(this->mask_, word, delta, Size); });
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    return mxmaca::shuffle_words(value, [=](auto word) { return __shfl_up_sync(this->mask_, word, delta, Size); });
  }
  template <class T>
  __device__ T shfl_xor(T value, unsigned lanes) const {
    return mxmaca::shuffle_words(
        value, [=](auto word) { return __shfl_xor_sync(this->mask_, word, static_cast<int>(lanes), Size); });
  }
};

// ---- Partitions -----------------------------------------------------------------------------------------------------
template <unsigned Size, class Parent>
__device__ thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<Size, Parent>();
}

// Any group, by reference to what it is.
class thread_group {
 public:
  __device__ thread_group(const thread_block&) : whole_block_(true), mask_(0) {}
  __device__ thread_group(const details::lane_group& group) : whole_block_(false), mask_(group.lane_mask()) {}
  __device__ void sync() const { whole_block_ ? __syncthreads() : __syncwarp(mask_); }
  __device__ unsigned long long thread_rank() const {
    return whole_block_ ? details::block_rank() : details::lane_group(mask_).thread_rank();
  }
  __device__ unsigned long long num_threads() const {
    return whole_block_ ? details::block_size() : details::lane_group(mask_).num_threads();
  }
  __device__ unsigned long long size() const { return num_threads(); }
  __device__ bool is_block() const { return whole_block_; }
  __device__ unsigned lane_mask() const { return mask_; }

 private:
  bool whole_block_;
  unsigned mask_;
};
// Tiles of a size known at run time: consecutive ranks of the group.
__device__ inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned rank = static_cast<unsigned>(parent.thread_rank()), first = rank / size * size;
  unsigned mask = 0, place = 0;
  for (unsigned left = parent.lane_mask(); left != 0; left &= left - 1, ++place) {
    if (place >= first && place < first + size) mask |= left & (0 - left);
  }
  const unsigned count = static_cast<unsigned>(parent.num_threads());
  return coalesced_group(mask, rank / size, (count + size - 1) / size);
}
__device__ inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (!parent.is_block()) return thread_group(tiled_partition(coalesced_group(parent.lane_mask()), size));
  return thread_group(tiled_partition(coalesced_group(details::warp_members()), size));
}
template <class Group>
__device__ coalesced_group labeled_partition(const Group& group, int label) {
  const unsigned mask = group.lane_mask(), same = mxmaca::match_any(mask, label);
  // Groups are counted in the order of their labels.
  unsigned rank = 0, count = 0;
  for (unsigned left = mask; left != 0;) {
    const int leader = __builtin_ctz(left);
    const int theirs = mxmaca::shuffle_from(mask, label, leader);
    const unsigned members = mxmaca::shuffle_from(mask, same, leader);
    left &= ~members;
    ++count;
    rank += theirs < label ? 1 : 0;
  }
  return coalesced_group(same, rank, count);
}
template <class Group>
__device__ coalesced_group binary_partition(const Group& group, bool predicate) {
  const unsigned mask = group.lane_mask(), yes = __ballot_sync(mask, predicate);
  const unsigned no = mask & ~yes;
  return coalesced_group(predicate ? yes : no, predicate && no != 0 ? 1 : 0, (yes != 0) + (no != 0));
}

// ---- On any group ---------------------------------------------------------------------------------------------------
template <class Group>
__device__ void sync(const Group& group) {
  group.sync();
}
template <class Group>
__device__ auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
__device__ auto group_size(const Group& group) {
  return group.num_threads();
}
__device__ inline unsigned cluster_size() { return 1; }

// One thread for the group.
template <class Group, class Function>
__device__ void invoke_one(const Group& group, Function&& function) {
  if (group.thread_rank() == 0) function();
}
template <class Group, class Function>
__device__ auto invoke_one_broadcast(const Group& group, Function&& function) {
  decltype(function()) result{};
  if (group.thread_rank() == 0) result = function();
  return group.shfl(result, 0);
}

}  // namespace __v1
}  // namespace cooperative_groups
#endif

#include "cooperative_groups/wide_tiles.h"
