// NCCL within a process: one communicator a device, used from one thread in groups, or a single rank.
//
// Work is complete when its launch returns, so a collective runs when the last rank of its clique has joined: at the end
// of the outermost group. Communicators over several processes are refused.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "elements.h"
#include "handle.h"
#include "mc_runtime.h"
#include "refuse.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"
#pragma GCC visibility pop

using nccl::Reduction;

namespace {

enum Result {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
};

thread_local char lastError[200] = "";

int fail(Result result, const char* text) {
  std::snprintf(lastError, sizeof lastError, "%s", text);
  return result;
}

// Ranks that communicate with each other.
struct Clique {
  int size = 0;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  std::map<int, double> scaledSums;  // the rank's own reductions: the factor of each
  int lastReduction = nccl::kAverage;
  std::multiset<const void*> registered;
};

MXMACA_OBJECT(ncclComm, NcclCommunicator);

using mxmaca::live;

namespace {

struct UniqueId {
  char data[128];
};

enum class Kind { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, AllToAll, Send, Receive };

struct Operation {
  Kind kind;
  ncclComm* comm;
  const void* send;
  void* receive;
  size_t count;
  int type;
  int reduction;
  int peer;  // root, or the other side
};

thread_local int groupDepth = 0;
thread_local std::vector<Operation>* pending = nullptr;
thread_local int groupResult = kSuccess;

// The reduction that all ranks ask for. One that a user made has a number and a factor of each rank's own.
bool findReduction(const std::vector<Operation>& ranks, Reduction* reduction) {
  const int number = ranks[0].reduction;
  if (number >= nccl::kSum && number <= nccl::kAverage) {
    *reduction = {static_cast<nccl::ReduceKind>(number), {}};
    return std::all_of(ranks.begin(), ranks.end(), [=](const Operation& rank) { return rank.reduction == number; });
  }
  reduction->kind = nccl::kScaledSum;
  for (const Operation& rank : ranks) {
    const auto found = rank.comm->scaledSums.find(rank.reduction);
    if (found == rank.comm->scaledSums.end()) return false;
    reduction->factors.push_back(found->second);
  }
  return true;
}

// The same collective of every rank of a clique, in the order of the ranks.
int runCollective(const std::vector<Operation>& ranks) {
  const Operation& first = ranks[0];
  const size_t bytes = nccl::elementBytes(first.type) * first.count;
  for (const Operation& operation : ranks) {
    const bool same = operation.kind == first.kind && operation.count == first.count && operation.type == first.type &&
                      operation.peer == first.peer;
    if (!same) return fail(kInvalidUsage, "the ranks of a communicator called different collectives");
  }
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Operation& operation : ranks) {
    inputs.push_back(operation.send);
    outputs.push_back(operation.receive);
  }
  Reduction reduction{};
  const bool reduces = first.kind == Kind::AllReduce || first.kind == Kind::Reduce || first.kind == Kind::ReduceScatter;
  if (reduces && !findReduction(ranks, &reduction)) {
    return fail(kInvalidArgument, "a reduction that is unknown, or not the same on all ranks");
  }
  const auto shift = [bytes](auto* pointer, size_t parts) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>, const char, char>;
    return static_cast<Byte*>(pointer) + parts * bytes;
  };
  switch (first.kind) {
    case Kind::AllReduce: nccl::reduce(inputs, outputs, first.count, first.type, reduction); break;
    case Kind::Reduce: {
      const auto root = static_cast<size_t>(first.peer);
      nccl::reduce(inputs, {outputs[root]}, first.count, first.type, reduction);
      break;
    }
    case Kind::ReduceScatter:
      for (size_t part = 0; part < ranks.size(); ++part) {
        std::vector<const void*> parts;
        for (const void* const input : inputs) parts.push_back(shift(input, part));
        nccl::reduce(parts, {outputs[part]}, first.count, first.type, reduction);
      }
      break;
    case Kind::Broadcast:
      for (void* const output : outputs) {
        const void* const source = inputs[static_cast<size_t>(first.peer)];
        if (output != source) std::memmove(output, source, bytes);
      }
      break;
    case Kind::AllGather:
      for (void* const output : outputs) {
        for (size_t part = 0; part < ranks.size(); ++part) {
          if (shift(output, part) != inputs[part]) std::memmove(shift(output, part), inputs[part], bytes);
        }
      }
      break;
    case Kind::AllToAll:
      for (size_t to = 0; to < ranks.size(); ++to) {
        for (size_t from = 0; from < ranks.size(); ++from) {
          std::memmove(shift(outputs[to], from), shift(inputs[from], to), bytes);
        }
      }
      break;
    default: break;
  }
  return kSuccess;
}

