// Textures, surfaces and the arrays behind them. An array is device memory in rows; an object is its description on the
// heap.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "../cuda_runtime_api.h"
#include "../vector_functions.h"
#include "arithmetic/narrow_float.h"

// ---- Types ----------------------------------------------------------------------------------------------------------
enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3
};
struct cudaChannelFormatDesc {
  int x, y, z, w;
  enum cudaChannelFormatKind f;
};
#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayCubemap 0x04
#define cudaArrayTextureGather 0x08

enum cudaTextureAddressMode {
  cudaAddressModeWrap = 0,
  cudaAddressModeClamp = 1,
  cudaAddressModeMirror = 2,
  cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };
enum cudaResourceType {
  cudaResourceTypeArray = 0x00,
  cudaResourceTypeMipmappedArray = 0x01,
  cudaResourceTypeLinear = 0x02,
  cudaResourceTypePitch2D = 0x03
};
typedef struct cudaMipmappedArray* cudaMipmappedArray_t;
struct cudaResourceDesc {
  enum cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      struct cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      struct cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaResourceViewDesc;
struct cudaTextureDesc {
  enum cudaTextureAddressMode addressMode[3];
  enum cudaTextureFilterMode filterMode;
  enum cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned int maxAnisotropy;
  enum cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int seamlessCubemap;
};

struct cudaArray {
  struct cudaChannelFormatDesc format;
  struct cudaExtent extent;  // as given: 0 where a dimension is not there
  unsigned int flags;
  char* memory;
};

static inline struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline struct cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t xsize, size_t ysize) {
  return {pointer, pitch, xsize, ysize};
}
static inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

namespace mxmaca {

// The components of a type that textures hold.
template <class T>
struct Texel {
  static constexpr int channels = 0;
};
#define MXMACA_TEXEL(type, component, count) \
  template <>                                \
  struct Texel<type> {                       \
    using Component = component;             \
    static constexpr int channels = count;   \
  };
#define MXMACA_TEXELS(scalar, name) \
  MXMACA_TEXEL(scalar, scalar, 1)   \
  MXMACA_TEXEL(name##1, scalar, 1)  \
  MXMACA_TEXEL(name##2, scalar, 2)  \
  MXMACA_TEXEL(name##4, scalar, 4)
MXMACA_TEXELS(signed char, char)
MXMACA_TEXELS(unsigned char, uchar)
MXMACA_TEXELS(short, short)
MXMACA_TEXELS(unsigned short, ushort)
MXMACA_TEXELS(int, int)
MXMACA_TEXELS(unsigned int, uint)
MXMACA_TEXELS(float, float)
MXMACA_TEXEL(char, signed char, 1)
#undef MXMACA_TEXELS
#undef MXMACA_TEXEL

struct TextureObject {
  cudaResourceDesc resource;
  cudaTextureDesc texture;
  // What a fetch needs, whatever the resource is.
  cudaChannelFormatDesc format;
  const char* memory;
  size_t width, height, depth, pitch;
  bool layered;
  bool cube;  // the layers are faces, six of each cube
  cudaTextureDesc given;
};
struct SurfaceObject {
  cudaArray* array;
};

inline __host__ __device__ size_t element_bytes(const cudaChannelFormatDesc& format) {
  return static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
}
inline __host__ __device__ size_t at_least_one(size_t n) { return n == 0 ? 1 : n; }
// Six square faces, or six for each layer.
inline bool is_cube(const cudaExtent& extent, bool layered) {
  return extent.width == extent.height && (layered ? extent.depth != 0 && extent.depth % 6 == 0 : extent.depth == 6);
}
inline bool format_is_valid(const cudaChannelFormatDesc& format) {
  const int bits = format.x;
  const bool same =
      (format.y == 0 || format.y == bits) && (format.z == 0 || format.z == bits) && (format.w == 0 || format.w == bits);
  const bool size = bits == 32 || bits == 16 || (bits == 8 && format.f != cudaChannelFormatKindFloat);
  return same && size && (format.z == 0) == (format.w == 0) && format.f <= cudaChannelFormatKindFloat;
}

}  // namespace mxmaca

template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Texel = mxmaca::Texel<T>;
  static_assert(Texel::channels != 0, "a texture holds 1, 2 or 4 integers of 8, 16 or 32 bits, or floats");
  using Component = typename Texel::Component;
  const int bits = 8 * static_cast<int>(sizeof(Component));
  const auto kind = std::is_floating_point<Component>::value ? cudaChannelFormatKindFloat
                    : std::is_signed<Component>::value       ? cudaChannelFormatKindSigned
                                                             : cudaChannelFormatKindUnsigned;
  return {bits, Texel::channels > 1 ? bits : 0, Texel::channels > 2 ? bits : 0, Texel::channels > 2 ? bits : 0, kind};
}
static inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }

// ---- Arrays ---------------------------------------------------------------------------------------------------------
static inline cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                            unsigned int flags = 0) {
  const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayTextureGather | cudaArrayCubemap;
  if (array == nullptr || format == nullptr || extent.width == 0 || !mxmaca::format_is_valid(*format))
    return cudaErrorInvalidValue;
  if ((flags & ~known) != 0) return cudaErrorNotSupported;
  if ((flags & cudaArrayCubemap) != 0 && !mxmaca::is_cube(extent, (flags & cudaArrayLayered) != 0)) {
    return cudaErrorInvalidValue;
  }
  const size_t bytes = mxmaca::element_bytes(*format) * extent.width * mxmaca::at_least_one(extent.height) *
                       mxmaca::at_least_one(extent.depth);
  void* memory = nullptr;
  const cudaError_t error = ::cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) return error;
  *array = new cudaArray{*format, extent, flags, static_cast<char*>(memory)};
  return cudaSuccess;
}
static inline cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                          size_t height = 0, unsigned int flags = 0) {
  return cudaMalloc3DArray(array, format, make_cudaExtent(width, height, 0), flags);
}
static inline cudaError_t cudaFreeArray(cudaArray_t array) {
  if (array == nullptr) return cudaSuccess;
  const cudaError_t error = ::cudaFree(array->memory);
  if (error == cudaSuccess) delete array;
  return error;
}
static inline cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned int* flags,
                                           cudaArray_t array) {
  if (array == nullptr) return cudaErrorInvalidResourceHandle;
  if (format != nullptr) *format = array->format;
  if (extent != nullptr) *extent = array->extent;
  if (flags != nullptr) *flags = array->flags;
  return cudaSuccess;
}
static inline cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  if (array == nullptr || format == nullptr) return cudaErrorInvalidValue;
  *format = array->format;
  return cudaSuccess;
}

