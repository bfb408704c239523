// What communicators do beyond the collectives themselves, a case an argument. The numbers are NCCL's result codes.
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "nccl_interface.h"

namespace {

constexpr size_t kLong = 100000;  // elements that do not go within the shared block

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
bool says(const char* part) {
  const bool found = std::strstr(ncclGetLastError(nullptr), part) != nullptr;
  if (!found) std::fprintf(stderr, "the last error is: %s\n", ncclGetLastError(nullptr));
  return found;
}
int allReduce(void* comm, float* memory, size_t count) {
  return settled(comm, ncclAllReduce(memory, memory, count, kFloat, kSum, comm, nullptr));
}

// Floats whose sum depends on the order: all ranks get the same bits, those of the order of the ranks.
void sameBits() {
  constexpr int kRanks = 3;
  inProcesses(kRanks, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, kRanks, meeting);
    for (const size_t count : {size_t{7}, kLong + 5}) {
      const auto value = [](int of, size_t i) {
        return std::ldexp(static_cast<float>((i * 7919 + static_cast<size_t>(of) * 104729) % 8191) + 0.1F,
                          static_cast<int>((i + static_cast<size_t>(of)) % 20));
      };
      std::vector<float> mine(count);
      for (size_t i = 0; i < count; ++i) mine[i] = value(rank, i);
      auto* const memory = deviceMemory<float>(count);
      for (int repetition = 0; repetition < 3; ++repetition) {
        CHECK(cudaMemcpy(memory, mine.data(), count * 4, cudaMemcpyHostToDevice) == cudaSuccess);
        NCCL(allReduce(comm, memory, count));
        const std::vector<float> sum = fetched(memory, count);
        for (size_t i = 0; i < count; ++i) {
          const float inOrder = value(0, i) + value(1, i);
          CHECK(sum[i] == inOrder + value(2, i));
        }
      }
    }
    NCCL(ncclCommDestroy(comm));
  });
}

// A call of one rank that differs from the others': all ranks get an error that names it.
template <class Calling>
void mismatch(const char* said, const Calling& call) {
  constexpr int kRanks = 3;
  for (const size_t count : {size_t{8}, kLong}) {
    inProcesses(kRanks, [&](int rank, Meeting& meeting) {
      void* const comm = join(rank, kRanks, meeting);
      float* const memory = filled(2 * kLong, 1);
      NCCL(allReduce(comm, memory, 8));
      CHECK(settled(comm, call(rank == 1, memory, count, comm)) == kInvalidUsage && says(said));
      CHECK(allReduce(comm, memory, 8) == kInvalidUsage && says(said));
      meeting.wait(kRanks);  // who is late would hear of the abort instead
      NCCL(ncclCommAbort(comm));
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
    });
  }
}
void mismatches() {
  mismatch("rank 1 AllReduce of", [](bool odd, float* at, size_t count, void* comm) {
    return ncclAllReduce(at, at, odd ? count + 1 : count, kFloat, kSum, comm, nullptr);
  });
  mismatch("int32", [](bool odd, float* at, size_t count, void* comm) {
    return ncclAllReduce(at, at, count, odd ? kInt32 : kFloat, kSum, comm, nullptr);
  });
  mismatch("(max)", [](bool odd, float* at, size_t count, void* comm) {
    return ncclAllReduce(at, at, count, kFloat, odd ? kMax : kSum, comm, nullptr);
  });
  mismatch("root 1", [](bool odd, float* at, size_t count, void* comm) {
    return ncclBroadcast(at, at, count, kFloat, odd ? 1 : 0, comm, nullptr);
  });
  mismatch("rank 1 Reduce of", [](bool odd, float* at, size_t count, void* comm) {
    return odd ? ncclReduce(at, at, count, kFloat, kSum, 0, comm, nullptr)
               : ncclAllReduce(at, at, count, kFloat, kSum, comm, nullptr);
  });
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, 2, meeting);
    float* const memory = filled(2 * kLong, 1);
    const int status = rank == 0 ? ncclSend(memory, kLong, kFloat, 1, comm, nullptr)
                                 : ncclRecv(memory, kLong + 1, kFloat, 0, comm, nullptr);
    CHECK(settled(comm, status) == kInvalidUsage && says("400000") && says("400004"));
    meeting.wait(2);  // who is late would hear of the abort instead
    NCCL(ncclCommAbort(comm));
  });
}

