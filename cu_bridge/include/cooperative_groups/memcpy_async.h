// Copies by a group. They are complete for the calling thread's part at once; wait() is the group's barrier.
#pragma once

#include <string.h>
#include <cstddef>

#include "../cooperative_groups.h"

#ifdef __CUDACC__
namespace cooperative_groups {

template <class Group>
__device__ void memcpy_bytes(const Group& group, void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t part = 16;
  for (std::size_t at = group.thread_rank() * part; at < bytes; at += group.num_threads() * part) {
    memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, bytes - at < part ? bytes - at : part);
  }
}
template <class Group, class T, class Size>
__device__ void memcpy_async(const Group& group, T* to, const T* from, Size bytes) {
  memcpy_bytes(group, to, from, static_cast<std::size_t>(bytes));
}
template <class Group>
__device__ void memcpy_async(const Group& group, void* to, const void* from, std::size_t bytes) {
  memcpy_bytes(group, to, from, bytes);
}
// Element counts of both sides; the smaller counts.
template <class Group, class T, class Layout1, class Layout2>
__device__ void memcpy_async(const Group& group, T* to, Layout1 to_count, const T* from, Layout2 from_count) {
  const std::size_t a = static_cast<std::size_t>(to_count), b = static_cast<std::size_t>(from_count);
  memcpy_bytes(group, to, from, (a < b ? a : b) * sizeof(T));
}
template <class Group>
__device__ void wait(const Group& group) {
  group.sync();
}
template <unsigned Stages, class Group>
__device__ void wait_prior(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
#endif
