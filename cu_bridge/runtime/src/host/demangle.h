// Readable names of functions.
#pragma once

#include <string>

namespace mc {

// The name as the program's source has it; `mangled` itself if it is no mangled name.
std::string demangled(const char* mangled);

}  // namespace mc