// The host goes on while a collective waits; what follows on its stream waits for it; other streams do not.
void asynchronous() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, 2, meeting);
    for (const size_t count : {size_t{8}, kLong}) {
      float* const memory = filled(count, 1);
      float* const copied = filled(count, 0);
      cudaStream_t stream = nullptr, other = nullptr;
      cudaEvent_t event = nullptr, before = nullptr;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaEventCreate(&event) == cudaSuccess && cudaEventCreate(&before) == cudaSuccess);
      if (rank == 1) meeting.wait(2);
      CHECK(cudaEventRecord(before, stream) == cudaSuccess);
      NCCL(ncclAllReduce(memory, memory, count, kFloat, kSum, comm, stream));
      CHECK(cudaMemcpyAsync(copied, memory, count * 4, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
      CHECK(cudaEventRecord(event, stream) == cudaSuccess);
      if (rank == 0) {
        CHECK(cudaMemsetAsync(deviceMemory<char>(16), 1, 16, other) == cudaSuccess);
        CHECK(cudaStreamSynchronize(other) == cudaSuccess);
        usleep(50000);
        CHECK(cudaStreamQuery(stream) == cudaErrorNotReady && cudaEventQuery(event) == cudaErrorNotReady);
        meeting.wait(2);
      }
      CHECK(cudaEventSynchronize(event) == cudaSuccess && fetched(copied, count)[count - 1] == 2);
      float milliseconds = 0;
      CHECK(cudaEventElapsedTime(&milliseconds, before, event) == cudaSuccess);
      CHECK(rank == 1 || milliseconds >= 50);
      meeting.wait(2);
    }
    NCCL(ncclCommDestroy(comm));
  });
}

// Two communicators that the ranks use in different order, on two streams; and receives before sends.
void differentOrder() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* comms[2] = {join(rank, 2, meeting), nullptr};
    NCCL(ncclCommSplit(comms[0], 0, rank, &comms[1], nullptr));
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) {
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    }
    float* memory[2] = {filled(kLong, 1), filled(kLong, 2)};
    for (int time = 0; time < 20; ++time) {
      for (int step = 0; step < 2; ++step) {
        const int which = step ^ rank;
        NCCL(ncclAllReduce(memory[which], memory[which], kLong, kFloat, kMax, comms[which], streams[which]));
      }
    }
    float* const in = filled(kLong, 0);
    NCCL(ncclRecv(in, kLong, kFloat, rank ^ 1, comms[0], streams[0]));
    NCCL(ncclSend(memory[1], kLong, kFloat, rank ^ 1, comms[0], streams[1]));
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(fetched(memory[0], 1)[0] == 1 && fetched(memory[1], 1)[0] == 2 && fetched(in, kLong)[kLong - 1] == 2);
    for (void* const comm : comms) NCCL(ncclCommDestroy(comm));
  });
}

// The calls of a group that one rank puts on one stream and the other on two: they meet in the order of the calls.
void severalStreams() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, 2, meeting);
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) {
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    }
    const float values[] = {1, 10, 100};
    float* memory[3];
    NCCL(ncclGroupStart());
    for (int i = 0; i < 3; ++i) {
      memory[i] = filled(8, values[i]);
      cudaStream_t const stream = streams[rank == 0 ? 0 : i % 2];
      NCCL(ncclAllReduce(memory[i], memory[i], 8, kFloat, kSum, comm, stream));
    }
    NCCL(ncclGroupEnd());
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < 3; ++i) CHECK(fetched(memory[i], 8)[7] == 2 * values[i]);
    NCCL(ncclCommDestroy(comm));
  });
}

// A rank is killed at some moment; the others hear of it and make a new communicator.
void killed() {
  constexpr int kRanks = 3;
  inProcesses(kRanks,
              [](int rank, Meeting& meeting) {
                void* const comm = join(rank, kRanks, meeting);
                float* const memory = filled(kLong, 1);
                for (int i = 0; i < 5; ++i) NCCL(allReduce(comm, memory, i % 2 == 0 ? 4 : kLong));
                if (rank == 1) raise(SIGKILL);
                int status = 0;
                for (int i = 0; status == 0; ++i) status = allReduce(comm, memory, i % 2 == 0 ? kLong : 4);
                CHECK(status == kRemoteError && says("rank 1") && says("has ended"));
                int error = 0;
                CHECK(ncclCommGetAsyncError(comm, &error) == 0 && error == kRemoteError);
                CHECK(allReduce(comm, memory, 4) == kRemoteError);
                int excluded = 1;
                void* left = nullptr;
                NCCL(ncclCommShrink(comm, &excluded, 1, &left, nullptr, 1));
                NCCL(ncclCommAbort(comm));
                float* const fresh = filled(kLong, 2);
                NCCL(allReduce(left, fresh, kLong));
                CHECK(fetched(fresh, kLong)[kLong - 1] == 4);
                NCCL(ncclCommDestroy(left));
              },
              {0, 128 + SIGKILL, 0});
}