// Every copy is one of boxes, in bytes along x.
static inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream = 0) {
  if (p == nullptr) return cudaErrorInvalidValue;
  const cudaArray* const in = p->srcArray;
  const cudaArray* const out = p->dstArray;
  if ((in == nullptr) == (p->srcPtr.ptr == nullptr) || (out == nullptr) == (p->dstPtr.ptr == nullptr)) {
    return cudaErrorInvalidValue;
  }
  // With an array in it, x counts elements.
  const size_t unit = in != nullptr    ? mxmaca::element_bytes(in->format)
                      : out != nullptr ? mxmaca::element_bytes(out->format)
                                       : 1;
  const size_t bytes = p->extent.width * unit;
  const auto inside = [&](const cudaArray* array, const cudaPos& at) {
    return array == nullptr || (at.x + p->extent.width <= array->extent.width &&
                                at.y + p->extent.height <= mxmaca::at_least_one(array->extent.height) &&
                                at.z + p->extent.depth <= mxmaca::at_least_one(array->extent.depth));
  };
  if (!inside(in, p->srcPos) || !inside(out, p->dstPos)) return cudaErrorInvalidValue;
  const auto row = [&](const cudaArray* array, const cudaPitchedPtr& linear, const cudaPos& at, size_t y, size_t z) {
    char* const base = array != nullptr ? array->memory : static_cast<char*>(linear.ptr);
    const size_t pitch = array != nullptr ? array->extent.width * unit : linear.pitch;
    const size_t rows = array != nullptr ? mxmaca::at_least_one(array->extent.height) : linear.ysize;
    const size_t x = array != nullptr ? at.x * unit : at.x;
    return base + ((at.z + z) * rows + at.y + y) * pitch + x;
  };
  for (size_t z = 0; z < p->extent.depth; ++z) {
    for (size_t y = 0; y < p->extent.height; ++y) {
      const cudaError_t error = ::cudaMemcpyAsync(row(out, p->dstPtr, p->dstPos, y, z),
                                                  row(in, p->srcPtr, p->srcPos, y, z), bytes, p->kind, stream);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}
static inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  const cudaError_t error = cudaMemcpy3DAsync(p);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
// Memory of all devices is in one address space, so the devices are checked and named no more.
static inline cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream = 0) {
  if (p == nullptr) return cudaErrorInvalidValue;
  int count = 0;
  const cudaError_t error = ::cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return error;
  const auto there = [count](int device) { return device >= 0 && device < count; };
  if (!there(p->srcDevice) || !there(p->dstDevice)) return cudaErrorInvalidDevice;
  const cudaMemcpy3DParms copy{p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                               p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
  return cudaMemcpy3DAsync(&copy, stream);
}
static inline cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  const cudaError_t error = cudaMemcpy3DPeerAsync(p);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
static inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                                   size_t width, size_t height, cudaMemcpyKind kind,
                                                   cudaStream_t stream = 0) {
  if (to == nullptr || from == nullptr || width > pitch) return cudaErrorInvalidValue;
  const size_t unit = mxmaca::element_bytes(to->format);
  if (x % unit != 0 || width % unit != 0) return cudaErrorInvalidValue;
  cudaMemcpy3DParms p{};
  p.srcPtr = make_cudaPitchedPtr(const_cast<void*>(from), pitch, width, height);
  p.dstArray = to;
  p.dstPos = make_cudaPos(x / unit, y, 0);
  p.extent = make_cudaExtent(width / unit, height, 1);
  p.kind = kind;
  return cudaMemcpy3DAsync(&p, stream);
}
static inline cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                              size_t width, size_t height, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
static inline cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                                     size_t width, size_t height, cudaMemcpyKind kind,
                                                     cudaStream_t stream = 0) {
  if (to == nullptr || from == nullptr || width > pitch) return cudaErrorInvalidValue;
  const size_t unit = mxmaca::element_bytes(from->format);
  if (x % unit != 0 || width % unit != 0) return cudaErrorInvalidValue;
  cudaMemcpy3DParms p{};
  p.srcArray = const_cast<cudaArray_t>(from);
  p.srcPos = make_cudaPos(x / unit, y, 0);
  p.dstPtr = make_cudaPitchedPtr(to, pitch, width, height);
  p.extent = make_cudaExtent(width / unit, height, 1);
  p.kind = kind;
  return cudaMemcpy3DAsync(&p, stream);
}
static inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                                size_t width, size_t height, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
static inline cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t x, size_t y, cudaArray_const_t from,
                                                   size_t fromX, size_t fromY, size_t width, size_t height,
                                                   cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t unit = mxmaca::element_bytes(from->format);
  if (mxmaca::element_bytes(to->format) != unit) return cudaErrorInvalidValue;
  if (x % unit != 0 || fromX % unit != 0 || width % unit != 0) return cudaErrorInvalidValue;
  cudaMemcpy3DParms p{};
  p.srcArray = const_cast<cudaArray_t>(from);
  p.srcPos = make_cudaPos(fromX / unit, fromY, 0);
  p.dstArray = to;
  p.dstPos = make_cudaPos(x / unit, y, 0);
  p.extent = make_cudaExtent(width / unit, height, 1);
  p.kind = kind;
  return cudaMemcpy3D(&p);
}
// Contiguous bytes from the place (x, y) on, over the ends of rows.
static inline cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                                 cudaMemcpyKind kind, cudaStream_t stream = 0) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t row = to->extent.width * mxmaca::element_bytes(to->format), start = y * row + x;
  if (start + count > row * mxmaca::at_least_one(to->extent.height)) return cudaErrorInvalidValue;
  return ::cudaMemcpyAsync(to->memory + start, from, count, kind, stream);
}
static inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                            cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyToArrayAsync(to, x, y, from, count, kind);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
static inline cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                                   cudaMemcpyKind kind, cudaStream_t stream = 0) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t row = from->extent.width * mxmaca::element_bytes(from->format), start = y * row + x;
  if (start + count > row * mxmaca::at_least_one(from->extent.height)) return cudaErrorInvalidValue;
  return ::cudaMemcpyAsync(to, from->memory + start, count, kind, stream);
}
static inline cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                              cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyFromArrayAsync(to, from, x, y, count, kind);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
static inline cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t x, size_t y, cudaArray_const_t from,
                                                 size_t fromX, size_t fromY, size_t count,
                                                 cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  if (from == nullptr) return cudaErrorInvalidValue;
  const size_t row = from->extent.width * mxmaca::element_bytes(from->format), start = fromY * row + fromX;
  if (start + count > row * mxmaca::at_least_one(from->extent.height)) return cudaErrorInvalidValue;
  return cudaMemcpyToArray(to, x, y, from->memory + start, count, kind);
}

