#include "check/check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "check/keys.h"
#include "check/place.h"
#include "host/address_space.h"
#include "state/activity.h"
#include "state/state.h"

namespace mc {
namespace {

// 4 KiB on x86-64; on Arm the system chooses up to 64.
const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t kHugePage = size_t{2} << 20;
// Vector accesses of kernels, and what compilers assume of pointers, ask for this much.
constexpr size_t kAlignment = 16;
constexpr unsigned char kUntouched = 0xa5;
// Freed allocations that are remembered. Each may cost a mapping, of which Linux gives a process 65530.
constexpr size_t kRemembered = 16384;

size_t roundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

struct Block {
  uintptr_t base;  // the program's
  size_t bytes;
  uintptr_t first, end;  // its pages
  bool closes;
  Place allocated, freed{};
  bool live = true, open = false;
  Block* nextOpen = nullptr;
  // Before and behind it lies a page that is always closed.
  uintptr_t low() const { return first - kPage; }
  uintptr_t high() const { return end + kPage; }
};

// A touch that was let through, so that the operator ends.
struct Stray {
  const void* address;
  uintptr_t code;
  bool writes;
  uintptr_t page;
};

struct Checked {
  std::mutex mutex;
  std::map<uintptr_t, std::unique_ptr<Block>> blocks;  // by low()
  std::deque<uintptr_t> freed;                         // the keys of those that are not live, the oldest first
  Block* opened = nullptr;
  int inside = 0;  // scopes, of all threads
  static constexpr size_t kStrays = 64;
  Stray strays[kStrays];
  size_t strayCount = 0;
};
Checked& checked() {
  static auto* const made = new Checked;
  return *made;
}
using Lock = std::lock_guard<std::mutex>;

thread_local int depth = 0;
// A thread of a pool, which computes for others' scopes: it has been admitted for good.
thread_local bool trusted = false;
struct sigaction before[65];

// With the lock.
Block* blockAround(uintptr_t address) {
  auto& blocks = checked().blocks;
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  Block* const block = std::prev(after)->second.get();
  return address < block->high() ? block : nullptr;
}

void protect(uintptr_t from, uintptr_t to, int protection) {
  if (mprotect(reinterpret_cast<void*>(from), to - from, protection) != 0) {
    std::fprintf(stderr, "mxmaca: MACA_CHECK=memory: mprotect fails: %s\n", std::strerror(errno));
  }
}

// "8 bytes behind the end of an allocation of 400 bytes (train.py:3)".
std::string describe(const Block& block, uintptr_t address) {
  std::string text;
  if (address < block.base) {
    text = std::to_string(block.base - address) + " bytes before ";
  } else if (address >= block.base + block.bytes) {
    text = std::to_string(address - block.base - block.bytes) + " bytes behind the end of ";
  } else {
    text = "byte " + std::to_string(address - block.base) + " of ";
  }
  text += "an allocation of " + std::to_string(block.bytes) + " bytes, made at " + describe(block.allocated);
  if (!block.live) text += " and freed at " + describe(block.freed);
  return text;
}

// With the lock: bytes of the block's pages that are not its own and have been written. 0 if there are none.
uintptr_t firstOverwritten(const Block& block) {
  const auto changed = [](uintptr_t from, uintptr_t to) -> uintptr_t {
    const auto* const start = reinterpret_cast<const unsigned char*>(from);
    const auto* const end = reinterpret_cast<const unsigned char*>(to);
    const auto* const found = std::find_if(start, end, [](unsigned char byte) { return byte != kUntouched; });
    return found == end ? 0 : reinterpret_cast<uintptr_t>(found);
  };
  const uintptr_t behind = changed(block.base + block.bytes, block.end);
  return behind != 0 ? behind : changed(block.first, block.base);
}

void fillEnds(const Block& block) {
  std::memset(reinterpret_cast<void*>(block.first), kUntouched, block.base - block.first);
  std::memset(reinterpret_cast<void*>(block.base + block.bytes), kUntouched, block.end - block.base - block.bytes);
}

// With the lock. What it finds goes into `found`.
void closeAll(std::vector<std::string>* found) {
  Checked& all = checked();
  for (Block* block = all.opened; block != nullptr; block = block->nextOpen) {
    if (const uintptr_t at = firstOverwritten(*block)) {
      found->push_back("wrote " + describe(*block, at));
      fillEnds(*block);
    }
    block->open = false;
    if (block->closes) protect(block->first, block->end, PROT_NONE);
  }
  all.opened = nullptr;
  for (size_t i = 0; i < all.strayCount; ++i) {
    const Stray& stray = all.strays[i];
    const Block* const block = blockAround(reinterpret_cast<uintptr_t>(stray.address));
    found->push_back(
        (stray.writes ? "wrote " : "read ") +
        (block == nullptr ? "what was freed" : describe(*block, reinterpret_cast<uintptr_t>(stray.address))) + ", in " +
        describeCode(stray.code));
    mmap(reinterpret_cast<void*>(stray.page), kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
  }
  all.strayCount = 0;
}

bool isWrite(void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // of the processor's error code of a page fault
  return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#elif defined(__aarch64__)
  // The system puts the processor's syndrome (ESR_EL1) among the records behind the registers. WnR is its bit 6.
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const unsigned char* at = registers.__reserved;
  const unsigned char* const end = at + sizeof registers.__reserved;
  while (at + sizeof(_aarch64_ctx) <= end) {
    _aarch64_ctx head;
    std::memcpy(&head, at, sizeof head);
    if (head.magic == ESR_MAGIC) {
      esr_context found;
      std::memcpy(&found, at, sizeof found);
      return (found.esr >> 6 & 1) != 0;
    }
    if (head.magic == 0 || head.size < sizeof head || head.size > static_cast<size_t>(end - at)) break;
    at += head.size;
  }
  return false;
#endif
}

uintptr_t codeAt(void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(registers.gregs[REG_RIP]);
#else
  return static_cast<uintptr_t>(registers.pc);
#endif
}

std::atomic<check::KernelFault> kernelFault{nullptr};

// A touch that is not the device's work ends the process as it does on a GPU machine, after it has been reported.
void onSignal(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const check::KernelFault ofKernels = kernelFault.load(std::memory_order_acquire);
  const bool done = (ofKernels != nullptr && ofKernels(number, info, context)) ||
                    (info->si_code > 0 && check::onFault(*info, context, false) == check::Fault::kOpened);
  errno = saved;
  if (done) return;
  const struct sigaction& next = before[number];
  const bool handled = (next.sa_flags & SA_SIGINFO) != 0 || (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN);
  // Who has handled it and raises it again wants the process to end.
  if (!handled || info->si_code <= 0) {
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
  } else if ((next.sa_flags & SA_SIGINFO) != 0) {
    next.sa_sigaction(number, info, context);
  } else {
    next.sa_handler(number);
  }
}

// Whoever has put a handler of their own before ours since (Python's faulthandler) is called behind it from now on.
void holdSignals() {
  for (const int number : {SIGSEGV, SIGBUS}) {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == onSignal) continue;
    before[number] = now;
    struct sigaction own{};
    own.sa_sigaction = onSignal;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&own.sa_mask);
    sigaction(number, &own, nullptr);
  }
}

bool readMode() {
  const char* const text = std::getenv("MACA_CHECK");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return false;
  if (std::strcmp(text, "memory") == 0) {
    activity.tasks.fetch_add(1);
    return true;
  }
  std::fprintf(stderr, "mxmaca: MACA_CHECK is '%s'; it may be 'memory' or nothing\n", text);
  return false;
}

}  // namespace

