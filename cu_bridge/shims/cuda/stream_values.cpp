// Operations of a stream on words of memory: it writes one, or waits until one has a value.
//
// A word is written where the work before it on the stream is done, so a call returns at once where that waits. A
// wait goes on in a thread of the runtime, which looks at the word until the host, a kernel or another stream has
// changed it.

#include <sched.h>

#include <ctime>
#include <memory>
#include <vector>

#include "result.h"
#include "stream_work.h"

namespace {

// One operation, its address checked.
struct WordOperation {
  bool waits = false;
  bool wide = false;  // 64 bits, else 32
  void* address = nullptr;
  uint64_t value = 0;
  unsigned int condition = 0;
};

// A word of an allocation, at a multiple of its size.
mcError_t checkWord(const void* address, size_t bytes) {
  mcPointerAttributes attributes;
  const mcError_t error = mcPointerGetAttributes(&attributes, address);
  if (error != mcSuccess) return error;
  const size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(attributes.base);
  return valueError(attributes.kind != mcMemoryUnregistered && reinterpret_cast<uintptr_t>(address) % bytes == 0 &&
                    attributes.size - offset >= bytes);
}

mcError_t readWait(WordOperation* operation, bool wide, CUdeviceptr target, uint64_t value, unsigned int flags) {
  const unsigned int condition = flags & ~static_cast<unsigned int>(CU_STREAM_WAIT_VALUE_FLUSH);
  if (condition > CU_STREAM_WAIT_VALUE_NOR) return mcErrorInvalidValue;
  *operation = {true, wide, address(target), value, condition};
  return checkWord(operation->address, wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

mcError_t readWrite(WordOperation* operation, bool wide, CUdeviceptr target, uint64_t value, unsigned int flags) {
  if (flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return mcErrorInvalidValue;
  *operation = {false, wide, address(target), value, 0};
  return checkWord(operation->address, wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

// Greater or equal is cyclic, as the counters that programs wait for are.
template <class Word, class Signed>
bool holds(Word now, Word value, unsigned int condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<Signed>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    default: return static_cast<Word>(~(now | value)) != 0;
  }
}

bool isDone(const WordOperation& wait) {
  if (wait.wide) {
    const uint64_t now = __atomic_load_n(static_cast<uint64_t*>(wait.address), __ATOMIC_ACQUIRE);
    return holds<uint64_t, int64_t>(now, wait.value, wait.condition);
  }
  const uint32_t now = __atomic_load_n(static_cast<uint32_t*>(wait.address), __ATOMIC_ACQUIRE);
  return holds<uint32_t, int32_t>(now, static_cast<uint32_t>(wait.value), wait.condition);
}

mcError_t run(const std::vector<WordOperation>& operations) {
  for (const WordOperation& operation : operations) {
    if (operation.waits) {
      constexpr int kQuickLooks = 100;
      for (int looks = 0; !isDone(operation); ++looks) {
        if (mcStickyError() != mcSuccess) return mcStickyError();  // nothing will change the word any more
        const timespec pause{0, 20000};
        if (looks < kQuickLooks) {
          sched_yield();
        } else {
          nanosleep(&pause, nullptr);
        }
      }
    } else if (operation.wide) {
      __atomic_store_n(static_cast<uint64_t*>(operation.address), operation.value, __ATOMIC_RELEASE);
    } else {
      __atomic_store_n(static_cast<uint32_t*>(operation.address), static_cast<uint32_t>(operation.value),
                       __ATOMIC_RELEASE);
    }
  }
  return mcSuccess;
}

CUresult submit(CUstream stream, const char* name, std::vector<WordOperation> operations) {
  bool waits = false;
  for (const WordOperation& operation : operations) waits = waits || operation.waits;
  int later = 0;
  RETURN_IF_WRONG(mcStreamDefers(own(stream), &later));
  if (later == 0) {
    // Nothing to wait for: no thread is needed.
    bool done = true;
    for (size_t i = 0; waits && done && i < operations.size(); ++i) done = operations[i].waits && isDone(operations[i]);
    if (waits && done) return CUDA_SUCCESS;
  }
  struct Work {
    std::vector<WordOperation> operations;
    const char* name;
  };
  auto work = std::make_unique<Work>(Work{std::move(operations), name});
  return result(mcStreamSubmit(
      own(stream), "memory words", name, waits ? mcTaskWaits : 0,
      [](void* data) {
        const auto* const kept = static_cast<const Work*>(data);
        const DeviceWork computes(kept->name);
        return run(kept->operations);
      },
      work.release(), [](void* data) { delete static_cast<Work*>(data); }));
}

CUresult one(CUstream stream, const char* name, mcError_t wrong, const WordOperation& operation) {
  RETURN_IF_WRONG(wrong);
  return submit(stream, name, {operation});
}

// Other devices' writes are in memory when they are made, and every operation here is a barrier.
mcError_t readBatch(std::vector<WordOperation>* out, const CUstreamBatchMemOpParams& given) {
  WordOperation operation;
  mcError_t error = mcSuccess;
  switch (given.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
      const bool wide = given.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
      error = readWait(&operation, wide, given.waitValue.address,
                       wide ? given.waitValue.value64 : given.waitValue.value, given.waitValue.flags);
      break;
    }
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
      const bool wide = given.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
      error = readWrite(&operation, wide, given.writeValue.address,
                        wide ? given.writeValue.value64 : given.writeValue.value, given.writeValue.flags);
      break;
    }
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return valueError(given.flushRemoteWrites.flags == 0);
    case CU_STREAM_MEM_OP_BARRIER: return valueError(given.memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
    default: return mcErrorInvalidValue;
  }
  if (error == mcSuccess) out->push_back(operation);
  return error;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr target, uint32_t value, unsigned int flags) {
  WordOperation operation;
  return one(stream, "cuStreamWriteValue32", readWrite(&operation, false, target, value, flags), operation);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr target, uint64_t value, unsigned int flags) {
  WordOperation operation;
  return one(stream, "cuStreamWriteValue64", readWrite(&operation, true, target, value, flags), operation);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr target, uint32_t value, unsigned int flags) {
  WordOperation operation;
  return one(stream, "cuStreamWaitValue32", readWait(&operation, false, target, value, flags), operation);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr target, uint64_t value, unsigned int flags) {
  WordOperation operation;
  return one(stream, "cuStreamWaitValue64", readWait(&operation, true, target, value, flags), operation);
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* given, unsigned int flags) {
  constexpr unsigned int kMost = 256;
  std::vector<WordOperation> operations;
  if (given == nullptr || count == 0 || count > kMost) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(checkFlags(flags, 0));
  for (unsigned int i = 0; i < count; ++i) RETURN_IF_WRONG(readBatch(&operations, given[i]));
  return submit(stream, "cuStreamBatchMemOp", std::move(operations));
}

// Names of the first form, for callers that look symbols up by name; the form itself is the same.
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp
FIRST_FORM(cuStreamWriteValue32, (CUstream, CUdeviceptr, uint32_t, unsigned int))
FIRST_FORM(cuStreamWriteValue64, (CUstream, CUdeviceptr, uint64_t, unsigned int))
FIRST_FORM(cuStreamWaitValue32, (CUstream, CUdeviceptr, uint32_t, unsigned int))
FIRST_FORM(cuStreamWaitValue64, (CUstream, CUdeviceptr, uint64_t, unsigned int))
FIRST_FORM(cuStreamBatchMemOp, (CUstream, unsigned int, CUstreamBatchMemOpParams*, unsigned int))

}  // extern "C"
#pragma GCC visibility pop
