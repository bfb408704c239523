#include "host/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace mc {
namespace {

// Note [Device memory lies apart]
// A kernel that runs out of its bounds writes what lies behind them until it meets an address without memory. Where the
// system chooses, device memory lies among the heap, the libraries' data and the runtime's own: such a kernel changes
// the process before it ends, and the process then dies in code that has done nothing wrong. So device memory has a
// range of its own, where the system puts nothing by itself: 16 TiB above programs with fixed addresses and as far
// below other programs, libraries and stacks, on x86-64 and on AArch64 with 48 bits. A kernel can then damage memory of
// devices only, as on hardware. Places follow each other, and begin anew behind the last one. A place that is taken, or
// that the system does not have, is no error: memory then lies where the system puts it.
constexpr uintptr_t kFirst = uintptr_t{0x11} << 40;
constexpr uintptr_t kEnd = uintptr_t{0x31} << 40;
constexpr int kAttempts = 64;

std::atomic<uintptr_t> nextPlace{kFirst};
std::atomic<bool> apart{true};

uintptr_t roundUp(uintptr_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

uintptr_t takePlace(size_t bytes, size_t alignment) {
  uintptr_t before = nextPlace.load(std::memory_order_relaxed);
  while (true) {
    uintptr_t place = roundUp(before, alignment);
    if (place > kEnd - bytes) place = roundUp(kFirst, alignment);
    if (nextPlace.compare_exchange_weak(before, place + bytes, std::memory_order_relaxed)) return place;
  }
}

// Reserves what a boundary may cost, and gives back what it did not.
void* mapAnywhere(size_t bytes, size_t alignment, int protection, int flags, int file) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (alignment <= page) {
    void* const memory = mmap(nullptr, bytes, protection, flags, file, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void* const whole = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(whole);
  const uintptr_t aligned = roundUp(start, alignment);
  const uintptr_t end = start + bytes + alignment;
  if (aligned > start) munmap(whole, aligned - start);
  if (end > aligned + bytes) munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  auto* const memory = reinterpret_cast<void*>(aligned);
  if (mmap(memory, bytes, protection, flags | MAP_FIXED, file, 0) != MAP_FAILED) return memory;
  munmap(memory, bytes);
  return nullptr;
}

}  // namespace

void* mapApart(size_t bytes, size_t alignment, int protection, int flags, int file) {
  const bool fits = bytes <= (kEnd - kFirst) / 2 && alignment <= (kEnd - kFirst) / 2;
  for (int attempt = 0; fits && apart.load(std::memory_order_relaxed); ++attempt) {
    auto* const wish = reinterpret_cast<void*>(takePlace(bytes, alignment));
    void* const memory = mmap(wish, bytes, protection, flags, file, 0);
    if (memory == wish) return memory;
    if (memory == MAP_FAILED) break;
    munmap(memory, bytes);
    if (attempt == kAttempts) apart.store(false, std::memory_order_relaxed);
  }
  return mapAnywhere(bytes, alignment, protection, flags, file);
}

}  // namespace mc
