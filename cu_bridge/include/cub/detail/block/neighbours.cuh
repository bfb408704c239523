// What a block asks of neighbouring elements.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN
#ifdef __CUDACC__

namespace detail {
template <class Op, class T>
__device__ auto with_index(Op& op, const T& a, const T& b, int index) {
  if constexpr (std::is_invocable<Op&, const T&, const T&, int>::value)
    return op(a, b, index);
  else
    return static_cast<void>(index), op(a, b);
}
}  // namespace detail

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockDiscontinuity {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<T> first[X * Y * Z], last[X * Y * Z];
  };
  MXMACA_BLOCK(BlockDiscontinuity)

  template <int Items, class Flag, class Op>
  __device__ void FlagHeads(Flag (&heads)[Items], T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeads(Flag (&heads)[Items], T (&input)[Items], Op op, T tile_predecessor) {
    put(input);
    set_heads(heads, input, op, &tile_predecessor);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagTails(Flag (&tails)[Items], T (&input)[Items], Op op) {
    put(input);
    set_tails(tails, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagTails(Flag (&tails)[Items], T (&input)[Items], Op op, T tile_successor) {
    put(input);
    set_tails(tails, input, op, &tile_successor);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeadsAndTails(Flag (&heads)[Items], Flag (&tails)[Items], T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, nullptr);
    set_tails(tails, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeadsAndTails(Flag (&heads)[Items], T tile_predecessor, Flag (&tails)[Items], T tile_successor,
                                    T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, &tile_predecessor);
    set_tails(tails, input, op, &tile_successor);
  }

 private:
  template <int Items>
  __device__ void put(T (&input)[Items]) {
    new (&storage_.first[thread_]) T(input[0]);
    new (&storage_.last[thread_]) T(input[Items - 1]);
    __syncthreads();
  }
  template <int Items, class Flag, class Op>
  __device__ void set_heads(Flag (&heads)[Items], T (&input)[Items], Op& op, T* before) {
    T* previous = thread_ == 0 ? before : &storage_.last[thread_ - 1].Alias();
    for (int i = 0; i < Items; ++i) {
      heads[i] = previous == nullptr ? 1 : detail::with_index(op, *previous, input[i], thread_ * Items + i);
      previous = &input[i];
    }
  }
  template <int Items, class Flag, class Op>
  __device__ void set_tails(Flag (&tails)[Items], T (&input)[Items], Op& op, T* after) {
    T* const next = thread_ == threads - 1 ? after : &storage_.first[thread_ + 1].Alias();
    for (int i = 0; i < Items; ++i) {
      T* const following = i + 1 < Items ? &input[i + 1] : next;
      tails[i] = following == nullptr ? 1 : detail::with_index(op, input[i], *following, thread_ * Items + i + 1);
    }
  }
};

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockAdjacentDifference {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<T> first[X * Y * Z], last[X * Y * Z];
  };
  MXMACA_BLOCK(BlockAdjacentDifference)

  template <int Items, class Out, class Op>
  __device__ void SubtractLeft(T (&input)[Items], Out (&output)[Items], Op op) {
    left(input, output, op, nullptr, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractLeft(T (&input)[Items], Out (&output)[Items], Op op, T tile_predecessor) {
    left(input, output, op, &tile_predecessor, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractLeftPartialTile(T (&input)[Items], Out (&output)[Items], Op op, int valid) {
    left(input, output, op, nullptr, valid);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRight(T (&input)[Items], Out (&output)[Items], Op op) {
    right(input, output, op, nullptr, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRight(T (&input)[Items], Out (&output)[Items], Op op, T tile_successor) {
    right(input, output, op, &tile_successor, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRightPartialTile(T (&input)[Items], Out (&output)[Items], Op op, int valid) {
    right(input, output, op, nullptr, valid);
  }

 private:
  template <int Items>
  __device__ void put(T (&input)[Items]) {
    new (&storage_.first[thread_]) T(input[0]);
    new (&storage_.last[thread_]) T(input[Items - 1]);
    __syncthreads();
  }
  template <int Items, class Out, class Op>
  __device__ void left(T (&input)[Items], Out (&output)[Items], Op& op, T* before, int valid) {
    put(input);
    for (int i = Items - 1; i >= 0; --i) {
      T* const previous = i > 0 ? &input[i - 1] : thread_ > 0 ? &storage_.last[thread_ - 1].Alias() : before;
      output[i] = previous == nullptr || thread_ * Items + i >= valid ? input[i] : op(input[i], *previous);
    }
  }
  template <int Items, class Out, class Op>
  __device__ void right(T (&input)[Items], Out (&output)[Items], Op& op, T* after, int valid) {
    put(input);
    for (int i = 0; i < Items; ++i) {
      T* const next = i + 1 < Items           ? &input[i + 1]
                      : thread_ + 1 < threads ? &storage_.first[thread_ + 1].Alias()
                                              : after;
      const bool alone =
          next == nullptr || thread_ * Items + i >= valid || (after == nullptr && thread_ * Items + i + 1 >= valid);
      output[i] = alone ? input[i] : op(input[i], *next);
    }
  }
};

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockShuffle {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<T> item[X * Y * Z], other[X * Y * Z];
  };
  MXMACA_BLOCK(BlockShuffle)

  // Out of the block: the output keeps its value.
  __device__ void Offset(T input, T& output, int distance = 1) {
    put(input, input);
    const int from = thread_ + distance;
    if (from >= 0 && from < threads) output = storage_.item[from].Alias();
  }
  __device__ void Rotate(T input, T& output, unsigned distance = 1) {
    put(input, input);
    output = storage_.item[(static_cast<unsigned>(thread_) + distance) % threads].Alias();
  }
  template <int Items>
  __device__ void Up(T (&input)[Items], T (&previous)[Items]) {
    put(input[0], input[Items - 1]);
    for (int i = Items - 1; i > 0; --i) previous[i] = input[i - 1];
    if (thread_ > 0) previous[0] = storage_.other[thread_ - 1].Alias();
  }
  template <int Items>
  __device__ void Up(T (&input)[Items], T (&previous)[Items], T& block_suffix) {
    Up(input, previous);
    block_suffix = storage_.other[threads - 1].Alias();
  }
  template <int Items>
  __device__ void Down(T (&input)[Items], T (&next)[Items]) {
    put(input[0], input[Items - 1]);
    for (int i = 0; i + 1 < Items; ++i) next[i] = input[i + 1];
    if (thread_ + 1 < threads) next[Items - 1] = storage_.item[thread_ + 1].Alias();
  }
  template <int Items>
  __device__ void Down(T (&input)[Items], T (&next)[Items], T& block_prefix) {
    Down(input, next);
    block_prefix = storage_.item[0].Alias();
  }

 private:
  __device__ void put(const T& first, const T& last) {
    new (&storage_.item[thread_]) T(first);
    new (&storage_.other[thread_]) T(last);
    __syncthreads();
  }
};

#endif
CUB_NAMESPACE_END
