#include "execution/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "The switch between stacks is written for x86-64 and AArch64."
#endif

namespace mc {
namespace {
size_t pageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// How many stacks of this process may have a guard page that is taken out.
long mostGuards() {
  static const long most = [] {
    long mappings = 65530;
    if (std::FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
      if (std::fscanf(file, "%ld", &mappings) != 1) mappings = 65530;
      std::fclose(file);
    }
    return mappings / 4;
  }();
  return most;
}
std::atomic<long> guards{0};
}  // namespace

// `ret` and not a jump: all threads of a block wait at the same place, so the processor's guess of the return address
// is right although the stack is another one.
#if defined(__x86_64__)
asm(R"(
.text
.globl mcFiberSwitch
.hidden mcFiberSwitch
.type mcFiberSwitch, @function
.balign 16
mcFiberSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
.globl mcFiberResume
.hidden mcFiberResume
mcFiberResume:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mcFiberSwitch, .-mcFiberSwitch
)");
#else
asm(R"(
.text
.globl mcFiberSwitch
.hidden mcFiberSwitch
.type mcFiberSwitch, %function
.balign 16
mcFiberSwitch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
.globl mcFiberResume
.hidden mcFiberResume
mcFiberResume:
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size mcFiberSwitch, .-mcFiberSwitch
)");
#endif

bool makeStacks(Stack* stacks, size_t count) {
  const size_t guard = pageBytes();
  const size_t unit = kStackBytes + guard;
  void* const memory =
      mmap(nullptr, unit * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // A huge page for each stack would be memory without use.
  madvise(memory, unit * count, MADV_NOHUGEPAGE);
  const long wanted = static_cast<long>(count);
  const bool guarded = guards.fetch_add(wanted) + wanted <= mostGuards();
  if (!guarded) guards.fetch_sub(wanted);
  for (size_t i = 0; i < count; ++i) {
    char* const base = static_cast<char*>(memory) + unit * i;
    // The first one keeps the group apart from what lies below it.
    if ((guarded || i == 0) && mprotect(base, guard, PROT_NONE) != 0) {
      munmap(memory, unit * count);
      if (guarded) guards.fetch_sub(wanted);
      return false;
    }
    stacks[i] = {base + guard, base + unit, guarded};
  }
  return true;
}

void freeStacks(Stack* stacks, size_t count) {
  const size_t guard = pageBytes();
  if (count == 0 || stacks[0].bottom == nullptr) return;
  munmap(stacks[0].bottom - guard, (kStackBytes + guard) * count);
  if (stacks[0].guarded) guards.fetch_sub(static_cast<long>(count));
}

bool overran(const Stack* stacks, size_t count) {
  if (count == 0 || stacks[0].guarded) return false;
  const size_t page = pageBytes(), unit = kStackBytes + page, pages = unit / page * count;
  std::vector<unsigned char> resident(pages);
  char* const memory = stacks[0].bottom - page;
  if (mincore(memory, unit * count, resident.data()) != 0) return false;
  bool found = false;
  for (size_t i = 1; i < count; ++i) {
    if ((resident[i * (unit / page)] & 1) == 0) continue;
    found = true;
    madvise(memory + i * unit, page, MADV_DONTNEED);
  }
  return found;
}

void* prepareStack(const Stack& stack, void (*entry)(), unsigned color) {
  auto** sp = reinterpret_cast<void**>(stack.top - 64 - (color % 16) * 192);
#if defined(__x86_64__)
  *--sp = nullptr;  // the return address of `entry`: debuggers end the stack here, and the stack is aligned
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
#else
  sp -= 20;
  for (int i = 0; i < 20; ++i) sp[i] = nullptr;
  sp[11] = reinterpret_cast<void*>(entry);
#endif
  return sp;
}

}  // namespace mc
