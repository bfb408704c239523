#include "fast/DeviceAllocator.h"

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments/Device.h"
#include "arguments/Release.h"
#include "fast/AllocationReplay.h"
#include "graph/GraphCapture.h"
#include "graph/Work.h"
#include "memory/ThreadAllocator.h"
#include "memory/Workspaces.h"

namespace macatorch {
namespace {

using namespace c10::cuda::CUDACachingAllocator;  // the names of the interface
using c10::cuda::MempoolId_t;

// Settings may be changed while the program runs, and placement follows from them. Upstream keeps their text, which is
// empty for the default ones, behind a mutex; its length alone is enough, and cheap enough for every request.
#if MACATORCH_TORCH_AT_LEAST(2, 9)
using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
#else
using Config = CUDAAllocatorConfig;
#endif
template <std::string Config::* member>
struct SettingsMember {
  friend std::string Config::* settings_member() { return member; }
};
std::string Config::* settings_member();
#if MACATORCH_TORCH_AT_LEAST(2, 9)
template struct SettingsMember<&Config::last_allocator_settings_>;
#else
template struct SettingsMember<&Config::m_last_allocator_settings>;
#endif

/// Upstream's caching allocator with replayed steps. Everything but plain requests and frees goes to upstream's, in the
/// program's own state; what makes more of it than a function of its history switches replaying off for good.
class DeviceAllocator final : public CUDAAllocator {
 public:
  explicit DeviceAllocator(CUDAAllocator& native) : native_(native) {}

  void* replay(size_t nbytes, c10::DeviceIndex device, c10::StreamId stream) {
    if (C10_UNLIKELY(off() || paused_ > 0 || watched())) {
      return nullptr;
    }
    Lock lock(*this);
    AllocationReplay* replay = replays_[static_cast<size_t>(device)].get();
    void* data = replay == nullptr || !lock.usable() ? nullptr : replay->request(nbytes, stream);
    hits_ += data != nullptr;
    return data;
  }

  c10::DataPtr allocate(size_t nbytes) override {
    if (C10_UNLIKELY(uncached())) {
      if (C10_UNLIKELY(Workspaces::taking)) {
        Workspaces::unseen.store(true, std::memory_order_relaxed);
      }
      return native_.allocate(nbytes);
    }
    const c10::Device device(kDevice, c10::cuda::current_device());
    void* data = nullptr;
    Requests* const requests =
        C10_UNLIKELY(graph_operators.load(std::memory_order_relaxed) != 0) ? graph_requests() : nullptr;
    if (C10_UNLIKELY(requests != nullptr && nbytes != 0)) {
      data = requests->next(nbytes);
    }
    if (nbytes != 0 && data == nullptr) {
      const c10::StreamId stream = c10::cuda::getCurrentCUDAStream(device.index()).id();
      data = replay(nbytes, device.index(), stream);
      if (data == nullptr) {
        data = request(nbytes, device.index(), stream);
      }
      if (C10_UNLIKELY(requests != nullptr)) {
        requests->made(data, nbytes);
      }
      memory_is_given(data, nbytes);
    }
    return {data, data, C10_UNLIKELY(Workspaces::taking) ? &free_workspace : &free, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { native_.copy_data(dest, src, count); }

  void* raw_alloc(size_t nbytes) override {
    if (nbytes == 0) {
      return nullptr;
    }
    return C10_UNLIKELY(uncached()) ? native_.raw_alloc(nbytes) : allocate(nbytes).release_context();
  }
  void* raw_alloc_with_stream(size_t nbytes, cudaStream_t stream) override {
    return settled()->raw_alloc_with_stream(nbytes, stream);
  }
  void raw_delete(void* data) override {
    if (data == nullptr) {
      return;
    }
    if (C10_UNLIKELY(graph_operators.load(std::memory_order_relaxed) != 0)) {
      Requests* const requests = graph_requests();
      if (requests != nullptr && requests->release(data)) {
        return;
      }
    }
    if (off()) {
      return native_.raw_delete(data);
    }
    Lock lock(*this);
    if (lock.usable() && paused_ > 0) {
      const Native native(*this);
      --paused_;
      return native_.raw_delete(data);
    }
    AllocationReplay::Block* block = blocks_.find(data);
    if (C10_UNLIKELY(!lock.usable())) {
      if (block != nullptr) {
        block->live = block->held = false;
      }
      native_.raw_delete(data);
    } else if (block == nullptr) {
      const Native native(*this);
      settle();
      native_.raw_delete(data);
    } else if (!watched() && block->owner->release(*block)) {
      ++hits_;
    } else {
      const Native native(*this);
      block->owner->release_native(*block);
      missed();
    }
  }

  uint64_t replays() {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t sum = 0;
    each([&](AllocationReplay& replay) { sum += replay.replays(); });
    return sum;
  }

  void init(int device_count) override {
    native_.init(device_count);
    // Not before: settings that make no sense raise here, in upstream's words and at upstream's time.
    settings_ = &(Config::instance().*settings_member());
  }
  bool initialized() override { return native_.initialized(); }
  std::string name() override { return native_.name(); }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return with(
        device, [](AllocationReplay& replay) { return replay.stats(); },
        [&] { return native_.getDeviceStats(device); });
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    with(
        device, [](AllocationReplay& replay) { replay.reset_accumulated(); },
        [&] { native_.resetAccumulatedStats(device); });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    with(device, [](AllocationReplay& replay) { replay.reset_peaks(); }, [&] { native_.resetPeakStats(device); });
  }

  double getMemoryFraction(c10::DeviceIndex device) override { return settled()->getMemoryFraction(device); }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    settled()->setMemoryFraction(fraction, device);
  }
  void enable(bool value) override { settled(value)->enable(value); }
  bool isEnabled() const override { return native_.isEnabled(); }
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override { settled()->cacheInfo(device, largest); }
  void* getBaseAllocation(void* data, size_t* size) override { return settled()->getBaseAllocation(data, size); }
  ShareableHandle shareIpcHandle(void* data) override { return settled()->shareIpcHandle(data); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return native_.getIpcDevPtr(std::move(handle)); }
  void enablePeerAccess(c10::DeviceIndex from, c10::DeviceIndex to) override { native_.enablePeerAccess(from, to); }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, size_t count, cudaStream_t stream,
                          bool p2p_enabled) override {
    return native_.memcpyAsync(to, to_device, from, from_device, count, stream, p2p_enabled);
  }

