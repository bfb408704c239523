// NCCL's functions on communicators.

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "config.h"
#include "group.h"
#include "mxmaca/versions/nccl.h"
#include "net/root.h"
#include "report/debug.h"
#include "work/creation.h"

using namespace nccl;

namespace {

Result newCommunicator(int size, int rank, int device, bool blocking, std::shared_ptr<Communicator>* made) {
  mcDeviceProperties facts;
  if (mcGetDeviceProperties(&facts, device) != mcSuccess) return fail(kInvalidArgument, "no such device");
  *made = std::make_shared<Communicator>();
  (*made)->rank = rank;
  (*made)->size = size;
  (*made)->device = device;
  (*made)->physicalDevice = facts.physicalIndex;
  (*made)->process = getpid();
  (*made)->blocking = blocking;
  debugBegin(NCCL_VERSION_CODE);
  return kSuccess;
}

Result initRank(ncclComm** target, int ranks, const UniqueId& given, int rank, const Config* config) {
  if (target == nullptr || ranks < 1 || rank < 0 || rank >= ranks) return fail(kInvalidArgument, "no such rank");
  if (ranks > kMostRanks) {
    return fail(kInvalidArgument, "more than " + std::to_string(kMostRanks) + " ranks in a communicator");
  }
  bool blocking = true;
  Result result = readConfig(config, true, &blocking);
  if (result != kSuccess) return result;
  int device = 0;
  if (mcGetDevice(&device) != mcSuccess) return fail(kCudaError, "there is no device");
  std::shared_ptr<Communicator> made;
  result = newCommunicator(ranks, rank, device, blocking, &made);
  if (result != kSuccess) return result;
  // A rank alone meets nobody: any id will do, as in NCCL.
  UniqueId id = given;
  if (ranks == 1 && !createBlock(&id)) return fail(kSystemError, "no memory for a communicator");
  auto task = std::make_unique<Join>(made, id);
  return create({target, made, std::move(task)});
}

// Waits until what was submitted has ended.
void drain(const Communicator& comm) {
  while (comm.unfinished > 0 && !comm.aborted && comm.failure() == kSuccess) usleep(100);
}

// A communicator that may be asked about: made, and not failed while it was.
Result known(const ncclComm* comm, const void* result) {
  if (!mxmaca::live(comm) || result == nullptr)
    return fail(kInvalidArgument, "no communicator, or no place for a result");
  return comm->inner->ready ? kSuccess : fail(kInvalidArgument, "the communicator is not ready yet");
}

constexpr int kNoColor = -1;  // the rank takes no part

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ncclGetVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = NCCL_VERSION_CODE;
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

const char* ncclGetLastError(ncclComm*) { return lastError(); }

int ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return fail(kInvalidArgument, "no place for a unique id");
  debugBegin(NCCL_VERSION_CODE);
  if (!createBlock(id)) return fail(kSystemError, "no memory for a communicator");
  net::makeReachable(id);
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int ranks, UniqueId id, int rank) {
  return initRank(comm, ranks, id, rank, nullptr);
}
int ncclCommInitRankConfig(ncclComm** comm, int ranks, UniqueId id, int rank, Config* config) {
  return initRank(comm, ranks, id, rank, config);
}
// One of the ids is enough for all ranks of a host.
int ncclCommInitRankScalable(ncclComm** comm, int ranks, int rank, int idCount, UniqueId* ids, Config* config) {
  if (idCount < 1 || ids == nullptr) return fail(kInvalidArgument, "no unique id");
  return initRank(comm, ranks, ids[0], rank, config);
}

int ncclCommInitAll(ncclComm** comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) return fail(kInvalidArgument, "no communicators asked for");
  std::vector<std::shared_ptr<Communicator>> made(static_cast<size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    const Result result = newCommunicator(count, rank, device, true, &made[static_cast<size_t>(rank)]);
    if (result != kSuccess) return result;
    for (int before = 0; before < rank; ++before) {
      if (made[static_cast<size_t>(before)]->device == device) {
        return fail(kInvalidUsage,
                    "Duplicate GPU detected: device " + std::to_string(device) + " stands twice in the list");
      }
    }
  }
  UniqueId id;
  if (!createBlock(&id)) return fail(kSystemError, "no memory for a communicator");
  groupStart();
  Result result = kSuccess;
  for (int rank = 0; rank < count && result == kSuccess; ++rank) {
    auto& one = made[static_cast<size_t>(rank)];
    result = create({comms + rank, one, std::make_unique<Join>(one, id)});
  }
  const Result ended = groupEnd();
  return result == kSuccess ? ended : result;
}

int ncclCommSplit(ncclComm* comm, int color, int key, ncclComm** split, Config* config) {
  if (split == nullptr) return fail(kInvalidArgument, "no place for a communicator");
  Result result = usable(comm);
  if (result != kSuccess) return result;
  if (color < kNoColor) return fail(kInvalidArgument, "a color is not negative");
  const std::shared_ptr<Communicator>& parent = comm->inner;
  bool blocking = parent->blocking;
  result = readConfig(config, blocking, &blocking);
  if (result != kSuccess) return result;
  std::shared_ptr<Communicator> made;
  // Rank and size are known when all ranks have chosen.
  if (color != kNoColor) result = newCommunicator(1, 0, parent->device, blocking, &made);
  if (result != kSuccess) return result;
  auto task = std::make_unique<Split>(parent, made, color, key);
  return create({split, std::move(made), std::move(task)});
}

