// Handles of the libraries on top of the runtime, which may give each other theirs, or lie in their callers' memory: a
// hash table of addresses, each with a kind. Objects that only one library knows may lie in a HandleTable of its own.
//
// Note [Reading without a lock]
// Every call of a library asks for its handle, from any thread. An entry is one word, address and kind together, so a
// reader sees all of it or nothing. Entries stay in their bucket's list for ever and are used again; a list is as long
// as the most objects that its bucket has held at one time.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "mc_runtime.h"

namespace {

constexpr unsigned kKindShift = 56;  // addresses of user space end below
constexpr uint64_t kAddressMask = (uint64_t{1} << kKindShift) - 1;
constexpr unsigned kBucketBits = 12;

uint64_t wordOf(uint64_t address, int kind) { return address | static_cast<uint64_t>(kind) << kKindShift; }

struct Entry {
  std::atomic<uint64_t> word{0};
  Entry* next = nullptr;  // never changes once the entry is in a list
};

struct Table {
  std::mutex writing;
  std::array<std::atomic<Entry*>, size_t{1} << kBucketBits> buckets{};
};
Table table;

std::atomic<Entry*>& bucketOf(uint64_t address) {
  return table.buckets[(address >> 4) * 0x9e3779b97f4a7c15 >> (64 - kBucketBits)];
}
// The entry of an address; with 0 one that is not in use.
Entry* find(const std::atomic<Entry*>& bucket, uint64_t address) {
  for (Entry* entry = bucket.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    if ((entry->word.load(std::memory_order_acquire) & kAddressMask) == address) return entry;
  }
  return nullptr;
}

}  // namespace

int mcHandleAdd(const void* handle, int kind) {
  const auto address = reinterpret_cast<uint64_t>(handle);
  if (handle == nullptr || (address & ~kAddressMask) != 0 || kind <= 0 || kind > 255) return 0;
  std::atomic<Entry*>& bucket = bucketOf(address);
  const std::lock_guard<std::mutex> lock(table.writing);
  Entry* entry = find(bucket, address);  // memory of the caller's that was another object before
  if (entry == nullptr) entry = find(bucket, 0);
  const bool isNew = entry == nullptr;
  if (isNew) entry = new (std::nothrow) Entry;
  if (entry == nullptr) return 0;
  entry->word.store(wordOf(address, kind), std::memory_order_release);
  if (isNew) {
    entry->next = bucket.load(std::memory_order_relaxed);
    bucket.store(entry, std::memory_order_release);
  }
  return 1;
}

int mcHandleIs(const void* handle, int kind) {
  const auto address = reinterpret_cast<uint64_t>(handle);
  if (handle == nullptr || (address & ~kAddressMask) != 0) return 0;
  const Entry* const entry = find(bucketOf(address), address);
  // The entry may have been taken for another object since: its word is read once more, whole.
  return entry != nullptr && entry->word.load(std::memory_order_acquire) == wordOf(address, kind) ? 1 : 0;
}

int mcHandleRemove(const void* handle, int kind) {
  const auto address = reinterpret_cast<uint64_t>(handle);
  if (handle == nullptr || (address & ~kAddressMask) != 0) return 0;
  const std::lock_guard<std::mutex> lock(table.writing);
  Entry* const entry = find(bucketOf(address), address);
  if (entry == nullptr || entry->word.load(std::memory_order_relaxed) != wordOf(address, kind)) return 0;
  entry->word.store(0, std::memory_order_release);
  return 1;
}

unsigned char* mcThreadLibraryBytes(void) {
  static thread_local unsigned char bytes[2];
  return bytes;
}
