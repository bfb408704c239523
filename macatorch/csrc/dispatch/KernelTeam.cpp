#include "dispatch/KernelTeam.h"

#include <ATen/Parallel.h>
#include <mc_runtime.h>

namespace macatorch {
namespace {

unsigned size() { return at::in_parallel_region() ? 1 : static_cast<unsigned>(at::get_num_threads()); }

void run(unsigned threads, void (*body)(void*), void* data) {
#pragma omp parallel num_threads(threads)
  body(data);
}

constexpr mcTeam kTeam{&size, &run};

}  // namespace

void register_kernel_team() { mcKernelTeam(&kTeam); }

}  // namespace macatorch