int runTransfers(std::vector<Operation>& transfers) {
  for (Operation& receive : transfers) {
    if (receive.kind != Kind::Receive) continue;
    const auto send = std::find_if(transfers.begin(), transfers.end(), [&](const Operation& other) {
      return other.kind == Kind::Send && other.comm != nullptr && other.comm->clique == receive.comm->clique &&
             other.comm->rank == receive.peer && other.peer == receive.comm->rank;
    });
    if (send == transfers.end()) return fail(kInvalidUsage, "a receive has no send in its group");
    const size_t bytes = nccl::elementBytes(receive.type) * receive.count;
    if (nccl::elementBytes(send->type) * send->count != bytes) {
      return fail(kInvalidUsage, "a send and its receive differ in size");
    }
    std::memmove(receive.receive, send->send, bytes);
    send->comm = nullptr;  // used up
  }
  for (const Operation& left : transfers) {
    if (left.kind == Kind::Send && left.comm != nullptr)
      return fail(kInvalidUsage, "a send has no receive in its group");
  }
  return kSuccess;
}

int runGroup(const std::vector<Operation>& operations) {
  std::vector<Operation> transfers;
  std::map<Clique*, std::map<int, std::deque<Operation>>> collectives;
  for (const Operation& operation : operations) {
    if (!live(operation.comm)) return fail(kInvalidArgument, "a communicator was destroyed within the group");
  }
  for (const Operation& operation : operations) {
    if (operation.kind == Kind::Send || operation.kind == Kind::Receive) {
      transfers.push_back(operation);
    } else {
      collectives[operation.comm->clique.get()][operation.comm->rank].push_back(operation);
    }
  }
  for (auto& [clique, byRank] : collectives) {
    while (!byRank.begin()->second.empty()) {
      std::vector<Operation> ranks;
      for (auto& [rank, queue] : byRank) {
        if (queue.empty()) break;
        ranks.push_back(queue.front());
        queue.pop_front();
      }
      if (ranks.size() != static_cast<size_t>(clique->size)) {
        return fail(kInvalidUsage, "all ranks of a communicator must take part in one group of one thread");
      }
      const int result = runCollective(ranks);
      if (result != kSuccess) return result;
    }
    for (const auto& [rank, queue] : byRank) {
      if (!queue.empty()) return fail(kInvalidUsage, "a rank called more collectives than the others");
    }
  }
  return runTransfers(transfers);
}

constexpr size_t kMostElements = size_t{1} << 40;

int submit(const Operation& operation, mcStream_t stream) {
  const ncclComm* const comm = operation.comm;
  int result = kSuccess;
  const bool reads = operation.kind != Kind::Receive;
  const bool writes =
      operation.kind != Kind::Send && (operation.kind != Kind::Reduce || (live(comm) && comm->rank == operation.peer));
  if (!live(comm)) {
    result = fail(kInvalidArgument, "no communicator");
  } else if (operation.count > kMostElements) {
    result = fail(kInvalidArgument, "more elements than there can be");
  } else if (operation.count > 0 &&
             ((reads && operation.send == nullptr) || (writes && operation.receive == nullptr))) {
    result = fail(kInvalidArgument, "a buffer is null");
  } else if (nccl::elementBytes(operation.type) == 0) {
    result = fail(kInvalidArgument, "element type is not implemented for the simulated device");
  } else if (operation.peer < 0 || operation.peer >= comm->clique->size) {
    result = fail(kInvalidArgument, "no such rank");
  } else if (mcStreamCheck(stream) != mcSuccess) {
    result = fail(kCudaError, "the stream or the device has failed");
  }
  if (groupDepth == 0) return result != kSuccess ? result : runGroup({operation});
  if (result != kSuccess) {
    groupResult = result;
    return result;
  }
  if (pending == nullptr) pending = new std::vector<Operation>;
  pending->push_back(operation);
  return kSuccess;
}

