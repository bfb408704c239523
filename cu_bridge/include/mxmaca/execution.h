// What every kernel has without an include: its indices, barriers, warp operations, fences, clocks. And the loop over
// the threads of a block that a kernel becomes (the note in mc_kernel.h says how a block runs).
#pragma once

#include <type_traits>
#include <utility>

#include "arithmetic/conversions.h"
#include "arithmetic/shifts.h"
#include "cycles.h"
#include "kernel_interface.h"
#include "mc_device_limits.h"
#include "phase_lanes.h"

// ---- Indices --------------------------------------------------------------------------------------------------------
// Of the running thread. Each object file has its own, with no address that leaves it: so the compiler knows that no
// pointer of a kernel leads here, keeps them in registers, and can make the loop over threads a vector loop.
// Relocatable device code has them in common, since device functions of several files then run in one thread.
#ifdef __CUDACC_RDC__
#define MXMACA_OF_THREAD __attribute__((weak, visibility("hidden"))) __thread
#elif defined(__CUDA_ARCH__)
#define MXMACA_OF_THREAD static __attribute__((unused)) __thread
#else
// Device functions are compiled for the host as well, where nothing is ever written to these. A compiler that sees that
// computes with their first values, and the address of `s[blockDim.x / 32 - 1]` is none that a linker can make.
#define MXMACA_OF_THREAD static __attribute__((used)) __thread
#endif
MXMACA_OF_THREAD uint3 threadIdx = {0, 0, 0};
MXMACA_OF_THREAD uint3 blockIdx = {0, 0, 0};
MXMACA_OF_THREAD dim3 blockDim(1, 1, 1);
MXMACA_OF_THREAD dim3 gridDim(1, 1, 1);
static const int __attribute__((unused)) warpSize = mc::limits::kWarpSize;

