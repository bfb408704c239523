// Texture and surface objects: reads, filters, address modes, layers.
#include "../check.h"

__global__ void two(cudaTextureObject_t point, cudaTextureObject_t linear, cudaTextureObject_t wrapped) {
  const int x = threadIdx.x % 4, y = threadIdx.x / 4;
  EXPECT(tex2D<float>(point, x + 0.5f, y + 0.5f) == 10 * y + x);
  EXPECT(tex2D<float>(point, x - 7.0f, y + 0.9f) == 10 * y);
  EXPECT(tex2D<float>(linear, x + 0.5f, y + 0.5f) == 10 * y + x);
  if (x < 3) EXPECT(tex2D<float>(linear, x + 0.75f, y + 0.5f) == 10 * y + x + 0.25f);
  EXPECT(tex2D<float>(linear, -1.0f, -1.0f) == 77.0f);
  EXPECT(tex2D<float>(wrapped, (x + 0.5f) / 4 + 3, (y + 0.5f) / 2 - 5) == 10 * y + x);
}

__global__ void other(cudaTextureObject_t linear, cudaTextureObject_t bytes, cudaTextureObject_t layers) {
  const int i = threadIdx.x;
  EXPECT(tex1Dfetch<int2>(linear, i).y == 2 * i + 1 && tex1Dfetch<int2>(linear, 8).x == 0);
  EXPECT(tex1D<float4>(bytes, i + 0.5f).w == (4 * i + 3) / 255.0f);
  EXPECT(tex2DLayered<float>(layers, 1.5f, 0.5f, i % 3) == 100 * (i % 3) + 1);
}

__global__ void surface(cudaSurfaceObject_t s) {
  const int x = threadIdx.x % 4, y = threadIdx.x / 4;
  const float old = surf2Dread<float>(s, x * 4, y);
  surf2Dwrite(old + 0.5f, s, x * 4, y);
  EXPECT(surf2Dread<float>(s, -4, y, cudaBoundaryModeZero) == 0);
}

// The four texels around a corner, from the lower left against the clock; without mipmaps all slopes have one level.
__global__ void gather(cudaTextureObject_t point, cudaTextureObject_t wrapped) {
  const int x = threadIdx.x;
  const float4 four = tex2Dgather<float4>(point, x + 1.0f, 1.0f);
  EXPECT(four.x == 10 + x && four.y == 11 + x && four.z == x + 1 && four.w == x);
  EXPECT(tex2Dgather<float4>(point, x + 1.0f, 1.0f, 1).x == 0);
  EXPECT(tex2Dgather<float4>(point, -3.0f, 1.0f).y == 10 && tex2Dgather<float4>(wrapped, 1.0f, 0.5f).z == 0);
  EXPECT(tex2DGrad<float>(point, x + 0.5f, 0.5f, make_float2(2, 0), make_float2(0, 2)) == x);
}

