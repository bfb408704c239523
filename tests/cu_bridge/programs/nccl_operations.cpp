// Every collective, type and reduction against values computed here, in and out of place.
//   nccl_operations processes|threads RANKS [COUNT...]
//   nccl_operations host RANKS FIRST HERE FILE [COUNT...]     the ranks of one host, from FIRST on
#include <cmath>
#include <functional>
#include <string>

#include "nccl_interface.h"

namespace {

constexpr size_t kBytes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
struct Format {
  int mantissa, bias, bytes;
};
Format formatOf(int type) {
  switch (type) {
    case kHalf: return {10, 15, 2};
    case kBrain: return {7, 127, 2};
    case kE4M3: return {3, 7, 1};
    default: return {2, 15, 1};
  }
}

// A number that the type holds exactly.
void encode(int type, double value, char* to) {
  const auto put = [to](auto number) { std::memcpy(to, &number, sizeof number); };
  const auto whole = static_cast<int64_t>(value);
  switch (type) {
    case kInt8: return put(static_cast<int8_t>(whole));
    case kUint8: return put(static_cast<uint8_t>(whole));
    case kInt32: return put(static_cast<int32_t>(whole));
    case kUint32: return put(static_cast<uint32_t>(whole));
    case kInt64: return put(whole);
    case kUint64: return put(static_cast<uint64_t>(whole));
    case kFloat: return put(static_cast<float>(value));
    case kDouble: return put(value);
    default: break;
  }
  const Format format = formatOf(type);
  unsigned int bits = 0;
  if (value != 0) {
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent) * 2 - 1;
    const double scaled = std::ldexp(mantissa, format.mantissa);
    CHECK(value > 0 && scaled == std::floor(scaled));
    bits = static_cast<unsigned int>(exponent - 1 + format.bias) << format.mantissa | static_cast<unsigned int>(scaled);
  }
  if (format.bytes == 1) return put(static_cast<uint8_t>(bits));
  put(static_cast<uint16_t>(bits));
}

// What rank `rank` gives as element `i`: 1 or 2.
double value(int rank, size_t i) {
  const uint64_t mixed = (i * 2654435761U + static_cast<uint64_t>(rank) * 40503U) >> 7;
  return 1 + static_cast<double>(mixed & 1);
}
constexpr int kScaled = 5;  // PreMulSum with the factor 2
double reduced(int ranks, size_t i, int op) {
  double result = value(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double other = value(rank, i);
    if (op == kProd) result *= other;
    if (op == kMax) result = std::max(result, other);
    if (op == kMin) result = std::min(result, other);
    if (op == kSum || op == kAvg || op == kScaled) result += other;
  }
  if (op == kAvg) result /= ranks;
  return op == kScaled ? 2 * result : result;
}
// Whether the type holds all results: those of 8 bits do not hold all sums and products of 8 ranks.
bool holds(int type, int ranks, int op) {
  if (type < kHalf) return true;
  const bool shortMantissa = type == kE4M3 || type == kE5M2;
  if (op == kAvg) return (ranks & (ranks - 1)) == 0 && (!shortMantissa || ranks <= 2);
  if (op == kSum || op == kScaled) return !shortMantissa || ranks <= (type == kE5M2 ? 2 : 4);
  return true;
}

class Checker {
 public:
  Checker(int rank, int ranks, void* comm) : rank_(rank), ranks_(ranks), comm_(comm) {}

  void all(int type, size_t count) {
    type_ = type;
    count_ = count;
    const auto all = static_cast<size_t>(ranks_) * count;
    for (int op = kSum; op <= kScaled; ++op) {
      if (!holds(type, ranks_, op)) continue;
      int number = op;
      if (op == kScaled) {
        char factor[8];
        encode(type, 2, factor);
        NCCL(ncclRedOpCreatePreMulSum(&number, factor, type, 1, comm_));
      }
      const auto sum = [&](size_t i) { return reduced(ranks_, i, op); };
      run("AllReduce", count, count, 0, sum,
          [&](void* a, void* b) { return ncclAllReduce(a, b, count, type, number, comm_, nullptr); });
      const int root = (op + 1) % ranks_;
      run("Reduce", count, rank_ == root ? count : 0, 0, sum,
          [&](void* a, void* b) { return ncclReduce(a, b, count, type, number, root, comm_, nullptr); });
      const size_t mine = static_cast<size_t>(rank_) * count;
      run(
          "ReduceScatter", all, count, mine, [&](size_t i) { return sum(mine + i); },
          [&](void* a, void* b) { return ncclReduceScatter(a, b, count, type, number, comm_, nullptr); });
      if (op == kScaled) NCCL(ncclRedOpDestroy(number, comm_));
    }
    const int root = ranks_ - 1;
    const auto fromRoot = [&](size_t i) { return value(root, i); };
    run("Broadcast", count, count, 0, fromRoot,
        [&](void* a, void* b) { return ncclBroadcast(a, b, count, type, root, comm_, nullptr); });
    const auto gathered = [&](size_t i) { return value(static_cast<int>(i / count), i % count); };
    const size_t place = static_cast<size_t>(rank_) * count;
    run("AllGather", count, all, -place, gathered,
        [&](void* a, void* b) { return ncclAllGather(a, b, count, type, comm_, nullptr); });
    run("Gather", count, rank_ == root ? all : 0, -place, gathered,
        [&](void* a, void* b) { return ncclGather(a, b, count, type, root, comm_, nullptr); });
    run(
        "Scatter", all, count, kNotInPlace, [&](size_t i) { return value(root, place + i); },
        [&](void* a, void* b) { return ncclScatter(a, b, count, type, root, comm_, nullptr); });
    run(
        "AlltoAll", all, all, kNotInPlace,
        [&](size_t i) { return value(static_cast<int>(i / count), place + i % count); },
        [&](void* a, void* b) { return ncclAlltoAll(a, b, count, type, comm_, nullptr); });
    const int next = (rank_ + 1) % ranks_;
    const int before = (rank_ + ranks_ - 1) % ranks_;
    run(
        "Send", count, count, kNotInPlace, [&](size_t i) { return value(before, i); },
        [&](void* a, void* b) {
          NCCL(ncclGroupStart());
          NCCL(ncclRecv(b, count, type, before, comm_, nullptr));
          NCCL(ncclSend(a, count, type, next, comm_, nullptr));
          return ncclGroupEnd();
        });
  }

