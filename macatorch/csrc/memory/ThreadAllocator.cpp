#include "memory/ThreadAllocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "graph/Work.h"
#include "memory/Allocator.h"

namespace macatorch {
namespace {

using c10::cuda::CUDACachingAllocator::get;

c10::Allocator* host_allocator = nullptr;
BlockSource block_source = nullptr;

// raw_deallocate() knows no DataPtr: oneDNN's scratch memory, for one, comes and goes through it, and a block may be
// freed after its thread has left the device. The address decides.
void delete_by_owner(void* data) {
  if (data == nullptr) {
    return;
  }
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) == cudaSuccess && attributes.type == cudaMemoryTypeDevice) {
    get()->raw_deleter()(data);  // it knows whether the cache is in use
  } else {
    host_allocator->raw_deleter()(data);
  }
}

class ScopedAllocator final : public Allocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    const ThreadState& state = thread_state();
    if (state.depth == 0) {
      return host_allocator->allocate(nbytes);
    }
    if (block_source != nullptr) {
      if (void* data = block_source(state.device, nbytes)) {
        memory_is_given(data, nbytes);
        return {data, data, get()->raw_deleter(), c10::Device(c10::kCPU)};
      }
    }
    c10::cuda::OptionalCUDAGuard guard;
    if (C10_UNLIKELY(c10::cuda::current_device() != state.device)) {
      guard.set_index(state.device);
    }
    c10::DataPtr block = get()->allocate(nbytes);
    memory_is_given(block.get(), nbytes);
    block.unsafe_set_device(c10::Device(c10::kCPU));
    return block;
  }

  c10::DeleterFnPtr raw_deleter() const override { return &delete_by_owner; }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    copy_by(*host_allocator, dest, src, count);
  }
};

ScopedAllocator& instance() {
  static ScopedAllocator allocator;
  return allocator;
}

}  // namespace

ThreadState& thread_state() noexcept {
  static thread_local ThreadState state;
  return state;
}

c10::Allocator* scoped_allocator() noexcept { return &instance(); }

bool is_device_owned(const c10::DataPtr& data) noexcept { return data.get_deleter() == get()->raw_deleter(); }

void install_allocator() {
  host_allocator = c10::GetAllocator(c10::kCPU);
  c10::SetAllocator(c10::kCPU, &instance(), /*priority=*/255);
}

void set_block_source(BlockSource source) noexcept { block_source = source; }

}  // namespace macatorch