int makeSingle(ncclComm** comm, int ranks, int rank) {
  if (comm == nullptr || rank < 0 || rank >= ranks) return fail(kInvalidArgument, "no such rank");
  if (ranks != 1) {
    mcReportRefusal("libnccl.so.2", "ncclCommInitRank with several processes", "ncclInvalidUsage");
    return fail(kInvalidUsage, "communicators over several processes are not implemented for the simulated device");
  }
  auto created = std::make_unique<ncclComm>();
  created->clique = std::make_shared<Clique>();
  created->clique->size = 1;
  if (mcGetDevice(&created->device) != mcSuccess) return fail(kCudaError, "there is no device");
  return mxmaca::createObject(comm, std::move(created)) ? kSuccess : fail(kSystemError, "no memory");
}

}  // namespace

namespace mxmaca {

long refuse(const char* library, const char* function, int status, const char* statusName) {
  std::snprintf(lastError, sizeof lastError, "%s is not implemented for the simulated device", function);
  mcReportRefusal(library, function, statusName);
  return status;
}

}  // namespace mxmaca

#pragma GCC visibility push(default)
extern "C" {

int ncclGetVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = MXMACA_CUDA_MAJOR == 12 ? 22105 : 22907;
  return kSuccess;
}

const char* ncclGetErrorString(int status) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return status >= 0 && status < 8 ? kTexts[status] : "unknown result code";
}

const char* ncclGetLastError(ncclComm*) { return lastError; }

// ---- Communicators --------------------------------------------------------------------------------------------------

int ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return kInvalidArgument;
  std::FILE* const source = std::fopen("/dev/urandom", "re");
  const bool ok = source != nullptr && std::fread(id->data, sizeof id->data, 1, source) == 1;
  if (source != nullptr) std::fclose(source);
  return ok ? kSuccess : fail(kSystemError, "no random numbers for a unique id");
}

int ncclCommInitAll(ncclComm** comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) return fail(kInvalidArgument, "no communicators asked for");
  const auto clique = std::make_shared<Clique>();
  clique->size = count;
  std::vector<std::unique_ptr<ncclComm>> created;
  for (int rank = 0; rank < count; ++rank) {
    mcDeviceProperties properties;
    auto comm = std::make_unique<ncclComm>();
    comm->clique = clique;
    comm->rank = rank;
    comm->device = devices == nullptr ? rank : devices[rank];
    if (mcGetDeviceProperties(&properties, comm->device) != mcSuccess) return fail(kInvalidArgument, "no such device");
    for (const auto& other : created) {
      if (other->device == comm->device) return fail(kInvalidUsage, "a device stands twice in the list");
    }
    created.push_back(std::move(comm));
  }
  for (int rank = 0; rank < count; ++rank) {
    if (!mxmaca::createObject(comms + rank, std::move(created[static_cast<size_t>(rank)]))) {
      return fail(kSystemError, "no memory");
    }
  }
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int ranks, UniqueId, int rank) { return makeSingle(comm, ranks, rank); }
int ncclCommInitRankConfig(ncclComm** comm, int ranks, UniqueId, int rank, void*) {
  return makeSingle(comm, ranks, rank);
}
int ncclCommInitRankScalable(ncclComm** comm, int ranks, int rank, int idCount, UniqueId* ids, void*) {
  if (idCount < 1 || ids == nullptr) return fail(kInvalidArgument, "no unique id");
  return makeSingle(comm, ranks, rank);
}
constexpr int kNoColor = -1;  // the rank takes no part
int ncclCommSplit(ncclComm* comm, int color, int, ncclComm** split, void*) {
  if (!live(comm) || split == nullptr) return fail(kInvalidArgument, "no communicator");
  if (color < kNoColor) return fail(kInvalidArgument, "a color is not negative");
  *split = nullptr;
  return color == kNoColor ? kSuccess : makeSingle(split, comm->clique->size, comm->rank);
}
int ncclCommFinalize(ncclComm* comm) { return live(comm) ? kSuccess : kInvalidArgument; }
int ncclCommDestroy(ncclComm* comm) {
  if (comm == nullptr) return kSuccess;  // as NCCL has it
  return mxmaca::destroyObject(comm) ? kSuccess : fail(kInvalidArgument, "no communicator");
}
int ncclCommAbort(ncclComm* comm) { return ncclCommDestroy(comm); }
int ncclCommCount(const ncclComm* comm, int* count) {
  if (!live(comm) || count == nullptr) return kInvalidArgument;
  *count = comm->clique->size;
  return kSuccess;
}
int ncclCommUserRank(const ncclComm* comm, int* rank) {
  if (!live(comm) || rank == nullptr) return kInvalidArgument;
  *rank = comm->rank;
  return kSuccess;
}
int ncclCommCuDevice(const ncclComm* comm, int* device) {
  if (!live(comm) || device == nullptr) return kInvalidArgument;
  *device = comm->device;
  return kSuccess;
}
int ncclCommGetAsyncError(ncclComm* comm, int* error) {
  if (!live(comm) || error == nullptr) return kInvalidArgument;
  *error = kSuccess;  // nothing runs behind the caller's back
  return kSuccess;
}

