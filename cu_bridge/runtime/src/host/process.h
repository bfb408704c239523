// Other processes, as /proc shows them.
#pragma once

#include <cstdint>

namespace mc {

// When a process began, in clock ticks since boot: with the pid, its identity. 0: there is none, or it has ended.
uint64_t startTime(int64_t pid);

// Whether the process that began at `start` still runs.
bool isLiving(int64_t pid, uint64_t start);

bool isStopped(int64_t pid);

// Which process holds a flock on the file of this inode; 0 if that cannot be found out.
int64_t lockHolder(uint64_t inode);

}  // namespace mc