// A rank that aborts or destroys its communicator does not leave the others waiting.
void aborted() {
  constexpr int kRanks = 2;
  for (const bool abort : {true, false}) {
    inProcesses(kRanks, [abort](int rank, Meeting& meeting) {
      void* const comm = join(rank, kRanks, meeting);
      float* const memory = filled(4, 1);
      NCCL(allReduce(comm, memory, 4));
      if (rank == 1) {
        NCCL(abort ? ncclCommAbort(comm) : ncclCommDestroy(comm));
        return;
      }
      CHECK(allReduce(comm, memory, 4) == kRemoteError && says("rank 1"));
      CHECK(says(abort ? "aborted" : "destroyed"));
      NCCL(ncclCommAbort(comm));
    });
  }
  // By the rank that waits.
  inProcesses(kRanks, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, kRanks, meeting);
    float* const memory = filled(kLong, 1);
    if (rank == 1) return meeting.wait(kRanks);
    NCCL(ncclAllReduce(memory, memory, kLong, kFloat, kSum, comm, nullptr));
    usleep(100000);
    CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    NCCL(ncclCommAbort(comm));
    CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(ncclAllReduce(memory, memory, 4, kFloat, kSum, comm, nullptr) == kInvalidArgument);
    meeting.wait(kRanks);
  });
}

// The root of a Reduce, which the others write to, aborts: its memory is its own when its stream goes on.
void abortedReceiver() {
  constexpr int kRanks = 3;
  constexpr int kTimes = 8;
  constexpr size_t kCount = size_t{2} << 20;
  for (int time = 0; time < kTimes; ++time) {
    inProcesses(kRanks, [time](int rank, Meeting& meeting) {
      void* const comm = join(rank, kRanks, meeting);
      float* const memory = filled(kCount, 1);
      meeting.wait(kRanks);
      const int called = ncclReduce(memory, memory, kCount, kFloat, kSum, 0, comm, nullptr);
      CHECK(called == 0 || (rank != 0 && called == kRemoteError));  // the root may have aborted before
      if (rank == 0) {
        usleep(static_cast<unsigned int>(time * 7919 % 6000));
        NCCL(ncclCommAbort(comm));
        CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
        const std::vector<float> own(kCount, 7);
        CHECK(cudaMemcpy(memory, own.data(), kCount * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
        usleep(3000);
        CHECK(fetched(memory, kCount) == own);
        meeting.wait(kRanks);
      } else {
        meeting.wait(kRanks);
        NCCL(ncclCommAbort(comm));
      }
    });
  }
}

void split() {
  constexpr int kRanks = 5;
  inProcesses(kRanks, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, kRanks, meeting);
    void* part = nullptr;
    NCCL(ncclCommSplit(comm, rank == 4 ? -1 : rank % 2, -rank, &part, nullptr));  // 0, 2 and 1, 3; in falling order
    CHECK((part == nullptr) == (rank == 4));
    if (part != nullptr) {
      int size = 0;
      int number = -1;
      CHECK(ncclCommCount(part, &size) == 0 && size == 2 && ncclCommUserRank(part, &number) == 0);
      CHECK(number == (rank < 2 ? 1 : 0));
      float* const memory = filled(kLong, static_cast<float>(rank));
      NCCL(allReduce(part, memory, kLong));
      CHECK(fetched(memory, kLong)[5] == (rank % 2 == 0 ? 2 : 4));
      NCCL(ncclCommDestroy(part));
    }
    float* const memory = filled(4, 1);
    NCCL(allReduce(comm, memory, 4));
    CHECK(fetched(memory, 4)[0] == kRanks);
    NCCL(ncclCommDestroy(comm));
  });
}

struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef, version = 22703;
  int blocking = 0;
  int others[4] = {};
};

void nonBlocking() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* comm = nullptr;
    Config config;
    CHECK(cudaSetDevice(rank) == cudaSuccess);
    if (rank == 1) meeting.wait(2);
    const int status = ncclCommInitRankConfig(&comm, 2, meeting.id, rank, &config);
    CHECK(status == kInProgress && comm != nullptr);
    int error = kInProgress;
    if (rank == 0) {
      CHECK(ncclCommGetAsyncError(comm, &error) == 0 && error == kInProgress);
      float* const memory = filled(4, 1);
      CHECK(allReduce(comm, memory, 4) == kInvalidArgument && says("not ready"));
      meeting.wait(2);
    }
    for (error = kInProgress; error == kInProgress;) CHECK(ncclCommGetAsyncError(comm, &error) == 0);
    CHECK(error == kSuccess);
    float* const memory = filled(4, 1);
    NCCL(allReduce(comm, memory, 4));
    NCCL(ncclCommFinalize(comm));
    CHECK(allReduce(comm, memory, 4) == kInvalidUsage && says("finalized"));
    NCCL(ncclCommDestroy(comm));
    config.magic = 1;
    CHECK(ncclCommInitRankConfig(&comm, 2, meeting.id, rank, &config) == kInvalidArgument);
  });
}

