// Runs a function object on the device, in the order of a stream: what the algorithms of cub and thrust are made of.
#pragma once

#include "../cuda_runtime.h"

namespace mxmaca {

#ifdef __CUDA_ARCH__
constexpr bool in_device_code = true;
#else
constexpr bool in_device_code = false;
#endif

#ifdef __CUDACC__
template <class Body>
__global__ void single_thread(Body body) {
  body();
}
#endif

// The body may read and write host memory too: the device's memory is the host's. Called in device code, it runs at
// once.
template <class Body>
__host__ __device__ cudaError_t run_in_stream(Body body, cudaStream_t stream) {
  // No `if constexpr`: both compilations of a file must instantiate the kernel.
  if (in_device_code) {
    body();
    return cudaSuccess;
  }
#ifdef __CUDACC__
  single_thread<Body><<<1, 1, 0, stream>>>(body);
  return cudaPeekAtLastError();
#else
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) body();
  return error;
#endif
}

}  // namespace mxmaca
