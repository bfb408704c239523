// cuSOLVER's sparse part: handles and informations. What is computed is in sparse_families.h.

#include "sparse/informations.h"

using namespace mxmaca;
using Status = cusolverStatus_t;

#pragma GCC visibility push(default)
extern "C" {

Status cusolverSpCreate(cusolverSpHandle_t* handle) { return createHandle<Status>(handle); }
Status cusolverSpDestroy(cusolverSpHandle_t handle) { return destroyHandle<Status>(handle); }
Status cusolverSpSetStream(cusolverSpHandle_t handle, cudaStream_t stream) { return setStream<Status>(handle, stream); }
Status cusolverSpGetStream(cusolverSpHandle_t handle, cudaStream_t* stream) {
  return getStream<Status>(handle, stream);
}

#define INFORMATION(Name, Type)                                                            \
  Status cusolverSpCreate##Name(Type##_t* info) { return createDescriptor<Status>(info); } \
  Status cusolverSpDestroy##Name(Type##_t info) { return destroyDescriptor<Status>(info); }
INFORMATION(CsrqrInfo, csrqrInfo)
INFORMATION(CsrqrInfoHost, csrqrInfoHost)
INFORMATION(CsrluInfoHost, csrluInfoHost)
INFORMATION(CsrcholInfo, csrcholInfo)
INFORMATION(CsrcholInfoHost, csrcholInfoHost)

}  // extern "C"
#pragma GCC visibility pop
