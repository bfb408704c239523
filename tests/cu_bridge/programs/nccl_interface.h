// NCCL's interface as the tests use it, and ranks as processes or threads.
#pragma once

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

extern "C" {
struct Id {
  char data[128];
};
int ncclGetUniqueId(Id* id);
int ncclCommInitRank(void** comm, int ranks, Id id, int rank);
int ncclCommInitRankConfig(void** comm, int ranks, Id id, int rank, void* config);
int ncclCommInitAll(void** comms, int count, const int* devices);
int ncclCommSplit(void* comm, int color, int key, void** split, void* config);
int ncclCommShrink(void* comm, int* excluded, int count, void** shrunk, void* config, int flags);
int ncclCommFinalize(void* comm);
int ncclCommDestroy(void* comm);
int ncclCommAbort(void* comm);
int ncclCommCount(void* comm, int* count);
int ncclCommUserRank(void* comm, int* rank);
int ncclCommGetAsyncError(void* comm, int* error);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, size_t, int type, int op, void* comm, cudaStream_t);
int ncclReduce(const void*, void*, size_t, int type, int op, int root, void* comm, cudaStream_t);
int ncclBroadcast(const void*, void*, size_t, int type, int root, void* comm, cudaStream_t);
int ncclAllGather(const void*, void*, size_t, int type, void* comm, cudaStream_t);
int ncclReduceScatter(const void*, void*, size_t, int type, int op, void* comm, cudaStream_t);
int ncclAlltoAll(const void*, void*, size_t, int type, void* comm, cudaStream_t);
int ncclGather(const void*, void*, size_t, int type, int root, void* comm, cudaStream_t);
int ncclScatter(const void*, void*, size_t, int type, int root, void* comm, cudaStream_t);
int ncclSend(const void*, size_t, int type, int peer, void* comm, cudaStream_t);
int ncclRecv(void*, size_t, int type, int peer, void* comm, cudaStream_t);
int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, void* comm);
int ncclRedOpDestroy(int op, void* comm);
const char* ncclGetLastError(void* comm);
}

enum { kInt8, kUint8, kInt32, kUint32, kInt64, kUint64, kHalf, kFloat, kDouble, kBrain, kE4M3, kE5M2, kTypes };
enum { kSum, kProd, kMax, kMin, kAvg };
enum { kSuccess, kCudaError, kSystemError, kInternalError, kInvalidArgument, kInvalidUsage, kRemoteError, kInProgress };

#define NCCL(call)                                                                                                  \
  do {                                                                                                              \
    const int status_ = call;                                                                                       \
    if (status_ != 0) {                                                                                             \
      std::fprintf(stderr, "%s:%d: %s is %d: %s\n", __FILE__, __LINE__, #call, status_, ncclGetLastError(nullptr)); \
      std::_Exit(1);                                                                                                \
    }                                                                                                               \
  } while (0)

// What the ranks share: the id, and a barrier beside NCCL's.
struct Meeting {
  Id id;
  std::atomic<int> ready;
  std::atomic<int> count;
  std::atomic<int> values[64];

  void wait(int ranks) {  // each number of waits is a multiple of the ranks
    const int now = count.fetch_add(1) + 1;
    const int target = (now + ranks - 1) / ranks * ranks;
    while (count.load() < target) usleep(50);
  }
};

inline Meeting* newMeeting() {
  void* const memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return new (memory) Meeting{};
}

// Runs `rank(number, meeting)` in a process for each rank; `expected`: the exit status of each, 0 if empty. A status
// above 128 stands for a signal.
template <class Function>
void inProcesses(int ranks, const Function& function, const std::vector<int>& expected = {}) {
  Meeting* const meeting = newMeeting();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      if (rank == 0) {
        NCCL(ncclGetUniqueId(&meeting->id));
        meeting->ready = 1;
      }
      while (meeting->ready == 0) usleep(50);
      function(rank, *meeting);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    CHECK(waitpid(children[static_cast<size_t>(rank)], &status, 0) > 0);
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const int wanted = expected.empty() ? 0 : expected[static_cast<size_t>(rank)];
    if (code != wanted) std::fprintf(stderr, "rank %d ended with %d, expected %d\n", rank, code, wanted);
    CHECK(code == wanted);
  }
}

// The ranks of one host of several: `count` from `first` on, in a process each. The id comes in a file, which the host
// of rank 0 writes. Each rank has a device of the number that it has within its host.
template <class Function>
void inHost(int first, int count, const std::string& file, const Function& function) {
  std::vector<pid_t> children;
  for (int place = 0; place < count; ++place) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      Id id;
      if (first + place == 0) {
        NCCL(ncclGetUniqueId(&id));
        std::ofstream(file + ".part", std::ios::binary).write(id.data, sizeof id.data);
        CHECK(std::rename((file + ".part").c_str(), file.c_str()) == 0);
      }
      while (access(file.c_str(), R_OK) != 0) usleep(1000);
      std::ifstream(file, std::ios::binary).read(id.data, sizeof id.data);
      CHECK(cudaSetDevice(place) == cudaSuccess);
      function(first + place, id);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) > 0);
    CHECK(status == 0);
  }
}

// The same in threads of this process.
template <class Function>
void inThreads(int ranks, const Function& function) {
  Meeting* const meeting = newMeeting();
  NCCL(ncclGetUniqueId(&meeting->id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([=, &function] { function(rank, *meeting); });
  for (std::thread& thread : threads) thread.join();
}

// Joins the communicator of a meeting on the device of the rank's number.
inline void* join(int rank, int ranks, const Meeting& meeting) {
  void* comm = nullptr;
  CHECK(cudaSetDevice(rank) == cudaSuccess);
  NCCL(ncclCommInitRank(&comm, ranks, meeting.id, rank));
  return comm;
}

template <class Value>
Value* deviceMemory(size_t count) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, (count > 0 ? count : 1) * sizeof(Value)) == cudaSuccess);
  return static_cast<Value*>(memory);
}

// What has become of work on the default stream: the status of the call, or the communicator's error while it waits.
inline int settled(void* comm, int status) {
  while (status == 0) {
    const cudaError_t query = cudaStreamQuery(nullptr);
    const int asked = ncclCommGetAsyncError(comm, &status);
    CHECK(asked == 0);
    if (query == cudaSuccess) break;
    CHECK(query == cudaErrorNotReady);
    usleep(20);
  }
  return status;
}
