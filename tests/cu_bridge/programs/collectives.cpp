// Collectives between the devices of one process, each in a group of one thread.
#include <cmath>
#include <cstring>
#include <vector>

#include "nccl_interface.h"

namespace {

constexpr int kRanks = 3;
void* comms[kRanks];

template <class Value>
Value* onDevice(int device, const std::vector<Value>& values) {
  void* memory = nullptr;
  CHECK(cudaSetDevice(device) == cudaSuccess && cudaMalloc(&memory, values.size() * sizeof(Value)) == cudaSuccess);
  CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(Value), cudaMemcpyHostToDevice) == cudaSuccess);
  return static_cast<Value*>(memory);
}

template <class Value>
std::vector<Value> fromDevice(const Value* memory, size_t count) {
  std::vector<Value> values(count);
  CHECK(cudaMemcpy(values.data(), memory, count * sizeof(Value), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}

template <class Call>
int group(Call&& call) {
  CHECK(ncclGroupStart() == 0);
  for (int rank = 0; rank < kRanks; ++rank) call(rank);
  return ncclGroupEnd();
}

using Floats = std::vector<float>;

}  // namespace

int main() {
  const int devices[kRanks] = {0, 1, 2};
  CHECK(ncclCommInitAll(comms, kRanks, devices) == 0);
  float* data[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto value = static_cast<float>(rank + 1);
    data[rank] = onDevice<float>(rank, {value, 10 * value, 100 * value});
  }

  // In place, as gradients are reduced.
  const auto allReduce = [&data](int op) {
    return group([&](int r) { ncclAllReduce(data[r], data[r], 3, kFloat, op, comms[r], nullptr); });
  };
  CHECK(allReduce(0) == 0);
  for (float* const values : data) CHECK((fromDevice(values, 3) == Floats{6, 60, 600}));
  CHECK(allReduce(4) == 0);  // the average of equals
  for (float* const values : data) CHECK((fromDevice(values, 3) == Floats{6, 60, 600}));
  int scaled[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    auto factor = static_cast<float>(rank);
    CHECK(ncclRedOpCreatePreMulSum(&scaled[rank], &factor, kFloat, 1, comms[rank]) == 0);
  }
  CHECK(group([&](int r) { ncclAllReduce(data[r], data[r], 3, kFloat, scaled[r], comms[r], nullptr); }) == 0);
  for (float* const values : data) CHECK((fromDevice(values, 3) == Floats{18, 180, 1800}));

  // To and from one rank.
  const Floats ones{1, 1, 1};
  CHECK(cudaMemcpy(data[1], ones.data(), 12, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(group([&](int r) { ncclBroadcast(data[r], data[r], 3, kFloat, 1, comms[r], nullptr); }) == 0);
  for (float* const values : data) CHECK(fromDevice(values, 3) == ones);
  float* const sum = onDevice<float>(2, {0, 0, 0});
  CHECK(group([&](int r) { ncclReduce(data[r], r == 2 ? sum : nullptr, 3, kFloat, 0, 2, comms[r], nullptr); }) == 0);
  CHECK((fromDevice(sum, 3) == Floats{3, 3, 3}));

  // Parts: gathered and scattered again.
  float* parts[kRanks];
  float* whole[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    parts[rank] = onDevice<float>(rank, {static_cast<float>(rank)});
    whole[rank] = onDevice<float>(rank, {-1, -1, -1});
  }
  CHECK(group([&](int r) { ncclAllGather(parts[r], whole[r], 1, kFloat, comms[r], nullptr); }) == 0);
  for (float* const values : whole) CHECK((fromDevice(values, 3) == Floats{0, 1, 2}));
  CHECK(group([&](int r) { ncclReduceScatter(whole[r], parts[r], 1, kFloat, 0, comms[r], nullptr); }) == 0);
  for (int rank = 0; rank < kRanks; ++rank) CHECK(fromDevice(parts[rank], 1)[0] == static_cast<float>(3 * rank));

  // A ring of sends and receives.
  CHECK(group([&](int r) {
          ncclSend(parts[r], 1, kFloat, (r + 1) % kRanks, comms[r], nullptr);
          ncclRecv(whole[r], 1, kFloat, (r + 2) % kRanks, comms[r], nullptr);
        }) == 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK(fromDevice(whole[rank], 1)[0] == static_cast<float>(3 * ((rank + 2) % kRanks)));
  }

  // 16-bit floats, each of 1, 1/3 and the largest subnormal, summed over three ranks; known bits.
  uint16_t* halves[kRanks];
  uint16_t* brains[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    halves[rank] = onDevice<uint16_t>(rank, {0x3c00, 0x3555, 0x03ff});
    brains[rank] = onDevice<uint16_t>(rank, {0x3f80, 0x3eab, 0x7f7f});
  }
  CHECK(group([&](int r) { ncclAllReduce(halves[r], halves[r], 3, kHalf, 0, comms[r], nullptr); }) == 0);
  CHECK(group([&](int r) { ncclAllReduce(brains[r], brains[r], 3, kBrain, 0, comms[r], nullptr); }) == 0);
  CHECK((fromDevice(halves[0], 3) == std::vector<uint16_t>{0x4200, 0x3c00, 0x09fe}));
  CHECK((fromDevice(brains[2], 3) == std::vector<uint16_t>{0x4040, 0x3f80, 0x7f80}));

  // What does not fit together is an error, not a wait for ever.
  CHECK(group([&](int r) { ncclBroadcast(data[r], data[r], 3, kFloat, 7, comms[r], nullptr); }) == 4);
  CHECK(std::strlen(ncclGetLastError(nullptr)) > 0);
  CHECK(allReduce(0) == 0);  // and the next one works
  CHECK(group([&](int r) { ncclAllReduce(data[r], data[r], r == 1 ? 2 : 3, kFloat, 0, comms[r], nullptr); }) == 0);
  for (void* const comm : comms) {
    int error = 0;
    while (error == 0) CHECK(ncclCommGetAsyncError(comm, &error) == 0);
    CHECK(error == 5);
  }
  for (void* const comm : comms) CHECK(ncclCommAbort(comm) == 0);

  // A world of one rank works alone.
  Id id;
  void* comm = nullptr;
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(ncclGetUniqueId(&id) == 0 && ncclCommInitRank(&comm, 1, id, 0) == 0);
  CHECK(cudaSetDevice(2) == cudaSuccess && ncclAllReduce(sum, whole[2], 3, kFloat, 0, comm, nullptr) == 4);
  CHECK(ncclCommDestroy(comm) == 0 && ncclCommInitRank(&comm, 1, id, 0) == 0);
  CHECK(ncclAllReduce(sum, whole[2], 3, kFloat, 0, comm, nullptr) == 0);
  CHECK(fromDevice(whole[2], 3) == fromDevice(sum, 3) && ncclCommDestroy(comm) == 0);
}