namespace mxmaca {

// cucc looks for these words: the compiler can check that device variables need no code to start with.
#if defined(__clang__)
enum { has_require_constant_initialization = 1 };
#elif defined(__GNUC__) && __GNUC__ >= 10
enum { has_constinit = 1 };
#endif

// Whether the running loop has become one thread's own.
MXMACA_OF_THREAD bool parked = false;

static inline unsigned linear_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
static inline unsigned lane() { return linear_thread() & 31; }

// Other threads run inside a call that waits; what says who runs here is put back behind it.
class Waiting {
 public:
  __attribute__((always_inline)) Waiting() : thread_(threadIdx) {
    if (!parked) ::__cudaThreadPark(linear_thread());
  }
  __attribute__((always_inline)) ~Waiting() {
    threadIdx = thread_;
    parked = true;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const uint3 thread_;
};

static inline unsigned barrier(int kind, int predicate, const char* file, int line) {
  const Waiting waiting;
  return ::__cudaBlockBarrier(kind, predicate, file, line);
}

// One of the block's sixteen barriers, at which `threads` threads meet (0: all). How many of them had the predicate; 0
// where the thread only arrives.
static inline unsigned named_barrier(unsigned number, unsigned threads, bool arrive = false, bool predicate = false,
                                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const Waiting waiting;
  return ::__cudaBlockNamedBarrier(number, threads, arrive, predicate, file, line);
}

static inline unsigned long long exchange(mcWarpOperation operation, unsigned mask, unsigned long long value,
                                          unsigned from, const char* file, int line) {
  const Waiting waiting;
  return ::__cudaWarpExchange(operation, mask, value, from, file, line);
}

static inline unsigned active(const char* file, int line) {
  const Waiting waiting;
  return ::__cudaWarpActive(file, line);
}

static inline unsigned yield() {
  const Waiting waiting;
  return ::__cudaThreadYield();
}

// Threads that go round a loop until another one has done something must let the others run: those of their block, and
// blocks that have not begun (the note in grid.h). In a phase none waits for its own block (cucc's waits.py), and
// there is no other thread to change to.
static inline unsigned give_way() {
  return ::__cudaKernelEnter()->wholeBlocks == mcBlocksInPhases ? ::__cudaThreadYield() : yield();
}

// What functions call that such a loop may consist of.
static inline void spun() {
  constexpr unsigned kAtFirst = 1024;
  static thread_local unsigned left = kAtFirst;
  if (--left != 0) return;
  left = kAtFirst;  // of those that run inside the call
  left = give_way();
}

// What cucc puts into loops that read volatile memory (waits.py).
static inline void spinning() {
  static thread_local unsigned rounds = 0;
  if ((++rounds & 31U) == 0) give_way();
}

// The whole grid of a cooperative launch.
static inline void grid_sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  barrier(mcBarrierGrid, 0, file, line);
}

inline void* dynamic_shared() { return ::__cudaKernelEnter()->dynamicShared; }
inline unsigned dynamic_shared_bytes() { return ::__cudaKernelEnter()->dynamicSharedBytes; }

// Dynamic shared memory that is declared outside of functions: each use asks where it is.
template <class T>
struct DynamicShared {
  operator T*() const { return static_cast<T*>(dynamic_shared()); }
  // A cast reads the memory as another type.
  template <class Other>
  explicit operator Other*() const {
    return static_cast<Other*>(dynamic_shared());
  }
  T* operator&() const { return static_cast<T*>(dynamic_shared()); }
};

// What a reference to an array of unknown length refers to.
template <class T>
using pointee = typename std::remove_reference<T>::type;

// Size and alignment of a kernel's parameter; its launch bound and kMayWait or 0; 0 and 0 at the end.
struct KernelFact {
  unsigned bytes, alignment;
};
constexpr unsigned kMayWait = mcKernelMayWait;
constexpr KernelFact bound(unsigned long long threads, unsigned waits = 0) {
  return {static_cast<unsigned>(threads), waits};
}
template <class T>
constexpr KernelFact fact(int) {
  return {sizeof(T), alignof(T)};
}

// ---- The loop -------------------------------------------------------------------------------------------------------

// Goes on with the next of the loop's blocks, unless the runtime has given them to others.
__attribute__((always_inline)) inline bool next_block(mcKernelContext* context, mcDim3& index,
                                                      unsigned long long& blocks) {
  blocks = context->blocks;
  if (--blocks == 0) return false;
  if (++index.x == context->gridDim.x) {
    index.x = 0;
    if (++index.y == context->gridDim.y) {
      index.y = 0;
      ++index.z;
    }
    context->block = index;
  }
  context->block.x = index.x;
  context->blocks = blocks;
  return true;
}

// Note: a vector loop
// ~~~~~~~~~~~~~~~~~~~
// The index that most kernels begin with, `int i = blockIdx.x * blockDim.x + threadIdx.x`, is arithmetic modulo 2^32,
// and a compiler that must allow for a wrap makes no vector loop of it. So the loop over x counts that index itself, as
// an int, and threadIdx.x is its distance from the block's first one: i is then the counter. The runtime never gives a
// loop a row in which the counter would pass INT_MAX. The order in which the threads' memory accesses then happen is
// one that CUDA allows, since nothing orders threads that never wait; and the compiler proves or checks that it makes
// no difference.
template <class Body, class... Parameters>
__attribute__((always_inline)) inline void run_threads(const Body& body, mcKernelContext* context,
                                                       Parameters... parameters) {
  const mcDim3 grid = context->gridDim, block = context->blockDim, end = context->endThread;
  mcDim3 index = context->block;
  unsigned x = context->firstThread.x, y = context->firstThread.y, z = context->firstThread.z;
  unsigned long long blocks = context->blocks;
  gridDim = dim3(grid.x, grid.y, grid.z);
  blockDim = dim3(block.x, block.y, block.z);
  parked = false;
  for (;;) {
    blockIdx.x = index.x;
    blockIdx.y = index.y;
    blockIdx.z = index.z;
    const unsigned base = index.x * block.x;
    const int last = static_cast<int>(base + (end.x - 1));
    for (;;) {
      threadIdx.y = y;
      threadIdx.z = z;
      int counter = static_cast<int>(base + x);
      do {
        threadIdx.x = static_cast<unsigned>(counter) - base;
        body(parameters...);
        if (parked) return;
      } while (counter++ < last);
      x = 0;
      if (++y >= end.y) {
        if (++z >= end.z) break;
        y = 0;
      }
    }
    if (!next_block(context, index, blocks)) return;
    y = z = 0;
  }
}

// The loop of a phase, for kernels that are one loop for each stretch between two waits (the note in cucc's phases.py).
struct Phase {
  template <class Region>
  __attribute__((always_inline)) void operator()(const Region& region) const {
    const int width = static_cast<int>(blockDim.x);
    int row = 0;
    for (unsigned z = 0; z < blockDim.z; ++z) {
      for (unsigned y = 0; y < blockDim.y; ++y) {
        threadIdx.y = y;
        threadIdx.z = z;
        for (int x = 0; x < width; ++x) {
          threadIdx.x = static_cast<unsigned>(x);
          region(row + x);
        }
        row += width;
      }
    }
  }
};

// What all threads of a block say to a condition on which they go on together. cucc has shown that they say the same;
// were it not so, the values would be wrong behind it.
class Agreed {
 public:
  __attribute__((always_inline)) void say(bool yes) {
    yes_ |= yes;
    no_ |= !yes;
  }
  __attribute__((always_inline)) bool yes() {
    if (yes_ && no_) {
      ::__cudaKernelFail(cudaErrorLaunchFailure, "a condition before a barrier is not the same for all threads");
    }
    const bool answer = yes_;
    yes_ = no_ = false;
    return answer;
  }

