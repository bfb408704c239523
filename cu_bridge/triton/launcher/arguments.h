// The values of a kernel's parameters, taken from Python's objects as a plan says. See Note [Plans].
//
// Note [Plans]
// ~~~~~~~~~~~~
// A plan is a text with a sign for each argument of a launch:
//   *  pointer             b h i l  integer of 1, 2, 4, 8 bytes     B H I L  the same without sign
//   e  fp16   t  bf16   f  fp32   d  fp64
//   _  is left out: a constant of the compiled kernel
//   ( … )  a tuple, whose members follow
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "python_abi.h"

namespace launcher {

struct Plan {
  std::string text;
  // A signed integer beyond its size is an OverflowError; otherwise its low bytes are taken.
  bool strict = false;
  // The number by which a message names each top-level argument; empty: messages name none.
  std::vector<int> positions;
};

// Whether each sign of the plan is known and brackets match; `parameters` counts what reaches the kernel.
bool isPlan(const std::string& text, size_t* parameters);

// Writes the parameters' values into `values`, one after the other. False with a Python exception.
bool takeArguments(const Plan& plan, PyObject* const* arguments, ssize_t count, uint64_t* values);

// A device pointer from None, a number or an object with data_ptr(). `position` is -1 where the message names none.
bool takePointer(PyObject* object, int position, uint64_t* value);

}  // namespace launcher
