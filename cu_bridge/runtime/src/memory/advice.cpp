// Advice about managed memory and prefetches: kept by page, to be asked for. Memory lies where it lies, so that nothing
// else depends on them.

#include "memory/advice.h"

#include <iterator>
#include <map>

#include "memory/allocations.h"
#include "state/locked.h"
#include "state/state.h"

namespace mc {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr int kNowhere = -2;

struct Advice {
  bool readMostly = false;
  int preferred = kNowhere, prefetched = kNowhere;
  uint64_t users = 0;  // bit 0: the host; bit n + 1: device n
};

// From each address on, up to the next one; from none on, nothing was said.
using Pages = std::map<uintptr_t, Advice>;

struct AllAdvice {
  std::map<uint64_t, Pages> byAllocation;
};

struct Range {
  uint64_t allocation;
  uintptr_t begin, end;  // whole pages
};

mcError_t rangeOf(const void* pointer, size_t bytes, Range* range) {
  const Allocation* const found = findAllocation(pointer);
  if (found == nullptr || found->kind != mcMemoryManaged || bytes == 0) return mcErrorInvalidValue;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (bytes > found->size - (address - found->base)) return mcErrorInvalidValue;
  *range = {found->id, address / kPage * kPage, (address + bytes + kPage - 1) / kPage * kPage};
  return mcSuccess;
}

Advice at(const Pages& pages, uintptr_t address) {
  const auto next = pages.upper_bound(address);
  return next == pages.begin() ? Advice{} : std::prev(next)->second;
}

// What holds for every page of the range; `users` are those of all of them.
Advice common(const Pages& pages, const Range& range) {
  Advice all = at(pages, range.begin);
  for (auto next = pages.upper_bound(range.begin); next != pages.end() && next->first < range.end; ++next) {
    const Advice& other = next->second;
    all.readMostly = all.readMostly && other.readMostly;
    if (all.preferred != other.preferred) all.preferred = kNowhere;
    if (all.prefetched != other.prefetched) all.prefetched = kNowhere;
    all.users &= other.users;
  }
  return all;
}

void change(Advice* advice, mcAdvice what, int place, bool on) {
  const uint64_t bit = uint64_t{1} << static_cast<unsigned>(place + 1);
  switch (what) {
    case mcAdviceReadMostly: advice->readMostly = on; break;
    case mcAdvicePreferred: advice->preferred = on ? place : kNowhere; break;
    case mcAdviceAccessedBy: advice->users = on ? advice->users | bit : advice->users & ~bit; break;
    case mcAdvicePrefetched: advice->prefetched = place; break;
  }
}

bool isPlace(int place) {
  int count = 0;
  return place == mcPlaceHost || (place >= 0 && mcGetDeviceCount(&count) == mcSuccess && place < count);
}

}  // namespace

void forgetAdvice(uint64_t allocation) {
  const Writing<AllAdvice> all;
  all->byAllocation.erase(allocation);
}

}  // namespace mc

using namespace mc;

mcError_t mcMemAdvise(const void* pointer, size_t bytes, mcAdvice what, int place, int on) {
  Range range{};
  const bool named = what == mcAdviceAccessedBy || what == mcAdvicePrefetched || (what == mcAdvicePreferred && on != 0);
  if (named && !isPlace(place)) return fail(mcErrorInvalidDevice);
  const mcError_t error = rangeOf(pointer, bytes, &range);
  if (error != mcSuccess) return fail(error);
  const Writing<AllAdvice> all;
  Pages& pages = all->byAllocation[range.allocation];
  // A piece that begins and one that ends at the range's borders.
  pages.emplace(range.end, at(pages, range.end));
  pages.emplace(range.begin, at(pages, range.begin));
  for (auto page = pages.find(range.begin); page->first < range.end; ++page) {
    change(&page->second, what, named ? place : mcPlaceHost, on != 0);
  }
  return mcSuccess;
}

mcError_t mcMemAdviceGet(const void* pointer, size_t bytes, mcAdvice what, int* answers, size_t count) {
  Range range{};
  const mcError_t error = rangeOf(pointer, bytes, &range);
  if (error != mcSuccess || answers == nullptr || count == 0) return fail(mcErrorInvalidValue);
  Advice advice;
  {
    const Reading<AllAdvice> all;
    const auto found = all->byAllocation.find(range.allocation);
    if (found != all->byAllocation.end()) advice = common(found->second, range);
  }
  for (size_t i = 0; i < count; ++i) answers[i] = kNowhere;
  switch (what) {
    case mcAdviceReadMostly: *answers = advice.readMostly ? 1 : 0; break;
    case mcAdvicePreferred: *answers = advice.preferred; break;
    case mcAdvicePrefetched: *answers = advice.prefetched; break;
    case mcAdviceAccessedBy:
      for (int place = mcPlaceHost, i = 0; advice.users >> static_cast<unsigned>(place + 1) != 0; ++place) {
        const bool uses = (advice.users >> static_cast<unsigned>(place + 1) & 1) != 0;
        if (uses && static_cast<size_t>(i) < count) answers[i++] = place;
      }
      break;
  }
  return mcSuccess;
}
