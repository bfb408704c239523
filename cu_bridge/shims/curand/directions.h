// Direction vectors and scramble constants of Sobol's sequence, for 20000 dimensions.
//
// Note [Scrambled sequences]
// Each scrambled dimension is the plain one times a random lower triangular matrix of bits, plus a random word
// (J. Matousek, "On the L2-discrepancy for anchored boxes", 1998). The randomness is Philox's with a fixed seed: the
// points have the properties that scrambling gives, and are not cuRAND's, whose constants are not documented.
#pragma once

#include "mxmaca/curand_types.h"

namespace mxmaca {

constexpr unsigned kSobolDimensions = 20000;

// Made by the first call, from facts/sobol_directions.txt of the SDK. Null where that is missing; stderr says so.
curandDirectionVectors32_t* directions32(bool scrambled);
curandDirectionVectors64_t* directions64(bool scrambled);
unsigned int* scrambleConstants32();
unsigned long long* scrambleConstants64();

}  // namespace mxmaca