 private:
  static constexpr size_t kNotInPlace = size_t{1} << 62;

  // Gives `in` elements and expects `out` of them. `shift`: where the result lies within what is given if it is in
  // place, in elements (negative: the other way round).
  void run(const char* name, size_t in, size_t out, size_t shift, const std::function<double(size_t)>& expected,
           const std::function<int(void*, void*)>& call) {
    const size_t bytes = kBytes[type_];
    for (const bool inPlace : {false, true}) {
      if (inPlace && shift == kNotInPlace) continue;
      const bool within = inPlace && shift > kNotInPlace;  // what is given is a part of the result
      const size_t before = within && out > 0 ? -shift : 0;
      std::vector<char> host((before + std::max(in, out)) * bytes + 1);
      for (size_t i = 0; i < in; ++i) encode(type_, value(rank_, i), host.data() + (before + i) * bytes);
      char* const memory = deviceMemory<char>(2 * host.size() + 64);
      CHECK(cudaMemcpy(memory, host.data(), host.size(), cudaMemcpyHostToDevice) == cudaSuccess);
      char* const given = memory + before * bytes;
      char* to = memory + (host.size() + 15) / 16 * 16 / bytes * bytes;
      if (inPlace) to = within ? memory : given + shift * bytes;
      const int status = call(given, out > 0 ? to : nullptr);
      if (status != 0) std::fprintf(stderr, "%s: %d %s\n", name, status, ncclGetLastError(nullptr));
      CHECK(status == 0 && cudaDeviceSynchronize() == cudaSuccess);
      std::vector<char> result(out * bytes);
      CHECK(cudaMemcpy(result.data(), to, result.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
      for (size_t i = 0; i < out; ++i) {
        char wanted[8];
        encode(type_, expected(i), wanted);
        if (std::memcmp(wanted, result.data() + i * bytes, bytes) == 0) continue;
        std::fprintf(stderr, "rank %d of %d: %s, type %d, %zu elements, %s place: element %zu differs\n", rank_, ranks_,
                     name, type_, count_, inPlace ? "in" : "out of", i);
        std::_Exit(1);
      }
      CHECK(cudaFree(memory) == cudaSuccess);
    }
  }

  int rank_, ranks_;
  void* comm_;
  int type_ = 0;
  size_t count_ = 0;
};

}  // namespace

int main(int, char** arguments) {
  const std::string mode = arguments[1];
  const int ranks = std::atoi(arguments[2]);
  const bool host = mode == "host";
  std::vector<size_t> counts;
  for (char** count = arguments + (host ? 6 : 3); *count != nullptr; ++count)
    counts.push_back(std::strtoull(*count, nullptr, 10));
  const auto check = [&](int number, void* comm) {
    Checker checker(number, ranks, comm);
    for (const size_t count : counts) {
      for (int type = 0; type < kTypes; ++type) {
        // Long ones between hosts take several exchanges, which do not differ between the types.
        if (!host || count < 10000 || type == kDouble || type == kBrain) checker.all(type, count);
      }
    }
    NCCL(ncclCommDestroy(comm));
  };
  const auto rank = [&](int number, Meeting& meeting) { check(number, join(number, ranks, meeting)); };
  if (host) {
    inHost(std::atoi(arguments[3]), std::atoi(arguments[4]), arguments[5], [&](int number, const Id& id) {
      void* comm = nullptr;
      NCCL(ncclCommInitRank(&comm, ranks, id, number));
      check(number, comm);
    });
  }
  if (mode == "processes") inProcesses(ranks, rank);
  if (mode == "threads") inThreads(ranks, rank);
}
