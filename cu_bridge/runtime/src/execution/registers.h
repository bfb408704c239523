// The processor's registers as a signal's handler sees them.
#pragma once

#include <ucontext.h>

#include <cstdint>

#include "execution/fiber.h"

namespace mc {

// Where the interrupted code is.
inline uintptr_t interruptedAt(void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(registers.gregs[REG_RIP]);
#else
  return static_cast<uintptr_t>(registers.pc);
#endif
}

// The thread goes on with the stack `next`, and not where it was interrupted.
inline void goOnWith(void* next, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  registers.gregs[REG_RSP] = reinterpret_cast<greg_t>(next);
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&mcFiberResume);
#else
  registers.sp = reinterpret_cast<unsigned long long>(next);
  registers.pc = reinterpret_cast<unsigned long long>(&mcFiberResume);
#endif
}

}  // namespace mc
