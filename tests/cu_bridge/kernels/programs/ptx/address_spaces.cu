// In which memory an address lies: the functions of CUDA C++ and PTX's isspacep.
#include "../../check.h"

__constant__ int table[4] = {1, 2, 3, 4};
__device__ int variable[4];

enum Space { kGlobal, kShared, kLocal, kConstant };

__device__ bool by_ptx(Space space, const void* pointer) {
  const unsigned long long address = reinterpret_cast<unsigned long long>(pointer);
  unsigned is = 0;
  if (space == kGlobal) {
    asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(is) : "l"(address));
  } else if (space == kShared) {
    asm("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(is) : "l"(address));
  } else if (space == kLocal) {
    asm("{ .reg .pred p; isspacep.local p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(is) : "l"(address));
  } else {
    asm("{ .reg .pred p; isspacep.const p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(is) : "l"(address));
  }
  return is != 0;
}

__device__ bool only(Space space, const void* pointer) {
  bool right = true;
  for (const Space other : {kGlobal, kShared, kLocal, kConstant}) {
    right = right && by_ptx(other, pointer) == (other == space);
  }
  return right && (__isGlobal(pointer) != 0) == (space == kGlobal) &&
         (__isShared(pointer) != 0) == (space == kShared) && (__isLocal(pointer) != 0) == (space == kLocal) &&
         (__isConstant(pointer) != 0) == (space == kConstant);
}

template <int size>
__device__ int* own_shared() {
  __shared__ int place[size];
  return place + size - 1;
}

__global__ void everywhere(int* allocated, int waits) {
  extern __shared__ int dynamic[];
  __shared__ double first;
  __shared__ int last[100];
  int own[3] = {waits, 1, 2};
  dynamic[threadIdx.x] = own[waits];
  last[threadIdx.x] = dynamic[threadIdx.x];
  if (waits == 1) __syncthreads();
  EXPECT(only(kShared, &first));
  EXPECT(only(kShared, last + 99));
  EXPECT(only(kShared, dynamic));
  EXPECT(only(kShared, dynamic + 63));
  EXPECT(only(kShared, own_shared<7>()));
  EXPECT(!__isShared(dynamic + 64));
  EXPECT(only(kLocal, own + waits));
  EXPECT(only(kGlobal, allocated));
  EXPECT(only(kGlobal, variable + 3));
  EXPECT(only(kGlobal, nullptr));
  EXPECT(only(kConstant, table));
  EXPECT(only(kConstant, table + 3));
}

int main() {
  int* allocated = nullptr;
  CHECK(cudaMalloc(&allocated, 64) == cudaSuccess);
  for (const int waits : {0, 1}) everywhere<<<3, 64, 64 * sizeof(int)>>>(allocated, waits);
  CHECK(cudaFree(allocated) == cudaSuccess);
  return summary();
}