const bool checkMode = readMode();

namespace check {

void report(const std::string& what) { std::fprintf(stderr, "mxmaca: MACA_CHECK=memory: %s\n", what.c_str()); }

void open() {
  holdSignals();
  const Lock lock(checked().mutex);
  ++checked().inside;
}

bool close(const char* what) {
  std::vector<std::string> found;
  {
    const Admitted reads;
    const Lock lock(checked().mutex);
    if (--checked().inside == 0) closeAll(&found);
  }
  if (found.empty()) return true;
  const std::string here = describe(placeOfCaller());
  for (const std::string& one : found) {
    const std::string text = (what == nullptr ? "work of the device " : std::string(what) + " ") + one + "; at " + here;
    report(text);
    setSticky(mcErrorIllegalAddress, text.c_str());
  }
  return false;
}

void enter() {
  if (depth++ != 0) return;
  open();
  admit();
}

bool leave(const char* what) {
  if (--depth != 0) return true;
  const bool clean = close(what);
  if (!trusted) dismiss();
  return clean;
}

void* allocate(size_t bytes, bool closes) {
  const size_t kept = roundUp(bytes, kPage);
  const size_t unit = kept >= kHugePage ? kHugePage : kPage;
  const size_t whole = kept + 2 * kPage + (unit == kPage ? 0 : unit);
  void* const space = mapApart(whole, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (space == nullptr) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(space);
  auto block = std::make_unique<Block>();
  block->first = unit == kPage ? start + kPage : roundUp(start + kPage, unit);
  block->end = block->first + kept;
  if (block->low() > start) munmap(space, block->low() - start);
  if (start + whole > block->high()) munmap(reinterpret_cast<void*>(block->high()), start + whole - block->high());
  block->bytes = bytes;
  block->base = block->end - roundUp(bytes, kAlignment);
  block->closes = closes;
  block->allocated = placeOfCaller();
  auto* const pages = reinterpret_cast<void*>(block->first);
  if (mprotect(pages, kept, PROT_READ | PROT_WRITE) != 0) {
    munmap(reinterpret_cast<void*>(block->low()), block->high() - block->low());
    return nullptr;
  }
  if (unit != kPage) madvise(pages, kept, MADV_HUGEPAGE);
  fillEnds(*block);
  if (closes && !(haveKey() && giveKey(block->first, block->end))) protect(block->first, block->end, PROT_NONE);
  auto* const memory = reinterpret_cast<void*>(block->base);
  const Lock lock(checked().mutex);
  const uintptr_t key = block->low();
  checked().blocks[key] = std::move(block);
  return memory;
}

bool release(void* memory) {
  const Place here = placeOfCaller();
  std::string overwritten;
  {
    const Lock lock(checked().mutex);
    Checked& all = checked();
    Block* const block = blockAround(reinterpret_cast<uintptr_t>(memory));
    if (block == nullptr || !block->live || block->base != reinterpret_cast<uintptr_t>(memory)) return false;
    if (!block->closes) {
      if (const uintptr_t at = firstOverwritten(*block)) overwritten = describe(*block, at);
    }
    for (Block** link = &all.opened; *link != nullptr; link = &(*link)->nextOpen) {
      if (*link != block) continue;
      *link = block->nextOpen;
      break;
    }
    block->live = block->open = false;
    block->freed = here;
    mmap(reinterpret_cast<void*>(block->first), block->end - block->first, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    all.freed.push_back(block->low());
    while (all.freed.size() > kRemembered) {
      const auto oldest = all.blocks.find(all.freed.front());
      munmap(reinterpret_cast<void*>(oldest->second->low()), oldest->second->high() - oldest->second->low());
      all.blocks.erase(oldest);
      all.freed.pop_front();
    }
  }
  if (!overwritten.empty()) report("the host or the device wrote " + overwritten + "; found at its end");
  return true;
}

void onKernelFault(KernelFault handler) { kernelFault.store(handler, std::memory_order_release); }

void reportFree(const void* memory) {
  std::string text;
  {
    const Lock lock(checked().mutex);
    const Block* const block = blockAround(reinterpret_cast<uintptr_t>(memory));
    if (block == nullptr) return;
    text = describe(*block, reinterpret_cast<uintptr_t>(memory));
    if (!block->live) text += ", is freed again";
  }
  report((text.find("freed again") != std::string::npos ? "freed twice: " : "freed, but no start of an allocation: ") +
         text + "; at " + describe(placeOfCaller()));
}

std::string explain(const void* address) {
  const Lock lock(checked().mutex);
  const Block* const block = blockAround(reinterpret_cast<uintptr_t>(address));
  return block == nullptr ? "no memory" : describe(*block, reinterpret_cast<uintptr_t>(address));
}

// Whether the interrupted thread is the program's own and not at work for the device: it runs Python, or is the first.
// Other threads compute for whoever is in a Scope, so with keys they are admitted when they first touch something.
static bool isHost() { return depth == 0 && !trusted && (syscall(SYS_gettid) == getpid() || !pythonPlace().empty()); }

Fault onFault(const siginfo_t& info, void* context, bool inKernel) {
  const void* const address = info.si_addr;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const bool host = haveKey() && !inKernel && isHost();
  Checked& all = checked();
  std::string text;
  {
    const Lock lock(all.mutex);
    Block* const block = blockAround(at);
    if (block == nullptr) return Fault::kForeign;
    const bool own = block->live && at >= block->first && at < block->end;
    if (own && info.si_code == SEGV_PKUERR && !host && admitInterrupted(context)) {
      trusted = depth == 0;
      return Fault::kOpened;
    }
    if (own && block->open && info.si_code != SEGV_PKUERR) return Fault::kOpened;  // by another thread, since
    if (own && all.inside != 0 && !host) {
      block->open = true;
      block->nextOpen = all.opened;
      all.opened = block;
      protect(block->first, block->end, PROT_READ | PROT_WRITE);
      return Fault::kOpened;
    }
    if (inKernel) return Fault::kStray;
    if (all.inside != 0 && !host && all.strayCount < Checked::kStrays) {
      const uintptr_t page = at / kPage * kPage;
      const Stray stray{address, codeAt(context), isWrite(context), page};
      const bool seen = std::any_of(all.strays, all.strays + all.strayCount,
                                    [page](const Stray& other) { return other.page == page; });
      if (!seen) all.strays[all.strayCount++] = stray;
      protect(page, page + kPage, PROT_READ | PROT_WRITE);
      return Fault::kOpened;
    }
    text = describe(*block, at);
  }
  const std::string python = pythonPlace();
  report(std::string("the host ") + (isWrite(context) ? "writes " : "reads ") + text + ", in " +
         describeCode(codeAt(context)) + (python.empty() ? "" : "; at " + python) +
         ". On a GPU machine this ends the program, and so it does here");
  return Fault::kForeign;
}

}  // namespace check
}  // namespace mc

int mcCheckMode(void) { return mc::checkMode ? 1 : 0; }
void mcCheckEnter(void) {
  if (mc::checkMode) mc::check::enter();
}
void mcCheckLeave(const char* what) {
  if (mc::checkMode) mc::check::leave(what);
}
