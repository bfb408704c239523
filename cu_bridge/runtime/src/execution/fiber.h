// Stacks of their own for the threads of a block, and the switch between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mc {

// Saves the caller's registers on its stack and its stack pointer in *from, and goes on where `to` was saved.
extern "C" void mcFiberSwitch(void** from, void* to);
// The second half of it: where a signal handler lets a thread go on after a kernel has failed.
extern "C" void mcFiberResume();

struct Stack {
  char* bottom = nullptr;  // above the guard page
  char* top = nullptr;
  bool guarded = true;  // its guard page faults; else overran() tells who has been there
};

constexpr size_t kStackBytes = size_t{256} << 10;

// Stacks for `count` fibers, with a guard page below each. False: the system gives no memory.
//
// Note: guard pages
// ~~~~~~~~~~~~~~~~~
// A page without access makes two mappings of one, and the system allows a process some 65,000. A cooperative launch of
// what the occupancy promises has more threads than that. So only as many guard pages are taken out as a quarter of the
// limit; the stacks of all further groups share a mapping, and their guard pages are there, but never touched: one that
// is in memory has been run into. That shows when the block has ended, not at once.
bool makeStacks(Stack* stacks, size_t count);
void freeStacks(Stack* stacks, size_t count);
// Whether a thread has run into an unguarded guard page of these stacks, which makeStacks made together. Clears them.
bool overran(const Stack* stacks, size_t count);

// A saved stack pointer that mcFiberSwitch can go to: `entry` runs on the stack and must not return. `color` spreads
// the stacks over the cache's sets, which equal distances would not.
void* prepareStack(const Stack& stack, void (*entry)(), unsigned color);

}  // namespace mc
