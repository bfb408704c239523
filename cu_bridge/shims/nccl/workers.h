// Threads that wait for other ranks on behalf of streams.
#pragma once

#include <functional>

namespace nccl {

// Runs `work` in a thread that has nothing else to do: any number of them may wait for each other. False: no thread.
bool inWorker(std::function<void()> work);

}  // namespace nccl
