// Element types and reductions of collectives.
//
// A reduction goes over pieces of elements that fit the cache: `load` takes the first rank's, `combine` each further
// rank's in the order of the ranks, `store` writes the result. Floats of 16 and 8 bits are accumulated in float and
// rounded once, so the result does not depend on how elements are divided into pieces.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nccl {

enum DataType {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};

// kScaledSum is NCCL's PreMulSum: each rank's elements are multiplied by a factor of that rank first.
enum ReduceKind { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4, kScaledSum = 5 };

struct Element {
  const char* name;
  size_t bytes;
  size_t accumulatorBytes;
  // `factor` points to one element, the rank's factor of a scaled sum.
  void (*load)(void* accumulator, const void* input, size_t count, int kind, const void* factor);
  void (*combine)(void* accumulator, const void* input, size_t count, int kind, const void* factor);
  void (*store)(void* output, void* accumulator, size_t count, int kind, int ranks);
};

// The type of that number, or nullptr.
const Element* findElement(int type);

const char* reductionName(int kind);

}  // namespace nccl
