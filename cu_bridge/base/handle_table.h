// Objects behind opaque handles, and the question whether an address is one of them. See Note [Handles].
//
// Note [Handles]
// ~~~~~~~~~~~~~~
// A handle of CUDA is an address, and programs pass addresses that are none: handles destroyed before, handles of
// another kind, numbers. CUDA answers with an error, so nothing may be read through a handle before it is known to be
// one. A magic number in the object cannot tell: reading it is already the fault, and freed memory may still hold it.
//
// So the objects of one kind lie in blocks that this table owns and never gives back. An address is a live handle if it
// is that of a slot in a block and the slot is in use. The question takes no lock and a few instructions a block (each
// block is as large as all before it), as it is asked by every launch. Slots are used again in the order in which they
// became free, so that a destroyed handle stays unknown for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace mc {

// Constant-initialised and without a destructor: usable before and after all static objects.
template <class T>
class HandleTable {
 public:
  constexpr HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // A new live object.
  template <class... Arguments>
  T* create(Arguments&&... arguments) {
    Slot* const slot = take();
    T* object = nullptr;
    try {
      object = new (slot->storage) T{std::forward<Arguments>(arguments)...};
    } catch (...) {
      giveBack(slot);
      throw;
    }
    slot->live.store(true, std::memory_order_release);
    return object;
  }

  // Ends an object's life. False if the address is no live handle; of two threads that destroy one, one gets true.
  bool destroy(T* object) {
    Slot* const slot = find(object);
    if (slot == nullptr || !slot->live.exchange(false, std::memory_order_acq_rel)) return false;
    object->~T();
    giveBack(slot);
    return true;
  }

  // Whether the address is a live handle. Any value may be asked about.
  bool contains(const T* object) const {
    const Slot* const slot = find(object);
    return slot != nullptr && slot->live.load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t roundUp(size_t bytes) {
    size_t power = 16;
    while (power < bytes) power *= 2;
    return power;
  }
  // A power of two, so that finding a slot needs no division.
  struct alignas(roundUp(sizeof(T) + 2 * sizeof(void*))) Slot {
    alignas(T) unsigned char storage[sizeof(T)];
    std::atomic<bool> live{false};
    Slot* next = nullptr;  // of the free slots
  };

  static constexpr int kMostBlocks = 40;
  static constexpr size_t kFirstBlock = 128;
  // 128, 128, 256, 512, ... slots.
  static constexpr size_t slotsOf(int block) { return block == 0 ? kFirstBlock : kFirstBlock << (block - 1); }

  Slot* find(const T* object) const {
    const auto address = reinterpret_cast<uintptr_t>(object);
    // The last block first: it is as large as all others.
    for (int i = blockCount_.load(std::memory_order_acquire) - 1; i >= 0; --i) {
      const uintptr_t offset = address - reinterpret_cast<uintptr_t>(blocks_[i]);
      if (offset >= slotsOf(i) * sizeof(Slot)) continue;
      return offset % sizeof(Slot) == 0 ? blocks_[i] + offset / sizeof(Slot) : nullptr;
    }
    return nullptr;
  }

  Slot* take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (oldest_ == nullptr) {
      const int block = blockCount_.load(std::memory_order_relaxed);
      if (block == kMostBlocks) throw std::bad_alloc();
      blocks_[block] = std::make_unique<Slot[]>(slotsOf(block)).release();
      for (size_t i = 0; i < slotsOf(block); ++i) append(blocks_[block] + i);
      blockCount_.store(block + 1, std::memory_order_release);
    }
    Slot* const slot = oldest_;
    oldest_ = slot->next;
    if (oldest_ == nullptr) newest_ = nullptr;
    slot->next = nullptr;
    return slot;
  }

  void giveBack(Slot* slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    append(slot);
  }

  // With the lock.
  void append(Slot* slot) {
    slot->next = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->next) = slot;
    newest_ = slot;
  }

  std::mutex mutex_;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
  std::atomic<int> blockCount_{0};
  Slot* blocks_[kMostBlocks] = {};
};

}  // namespace mc