 private:
  bool yes_ = false, no_ = false;
};

template <class Phases, class... Parameters>
__attribute__((always_inline)) inline void run_phases(const Phases& phases, mcKernelContext* context,
                                                      Parameters... parameters) {
  const mcDim3 grid = context->gridDim, block = context->blockDim;
  mcDim3 index = context->block;
  unsigned long long blocks = context->blocks;
  gridDim = dim3(grid.x, grid.y, grid.z);
  blockDim = dim3(block.x, block.y, block.z);
  parked = false;
  context->wholeBlocks = mcBlocksInPhases;
  do {
    blockIdx.x = index.x;
    blockIdx.y = index.y;
    blockIdx.z = index.z;
    phases(Phase(), parameters...);
  } while (next_block(context, index, blocks));
}

template <class... T>
struct Types {};
template <class T>
struct Same {
  typedef T type;
};

// What run_kernel is given for a kernel that has no phases.
struct OneLoop {};

// What it is given for one with shuffles in them. In a block that ends with a part of a warp they may read lanes that
// are not there, which the runtime reports; so that one runs on stacks.
template <class Phases>
struct WholeWarps {
  const Phases& phases;
};
template <class Phases>
__attribute__((always_inline)) inline WholeWarps<Phases> whole_warps(const Phases& phases) {
  return {phases};
}

// What it is given for one in which some warps shuffle and others do not: they are told by the index in a row.
template <class Phases>
struct WholeRows {
  const Phases& phases;
};
template <class Phases>
__attribute__((always_inline)) inline WholeRows<Phases> whole_rows(const Phases& phases) {
  return {phases};
}

// What it is given for a template that keeps values of its types over waits: classes are left to the stacks.
template <class... T>
constexpr bool are_numbers = (std::is_arithmetic<T>::value && ...);
template <class... T, class Phases>
__attribute__((always_inline)) inline auto where_numbers(const Phases& phases) {
  if constexpr (are_numbers<T...>) {
    return phases;
  } else {
    return OneLoop();
  }
}

template <class Body, class... Parameters>
__attribute__((always_inline)) inline void run_blocks(const Body& body, const OneLoop&, Types<Parameters...>,
                                                      mcKernelContext* context,
                                                      typename Same<Parameters>::type... parameters) {
  run_threads<Body, Parameters...>(body, context, parameters...);
}
template <class Body, class Phases, class... Parameters>
__attribute__((always_inline)) inline void run_blocks(const Body& body, const Phases& phases, Types<Parameters...>,
                                                      mcKernelContext* context,
                                                      typename Same<Parameters>::type... parameters) {
  // Where another order of the threads is asked for, to find mistakes, each has its own stack.
  if (context->wholeBlocks) {
    run_phases<Phases, Parameters...>(phases, context, parameters...);
  } else {
    run_threads<Body, Parameters...>(body, context, parameters...);
  }
}
template <class Body, class Phases, class... Parameters>
__attribute__((always_inline)) inline void run_blocks(const Body& body, const WholeWarps<Phases>& phases,
                                                      Types<Parameters...>, mcKernelContext* context,
                                                      typename Same<Parameters>::type... parameters) {
  const mcDim3 block = context->blockDim;
  if (context->wholeBlocks && block.x * block.y * block.z % 32 == 0) {
    run_phases<Phases, Parameters...>(phases.phases, context, parameters...);
  } else {
    run_threads<Body, Parameters...>(body, context, parameters...);
  }
}

template <class Body, class Phases, class... Parameters>
__attribute__((always_inline)) inline void run_blocks(const Body& body, const WholeRows<Phases>& phases,
                                                      Types<Parameters...>, mcKernelContext* context,
                                                      typename Same<Parameters>::type... parameters) {
  if (context->wholeBlocks && context->blockDim.x % 32 == 0) {
    run_phases<Phases, Parameters...>(phases.phases, context, parameters...);
  } else {
    run_threads<Body, Parameters...>(body, context, parameters...);
  }
}

template <class Body, class Phases, class... Parameters, std::size_t... position>
__attribute__((always_inline)) inline void run_kernel(const Body& body, const Phases& phases,
                                                      void (Body::*)(Parameters...) const,
                                                      std::index_sequence<position...>) {
  mcKernelContext* const context = ::__cudaKernelEnter();
  (void)context->arguments;
  run_blocks(body, phases, Types<Parameters...>(), context,
             *static_cast<typename std::remove_cv<Parameters>::type*>(context->arguments[position])...);
}

template <class Body, class Phases = OneLoop, class... Parameters>
__attribute__((always_inline)) inline void run_kernel(const Body& body, void (Body::*call)(Parameters...) const,
                                                      const Phases& phases = Phases()) {
  run_kernel(body, phases, call, std::index_sequence_for<Parameters...>());
}

// Where the body is a function: under -G, and with clang.
template <class... Parameters>
__attribute__((always_inline)) inline void run_named(void (*body)(Parameters...)) {
  const auto call = [body](Parameters... parameters) { body(static_cast<Parameters&&>(parameters)...); };
  run_kernel(call, &decltype(call)::operator());
}

}  // namespace mxmaca