int ncclCommShrink(ncclComm* comm, int* excluded, int count, ncclComm** shrunk, Config* config, int flags) {
  constexpr int kAbort = 1;
  if (!mxmaca::live(comm) || shrunk == nullptr) return fail(kInvalidArgument, "no communicator");
  const std::shared_ptr<Communicator>& parent = comm->inner;
  if (!parent->ready || parent->process != getpid()) return fail(kInvalidArgument, "the communicator is not ready");
  if (count < 1 || count >= parent->size || excluded == nullptr || (flags & ~kAbort) != 0) {
    return fail(kInvalidArgument, "a list of ranks to leave out that has none, or all, or unknown flags");
  }
  if (parent->hosts != nullptr) {
    mcReportRefusal("libnccl.so.2", "ncclCommShrink between hosts", "ncclInvalidUsage");
    return fail(kInvalidUsage, "ncclCommShrink of a communicator over several hosts is not implemented");
  }
  std::vector<int> members;
  for (int rank = 0; rank < parent->size; ++rank) {
    if (std::find(excluded, excluded + count, rank) == excluded + count) members.push_back(rank);
  }
  const auto self = std::find(members.begin(), members.end(), parent->rank);
  if (members.size() + static_cast<size_t>(count) != static_cast<size_t>(parent->size) || self == members.end()) {
    return fail(kInvalidArgument, "ranks to leave out that are none, twice in the list, or the calling one");
  }
  bool blocking = parent->blocking;
  Result result = readConfig(config, blocking, &blocking);
  if (result != kSuccess) return result;
  if (flags == kAbort) parent->aborted = true;
  while (parent->unfinished > 0) usleep(100);
  std::shared_ptr<Communicator> made;
  result = newCommunicator(static_cast<int>(members.size()), static_cast<int>(self - members.begin()), parent->device,
                           blocking, &made);
  if (result != kSuccess) return result;
  auto task = std::make_unique<Shrink>(parent, made, std::move(members));
  return create({shrunk, std::move(made), std::move(task)});
}

int ncclCommFinalize(ncclComm* comm) {
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  if (!comm->inner->ready) return fail(kInvalidArgument, "the communicator is not ready yet");
  drain(*comm->inner);
  comm->inner->finalized = true;
  return kSuccess;
}

int ncclCommDestroy(ncclComm* comm) {
  if (comm == nullptr) return kSuccess;  // as NCCL has it
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  const std::shared_ptr<Communicator> inner = comm->inner;
  if (!mxmaca::destroyObject(comm)) return fail(kInvalidArgument, "no communicator");
  if (inner->process != getpid()) return kSuccess;  // the parent's, before a fork
  if (!inner->ready) {
    inner->abort();
    return kSuccess;
  }
  drain(*inner);
  if (inner->failure() != kSuccess) {
    inner->abort();
  } else {
    inner->leave(inner->aborted ? Presence::Aborted : Presence::Finished);
    // Connections end with the communicator: what other hosts have not taken in yet would be lost.
    constexpr int kWaits = 10000;  // milliseconds
    for (int waited = 0; inner->hosts != nullptr && !inner->hosts->link->allLeft() && waited < kWaits; ++waited) {
      usleep(1000);
    }
  }
  return kSuccess;
}

int ncclCommAbort(ncclComm* comm) {
  if (comm == nullptr) return kSuccess;
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  const std::shared_ptr<Communicator> inner = comm->inner;
  if (!mxmaca::destroyObject(comm)) return fail(kInvalidArgument, "no communicator");
  if (inner->process == getpid()) inner->abort();
  return kSuccess;
}

int ncclCommCount(const ncclComm* comm, int* count) {
  const Result result = known(comm, count);
  if (result == kSuccess) *count = comm->inner->size;
  return result;
}
int ncclCommUserRank(const ncclComm* comm, int* rank) {
  const Result result = known(comm, rank);
  if (result == kSuccess) *rank = comm->inner->rank;
  return result;
}
int ncclCommCuDevice(const ncclComm* comm, int* device) {
  const Result result = known(comm, device);
  if (result == kSuccess) *device = comm->inner->device;
  return result;
}

int ncclCommGetAsyncError(ncclComm* comm, int* error) {
  if (!mxmaca::live(comm) || error == nullptr) return fail(kInvalidArgument, "no communicator");
  const Result failure = comm->inner->failure();
  *error = failure != kSuccess ? failure : comm->inner->ready ? kSuccess : kInProgress;
  return kSuccess;
}

// Ranks read each other's memory where it lies: nothing needs to be registered, and any memory will do.
int ncclCommRegister(ncclComm* comm, void* buffer, size_t, void** handle) {
  if (buffer == nullptr || handle == nullptr) return fail(kInvalidArgument, "no buffer");
  const Result result = usable(comm);
  if (result != kSuccess) return result;
  const std::lock_guard<std::mutex> lock(comm->inner->mutex);
  comm->inner->registered.insert(buffer);
  *handle = buffer;
  return kSuccess;
}
int ncclCommDeregister(ncclComm* comm, void* handle) {
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  const std::lock_guard<std::mutex> lock(comm->inner->mutex);
  const auto found = comm->inner->registered.find(handle);
  if (found == comm->inner->registered.end()) return fail(kInvalidUsage, "the memory is not registered");
  comm->inner->registered.erase(found);
  return kSuccess;
}

int ncclMemAlloc(void** pointer, size_t bytes) {
  return mcMalloc(pointer, bytes) == mcSuccess ? kSuccess : fail(kCudaError, "out of memory");
}
int ncclMemFree(void* pointer) { return mcFree(pointer) == mcSuccess ? kSuccess : fail(kCudaError, "invalid pointer"); }

}  // extern "C"
#pragma GCC visibility pop