// Every address of the device is reachable: there is nothing to register, and any memory will do.
int ncclCommRegister(ncclComm* comm, void* buffer, size_t, void** handle) {
  if (!live(comm) || buffer == nullptr || handle == nullptr) return kInvalidArgument;
  comm->registered.insert(buffer);
  *handle = buffer;
  return kSuccess;
}
int ncclCommDeregister(ncclComm* comm, void* handle) {
  if (!live(comm)) return kInvalidArgument;
  const auto found = comm->registered.find(handle);
  if (found == comm->registered.end()) return fail(kInvalidUsage, "the memory is not registered");
  comm->registered.erase(found);
  return kSuccess;
}
int ncclMemAlloc(void** pointer, size_t bytes) {
  return mcMalloc(pointer, bytes) == mcSuccess ? kSuccess : fail(kCudaError, "out of memory");
}
int ncclMemFree(void* pointer) { return mcFree(pointer) == mcSuccess ? kSuccess : fail(kCudaError, "invalid pointer"); }

int ncclRedOpCreatePreMulSum(int* reduction, void* scalar, int type, int residence, ncclComm* comm) {
  if (reduction == nullptr || scalar == nullptr || !live(comm)) return kInvalidArgument;
  if (residence != 0 && residence != 1) return fail(kInvalidArgument, "the factor is neither on host nor on device");
  double factor = 0;
  if (!nccl::readNumber(scalar, type, &factor)) return fail(kInvalidArgument, "a factor of an unknown type");
  *reduction = ++comm->lastReduction;
  comm->scaledSums[*reduction] = factor;
  return kSuccess;
}
int ncclRedOpDestroy(int reduction, ncclComm* comm) {
  if (!live(comm)) return kInvalidArgument;
  return comm->scaledSums.erase(reduction) == 1 ? kSuccess : fail(kInvalidArgument, "unknown reduction");
}

// ---- Groups and operations ------------------------------------------------------------------------------------------

int ncclGroupStart(void) {
  ++groupDepth;
  return kSuccess;
}

int ncclGroupEnd(void) {
  if (groupDepth == 0) return fail(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--groupDepth > 0) return kSuccess;
  int result = groupResult;
  groupResult = kSuccess;
  if (pending == nullptr) return result;
  const std::unique_ptr<std::vector<Operation>> operations(pending);
  pending = nullptr;
  return result != kSuccess ? result : runGroup(*operations);
}

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                  mcStream_t stream) {
  return submit({Kind::AllReduce, comm, send, receive, count, type, reduction, 0}, stream);
}
int ncclReduce(const void* send, void* receive, size_t count, int type, int reduction, int root, ncclComm* comm,
               mcStream_t stream) {
  return submit({Kind::Reduce, comm, send, receive, count, type, reduction, root}, stream);
}
int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, ncclComm* comm,
                  mcStream_t stream) {
  return submit({Kind::Broadcast, comm, send, receive, count, type, 0, root}, stream);
}
int ncclBcast(void* buffer, size_t count, int type, int root, ncclComm* comm, mcStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
int ncclAllGather(const void* send, void* receive, size_t count, int type, ncclComm* comm, mcStream_t stream) {
  return submit({Kind::AllGather, comm, send, receive, count, type, 0, 0}, stream);
}
int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                      mcStream_t stream) {
  return submit({Kind::ReduceScatter, comm, send, receive, count, type, reduction, 0}, stream);
}
int ncclAlltoAll(const void* send, void* receive, size_t count, int type, ncclComm* comm, mcStream_t stream) {
  return submit({Kind::AllToAll, comm, send, receive, count, type, 0, 0}, stream);
}
int ncclSend(const void* send, size_t count, int type, int peer, ncclComm* comm, mcStream_t stream) {
  return submit({Kind::Send, comm, send, nullptr, count, type, 0, peer}, stream);
}
int ncclRecv(void* receive, size_t count, int type, int peer, ncclComm* comm, mcStream_t stream) {
  return submit({Kind::Receive, comm, nullptr, receive, count, type, 0, peer}, stream);
}

}  // extern "C"
#pragma GCC visibility pop
