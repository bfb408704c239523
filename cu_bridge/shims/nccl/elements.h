// Element types and reductions of collectives.
#pragma once

#include <cstddef>
#include <vector>

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
};

enum ReduceKind { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4, kScaledSum = 5 };

// What to do with the ranks' elements. A scaled sum multiplies each rank's by that rank's factor first.
struct Reduction {
  ReduceKind kind;
  std::vector<double> factors;
};

// Bytes of an element; 0 for a type that is not implemented.
size_t elementBytes(int type);

// A number in one of the types; false if the type is not implemented.
bool readNumber(const void* number, int type, double* value);

// Reduces element by element over the inputs, one a rank, and writes each result to every output. An output may be the
// same memory as an input. 16-bit floats are reduced in float, as everything is in the order of the ranks.
void reduce(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, size_t count, int type,
            const Reduction& reduction);

}  // namespace nccl