void wrongJoins() {
  inProcesses(2, [](int rank, Meeting& meeting) {  // both on device 0
    void* comm = nullptr;
    CHECK(ncclCommInitRank(&comm, 2, meeting.id, rank) == kInvalidUsage && comm == nullptr);
    CHECK(says("Duplicate GPU detected"));
    meeting.wait(2);
  });
  inProcesses(2, [](int rank, Meeting& meeting) {  // different opinions on how many there are
    void* comm = nullptr;
    CHECK(cudaSetDevice(rank) == cudaSuccess);
    if (rank == 0) {
      Config config;
      CHECK(ncclCommInitRankConfig(&comm, 2, meeting.id, 0, &config) == kInProgress);
      usleep(300000);
      meeting.wait(2);
      meeting.wait(2);
      NCCL(ncclCommAbort(comm));
      return;
    }
    meeting.wait(2);
    CHECK(ncclCommInitRank(&comm, 3, meeting.id, 1) == kInvalidArgument && says("3 ranks, another one 2"));
    CHECK(ncclCommInitRank(&comm, 2, meeting.id, 0) == kInvalidUsage && says("rank 0 is taken"));
    Id wrong = meeting.id;
    std::memset(&wrong, 1, sizeof wrong);
    CHECK(ncclCommInitRank(&comm, 2, wrong, 1) == kInvalidArgument && says("no unique id"));
    meeting.wait(2);
  });
  // An id of a process that has ended.
  Meeting* const meeting = newMeeting();
  const pid_t child = fork();
  if (child == 0) {
    NCCL(ncclGetUniqueId(&meeting->id));
    std::_Exit(0);
  }
  waitpid(child, nullptr, 0);
  const pid_t second = fork();
  if (second == 0) {
    void* comm = nullptr;
    CHECK(ncclCommInitRank(&comm, 2, meeting->id, 0) == kRemoteError && says("has ended"));
    // Waiting for a rank that dies before it joins: the one that made the id.
    std::_Exit(0);
  }
  int status = 0;
  CHECK(waitpid(second, &status, 0) > 0 && status == 0);
  inProcesses(2,
              [](int rank, Meeting& shared) {
                void* comm = nullptr;
                CHECK(cudaSetDevice(rank) == cudaSuccess);
                if (rank == 0) {
                  shared.wait(2);
                  usleep(100000);
                  raise(SIGKILL);
                }
                shared.wait(2);
                CHECK(ncclCommInitRank(&comm, 2, shared.id, 1) == kRemoteError && comm == nullptr);
              },
              {128 + SIGKILL, 0});
}

void buffers() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, 2, meeting);
    float* const memory = filled(4, 1);
    float host[4] = {};
    CHECK(allReduce(comm, host, 4) == kInvalidArgument && says("host"));
    CHECK(allReduce(comm, memory, 1000000) == kInvalidArgument && says("does not fit its allocation"));
    CHECK(cudaSetDevice(2) == cudaSuccess);
    float* const other = filled(4, 1);
    CHECK(allReduce(comm, other, 4) == kInvalidArgument && says("memory of device 2"));
    int sum = 0;
    CHECK(ncclRedOpCreatePreMulSum(&sum, host, kFloat, 0, comm) == kInvalidArgument && says("the factor"));
    void* pinned = nullptr;
    CHECK(cudaHostAlloc(&pinned, 16, 0) == cudaSuccess);
    std::memset(pinned, 0, 16);
    NCCL(allReduce(comm, static_cast<float*>(pinned), 4));
    CHECK(ncclAlltoAll(memory, memory, 2, kFloat, comm, nullptr) == kInvalidArgument);
    CHECK(ncclSend(memory, 1, kFloat, rank, comm, nullptr) == kInvalidUsage && says("itself"));
    NCCL(ncclCommDestroy(comm));
  });
}

