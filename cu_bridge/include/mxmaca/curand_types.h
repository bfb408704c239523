// What cuRAND's host and device interfaces share: direction vectors of Sobol's sequence, discrete distributions.
#pragma once

#include <stddef.h>

typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

// A distribution on shift, shift + 1, ... with the probability of each number and those before it, which end at 1.
struct curandDiscreteDistribution_st {
  unsigned int shift;
  size_t count;
  double* cumulative;
};
typedef struct curandDiscreteDistribution_st* curandDiscreteDistribution_t;
