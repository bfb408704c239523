// Physical memory mapped into reserved addresses through the driver interface.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "check.h"

int main() {
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t unit = 0;
  CHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS);
  CUdeviceptr base = 0;
  CHECK(cuMemAddressReserve(&base, 8 * unit, 0, 0, 0) == CUDA_SUCCESS);
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  CHECK(cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle handles[2];
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(cuMemCreate(&handles[i], unit, &prop, 0) == CUDA_SUCCESS);
    CHECK(cuMemMap(base + i * unit, unit, 0, handles[i], 0) == CUDA_SUCCESS);
    CHECK(cuMemSetAccess(base + i * unit, unit, &access, 1) == CUDA_SUCCESS);
    CHECK(cuMemRelease(handles[i]) == CUDA_SUCCESS);  // the mapping keeps it
  }
  CHECK(cuMemGetInfo(&after, &total) == CUDA_SUCCESS && before - after >= 2 * unit);
  // Two mappings side by side are one range.
  CHECK(cuMemsetD32(base, 0x12345678, 2 * unit / 4) == CUDA_SUCCESS);
  int value = 0;
  CHECK(cuMemcpyDtoH(&value, base + 2 * unit - 4, 4) == CUDA_SUCCESS && value == 0x12345678);
  CHECK(cuMemsetD8(base, 0, 2 * unit + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemMap(base, unit, 0, handles[0], 0) != CUDA_SUCCESS);  // there is something already
  CHECK(cuMemUnmap(base, 2 * unit) == CUDA_SUCCESS);
  CHECK(cuMemGetInfo(&after, &total) == CUDA_SUCCESS && after + unit >= before);
  CHECK(cuMemAddressFree(base, 8 * unit) == CUDA_SUCCESS);

  // Exported memory is the same memory.
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle exported;
  CUmemGenericAllocationHandle imported;
  int file = -1;
  CHECK(cuMemAddressReserve(&base, 2 * unit, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(cuMemCreate(&exported, unit, &prop, 0) == CUDA_SUCCESS);
  CHECK(cuMemExportToShareableHandle(&file, exported, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS);
  CHECK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS);
  CHECK(cuMemMap(base, unit, 0, exported, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(base + unit, unit, 0, imported, 0) == CUDA_SUCCESS);
  CHECK(cuMemSetAccess(base, 2 * unit, &access, 1) == CUDA_SUCCESS);
  CHECK(cuMemsetD8(base, 5, 1) == CUDA_SUCCESS);
  char byte = 0;
  CHECK(cuMemcpyDtoH(&byte, base + unit, 1) == CUDA_SUCCESS && byte == 5);

  // What is refused here is no error of the runtime interface.
  cudaGetLastError();
  CHECK(cuMemCreate(&exported, size_t{1} << 40, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cuMemAddressReserve(&base, 1, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(base + 8 * unit, unit) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemSetAccess(base + 8 * unit, unit, &access, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(base, 64 * unit) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cudaGetLastError() == cudaSuccess);
}
