#include "ops/distributed/Signals.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <utility>

namespace macatorch {
namespace {

using Clock = std::chrono::steady_clock;

// A signal that comes soon is not worth a system call. Where ranks outnumber processors it is the others' turn at once.
constexpr int kSpins = 2000;
constexpr long kSleepNs = 1000000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

bool sleeps_at_once(size_t ranks) { return ranks > std::thread::hardware_concurrency(); }

// Until the word changes. Kernels of others set words too, and wake nobody: no sleep is longer than a millisecond.
void sleep_while(const uint32_t* word, uint32_t value) {
  const timespec limit{0, kSleepNs};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake(uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

}  // namespace

SignalPads::SignalPads(const char* name, std::vector<uint32_t*> pads, int rank, size_t timeout_ms)
    : name_(name), pads_(std::move(pads)), rank_(rank), timeout_ms_(timeout_ms) {}

bool SignalPads::pass(int peer, int channel, bool puts) const {
  const size_t line = pads_.size() * static_cast<size_t>(channel);
  uint32_t* const word = puts ? pads_[static_cast<size_t>(peer)] + line + static_cast<size_t>(rank_)
                              : pads_[static_cast<size_t>(rank_)] + line + static_cast<size_t>(peer);
  const uint32_t from = puts ? 0 : 1;
  const Clock::time_point start = Clock::now();
  for (int attempt = sleeps_at_once(pads_.size()) ? kSpins : 0;; ++attempt) {
    uint32_t found = from;
    if (__atomic_compare_exchange_n(word, &found, 1 - from, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      wake(word);
      return true;
    }
    if (attempt < kSpins) {
      pause();
      continue;
    }
    if (timeout_ms_ != 0 && Clock::now() - start > std::chrono::milliseconds(timeout_ms_)) {
      break;
    }
    sleep_while(word, found);
  }
  const std::string text = std::string(name_) + ": rank " + std::to_string(rank_) +
                           (puts ? " has put a signal that rank " : " has had no signal of rank ") +
                           std::to_string(peer) + (puts ? " did not take" : "") + " on channel " +
                           std::to_string(channel) + " for " + std::to_string(timeout_ms_) + " ms";
  // The error is told where the host waits for the stream, by CUDA's words for it alone.
  std::fprintf(stderr, "%s\n", text.c_str());
  static_cast<void>(mcSetLastError(mcErrorLaunchFailure, text.c_str()));
  return false;
}

bool SignalPads::put(int peer, int channel) const { return pass(peer, channel, true); }

bool SignalPads::wait(int peer, int channel) const { return pass(peer, channel, false); }

bool SignalPads::barrier(int channel) const {
  // All signals go out before the first wait, so that no order of the ranks can be a circle.
  for (const bool puts : {true, false}) {
    for (int step = 1; step < ranks(); ++step) {
      if (!pass((rank_ + step) % ranks(), channel, puts)) {
        return false;
      }
    }
  }
  return true;
}

void wait_for_word(const uint32_t* word) {
  for (int attempt = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0; ++attempt) {
    if (attempt < kSpins) {
      pause();
    } else {
      sleep_while(word, 0);
    }
  }
}

namespace {

template <class T>
T argument(void** arguments, size_t index) {
  return *static_cast<const T*>(arguments[index]);
}

SignalPads pads_of(const char* name, void** arguments, size_t rank, size_t ranks, size_t timeout) {
  auto* const* const pads = argument<uint32_t**>(arguments, 0);
  return {name, std::vector<uint32_t*>(pads, pads + argument<int>(arguments, ranks)), argument<int>(arguments, rank),
          argument<size_t>(arguments, timeout)};
}

// (pads, channel, rank, ranks, milliseconds)
void barrier(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  pads_of("SymmetricMemory::barrier", arguments, 2, 3, 4).barrier(argument<int>(arguments, 1));
}

// (pads, peer, channel, rank, ranks, milliseconds)
void put_signal(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  pads_of("SymmetricMemory::put_signal", arguments, 3, 4, 5)
      .put(argument<int>(arguments, 1), argument<int>(arguments, 2));
}

void wait_signal(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  pads_of("SymmetricMemory::wait_signal", arguments, 3, 4, 5)
      .wait(argument<int>(arguments, 1), argument<int>(arguments, 2));
}

}  // namespace

void register_signals() {
  constexpr size_t pointer = sizeof(uint32_t**), number = sizeof(int), time = sizeof(size_t);
  constexpr size_t of_all[] = {pointer, number, number, number, time};
  constexpr size_t of_two[] = {pointer, number, number, number, number, time};
  const std::string space = "c10d::symmetric_memory::";
  const std::string all = "(unsigned int**, int, int, int, unsigned long)";
  const std::string two = "(unsigned int**, int, int, int, int, unsigned long)";
  mcKernelImplementWaiting((space + "barrier_kernel" + all).c_str(), &barrier, of_all, std::size(of_all));
  mcKernelImplementWaiting((space + "put_signal_kernel" + two).c_str(), &put_signal, of_two, std::size(of_two));
  mcKernelImplementWaiting((space + "wait_signal_kernel" + two).c_str(), &wait_signal, of_two, std::size(of_two));
}

}  // namespace macatorch
