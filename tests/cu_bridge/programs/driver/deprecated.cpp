// What CUDA's driver interface keeps of its first years. Argument: a module that has `fill`, as text or as a cubin.
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime.h>

#include "../check.h"

static void launches(const char* path, int* out) {
  CUmodule module;
  CUfunction fill;
  CHECK(cuModuleLoad(&module, path) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&fill, module, "fill") == CUDA_SUCCESS);
  CHECK(cuLaunchGrid(fill, 2, 2) == CUDA_ERROR_INVALID_VALUE);  // no shape of blocks
  CHECK(cuFuncSetBlockShape(fill, 4, 2, 1) == CUDA_SUCCESS && cuFuncSetSharedSize(fill, 64) == CUDA_SUCCESS);
  CHECK(cuFuncSetBlockShape(fill, 4, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchGrid(fill, 2, 2) == CUDA_ERROR_INVALID_VALUE);  // no parameters
  CHECK(cuParamSetv(fill, 0, &out, sizeof out) == CUDA_SUCCESS && cuParamSeti(fill, 8, 7) == CUDA_SUCCESS);
  CHECK(cuParamSetf(fill, 12, 0.5f) == CUDA_SUCCESS && cuParamSetSize(fill, 16) == CUDA_SUCCESS);
  CHECK(cuParamSeti(fill, -4, 7) == CUDA_ERROR_INVALID_VALUE && cuParamSeti(fill, 4094, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchGrid(fill, 3, 2) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
  // Each thread adds what it is given: 7 and twice 0.5, into the element of its block.
  for (int i = 0; i < 8; ++i) CHECK(out[i] == (i < 6 ? 8 * 8 : 0));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuParamSetf(fill, 12, 1.5f) == CUDA_SUCCESS && cuLaunchGridAsync(fill, 1, 1, stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS && out[0] == 8 * 8 + 8 * 10 && out[1] == 8 * 8);
  CHECK(cuLaunch(fill) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS && out[0] == 8 * 8 + 16 * 10);
  CUtexref reference = nullptr;
  CUsurfref surface = nullptr;
  CHECK(cuModuleGetTexRef(&reference, module, "fill") == CUDA_ERROR_NOT_FOUND && reference == nullptr);
  CHECK(cuModuleGetSurfRef(&surface, module, "fill") == CUDA_ERROR_NOT_FOUND && surface == nullptr);
  CHECK(cuTexRefCreate(&reference) == CUDA_SUCCESS);
  CHECK(cuParamSetTexRef(fill, CU_PARAM_TR_DEFAULT, reference) == CUDA_SUCCESS);
  CHECK(cuParamSetTexRef(fill, 0, reference) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefDestroy(reference) == CUDA_SUCCESS && cuTexRefDestroy(reference) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  // The kernel's launch is forgotten with it, also where a later one comes to stand at its address.
  CHECK(cuModuleLoad(&module, path) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&fill, module, "fill") == CUDA_SUCCESS);
  CHECK(cuLaunch(fill) == CUDA_ERROR_INVALID_VALUE && cuModuleUnload(module) == CUDA_SUCCESS);
}

static void references() {
  CUtexref one;
  CHECK(cuTexRefCreate(&one) == CUDA_SUCCESS);
  CUarray array = nullptr, found = nullptr;
  CUdeviceptr memory = 0, address = 0;
  CHECK(cuTexRefGetArray(&found, one) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefGetAddress(&address, one) == CUDA_ERROR_INVALID_VALUE);
  const CUDA_ARRAY_DESCRIPTOR wanted{8, 4, CU_AD_FORMAT_UNSIGNED_INT16, 2};
  CHECK(cuArrayCreate(&array, &wanted) == CUDA_SUCCESS);
  CHECK(cuTexRefSetArray(one, array, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefSetArray(one, array, CU_TRSA_OVERRIDE_FORMAT) == CUDA_SUCCESS);
  CUarray_format format;
  int channels = 0;
  CHECK(cuTexRefGetArray(&found, one) == CUDA_SUCCESS && found == array);
  CHECK(cuTexRefGetFormat(&format, &channels, one) == CUDA_SUCCESS);
  CHECK(format == CU_AD_FORMAT_UNSIGNED_INT16 && channels == 2);
  CHECK(cuTexRefGetAddress(&address, one) == CUDA_ERROR_INVALID_VALUE);

  // Memory in the array's place: a pointer that is not aligned begins before itself.
  size_t offset = 0;
  CHECK(cuMemAlloc(&memory, 4096) == CUDA_SUCCESS);
  CHECK(cuTexRefSetAddress(nullptr, one, memory + 4, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefSetAddress(&offset, one, memory + 4, 64) == CUDA_SUCCESS && offset == 4);
  CHECK(cuTexRefGetAddress(&address, one) == CUDA_SUCCESS && address == memory + 4);
  CHECK(cuTexRefGetArray(&found, one) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefSetFormat(one, CU_AD_FORMAT_HALF, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefSetFormat(one, CU_AD_FORMAT_HALF, 4) == CUDA_SUCCESS);
  const CUDA_ARRAY_DESCRIPTOR image{8, 4, CU_AD_FORMAT_FLOAT, 1};
  CHECK(cuTexRefSetAddress2D(one, &image, memory, 20) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefGetFormat(&format, &channels, one) == CUDA_SUCCESS && format == CU_AD_FORMAT_HALF && channels == 4);
  CHECK(cuTexRefSetAddress2D(one, &image, memory, 32) == CUDA_SUCCESS);
  CHECK(cuTexRefGetFormat(&format, &channels, one) == CUDA_SUCCESS && format == CU_AD_FORMAT_FLOAT && channels == 1);

  CUaddress_mode mode;
  CUfilter_mode filter;
  unsigned int flags = 0;
  int most = 0;
  float least = 0, last = 0, bias = 0, color[4] = {0.25f, 0.5f, 0.75f, 1}, seen[4] = {};
  CHECK(cuTexRefSetAddressMode(one, 1, CU_TR_ADDRESS_MODE_MIRROR) == CUDA_SUCCESS);
  CHECK(cuTexRefSetAddressMode(one, 3, CU_TR_ADDRESS_MODE_MIRROR) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefGetAddressMode(&mode, one, 1) == CUDA_SUCCESS && mode == CU_TR_ADDRESS_MODE_MIRROR);
  CHECK(cuTexRefGetAddressMode(&mode, one, 0) == CUDA_SUCCESS && mode != CU_TR_ADDRESS_MODE_MIRROR);
  CHECK(cuTexRefSetFilterMode(one, CU_TR_FILTER_MODE_LINEAR) == CUDA_SUCCESS);
  CHECK(cuTexRefGetFilterMode(&filter, one) == CUDA_SUCCESS && filter == CU_TR_FILTER_MODE_LINEAR);
  CHECK(cuTexRefGetMipmapFilterMode(&filter, one) == CUDA_SUCCESS && filter == CU_TR_FILTER_MODE_POINT);
  CHECK(cuTexRefSetMipmapFilterMode(one, CU_TR_FILTER_MODE_LINEAR) == CUDA_SUCCESS);
  CHECK(cuTexRefGetMipmapFilterMode(&filter, one) == CUDA_SUCCESS && filter == CU_TR_FILTER_MODE_LINEAR);
  CHECK(cuTexRefSetMipmapLevelBias(one, 1.5f) == CUDA_SUCCESS);
  CHECK(cuTexRefGetMipmapLevelBias(&bias, one) == CUDA_SUCCESS && bias == 1.5f);
  CHECK(cuTexRefSetMipmapLevelClamp(one, 1, 3) == CUDA_SUCCESS);
  CHECK(cuTexRefGetMipmapLevelClamp(&least, &last, one) == CUDA_SUCCESS && least == 1 && last == 3);
  CHECK(cuTexRefSetMaxAnisotropy(one, 8) == CUDA_SUCCESS);
  CHECK(cuTexRefGetMaxAnisotropy(&most, one) == CUDA_SUCCESS && most == 8);
  CHECK(cuTexRefSetBorderColor(one, color) == CUDA_SUCCESS && cuTexRefGetBorderColor(seen, one) == CUDA_SUCCESS);
  for (int c = 0; c < 4; ++c) CHECK(seen[c] == color[c]);
  CHECK(cuTexRefSetFlags(one, CU_TRSF_NORMALIZED_COORDINATES) == CUDA_SUCCESS);
  CHECK(cuTexRefSetFlags(one, 0x100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexRefGetFlags(&flags, one) == CUDA_SUCCESS && flags == CU_TRSF_NORMALIZED_COORDINATES);
  CUmipmappedArray levels = nullptr;
  CHECK(cuTexRefGetMipmappedArray(&levels, one) == CUDA_ERROR_INVALID_VALUE && levels == nullptr);
  CHECK(cuTexRefDestroy(one) == CUDA_SUCCESS && cuTexRefGetFlags(&flags, one) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS && cuMemFree(memory) == CUDA_SUCCESS);
}

static void contexts(CUcontext primary) {
  CUcontext made = nullptr, again = nullptr, current = nullptr;
#if CUDA_VERSION >= 13000
  CHECK(cuCtxCreate(&made, nullptr, 0, 0) == CUDA_SUCCESS);
#else
  CHECK(cuCtxCreate(&made, 0, 0) == CUDA_SUCCESS);
#endif
  CHECK(cuCtxAttach(&again, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxAttach(&again, 0) == CUDA_SUCCESS && again == made);
  CHECK(cuCtxDetach(primary) == CUDA_ERROR_INVALID_CONTEXT);  // not the current one
  CHECK(cuCtxDetach(made) == CUDA_SUCCESS);
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == made);
  CHECK(cuCtxDetach(made) == CUDA_SUCCESS);  // its last user
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary);
  CHECK(cuCtxDetach(made) == CUDA_ERROR_INVALID_CONTEXT);
}

static void boxes(CUcontext context, int* out) {
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, 256) == CUDA_SUCCESS && cuMemsetD32(memory, 5, 64) == CUDA_SUCCESS);
  CUDA_MEMCPY3D_PEER box{};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = memory;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = reinterpret_cast<CUdeviceptr>(out);
  box.dstXInBytes = 4;
  box.dstPitch = 16;
  box.WidthInBytes = 8;
  box.Height = 2;
  box.Depth = 1;
  for (int i = 0; i < 16; ++i) out[i] = 0;
  CHECK(cuMemcpy3DPeer(&box) == CUDA_ERROR_INVALID_CONTEXT);
  box.srcContext = box.dstContext = context;
  CHECK(cuMemcpy3DPeer(&box) == CUDA_SUCCESS);
  for (int i = 0; i < 16; ++i) CHECK(out[i] == (i < 8 && (i % 4 == 1 || i % 4 == 2) ? 5 : 0));
  CHECK(cuMemFree(memory) == CUDA_SUCCESS);
}

int main(int, char** words) {
  CUcontext context;
  int* out;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS && cudaMallocManaged(&out, 4096) == cudaSuccess);
  for (int i = 0; i < 16; ++i) out[i] = 0;
  launches(words[1], out);
  references();
  contexts(context);
  boxes(context, out);
  CHECK(cuProfilerInitialize("in", "out", CU_OUT_CSV) == CUDA_ERROR_NOT_SUPPORTED);
  return 0;
}
