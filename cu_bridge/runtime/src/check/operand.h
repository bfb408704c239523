// The memory that an interrupted instruction reads or writes. The processor does not say it of every fault.
#pragma once

#include <cstdint>

namespace mc {

// False: the instruction names no memory, or is none that the decoder knows.
bool operandOf(void* context, uintptr_t* address);

// Whether a process can have memory there: the upper 17 bits of an address of x86-64's user space are 0.
constexpr bool isUserAddress(uintptr_t address) { return address >> 47 == 0; }

}  // namespace mc