  // A block that another stream uses is free when an event says so, and those of pools and graphs by other rules.
  using CUDAAllocator::recordStream;
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (data.get_deleter() != &free) {
      return;  // memory of somebody else's, as upstream has it
    }
    c10::DataPtr alias(data.get(), data.get_context(), native_.raw_deleter(), data.device());
    native()->recordStream(alias, stream);
    alias.release_context();
  }
  void beginAllocateToPool(c10::DeviceIndex device, MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    native()->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, MempoolId_t pool) override {
    native()->endAllocateToPool(device, pool);
  }
  void releasePool(c10::DeviceIndex device, MempoolId_t pool) override { native()->releasePool(device, pool); }
  int getPoolUseCount(c10::DeviceIndex device, MempoolId_t pool) override {
    return native()->getPoolUseCount(device, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return native()->checkPoolLiveAllocations(device, pool, expected);
  }
  std::shared_ptr<AllocatorState> getCheckpointState(c10::DeviceIndex device, MempoolId_t id) override {
    return native()->getCheckpointState(device, id);
  }
  CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device, std::shared_ptr<AllocatorState> state) override {
    CheckpointDelta delta = native()->setCheckpointPoolState(device, std::move(state));
    // Storages of the program get these pointers, and are known as the allocator's by their deleter.
    for (c10::DataPtr& data : delta.dataptrs_allocd) {
      static_cast<void>(data.compare_exchange_deleter(native_.raw_deleter(), &free));
    }
    return delta;
  }

