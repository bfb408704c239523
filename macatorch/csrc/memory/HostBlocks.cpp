#include "memory/HostBlocks.h"

#include <c10/core/CPUAllocator.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace macatorch {
namespace {

constexpr size_t kPage = size_t{2} << 20;

/// A mapping that begins and ends with a huge page.
struct Block {
  void* data = nullptr;
  size_t size = 0;
};

/// A mapping of `size` bytes, a multiple of kPage, or nullptr.
void* map(size_t size) {
  const size_t mapped = size + kPage;  // room to begin with a huge page
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t aligned = (begin + kPage - 1) / kPage * kPage;
  if (aligned != begin) {
    munmap(memory, aligned - begin);
  }
  if (aligned + size != begin + mapped) {
    munmap(reinterpret_cast<void*>(aligned + size), begin + mapped - aligned - size);
  }
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);  // only a wish
  return reinterpret_cast<void*>(aligned);
}

/// The blocks that nobody uses, the one that was given back last in front.
class Kept {
 public:
  /// A block of at least `size` bytes and little more, or an empty one.
  Block take(size_t size) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      if (block->size >= size && block->size <= size + size / 4) {
        const Block found = *block;
        blocks_.erase(block);
        bytes_ -= found.size;
        return found;
      }
    }
    return {};
  }

  void give(Block block) noexcept {
    std::list<Block> dropped;
    try {
      if (block.size <= HostBlocks::kKept) {
        madvise(block.data, block.size, MADV_FREE);
        const std::lock_guard<std::mutex> guard(mutex_);
        blocks_.push_front(block);
        bytes_ += block.size;
        while (bytes_ > HostBlocks::kKept) {
          bytes_ -= blocks_.back().size;
          dropped.splice(dropped.end(), blocks_, std::prev(blocks_.end()));
        }
      } else {
        munmap(block.data, block.size);
      }
    } catch (const std::bad_alloc&) {  // no room for its place in the list
      munmap(block.data, block.size);
    }
    for (const Block& old : dropped) {
      munmap(old.data, old.size);
    }
  }

  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

  void drop() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const Block& block : blocks_) {
      munmap(block.data, block.size);
    }
    blocks_.clear();
    bytes_ = 0;
  }

 private:
  std::mutex mutex_;
  std::list<Block> blocks_;
  size_t bytes_ = 0;
};

Kept& kept() {
  static auto& blocks = *new Kept;  // tensors may outlive every static
  // A forked child gives back what it inherited, while no other thread holds the lock.
  static const int registered = pthread_atfork([] { blocks.lock(); }, [] { blocks.unlock(); }, [] { blocks.unlock(); });
  static_cast<void>(registered);
  return blocks;
}

void give_back(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  c10::profiledCPUMemoryReporter().Delete(block->data);
  kept().give(*block);
}

}  // namespace

HostBlocks& HostBlocks::get() {
  static auto& allocator = *new HostBlocks;
  return allocator;
}

c10::DataPtr HostBlocks::allocate(size_t bytes) {
  if (bytes < kLeast || bytes > SIZE_MAX / 2) {
    return c10::GetCPUAllocator()->allocate(bytes);
  }
  auto block = std::make_unique<Block>();
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  *block = kept().take(size);
  if (block->data == nullptr) {
    *block = {map(size), size};
  }
  if (block->data == nullptr) {
    kept().drop();
    return c10::GetCPUAllocator()->allocate(bytes);
  }
  void* const data = block->data;
  c10::profiledCPUMemoryReporter().New(data, bytes);
  return {data, block.release(), give_back, c10::Device(c10::kCPU)};
}

void HostBlocks::copy_data(void* target, const void* source, size_t bytes) const {
  default_copy_data(target, source, bytes);
}

}  // namespace macatorch
