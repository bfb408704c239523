// Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
#pragma once

#include <stdint.h>

#include "vector_functions.h"

typedef struct curandStatePhilox4_32_10 {
  uint4 ctr;           // the block number, 128 bits, least word first; the upper half is the subsequence
  uint4 output;        // of that block
  uint2 key;           // the seed
  unsigned int STATE;  // how many words of output are used up
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
} curandStatePhilox4_32_10_t;

static inline __host__ __device__ uint4 curand_Philox4x32_10(uint4 c, uint2 k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(0xD2511F53U) * c.x;
    const uint64_t product1 = static_cast<uint64_t>(0xCD9E8D57U) * c.z;
    c = make_uint4(static_cast<unsigned>(product1 >> 32) ^ c.y ^ k.x, static_cast<unsigned>(product1),
                   static_cast<unsigned>(product0 >> 32) ^ c.w ^ k.y, static_cast<unsigned>(product0));
    k.x += 0x9E3779B9U;
    k.y += 0xBB67AE85U;
  }
  return c;
}

// Adds n to the whole block number.
static inline __host__ __device__ void Philox_State_Incr(curandStatePhilox4_32_10_t* s, unsigned long long n) {
  const uint64_t low = static_cast<uint64_t>(s->ctr.y) << 32 | s->ctr.x;
  const uint64_t sum = low + n;
  s->ctr.x = static_cast<unsigned>(sum);
  s->ctr.y = static_cast<unsigned>(sum >> 32);
  if (sum < low && ++s->ctr.z == 0) ++s->ctr.w;
}
static inline __host__ __device__ void Philox_State_Incr(curandStatePhilox4_32_10_t* s) { Philox_State_Incr(s, 1); }
// Adds n to the subsequence.
static inline __host__ __device__ void Philox_State_Incr_hi(curandStatePhilox4_32_10_t* s, unsigned long long n) {
  const uint64_t high = (static_cast<uint64_t>(s->ctr.w) << 32 | s->ctr.z) + n;
  s->ctr.z = static_cast<unsigned>(high);
  s->ctr.w = static_cast<unsigned>(high >> 32);
}