  // Whoever watches sees every step.
  bool isHistoryEnabled() override { return native_.isHistoryEnabled(); }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& entries) override {
    native_.recordAnnotation(entries);
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override {
    native()->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override {
    native()->attachAllocatorTraceTracker(std::move(tracker));
  }

#if MACATORCH_TORCH_AT_LEAST(2, 12)
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device) override {
    return settled()->getExpandableSegmentSizes(device);
  }
  void emptyCache(MempoolId_t pool) override { settled()->emptyCache(pool); }
  SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) override {
    return settled()->snapshot(pool, include_traces);
  }
  void createOrIncrefPool(c10::DeviceIndex device, MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> allocator) override {
    native()->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, MempoolId_t pool, bool use) override {
    native()->setUseOnOOM(device, pool, use);
  }
  void setNoSplit(c10::DeviceIndex device, MempoolId_t pool) override { native()->setNoSplit(device, pool); }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* data) override {
    return native_.getContextForPointer(data);
  }
  void recordHistory(bool enabled, c10::CachingDeviceAllocator::CreateContextFn recorder, size_t entries,
                     c10::CachingDeviceAllocator::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override {
    settled(!enabled)->recordHistory(enabled, recorder, entries, when, clear, skipped);
  }
  void pushCompileContext(std::string& context) override { native_.pushCompileContext(context); }
  void popCompileContext() override { native_.popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { native_.setUserMetadata(metadata); }
  std::string getUserMetadata() override { return native_.getUserMetadata(); }
  void attachOomRejectionObserver(OomRejectionObserver observer) override {
    native()->attachOomRejectionObserver(std::move(observer));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override { return native_.getMemoryInfo(device); }
#if MACATORCH_TORCH_AT_LEAST(2, 14)
  void markCaptureBegin(c10::DeviceIndex device) override { native()->markCaptureBegin(device); }
  void markCaptureEnd(c10::DeviceIndex device) override { native()->markCaptureEnd(device); }
  bool supportsUserMetadata() override { return native_.supportsUserMetadata(); }
  void annotateMemory(const void* data, const std::string& metadata) override {
    settled()->annotateMemory(data, metadata);
  }
  c10::DataPtr allocateWithAddress(size_t nbytes, void* address) override {
    c10::DataPtr data = native()->allocateWithAddress(nbytes, address);
    // Known as the allocator's by its deleter, like every other block.
    static_cast<void>(data.compare_exchange_deleter(native_.raw_deleter(), &free));
    return data;
  }
#endif
#else
  void emptyCache() override { settled()->emptyCache(); }
  SnapshotInfo snapshot() override { return settled()->snapshot(); }
  void ensureExistsAndIncrefPool(c10::DeviceIndex device, MempoolId_t pool) override {
    native()->ensureExistsAndIncrefPool(device, pool);
  }
  void recordHistory(bool enabled, CreateContextFn recorder, size_t entries, RecordContext when) override {
    settled(!enabled)->recordHistory(enabled, recorder, entries, when);
  }
#endif

 private:
  /// The lock, unless this thread is inside upstream's allocator already (a callback of it frees memory).
  class Lock {
   public:
    explicit Lock(DeviceAllocator& allocator) : allocator_(allocator), nested_(allocator.inside_ == pthread_self()) {
      if (C10_UNLIKELY(nested_)) {
        allocator_.disturbed_ = true;
      } else {
        allocator_.mutex_.lock();
      }
    }
    ~Lock() {
      if (!nested_) {
        allocator_.mutex_.unlock();
      }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool nested() const { return nested_; }
    bool usable() const { return !nested_ && !allocator_.off_; }

   private:
    DeviceAllocator& allocator_;
    bool nested_;
  };

  /// Marks the thread as inside upstream's allocator. What callbacks did there ends what is known of the state.
  class Native {
   public:
    explicit Native(DeviceAllocator& allocator) : allocator_(allocator) { allocator_.inside_ = pthread_self(); }
    ~Native() {
      allocator_.inside_ = pthread_t();
      if (C10_UNLIKELY(allocator_.disturbed_)) {
        allocator_.disturbed_ = false;
        allocator_.each([](AllocationReplay& replay) { replay.forget(); });
      }
    }
    Native(const Native&) = delete;
    Native& operator=(const Native&) = delete;

   private:
    DeviceAllocator& allocator_;
  };

  /// Upstream's allocator in the program's own state, for one call; with the lock, as long as steps are replayed.
  class Settled {
   public:
    Settled(DeviceAllocator& allocator, bool replays_on) : allocator_(allocator) {
      if (allocator_.off()) {
        return;
      }
      lock_.emplace(allocator_);
      if (lock_->usable()) {
        inside_.emplace(allocator_);
        allocator_.settle();
        if (!replays_on) {
          allocator_.off_ = true;
        }
      }
    }
    CUDAAllocator* operator->() { return &allocator_.native_; }

   private:
    DeviceAllocator& allocator_;
    std::optional<Lock> lock_;
    std::optional<Native> inside_;
  };
  Settled settled(bool replays_on = true) { return Settled(*this, replays_on); }
  Settled native() { return settled(false); }

  static void free(void* data);
  static void free_workspace(void* data);

  bool off() {
    if (C10_UNLIKELY(settings_ == nullptr)) {
      return true;  // its initialisation has raised: upstream's allocator says so
    }
    if (C10_UNLIKELY((!settings_->empty() || c10::impl::GPUTrace::get_trace() != nullptr) && !off_)) {
      Lock lock(*this);
      if (lock.usable()) {
        settle();
        off_ = true;
      }
    }
    return off_;
  }
  /// Whether the program has switched the cache off. A block is then freed as upstream's deleter for it knows.
  bool uncached() { return off() && !native_.isEnabled(); }
  static bool watched() { return c10::memoryProfilingEnabled(); }

  template <class F>
  void each(F&& f) {
    for (auto& replay : replays_) {
      if (replay != nullptr) {
        f(*replay);
      }
    }
  }
  void settle() {
    each([](AllocationReplay& replay) {
      replay.settle();
      replay.forget();
    });
  }

  /// To learn a step costs about half as much as the step. Where most are new that does not pay, so it stops for a
  /// while.
  void missed() {
    if (paused_ <= 0 && ++misses_ == kWindow) {
      if (hits_ < misses_) {
        settle();
        blocks_.forget();
        paused_ = kPause;
      }
      hits_ = misses_ = 0;
    }
  }

  void* request(size_t nbytes, c10::DeviceIndex device, c10::StreamId stream) {
    if (off()) {
      return native_.allocate(nbytes).release_context();
    }
    Lock lock(*this);
    if (!lock.usable()) {
      return native_.allocate(nbytes).release_context();
    }
    // Its tables take 1.3 MiB, which a device that the process never uses does not need.
    std::unique_ptr<AllocationReplay>& replay = replays_[static_cast<size_t>(device)];
    if (replay == nullptr) {
      replay = std::make_unique<AllocationReplay>(native_, blocks_, device);
    }
    const Native native(*this);
    missed();
    if (paused_ > 0) {
      --paused_;
      return native_.allocate(nbytes).release_context();
    }
    replay->before_request();
    void* data = nullptr;
    try {
      data = native_.allocate(nbytes).release_context();
    } catch (...) {
      replay->forget();
      throw;
    }
    replay->after_request(data, nbytes, stream);
    return data;
  }

  /// Statistics, which hold what was replayed also after replaying has been switched off.
  template <class Replayed, class Plain>
  std::invoke_result_t<Plain> with(c10::DeviceIndex device, Replayed&& replayed, Plain&& plain) {
    if (device >= 0 && static_cast<size_t>(device) < replays_.size()) {
      Lock lock(*this);
      AllocationReplay* replay = replays_[static_cast<size_t>(device)].get();
      if (replay != nullptr && !lock.nested()) {
        const Native native(*this);
        return replayed(*replay);
      }
    }
    return plain();
  }

  CUDAAllocator& native_;
  const std::string* settings_ = nullptr;  // read with upstream's own, see init()
  std::mutex mutex_;                       // of everything below
  std::atomic<bool> off_{false};
  std::atomic<pthread_t> inside_{pthread_t()};
  bool disturbed_ = false;
  static constexpr int64_t kWindow = 2048;
  static constexpr int64_t kPause = 16384;
  int64_t hits_ = 0;  // since misses_ was 0
  int64_t misses_ = 0;
  std::atomic<int64_t> paused_{0};  // steps until learning goes on
  AllocationReplay::Blocks blocks_;
  std::array<std::unique_ptr<AllocationReplay>, C10_COMPILE_TIME_MAX_GPUS> replays_;
};

DeviceAllocator* front = nullptr;  // lives as long as the process: tensors are freed until its end

void DeviceAllocator::free(void* data) { front->raw_delete(data); }
void DeviceAllocator::free_workspace(void* data) {
  Workspaces::returned.fetch_add(1, std::memory_order_relaxed);
  free(data);
}

void* replay_request(c10::DeviceIndex device, size_t nbytes) {
  return nbytes == 0 ? nullptr : front->replay(nbytes, device, c10::cuda::getCurrentCUDAStream(device).id());
}

}  // namespace

void install_device_allocator() {
  CUDAAllocator* native = get();
  const char* choice = std::getenv("MACA_ALLOCATOR_CACHE");
  if (native == nullptr || native->name() != "native" || std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr ||
      (choice != nullptr && std::string(choice) == "0")) {
    return;
  }
  front = new DeviceAllocator(*native);
  Workspaces::unseen.store(false, std::memory_order_relaxed);
  allocator.store(front);
  c10::SetAllocator(kDevice, front);
  set_block_source(&replay_request);
}

}  // namespace macatorch

extern "C" __attribute__((visibility("default"))) uint64_t macatorch_replayed_allocations() {
  return macatorch::front == nullptr ? 0 : macatorch::front->replays();
}