// ---- Barriers -------------------------------------------------------------------------------------------------------
#define MXMACA_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(MXMACA_SITE) { mxmaca::barrier(mcBarrierPlain, 0, file, line); }
static inline int __syncthreads_count(int predicate, MXMACA_SITE) {
  return static_cast<int>(mxmaca::barrier(mcBarrierPlain, predicate, file, line));
}
static inline int __syncthreads_or(int predicate, MXMACA_SITE) {
  return mxmaca::barrier(mcBarrierPlain, predicate, file, line) != 0;
}
static inline int __syncthreads_and(int predicate, MXMACA_SITE) {
  return mxmaca::barrier(mcBarrierPlain, !predicate, file, line) == 0;
}

static inline void __barrier_sync(unsigned number, MXMACA_SITE) {
  mxmaca::named_barrier(number, 0, false, false, file, line);
}
static inline void __barrier_sync_count(unsigned number, unsigned threads, MXMACA_SITE) {
  mxmaca::named_barrier(number, threads, false, false, file, line);
}

// Threads of a block run on one processor and blocks meet at the end of the launch, so a fence has nothing to add but
// order between processors, and the lockstep of a warp: programs announce, in one lane behind a fence, what all lanes
// have stored before it. Loops that wait for a flag of another block often have one.
namespace mxmaca {
static inline void catch_up() {
  if (!parked) return;
  const Waiting waiting;
  ::__cudaThreadFence();
}
}  // namespace mxmaca
static inline void __threadfence() {
  mxmaca::spun();
  mxmaca::catch_up();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block() {
  mxmaca::catch_up();
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system() {
  mxmaca::catch_up();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// ---- Warp operations ------------------------------------------------------------------------------------------------
static inline void __syncwarp(unsigned mask = 0xffffffffU, MXMACA_SITE) {
  mxmaca::exchange(mcWarpSync, mask, 0, 0, file, line);
}
static inline unsigned __activemask(MXMACA_SITE) { return mxmaca::active(file, line); }

namespace mxmaca {

// Any trivially copyable value of up to eight bytes as a word, and back.
template <class T>
static inline unsigned long long to_word(T value) {
  static_assert(sizeof(T) <= 8, "a warp operation moves at most 8 bytes");
  unsigned long long word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  return word;
}
template <class T>
static inline T from_word(unsigned long long word) {
  T value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
static inline T shuffle(mcWarpOperation kind, unsigned mask, T value, unsigned from, const char* file, int line) {
  return from_word<T>(exchange(kind, mask, to_word(value), from, file, line));
}

}  // namespace mxmaca

#define MXMACA_SHUFFLES(type)                                                                                   \
  static inline type __shfl_sync(unsigned mask, type value, int index, int width = 32, MXMACA_SITE) {           \
    const unsigned from = mxmaca::shuffle_index_lane(mxmaca::lane(), index, width);                             \
    return mxmaca::shuffle(mcWarpShuffle, mask, value, from, file, line);                                       \
  }                                                                                                             \
  static inline type __shfl_up_sync(unsigned mask, type value, unsigned delta, int width = 32, MXMACA_SITE) {   \
    const unsigned from = mxmaca::shuffle_up_lane(mxmaca::lane(), delta, width);                                \
    return mxmaca::shuffle(mcWarpShuffleUp, mask, value, from, file, line);                                     \
  }                                                                                                             \
  static inline type __shfl_down_sync(unsigned mask, type value, unsigned delta, int width = 32, MXMACA_SITE) { \
    const unsigned from = mxmaca::shuffle_down_lane(mxmaca::lane(), delta, width);                              \
    return mxmaca::shuffle(mcWarpShuffleDown, mask, value, from, file, line);                                   \
  }                                                                                                             \
  static inline type __shfl_xor_sync(unsigned mask, type value, int bits, int width = 32, MXMACA_SITE) {        \
    const unsigned from = mxmaca::shuffle_xor_lane(mxmaca::lane(), bits, width);                                \
    return mxmaca::shuffle(mcWarpShuffleXor, mask, value, from, file, line);                                    \
  }
MXMACA_SHUFFLES(int)
MXMACA_SHUFFLES(unsigned int)
MXMACA_SHUFFLES(long)
MXMACA_SHUFFLES(unsigned long)
MXMACA_SHUFFLES(long long)
MXMACA_SHUFFLES(unsigned long long)
MXMACA_SHUFFLES(float)
MXMACA_SHUFFLES(double)
#undef MXMACA_SHUFFLES

static inline unsigned __ballot_sync(unsigned mask, int predicate, MXMACA_SITE) {
  return static_cast<unsigned>(mxmaca::exchange(mcWarpBallot, mask, predicate != 0, 0, file, line));
}
static inline int __any_sync(unsigned mask, int predicate, MXMACA_SITE) {
  return mxmaca::exchange(mcWarpAny, mask, predicate != 0, 0, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, MXMACA_SITE) {
  return mxmaca::exchange(mcWarpAll, mask, predicate == 0, 0, file, line) == 0;
}
static inline int __uni_sync(unsigned mask, int predicate, MXMACA_SITE) {
  const unsigned yes = static_cast<unsigned>(mxmaca::exchange(mcWarpUniform, mask, predicate != 0, 0, file, line));
  const unsigned no = static_cast<unsigned>(mxmaca::exchange(mcWarpUniform, mask, predicate == 0, 0, file, line));
  return yes == 0 || no == 0;
}

template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, MXMACA_SITE) {
  static_assert(std::is_arithmetic<T>::value, "__match_any_sync compares numbers");
  return static_cast<unsigned>(mxmaca::exchange(mcWarpMatch, mask, mxmaca::to_word(value), 0, file, line));
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int* predicate, MXMACA_SITE) {
  static_assert(std::is_arithmetic<T>::value, "__match_all_sync compares numbers");
  const unsigned long long word = mxmaca::to_word(value);
  const auto same = static_cast<unsigned>(mxmaca::exchange(mcWarpMatchAll, mask, word, 0, file, line));
  const auto all = static_cast<unsigned>(mxmaca::exchange(mcWarpBallot, mask, 1, 0, file, line));
  *predicate = same == all;
  return same == all ? all : 0;
}

#define MXMACA_REDUCTION(type, name, operation)                                                               \
  static inline type name(unsigned mask, type value, MXMACA_SITE) {                                           \
    return static_cast<type>(mxmaca::exchange(operation, mask, static_cast<unsigned>(value), 0, file, line)); \
  }
MXMACA_REDUCTION(unsigned, __reduce_add_sync, mcWarpAdd)
MXMACA_REDUCTION(int, __reduce_add_sync, mcWarpAdd)
MXMACA_REDUCTION(unsigned, __reduce_min_sync, mcWarpMinUnsigned)
MXMACA_REDUCTION(int, __reduce_min_sync, mcWarpMinSigned)
MXMACA_REDUCTION(unsigned, __reduce_max_sync, mcWarpMaxUnsigned)
MXMACA_REDUCTION(int, __reduce_max_sync, mcWarpMaxSigned)
MXMACA_REDUCTION(unsigned, __reduce_and_sync, mcWarpAnd)
MXMACA_REDUCTION(unsigned, __reduce_or_sync, mcWarpOr)
MXMACA_REDUCTION(unsigned, __reduce_xor_sync, mcWarpXor)
#undef MXMACA_REDUCTION
#undef MXMACA_SITE

// ---- Clocks, traps --------------------------------------------------------------------------------------------------
// clock() is the C library's by name; cucc makes it this counter where device code calls it.
static inline long long clock64() { return mxmaca::cycles(); }
static inline void __nanosleep(unsigned) { mxmaca::yield(); }

// The value of a graph's conditional node, for the rest of the launch.
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value) {
  ::__cudaGraphSetConditional(handle, value);
}
static inline void __trap() { ::__cudaKernelFail(cudaErrorLaunchFailure, "__trap()"); }
static inline void __brkpt() { ::__cudaKernelFail(cudaErrorLaunchFailure, "__brkpt()"); }
static inline void __prof_trigger(int) {}

// What a compiler may take for granted, as nvcc has it. clang++ has the first of its own.
static inline __attribute__((always_inline)) constexpr void __assume(bool holds) {
  if (!holds) __builtin_unreachable();
}
#ifndef __clang__
static inline __attribute__((always_inline)) constexpr void __builtin_assume(bool holds) { __assume(holds); }
#endif
