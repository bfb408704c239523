#include "fast/Processor.h"

#include <ATen/Version.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstring>

namespace macatorch {
namespace {

// The words of one leaf of the cpuid instruction: eax, ebx, ecx, edx; zeros where the processor has no such leaf.
// Leaves and bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID; AMD64 Architecture
// Programmer's Manual, volume 3, appendix E.
#if defined(__x86_64__)
std::array<unsigned, 4> leaf(unsigned number, unsigned part = 0) {
  std::array<unsigned, 4> words{};
  if (__get_cpuid_count(number, part, &words[0], &words[1], &words[2], &words[3]) == 0) {
    words = {};
  }
  return words;
}
#else
std::array<unsigned, 4> leaf(unsigned, unsigned = 0) { return {}; }
#endif

/// ATEN_CPU_CAPABILITY and libtorch_cpu's own check decide whether it uses AVX-512.
bool uses_avx512() { return at::get_cpu_capability() == "AVX512"; }

}  // namespace

bool has_avx2() { return uses_avx512() || at::get_cpu_capability() == "AVX2"; }

bool has_wide_vectors_of_amd() {
  const std::array<unsigned, 4> name = leaf(0);
  const std::array<unsigned, 3> vendor{name[1], name[3], name[2]};
  const unsigned version = leaf(1)[0];
  const unsigned family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  return uses_avx512() && std::memcmp(vendor.data(), "AuthenticAMD", sizeof vendor) == 0 && family >= 0x1a;
}

bool has_bfloat16_products() { return uses_avx512() && (leaf(7, 1)[0] >> 5 & 1) != 0; }

}  // namespace macatorch
