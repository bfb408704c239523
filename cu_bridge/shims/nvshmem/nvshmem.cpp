// NVSHMEM: every function is refused. Those that return an address return none.

#include "refuse.h"

extern "C" {
#define REFUSE_ADDRESS(name)                                                          \
  __attribute__((visibility("default"))) void* name() {                               \
    mxmaca::refuse("libnvshmem_host.so.3", #name, 0, "NVSHMEMX_ERROR_NOT_SUPPORTED"); \
    return nullptr;                                                                   \
  }
REFUSE_ADDRESS(nvshmem_malloc)
REFUSE_ADDRESS(nvshmem_ptr)
REFUSE_ADDRESS(nvshmemx_mc_ptr)
}
