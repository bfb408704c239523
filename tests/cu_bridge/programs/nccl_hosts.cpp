// What communicators over several hosts do: the ranks of one host, from FIRST on.
//   nccl_hosts CASE RANKS FIRST HERE FILE
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "nccl_interface.h"

namespace {

constexpr size_t kShort = 16;
constexpr size_t kLong = 3000001;  // elements, of several exchanges

float* filled(size_t count, float value) {
  auto* const memory = deviceMemory<float>(count);
  const std::vector<float> host(count, value);
  CHECK(cudaMemcpy(memory, host.data(), count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
  return memory;
}
std::vector<float> fetched(const float* memory, size_t count) {
  std::vector<float> host(count);
  CHECK(cudaMemcpy(host.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
  return host;
}
int allReduce(void* comm, float* memory, size_t count) {
  return settled(comm, ncclAllReduce(memory, memory, count, kFloat, kSum, comm, nullptr));
}

// Floats whose sum depends on the order: all ranks have the same bits, each time.
void sameBits(int rank, int ranks, void* comm) {
  for (const size_t count : {kShort + 1, kLong}) {
    std::vector<float> mine(count);
    for (size_t i = 0; i < count; ++i) {
      mine[i] = std::ldexp(static_cast<float>((i * 7919 + static_cast<size_t>(rank) * 104729) % 8191) + 0.1F,
                           static_cast<int>((i + static_cast<size_t>(rank)) % 20));
    }
    std::vector<float> first;
    for (int time = 0; time < 2; ++time) {
      float* const memory = filled(count, 0);
      CHECK(cudaMemcpy(memory, mine.data(), count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
      NCCL(allReduce(comm, memory, count));
      const std::vector<float> sum = fetched(memory, count);
      if (time == 0) first = sum;
      CHECK(std::memcmp(first.data(), sum.data(), count * sizeof(float)) == 0);
      uint64_t hash = 1469598103934665603U;
      for (size_t i = 0; i < count * sizeof(float); ++i) {
        hash = (hash ^ reinterpret_cast<const unsigned char*>(sum.data())[i]) * 1099511628211U;
      }
      auto* const hashes = deviceMemory<uint64_t>(static_cast<size_t>(ranks));
      CHECK(cudaMemcpy(hashes + rank, &hash, sizeof hash, cudaMemcpyHostToDevice) == cudaSuccess);
      NCCL(ncclAllGather(hashes + rank, hashes, 1, kUint64, comm, nullptr));
      std::vector<uint64_t> all(static_cast<size_t>(ranks));
      CHECK(cudaMemcpy(all.data(), hashes, all.size() * 8, cudaMemcpyDeviceToHost) == cudaSuccess);
      for (const uint64_t other : all) CHECK(other == hash);
    }
  }
}

// One rank of the second host calls something else: every rank is told.
void mismatch(int rank, int ranks, void* comm) {
  float* const memory = filled(kShort + 1, 1);
  NCCL(allReduce(comm, memory, kShort));
  const bool odd = rank == ranks - 1;
  CHECK(allReduce(comm, memory, odd ? kShort + 1 : kShort) == kInvalidUsage);
  const bool said = std::strstr(ncclGetLastError(nullptr), "AllReduce of 17 float32") != nullptr;
  if (!said) std::fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(nullptr));
  CHECK(said);
  sleep(1);
  NCCL(ncclCommAbort(comm));
}

// A part of the ranks of each host; and messages between all pairs, also in the part.
void split(int rank, int ranks, void* comm) {
  void* part = nullptr;
  NCCL(ncclCommSplit(comm, rank % 2, -rank, &part, nullptr));
  int size = 0;
  CHECK(ncclCommCount(part, &size) == 0 && size == (ranks + 1 - rank % 2) / 2);
  float* const memory = filled(kLong, static_cast<float>(rank));
  NCCL(allReduce(part, memory, kLong));
  float wanted = 0;
  for (int other = rank % 2; other < ranks; other += 2) wanted += static_cast<float>(other);
  CHECK(fetched(memory, kLong)[kLong - 1] == wanted);
  NCCL(ncclCommDestroy(part));
  for (const size_t count : {kShort, kLong}) {
    float* const out = filled(count, static_cast<float>(rank));
    float* const in = filled(count * static_cast<size_t>(ranks), -1);
    NCCL(ncclGroupStart());
    for (int peer = 0; peer < ranks; ++peer) {
      NCCL(ncclSend(out, count, kFloat, peer, comm, nullptr));
      NCCL(ncclRecv(in + static_cast<size_t>(peer) * count, count, kFloat, peer, comm, nullptr));
    }
    NCCL(ncclGroupEnd());
    const std::vector<float> got = fetched(in, count * static_cast<size_t>(ranks));
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(i / count));
  }
  NCCL(ncclCommDestroy(comm));
}

// A receive of another size than the send.
void wrongSize(int rank, int ranks, void* comm) {
  float* const memory = filled(kLong, 1);
  if (rank == 0) {
    // It has left before the receiver looks at it, or is told of the receiver's failure.
    const int sent = settled(comm, ncclSend(memory, kShort, kFloat, ranks - 1, comm, nullptr));
    CHECK(sent == 0 || sent == kInvalidUsage);
    sleep(1);
  }
  if (rank == ranks - 1) {
    CHECK(settled(comm, ncclRecv(memory, kShort + 1, kFloat, 0, comm, nullptr)) == kInvalidUsage);
    CHECK(std::strstr(ncclGetLastError(nullptr), "another size") != nullptr);
  }
  NCCL(ncclCommAbort(comm));
}

// The last rank is killed in the midst of collectives.
void killed(int rank, int ranks, void* comm) {
  if (rank == ranks - 1) {
    std::thread([] {
      usleep(200000);
      raise(SIGKILL);
    }).detach();
  }
  float* const memory = filled(kLong, 0);
  int status = 0;
  for (int i = 0; status == 0; ++i) status = allReduce(comm, memory, i % 3 == 0 ? kLong : kShort);
  std::printf("rank %d failed with %d: %s\n", rank, status, ncclGetLastError(nullptr));
  std::fflush(stdout);
  NCCL(ncclCommAbort(comm));
}

// Works until something fails, and says what and when (in the clock of the machine).
void untilFailure(int rank, int ranks, void* comm) {
  float* const memory = filled(kLong, 0);
  int status = 0;
  for (int i = 0; status == 0; ++i) {
    status = allReduce(comm, memory, i % 3 == 0 ? kLong : kShort);
    if (i == 3) std::printf("rank %d of %d works, process %d\n", rank, ranks, static_cast<int>(getpid()));
    std::fflush(stdout);
  }
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("rank %d failed at %ld with %d: %s\n", rank, static_cast<long>(now.tv_sec), status,
              ncclGetLastError(nullptr));
  std::fflush(stdout);
  NCCL(ncclCommAbort(comm));
}

}  // namespace

int main(int, char** arguments) {
  const std::string name = arguments[1];
  const int ranks = std::atoi(arguments[2]);
  const std::map<std::string, std::function<void(int, int, void*)>> cases = {
      {"same-bits", sameBits},   {"mismatch", mismatch},          {"split", split},
      {"wrong-size", wrongSize}, {"until-failure", untilFailure}, {"killed", killed},
  };
  inHost(std::atoi(arguments[3]), std::atoi(arguments[4]), arguments[5], [&](int rank, const Id& id) {
    void* comm = nullptr;
    const int status = ncclCommInitRank(&comm, ranks, id, rank);
    if (name == "join") {  // what becomes of an attempt to join
      std::printf("rank %d joined with %d: %s\n", rank, status, ncclGetLastError(nullptr));
      std::fflush(stdout);
      return;
    }
    NCCL(status);
    cases.at(name)(rank, ranks, comm);
  });
}
