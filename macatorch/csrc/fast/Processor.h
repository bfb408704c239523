#pragma once

namespace macatorch {

/// Vectors of 256 bits, unless libtorch_cpu was told to do without.
bool has_avx2();

/// Zen 5 or later: computes with AVX-512 at the full width, which MKL does not use on AMD's processors.
bool has_wide_vectors_of_amd();

/// Multiplies bfloat16 in hardware and adds up in single precision (AVX512_BF16).
bool has_bfloat16_products();

}  // namespace macatorch
