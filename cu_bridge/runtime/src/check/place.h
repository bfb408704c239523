// Where a program is, for reports: the line of Python, or the function of C++ and its line where it is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "mc_runtime.h"

namespace mc {

struct Place {
  static constexpr int kFrames = 4;
  std::string python;              // empty: there is none
  uintptr_t frames[kFrames] = {};  // return addresses outside of this library, the innermost first
};

// The place of what calls into this library. Takes no lock but, maybe, an interpreter's.
Place placeOfCaller();
std::string describe(const Place& place);
// "sum in libtorch_cpu.so" of an address of code.
std::string describeCode(uintptr_t address);
// The line of Python alone, or nothing.
std::string pythonPlace();

}  // namespace mc
