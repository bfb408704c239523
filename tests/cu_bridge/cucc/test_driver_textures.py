"""Arrays, textures and surfaces of the driver interface, read by kernels; cube maps of both interfaces."""

import pathlib

import pytest
from compiling import Cucc, run_program

KERNELS = """
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(condition) \\
  do { if (!(condition)) { std::printf("%s:%d: %s\\\\n", __FILE__, __LINE__, #condition); std::exit(1); } } while (0)

__global__ void rotated(CUtexObject texture, float* out, int width) {
  const int x = threadIdx.x, y = blockIdx.x;
  out[y * width + x] = tex2D<float>(texture, (y + 0.5f) / width, (x + 0.5f) / width);
}
__global__ void fractions(CUtexObject texture, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}
__global__ void numbers(CUtexObject texture, int* out) {
  out[threadIdx.x] = tex1Dfetch<unsigned char>(texture, threadIdx.x);
}
__global__ void raised(CUsurfObject surface) {
  const int x = threadIdx.x * 4;
  surf2Dwrite(surf2Dread<float>(surface, x, blockIdx.x) + 100, surface, x, blockIdx.x);
}
// Directions to the middle of each face's texels, face by face.
__global__ void all_faces(CUtexObject texture, float* out, int width, int layer) {
  const int face = blockIdx.x, x = threadIdx.x % width, y = threadIdx.x / width;
  const float u = (x + 0.5f) / width * 2 - 1, v = (y + 0.5f) / width * 2 - 1, far = 3;
  const float to[6][3] = {{1, -v, -u}, {-1, -v, u}, {u, 1, v}, {u, -1, -v}, {u, -v, 1}, {-u, -v, -1}};
  const float* d = to[face];
  out[face * width * width + threadIdx.x] =
      layer < 0 ? texCubemap<float>(texture, d[0] * far, d[1] * far, d[2] * far)
                : texCubemapLayered<float>(texture, d[0], d[1], d[2], layer);
}
"""

PROGRAM = (
    KERNELS
    + """
int main() {
  CUcontext context;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  constexpr int width = 8;
  float *out, image[width * width];
  cudaMallocManaged(&out, 4096);
  for (int i = 0; i < width * width; ++i) image[i] = i * i % 61;

  CUDA_ARRAY3D_DESCRIPTOR wanted{width, width, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST}, got;
  CUarray array;
  CHECK(cuArray3DCreate(&array, &wanted) == CUDA_SUCCESS && cuArray3DGetDescriptor(&got, array) == CUDA_SUCCESS);
  CHECK(got.Width == width && got.Height == width && got.Depth == 0 && got.Format == CU_AD_FORMAT_FLOAT);
  CHECK(got.NumChannels == 1 && got.Flags == CUDA_ARRAY3D_SURFACE_LDST);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = image;
  copy.srcPitch = copy.WidthInBytes = width * 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.Height = width;
  CHECK(cuMemcpy2D(&copy) == CUDA_SUCCESS);
  copy.dstXInBytes = 4;  // over the end of the rows
  CHECK(cuMemcpy2D(&copy) == CUDA_ERROR_INVALID_VALUE);

  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC way{};
  way.addressMode[0] = way.addressMode[1] = CU_TR_ADDRESS_MODE_WRAP;
  way.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUtexObject texture;
  CHECK(cuTexObjectCreate(&texture, &resource, &way, nullptr) == CUDA_SUCCESS);
  CUDA_RESOURCE_DESC made{};
  CUDA_TEXTURE_DESC kept{};
  CUDA_RESOURCE_VIEW_DESC* const view = reinterpret_cast<CUDA_RESOURCE_VIEW_DESC*>(out);
  CHECK(cuTexObjectGetResourceDesc(&made, texture) == CUDA_SUCCESS && made.res.array.hArray == array);
  CHECK(cuTexObjectGetTextureDesc(&kept, texture) == CUDA_SUCCESS && kept.flags == way.flags);
  CHECK(kept.addressMode[1] == CU_TR_ADDRESS_MODE_WRAP);
  CHECK(cuTexObjectGetResourceViewDesc(view, texture) == CUDA_ERROR_INVALID_VALUE);
  rotated<<<width, width>>>(texture, out, width);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < width * width; ++i) CHECK(out[i] == image[i % width * width + i / width]);
  CHECK(cuTexObjectDestroy(texture) == CUDA_SUCCESS && cuTexObjectDestroy(texture) != CUDA_SUCCESS);

  // A part of the array, after a kernel has written all of it, into the middle of pitched memory.
  CUsurfObject surface;
  CHECK(cuSurfObjectCreate(&surface, &resource) == CUDA_SUCCESS);
  made = {};
  CHECK(cuSurfObjectGetResourceDesc(&made, surface) == CUDA_SUCCESS && made.res.array.hArray == array);
  raised<<<width, width>>>(surface);
  CHECK(cuSurfObjectDestroy(surface) == CUDA_SUCCESS);
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = array;
  box.srcXInBytes = 8;
  box.srcY = 3;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = (CUdeviceptr)out;
  box.dstPitch = 64;
  box.dstXInBytes = 12;
  box.dstY = 1;
  box.WidthInBytes = 16;
  box.Height = 2;
  box.Depth = 1;
  for (int i = 0; i < 64; ++i) out[i] = -1;
  CHECK(cuMemcpy3D(&box) == CUDA_SUCCESS);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 16; ++x) {
      const bool inside = y >= 1 && y < 3 && x >= 3 && x < 7;
      CHECK(out[y * 16 + x] == (inside ? image[(y + 2) * width + x - 1] + 100 : -1));
    }
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS && cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);

  // Bytes of linear memory: fractions, unless integers are asked for.
  unsigned char* bytes;
  cudaMallocManaged(&bytes, 16);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(17 * i);
  CUDA_RESOURCE_DESC linear{};
  linear.resType = CU_RESOURCE_TYPE_LINEAR;
  linear.res.linear.devPtr = (CUdeviceptr)bytes;
  linear.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
  linear.res.linear.numChannels = 1;
  linear.res.linear.sizeInBytes = 16;
  CUDA_TEXTURE_DESC plain{};
  CHECK(cuTexObjectCreate(&texture, &linear, &plain, nullptr) == CUDA_SUCCESS);
  fractions<<<1, 16>>>(texture, out);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < 16; ++i) CHECK(out[i] == 17 * i / 255.0f);
  CHECK(cuTexObjectDestroy(texture) == CUDA_SUCCESS);
  plain.flags = CU_TRSF_READ_AS_INTEGER;
  CHECK(cuTexObjectCreate(&texture, &linear, &plain, nullptr) == CUDA_SUCCESS);
  numbers<<<1, 16>>>(texture, reinterpret_cast<int*>(out));
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < 16; ++i) CHECK(reinterpret_cast<int*>(out)[i] == 17 * i);
  plain.filterMode = CU_TR_FILTER_MODE_LINEAR;  // of integers
  CHECK(cuTexObjectCreate(&texture, &linear, &plain, nullptr) == CUDA_ERROR_INVALID_VALUE);
  std::puts("done");
}
"""
)