// ---- Objects --------------------------------------------------------------------------------------------------------
static inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                                  const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
  if (view != nullptr || texture->sRGB != 0) return cudaErrorNotSupported;
  mxmaca::TextureObject made{};
  made.resource = *resource;
  made.texture = made.given = *texture;
  switch (resource->resType) {
    case cudaResourceTypeArray: {
      const cudaArray* const array = resource->res.array.array;
      if (array == nullptr) return cudaErrorInvalidValue;
      made.format = array->format;
      made.memory = array->memory;
      made.width = array->extent.width;
      made.height = array->extent.height;
      made.depth = array->extent.depth;
      made.pitch = made.width * mxmaca::element_bytes(made.format);
      made.cube = (array->flags & cudaArrayCubemap) != 0;
      made.layered = made.cube || (array->flags & cudaArrayLayered) != 0;
      break;
    }
    case cudaResourceTypeLinear:
      made.format = resource->res.linear.desc;
      made.memory = static_cast<const char*>(resource->res.linear.devPtr);
      if (!mxmaca::format_is_valid(made.format) || made.memory == nullptr) return cudaErrorInvalidValue;
      made.pitch = resource->res.linear.sizeInBytes;
      made.width = made.pitch / mxmaca::element_bytes(made.format);
      break;
    case cudaResourceTypePitch2D:
      made.format = resource->res.pitch2D.desc;
      made.memory = static_cast<const char*>(resource->res.pitch2D.devPtr);
      if (!mxmaca::format_is_valid(made.format) || made.memory == nullptr) return cudaErrorInvalidValue;
      made.width = resource->res.pitch2D.width;
      made.height = resource->res.pitch2D.height;
      made.pitch = resource->res.pitch2D.pitchInBytes;
      break;
    default: return cudaErrorNotSupported;  // mipmaps
  }
  // Filtering makes floats: of floats, or of integers read as fractions.
  const bool floats = made.format.f == cudaChannelFormatKindFloat || texture->readMode == cudaReadModeNormalizedFloat;
  if (texture->filterMode == cudaFilterModeLinear && !floats) return cudaErrorInvalidNormSetting;
  if (texture->readMode == cudaReadModeNormalizedFloat && made.format.f != cudaChannelFormatKindFloat &&
      made.format.x == 32) {
    return cudaErrorInvalidNormSetting;
  }
  if (made.cube) {
    // Filters that take texels of the next face are not there.
    if (texture->seamlessCubemap != 0 && texture->filterMode == cudaFilterModeLinear) return cudaErrorNotSupported;
    // A direction leads to a place on a face, whatever the modes say.
    made.texture.normalizedCoords = 1;
    for (auto& mode : made.texture.addressMode) mode = cudaAddressModeClamp;
  }
  *object = reinterpret_cast<cudaTextureObject_t>(new mxmaca::TextureObject(made));
  return cudaSuccess;
}
static inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  delete reinterpret_cast<mxmaca::TextureObject*>(object);
  return cudaSuccess;
}
static inline cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  if (resource == nullptr || object == 0) return cudaErrorInvalidValue;
  *resource = reinterpret_cast<const mxmaca::TextureObject*>(object)->resource;
  return cudaSuccess;
}
static inline cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  if (texture == nullptr || object == 0) return cudaErrorInvalidValue;
  *texture = reinterpret_cast<const mxmaca::TextureObject*>(object)->given;
  return cudaSuccess;
}
static inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (object == nullptr || resource == nullptr || resource->resType != cudaResourceTypeArray)
    return cudaErrorInvalidValue;
  cudaArray* const array = resource->res.array.array;
  if (array == nullptr || (array->flags & cudaArraySurfaceLoadStore) == 0) return cudaErrorInvalidValue;
  *object = reinterpret_cast<cudaSurfaceObject_t>(new mxmaca::SurfaceObject{array});
  return cudaSuccess;
}
static inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  delete reinterpret_cast<mxmaca::SurfaceObject*>(object);
  return cudaSuccess;
}
