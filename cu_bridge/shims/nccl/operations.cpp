// NCCL's groups, collectives, messages and reductions.

#include <cstring>
#include <string>

#include "group.h"
#include "refuse.h"

using namespace nccl;

namespace mxmaca {

long refuse(const char* library, const char* function, int status, const char* statusName) {
  fail(static_cast<Result>(status), std::string(function) + " is not implemented for the simulated device");
  mcReportRefusal(library, function, statusName);
  return status;
}

}  // namespace mxmaca

namespace {

// NCCL's own reductions have the numbers of ReduceKind; one that the program has made, a number of its communicator's.
Result submitReduction(Operation operation, ncclComm* comm, mcStream_t stream) {
  if (operation.reduction >= kSum && operation.reduction <= kAverage) return submit(comm, operation, stream);
  const Result result = usable(comm);
  if (result != kSuccess) return result;
  {
    const std::lock_guard<std::mutex> lock(comm->inner->mutex);
    const auto found = comm->inner->scaledSums.find(operation.reduction);
    if (found == comm->inner->scaledSums.end()) return fail(kInvalidArgument, "no such reduction");
    if (found->second.type != operation.type) return fail(kInvalidArgument, "a reduction of another element type");
    operation.scaled = found->second;
  }
  operation.reduction = kScaledSum;
  return submit(comm, operation, stream);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ncclGroupStart(void) {
  groupStart();
  return kSuccess;
}
int ncclGroupEnd(void) { return groupEnd(); }

int ncclRedOpCreatePreMulSum(int* reduction, void* scalar, int type, int residence, ncclComm* comm) {
  constexpr int kOnDevice = 0, kOnHost = 1;
  if (reduction == nullptr || scalar == nullptr)
    return fail(kInvalidArgument, "no factor, or no place for a reduction");
  const Result result = usable(comm);
  if (result != kSuccess) return result;
  if (residence != kOnDevice && residence != kOnHost) {
    return fail(kInvalidArgument, "the factor is neither on host nor on device");
  }
  const Element* const element = findElement(type);
  if (element == nullptr) return fail(kInvalidArgument, "a factor of an unknown type");
  mcPointerAttributes facts;
  if (residence == kOnDevice &&
      (mcPointerGetAttributes(&facts, scalar) != mcSuccess || facts.kind == mcMemoryUnregistered)) {
    return fail(kInvalidArgument, "the factor is said to be on the device, and is not");
  }
  ScaledSum scaled{type, 0, residence == kOnDevice ? scalar : nullptr};
  if (residence == kOnHost) std::memcpy(&scaled.factor, scalar, element->bytes);
  const std::lock_guard<std::mutex> lock(comm->inner->mutex);
  *reduction = ++comm->inner->lastReduction;
  comm->inner->scaledSums[*reduction] = scaled;
  return kSuccess;
}
int ncclRedOpDestroy(int reduction, ncclComm* comm) {
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  const std::lock_guard<std::mutex> lock(comm->inner->mutex);
  return comm->inner->scaledSums.erase(reduction) == 1 ? kSuccess : fail(kInvalidArgument, "no such reduction");
}

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                  mcStream_t stream) {
  return submitReduction({Kind::AllReduce, send, receive, count, type, reduction, 0, {}}, comm, stream);
}
int ncclReduce(const void* send, void* receive, size_t count, int type, int reduction, int root, ncclComm* comm,
               mcStream_t stream) {
  return submitReduction({Kind::Reduce, send, receive, count, type, reduction, root, {}}, comm, stream);
}
int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                      mcStream_t stream) {
  return submitReduction({Kind::ReduceScatter, send, receive, count, type, reduction, 0, {}}, comm, stream);
}
int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, ncclComm* comm,
                  mcStream_t stream) {
  return submit(comm, {Kind::Broadcast, send, receive, count, type, 0, root, {}}, stream);
}
int ncclBcast(void* buffer, size_t count, int type, int root, ncclComm* comm, mcStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
int ncclAllGather(const void* send, void* receive, size_t count, int type, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::AllGather, send, receive, count, type, 0, 0, {}}, stream);
}
int ncclAlltoAll(const void* send, void* receive, size_t count, int type, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::AllToAll, send, receive, count, type, 0, 0, {}}, stream);
}
int ncclGather(const void* send, void* receive, size_t count, int type, int root, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::Gather, send, receive, count, type, 0, root, {}}, stream);
}
int ncclScatter(const void* send, void* receive, size_t count, int type, int root, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::Scatter, send, receive, count, type, 0, root, {}}, stream);
}
int ncclSend(const void* send, size_t count, int type, int peer, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::Send, send, nullptr, count, type, 0, peer, {}}, stream);
}
int ncclRecv(void* receive, size_t count, int type, int peer, ncclComm* comm, mcStream_t stream) {
  return submit(comm, {Kind::Receive, nullptr, receive, count, type, 0, peer, {}}, stream);
}

}  // extern "C"
#pragma GCC visibility pop
