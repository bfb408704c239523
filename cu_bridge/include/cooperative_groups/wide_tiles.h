// Tiles of several warps. Their threads meet in the block's shared memory: each tile has a count of who has arrived,
// and each thread a place for the value that others take. Part of cooperative_groups.h, which includes it at its end.
#pragma once

#include <string.h>

#ifdef __CUDACC__
namespace cooperative_groups {
inline namespace __v1 {

// What programs declare for such tiles, and devices from 8.0 on need no more.
template <unsigned MostThreads = mxmaca::most_threads>
struct block_tile_memory {
  static_assert(MostThreads <= mxmaca::most_threads, "a block has no more threads");
};
template <unsigned MostThreads>
__device__ thread_block this_thread_block(block_tile_memory<MostThreads>&) {
  return thread_block();
}

namespace details {

struct tile_meetings {
  // By the tile's first warp. Sizes have their own: a thread may be in a small tile while others wait in a large one.
  struct meeting {
    unsigned arrived, number;
  } of[4][mxmaca::most_threads / 32];
  unsigned long long values[mxmaca::most_threads];
};
__device__ inline tile_meetings& meetings() {
  __shared__ tile_meetings of_block;
  return of_block;
}

template <unsigned Size, class Parent>
class wide_tile {
  static_assert(Size == 64 || Size == 128 || Size == 256 || Size == 512, "a tile has at most 512 threads");

 public:
  __device__ wide_tile() {
    if (!std::is_same<Parent, thread_block>::value) return;
    // A kernel that failed may have left counts behind.
    __syncthreads();
    if (block_rank() == 0) memset(&meetings(), 0, sizeof(tile_meetings));
    __syncthreads();
  }
  __device__ void sync() const {
    constexpr int kind = Size == 64 ? 0 : Size == 128 ? 1 : Size == 256 ? 2 : 3;
    volatile tile_meetings::meeting& meeting = meetings().of[kind][(block_rank() - rank()) / 32];
    // Threads of a block run one at a time, and change only where they wait.
    const unsigned number = meeting.number;
    meeting.arrived = meeting.arrived + 1;
    if (meeting.arrived == Size) {
      meeting.arrived = 0;
      meeting.number = number + 1;
    } else {
      while (meeting.number == number) mxmaca::yield();
    }
  }
  static __device__ constexpr unsigned long long num_threads() { return Size; }
  static __device__ constexpr unsigned long long size() { return Size; }
  static __device__ unsigned long long thread_rank() { return rank(); }
  static __device__ unsigned meta_group_rank() { return block_rank() % parent_size<Parent>::get() / Size; }
  static __device__ unsigned meta_group_size() { return (parent_size<Parent>::get() + Size - 1) / Size; }

  template <class T>
  __device__ T shfl(T value, int from) const {
    return take(value, static_cast<unsigned>(from) % Size);
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    return take(value, rank() + delta < Size ? rank() + delta : rank());
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    return take(value, rank() >= delta ? rank() - delta : rank());
  }
  __device__ int any(int predicate) const { return count(predicate) != 0; }
  __device__ int all(int predicate) const { return count(predicate) == Size; }

 private:
  static __device__ unsigned rank() { return block_rank() % Size; }
  // What the thread of that rank has. In units of a place's size.
  template <class T>
  __device__ T take(const T& value, unsigned from) const {
    static_assert(std::is_trivially_copyable<T>::value, "a shuffle moves bytes");
    constexpr size_t unit = sizeof(unsigned long long);
    unsigned long long* const values = meetings().values;
    T taken;
    for (size_t at = 0; at < sizeof(T); at += unit) {
      const size_t bytes = sizeof(T) - at < unit ? sizeof(T) - at : unit;
      memcpy(values + block_rank(), reinterpret_cast<const char*>(&value) + at, bytes);
      sync();
      memcpy(reinterpret_cast<char*>(&taken) + at, values + block_rank() - rank() + from, bytes);
      sync();
    }
    return taken;
  }
  __device__ unsigned count(int predicate) const {
    unsigned long long* const values = meetings().values;
    values[block_rank()] = predicate != 0;
    sync();
    unsigned found = 0;
    for (unsigned i = 0; i < Size; ++i) found += static_cast<unsigned>(values[block_rank() - rank() + i]);
    sync();
    return found;
  }
};

}  // namespace details

#define MXMACA_WIDE_TILE(threads)                                                         \
  template <class Parent>                                                                 \
  class thread_block_tile<threads, Parent> : public details::wide_tile<threads, Parent> { \
   public:                                                                                \
    __device__ thread_block_tile() {}                                                     \
    template <class Other>                                                                \
    __device__ thread_block_tile(const thread_block_tile<threads, Other>&) {}             \
  };
MXMACA_WIDE_TILE(64)
MXMACA_WIDE_TILE(128)
MXMACA_WIDE_TILE(256)
MXMACA_WIDE_TILE(512)
#undef MXMACA_WIDE_TILE

}  // namespace __v1
}  // namespace cooperative_groups
#endif