int main() {
  float cells[8];
  for (int i = 0; i < 8; ++i) cells[i] = 10 * (i / 4) + i % 4;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 4, 2, cudaArraySurfaceLoadStore) == cudaSuccess);
  CHECK(cudaMemcpy2DToArray(array, 0, 0, cells, 16, 16, 2, cudaMemcpyHostToDevice) == cudaSuccess);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc texture = {};
  texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t point, linear, wrapped;
  CHECK(cudaCreateTextureObject(&point, &resource, &texture, nullptr) == cudaSuccess);
  texture.filterMode = cudaFilterModeLinear;
  texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeBorder;
  texture.borderColor[0] = 77;
  CHECK(cudaCreateTextureObject(&linear, &resource, &texture, nullptr) == cudaSuccess);
  texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeWrap;
  texture.normalizedCoords = 1;
  CHECK(cudaCreateTextureObject(&wrapped, &resource, &texture, nullptr) == cudaSuccess);
  two<<<1, 8>>>(point, linear, wrapped);
  gather<<<1, 3>>>(point, wrapped);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);

  int* numbers;
  cudaMallocManaged(&numbers, 16 * sizeof *numbers);
  unsigned char bytes[32];
  for (int i = 0; i < 16; ++i) numbers[i] = i;
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(i);
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypeLinear;
  memory.res.linear.devPtr = numbers;
  memory.res.linear.desc = cudaCreateChannelDesc<int2>();
  memory.res.linear.sizeInBytes = 64;
  cudaTextureDesc plain = {};
  cudaTextureObject_t fetch, fractions, layers;
  CHECK(cudaCreateTextureObject(&fetch, &memory, &plain, nullptr) == cudaSuccess);
  const cudaChannelFormatDesc four = cudaCreateChannelDesc<uchar4>();
  cudaArray_t pixels, stack;
  CHECK(cudaMallocArray(&pixels, &four, 8) == cudaSuccess);
  CHECK(cudaMemcpy2DToArray(pixels, 0, 0, bytes, 32, 32, 1, cudaMemcpyHostToDevice) == cudaSuccess);
  resource.res.array.array = pixels;
  plain.readMode = cudaReadModeNormalizedFloat;
  CHECK(cudaCreateTextureObject(&fractions, &resource, &plain, nullptr) == cudaSuccess);
  CHECK(cudaMalloc3DArray(&stack, &format, make_cudaExtent(4, 1, 3), cudaArrayLayered) == cudaSuccess);
  float layer[12];
  for (int i = 0; i < 12; ++i) layer[i] = 100 * (i / 4) + i % 4;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(layer, 16, 16, 1);
  copy.dstArray = stack;
  copy.extent = make_cudaExtent(4, 1, 3);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy) == cudaSuccess);
  resource.res.array.array = stack;
  plain.readMode = cudaReadModeElementType;
  CHECK(cudaCreateTextureObject(&layers, &resource, &plain, nullptr) == cudaSuccess);
  other<<<1, 8>>>(fetch, fractions, layers);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);

  resource.res.array.array = array;
  cudaSurfaceObject_t s;
  CHECK(cudaCreateSurfaceObject(&s, &resource) == cudaSuccess);
  surface<<<1, 8>>>(s);
  CHECK(cudaMemcpy2DFromArray(cells, 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (int i = 0; i < 8; ++i) CHECK(cells[i] == 10 * (i / 4) + i % 4 + 0.5f);

  float* planes = nullptr;
  CHECK(cudaMalloc(&planes, 64) == cudaSuccess);
  cudaMemcpy3DPeerParms peers = {};
  peers.srcArray = array;
  peers.srcPos = make_cudaPos(1, 0, 0);
  peers.dstPtr = make_cudaPitchedPtr(planes, 16, 16, 2);
  peers.extent = make_cudaExtent(3, 2, 1);
  CHECK(cudaMemcpy3DPeer(&peers) == cudaSuccess);
  CHECK(cudaMemcpy(cells, planes, 32, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cells[0] == 1.5f && cells[2] == 3.5f && cells[4] == 11.5f && cells[6] == 13.5f);
  peers.dstDevice = 99;
  CHECK(cudaMemcpy3DPeer(&peers) == cudaErrorInvalidDevice);
  CHECK(cudaFree(planes) == cudaSuccess);

  cudaArray_t copied;
  CHECK(cudaMallocArray(&copied, &format, 4, 2, cudaArrayTextureGather) == cudaSuccess);
  CHECK(cudaMemcpy2DArrayToArray(copied, 4, 0, array, 0, 1, 12, 1) == cudaSuccess);
  CHECK(cudaMemcpyArrayToArray(copied, 0, 1, array, 8, 0, 16) == cudaSuccess);
  CHECK(cudaMemcpy2DFromArray(cells, 16, copied, 0, 0, 16, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cells[1] == 10.5f && cells[3] == 12.5f && cells[4] == 2.5f && cells[6] == 10.5f);
  CHECK(cudaMemcpyToArrayAsync(copied, 4, 1, cells, 8, cudaMemcpyHostToDevice, 0) == cudaSuccess);
  CHECK(cudaMemcpy2DFromArrayAsync(cells, 16, copied, 4, 1, 8, 1, cudaMemcpyDeviceToHost, 0) == cudaSuccess);
  CHECK(cudaMemcpyFromArrayAsync(cells + 4, copied, 8, 0, 8, cudaMemcpyDeviceToHost, 0) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && cells[1] == 10.5f && cells[4] == 11.5f && cells[5] == 12.5f);
  CHECK(cudaMemcpy2DArrayToArray(copied, 3, 0, array, 0, 1, 12, 1) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyArrayToArray(copied, 0, 0, array, 4, 1, 16) == cudaErrorInvalidValue);
  CHECK(cudaFreeArray(copied) == cudaSuccess);

  // Filtering integers is refused, as is what is not there.
  resource.res.array.array = pixels;
  plain.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t none;
  CHECK(cudaCreateTextureObject(&none, &resource, &plain, nullptr) != cudaSuccess);
  CHECK(cudaDestroyTextureObject(point) == cudaSuccess && cudaDestroySurfaceObject(s) == cudaSuccess);
  CHECK(cudaFreeArray(array) == cudaSuccess && cudaFreeArray(pixels) == cudaSuccess &&
        cudaFreeArray(stack) == cudaSuccess);
  return summary();
}
