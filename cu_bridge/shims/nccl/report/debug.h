// What NCCL_DEBUG and NCCL_DEBUG_FILE ask for, and which other variables of NCCL are set without an effect here.
#pragma once

#include <string>

namespace nccl {

enum class DebugLevel { None = 0, Version = 1, Warn = 2, Info = 3, Trace = 4 };

// Writes a line, with host name and process, to stdout or NCCL_DEBUG_FILE (%h and %p in its name are host and process)
// if NCCL_DEBUG is at this level or a later one.
void debugLine(DebugLevel level, const std::string& text);

// At the first communicator: the version, and the names of ignored variables.
void debugBegin(int version);

}  // namespace nccl