// Messages in both directions at once, in either order within a group, many to one rank, and to oneself.
void messages() {
  constexpr int kRanks = 4;
  inProcesses(kRanks, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, kRanks, meeting);
    const size_t counts[] = {1, 900, kLong};
    for (const size_t count : counts) {
      float* const out = filled(count, static_cast<float>(rank));
      float* const in = filled(count * kRanks * 2, -1);
      NCCL(ncclGroupStart());
      for (int step = 0; step < kRanks; ++step) {
        const int peer = rank % 2 == 0 ? step : kRanks - 1 - step;
        for (int twice = 0; twice < 2; ++twice) {
          NCCL(ncclSend(out, count, kFloat, peer, comm, nullptr));
          NCCL(ncclRecv(in + (static_cast<size_t>(peer) * 2 + static_cast<size_t>(twice)) * count, count, kFloat, peer,
                        comm, nullptr));
        }
      }
      NCCL(ncclGroupEnd());
      const std::vector<float> got = fetched(in, count * kRanks * 2);
      for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(i / (2 * count)));
    }
    // A short one does not wait for its receiver.
    float* const memory = filled(2, static_cast<float>(rank));
    const int peer = rank ^ 1;
    NCCL(ncclSend(memory, 1, kFloat, peer, comm, nullptr));
    NCCL(ncclRecv(memory + 1, 1, kFloat, peer, comm, nullptr));
    CHECK(fetched(memory, 2)[1] == static_cast<float>(peer));
    NCCL(ncclCommDestroy(comm));
  });
}

void manyRanks() {
  constexpr int kRanks = 32;
  inProcesses(kRanks, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, kRanks, meeting);
    float* const memory = filled(kLong, 1);
    for (int i = 0; i < 10; ++i) {
      const size_t count = i % 2 == 0 ? 8 : kLong;
      float* const fresh = filled(count, 1);
      NCCL(allReduce(comm, fresh, count));
      CHECK(fetched(fresh, count)[count - 1] == kRanks);
    }
    CHECK(cudaFree(memory) == cudaSuccess);
    NCCL(ncclCommDestroy(comm));
  });
}

// After a fork the child has no communicator; the parent keeps its own.
void forked() {
  inProcesses(2, [](int rank, Meeting& meeting) {
    void* const comm = join(rank, 2, meeting);
    float* const memory = filled(4, 1);
    const pid_t child = fork();
    if (child == 0) {
      CHECK(allReduce(comm, memory, 4) == kInvalidUsage && says("fork"));
      NCCL(ncclCommDestroy(comm));
      std::_Exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) > 0 && status == 0);
    NCCL(allReduce(comm, memory, 4));
    NCCL(ncclCommDestroy(comm));
  });
}

// A rank is killed at a random moment in the midst of collectives: `times`, with a new job each time.
void killedOften(int times) {
  constexpr int kRanks = 3;
  for (int time = 0; time < times; ++time) {
    const int victim = time % kRanks;
    std::vector<int> expected(kRanks, 0);
    expected[static_cast<size_t>(victim)] = 128 + SIGKILL;
    inProcesses(
        kRanks,
        [time, victim](int rank, Meeting& meeting) {
          void* const comm = join(rank, kRanks, meeting);
          if (rank == victim) {
            std::thread([time] {
              usleep(static_cast<unsigned int>(time * 7919 % 20000));
              raise(SIGKILL);
            }).detach();
          }
          float* const memory = filled(kLong, 1);
          int status = 0;
          const auto began = std::chrono::steady_clock::now();
          for (int i = 0; status == 0; ++i) {
            const size_t count = i % 3 == 0 ? 16 : kLong;
            if (i % 5 == 4) {
              status = ncclSend(memory, 16, kFloat, (rank + 1) % kRanks, comm, nullptr);
              if (status == 0) status = ncclRecv(memory, 16, kFloat, (rank + 2) % kRanks, comm, nullptr);
              status = settled(comm, status);
            } else {
              status = allReduce(comm, memory, count);
            }
          }
          CHECK(status == kRemoteError && std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
          NCCL(ncclCommAbort(comm));
        },
        expected);
  }
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void()>> cases = {
      {"same-bits", sameBits},
      {"mismatches", mismatches},
      {"killed", killed},
      {"aborted", aborted},
      {"aborted-receiver", abortedReceiver},
      {"split", split},
      {"non-blocking", nonBlocking},
      {"wrong-joins", wrongJoins},
      {"buffers", buffers},
      {"asynchronous", asynchronous},
      {"different-order", differentOrder},
      {"several-streams", severalStreams},
      {"messages", messages},
      {"many-ranks", manyRanks},
      {"forked", forked},
      {"killed-often", [arguments] { killedOften(std::atoi(arguments[2])); }},
  };
  cases.at(arguments[1])();
}
