// NCCL's result codes, and the text of the latest failure.
#pragma once

#include <string>

namespace nccl {

enum Result {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

// Notes `text` as the latest failure of the process, and says it on stderr where NCCL_DEBUG asks for warnings.
Result fail(Result result, const std::string& text);

// The latest failure; valid until the thread asks again.
const char* lastError();

}  // namespace nccl