CUBES = (
    KERNELS
    + """
int main() {
  constexpr int width = 4, face = width * width;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  float* out;
  cudaMallocManaged(&out, 6 * face * sizeof(float));
  std::vector<float> texels(12 * face);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = i * 3 + 1;
  cudaArray_t wrong;
  CHECK(cudaMalloc3DArray(&wrong, &format, make_cudaExtent(4, 4, 5), cudaArrayCubemap) == cudaErrorInvalidValue);
  CHECK(cudaMalloc3DArray(&wrong, &format, make_cudaExtent(4, 5, 6), cudaArrayCubemap) == cudaErrorInvalidValue);
  for (int cubes : {1, 2}) {
    cudaArray_t array;
    const unsigned flags = cudaArrayCubemap | (cubes > 1 ? cudaArrayLayered : 0);
    const cudaExtent extent = make_cudaExtent(width, width, 6 * cubes);
    CHECK(cudaMalloc3DArray(&array, &format, extent, flags) == cudaSuccess);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(texels.data(), width * 4, width, width);
    copy.dstArray = array;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy) == cudaSuccess);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    for (auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
      cudaTextureDesc way = {}, given;
      way.filterMode = filter;
      cudaTextureObject_t texture;
      CHECK(cudaCreateTextureObject(&texture, &resource, &way, nullptr) == cudaSuccess);
      CHECK(cudaGetTextureObjectTextureDesc(&given, texture) == cudaSuccess && given.normalizedCoords == 0);
      for (int layer = 0; layer < cubes; ++layer) {
        all_faces<<<6, face>>>(texture, out, width, cubes == 1 ? -1 : layer);
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
        for (int i = 0; i < 6 * face; ++i) CHECK(out[i] == texels[layer * 6 * face + i]);
      }
      CHECK(cudaDestroyTextureObject(texture) == cudaSuccess);
      way.seamlessCubemap = 1;
      const cudaError_t seamless = cudaCreateTextureObject(&texture, &resource, &way, nullptr);
      CHECK(seamless == (filter == cudaFilterModeLinear ? cudaErrorNotSupported : cudaSuccess));
    }
    CHECK(cudaFreeArray(array) == cudaSuccess);
  }
  std::puts("done");
}
"""
)


@pytest.mark.parametrize("text", [PROGRAM, CUBES], ids=["driver", "cubes"])
def test_kernels_read_what_was_put_into_arrays(cucc: Cucc, tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "textures.cu").write_text(text, encoding="utf-8")
    cucc(tmp_path / "textures.cu", "-lcuda", "-o", tmp_path / "textures")
    done = run_program(tmp_path / "textures", MACA_STATE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
