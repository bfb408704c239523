// Textures, surfaces and the arrays behind them. An array is device memory in rows; an object is its description on the
// heap. Addressing and filtering: CUDA C++ Programming Guide, appendix "Texture Fetching".
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "../cuda_runtime_api.h"
#include "../vector_functions.h"
#include "narrow_float.h"

// ---- Types ------------------------------------------------------------------------------------------------------------------
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
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  struct cudaPos srcPos;
  struct cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  struct cudaPos dstPos;
  struct cudaPitchedPtr dstPtr;
  struct cudaExtent extent;
  enum cudaMemcpyKind kind;
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
};
struct SurfaceObject {
  cudaArray* array;
};

inline __host__ __device__ size_t element_bytes(const cudaChannelFormatDesc& format) {
  return static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
}
inline __host__ __device__ size_t at_least_one(size_t n) { return n == 0 ? 1 : n; }
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

// ---- Arrays ------------------------------------------------------------------------------------------------------------------
static inline cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                            unsigned int flags = 0) {
  const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayTextureGather;
  if (array == nullptr || format == nullptr || extent.width == 0 || !mxmaca::format_is_valid(*format))
    return cudaErrorInvalidValue;
  if ((flags & ~known) != 0) return cudaErrorNotSupported;  // cube maps
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
static inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                                size_t width, size_t height, cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr || width > pitch) return cudaErrorInvalidValue;
  const size_t unit = mxmaca::element_bytes(from->format);
  if (x % unit != 0 || width % unit != 0) return cudaErrorInvalidValue;
  cudaMemcpy3DParms p{};
  p.srcArray = const_cast<cudaArray_t>(from);
  p.srcPos = make_cudaPos(x / unit, y, 0);
  p.dstPtr = make_cudaPitchedPtr(to, pitch, width, height);
  p.extent = make_cudaExtent(width / unit, height, 1);
  p.kind = kind;
  return cudaMemcpy3D(&p);
}
// Contiguous bytes from the place (x, y) on, over the ends of rows.
static inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                            cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t row = to->extent.width * mxmaca::element_bytes(to->format), start = y * row + x;
  if (start + count > row * mxmaca::at_least_one(to->extent.height)) return cudaErrorInvalidValue;
  return ::cudaMemcpy(to->memory + start, from, count, kind);
}
static inline cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                              cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t row = from->extent.width * mxmaca::element_bytes(from->format), start = y * row + x;
  if (start + count > row * mxmaca::at_least_one(from->extent.height)) return cudaErrorInvalidValue;
  return ::cudaMemcpy(to, from->memory + start, count, kind);
}

// ---- Objects -----------------------------------------------------------------------------------------------------------------
static inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                                  const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
  if (view != nullptr || texture->sRGB != 0) return cudaErrorNotSupported;
  mxmaca::TextureObject made{};
  made.resource = *resource;
  made.texture = *texture;
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
      made.layered = (array->flags & cudaArrayLayered) != 0;
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
  *texture = reinterpret_cast<const mxmaca::TextureObject*>(object)->texture;
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

// ---- Fetches -----------------------------------------------------------------------------------------------------------------
#ifdef __CUDACC__
namespace mxmaca {

struct Channels {
  double c[4];
};

// One component as a number; integers of 8 and 16 bits become fractions where the object says so.
inline __device__ double component(const char* from, int bits, cudaChannelFormatKind kind, bool fraction) {
  if (kind == cudaChannelFormatKindFloat) {
    if (bits == 16) {
      uint16_t half;
      memcpy(&half, from, 2);
      return half_value(half);
    }
    float value;
    memcpy(&value, from, 4);
    return value;
  }
  uint32_t word = 0;
  memcpy(&word, from, static_cast<size_t>(bits / 8));
  if (kind == cudaChannelFormatKindUnsigned) return fraction ? word / (bits == 8 ? 255.0 : 65535.0) : word;
  const int32_t value = static_cast<int32_t>(word << (32 - bits)) >> (32 - bits);
  const double share = value / (bits == 8 ? 127.0 : 32767.0);
  return fraction ? (share < -1 ? -1 : share) : value;
}

// An index into [0, n) by the address mode, or -1 for the border.
inline __device__ ptrdiff_t addressed(ptrdiff_t i, ptrdiff_t n, cudaTextureAddressMode mode, bool normalized) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case cudaAddressModeBorder: return -1;
    case cudaAddressModeWrap:
      if (normalized) return (i % n + n) % n;
      break;
    case cudaAddressModeMirror:
      if (normalized) {
        const ptrdiff_t place = (i % (2 * n) + 2 * n) % (2 * n);
        return place < n ? place : 2 * n - 1 - place;
      }
      break;
    case cudaAddressModeClamp: break;
  }
  return i < 0 ? 0 : n - 1;
}

inline __device__ Channels texel(const TextureObject& t, ptrdiff_t x, ptrdiff_t y, ptrdiff_t z) {
  const bool normalized = t.texture.normalizedCoords != 0;
  const ptrdiff_t i = addressed(x, static_cast<ptrdiff_t>(t.width), t.texture.addressMode[0], normalized);
  const ptrdiff_t j =
      addressed(y, static_cast<ptrdiff_t>(at_least_one(t.height)), t.texture.addressMode[1], normalized);
  const ptrdiff_t k =
      t.layered ? z : addressed(z, static_cast<ptrdiff_t>(at_least_one(t.depth)), t.texture.addressMode[2], normalized);
  Channels result{};
  if (i < 0 || j < 0 || k < 0) {
    for (int c = 0; c < 4; ++c) result.c[c] = static_cast<double>(t.texture.borderColor[c]);
    return result;
  }
  const size_t rows = at_least_one(t.height);
  const char* at = t.memory + (static_cast<size_t>(k) * rows + static_cast<size_t>(j)) * t.pitch +
                   static_cast<size_t>(i) * element_bytes(t.format);
  const int bits[4] = {t.format.x, t.format.y, t.format.z, t.format.w};
  for (int c = 0; c < 4 && bits[c] != 0; ++c, at += bits[c - 1] / 8) {
    result.c[c] = component(at, bits[c], t.format.f, t.texture.readMode == cudaReadModeNormalizedFloat);
  }
  return result;
}

// Where a coordinate lies: the texel below, and how far the next one counts (in 256ths, as the hardware filters).
struct Place {
  ptrdiff_t index;
  double share;
};
inline __device__ Place place_of(float coordinate, size_t size, bool normalized, bool linear) {
  const double x = normalized ? static_cast<double>(coordinate) * static_cast<double>(at_least_one(size)) : coordinate;
  const double limited = !(x > -1e9) ? -1e9 : x > 1e9 ? 1e9 : x;
  if (!linear) return {static_cast<ptrdiff_t>(::floor(limited)), 0};
  const double shifted = limited - 0.5, below = ::floor(shifted);
  return {static_cast<ptrdiff_t>(below), ::floor((shifted - below) * 256 + 0.5) / 256};
}

// dimensions: how many of x, y, z are filtered; z is the layer of a layered array.
inline __device__ Channels sampled(cudaTextureObject_t object, int dimensions, float x, float y, float z) {
  const TextureObject& t = *reinterpret_cast<const TextureObject*>(object);
  const bool normalized = t.texture.normalizedCoords != 0, linear = t.texture.filterMode == cudaFilterModeLinear;
  const Place at[3] = {place_of(x, t.width, normalized, linear),
                       dimensions > 1 ? place_of(y, t.height, normalized, linear) : Place{0, 0},
                       dimensions > 2 ? place_of(z, t.depth, normalized, linear) : Place{static_cast<ptrdiff_t>(z), 0}};
  Channels result{};
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    ptrdiff_t index[3];
    for (int d = 0; d < 3; ++d) {
      const bool next = (corner >> d & 1) != 0;
      weight *= next ? at[d].share : 1 - at[d].share;
      index[d] = at[d].index + (next ? 1 : 0);
    }
    if (weight == 0) continue;
    const Channels one = texel(t, index[0], index[1], index[2]);
    for (int c = 0; c < 4; ++c) result.c[c] += weight * one.c[c];
  }
  return result;
}

inline __device__ size_t clamped_layer(cudaTextureObject_t object, int layer, size_t layers) {
  static_cast<void>(object);
  return layer < 0 ? 0 : static_cast<size_t>(layer) < layers ? static_cast<size_t>(layer) : layers - 1;
}

template <class T>
inline __device__ T as_texel(const Channels& channels) {
  using Component = typename Texel<T>::Component;
  constexpr int count = Texel<T>::channels;
  static_assert(count != 0, "a texture holds 1, 2 or 4 integers of 8, 16 or 32 bits, or floats");
  Component parts[count];
  for (int c = 0; c < count; ++c) parts[c] = static_cast<Component>(channels.c[c]);
  T result;
  memcpy(static_cast<void*>(&result), parts, sizeof parts);
  return result;
}

}  // namespace mxmaca

#define MXMACA_TEXTURE(name, parameters, fetch)                      \
  template <class T>                                                 \
  inline __device__ T name(cudaTextureObject_t object, parameters) { \
    return mxmaca::as_texel<T>(fetch);                               \
  }
#define MXMACA_AND ,
// Linear memory by index: outside of it zero.
template <class T>
inline __device__ T tex1Dfetch(cudaTextureObject_t object, int i) {
  const mxmaca::TextureObject& t = *reinterpret_cast<const mxmaca::TextureObject*>(object);
  if (i < 0 || static_cast<size_t>(i) >= t.width) return mxmaca::as_texel<T>(mxmaca::Channels{});
  return mxmaca::as_texel<T>(mxmaca::texel(t, i, 0, 0));
}
MXMACA_TEXTURE(tex1D, float x, mxmaca::sampled(object, 1, x, 0, 0))
MXMACA_TEXTURE(tex2D, float x MXMACA_AND float y, mxmaca::sampled(object, 2, x, y, 0))
MXMACA_TEXTURE(tex3D, float x MXMACA_AND float y MXMACA_AND float z, mxmaca::sampled(object, 3, x, y, z))
#undef MXMACA_TEXTURE
#undef MXMACA_AND
// Layers are not filtered; one outside is the nearest.
template <class T>
inline __device__ T tex1DLayered(cudaTextureObject_t object, float x, int layer) {
  const mxmaca::TextureObject& t = *reinterpret_cast<const mxmaca::TextureObject*>(object);
  const size_t z = mxmaca::clamped_layer(object, layer, mxmaca::at_least_one(t.depth));
  return mxmaca::as_texel<T>(mxmaca::sampled(object, 1, x, 0, static_cast<float>(z)));
}
template <class T>
inline __device__ T tex2DLayered(cudaTextureObject_t object, float x, float y, int layer) {
  const mxmaca::TextureObject& t = *reinterpret_cast<const mxmaca::TextureObject*>(object);
  const size_t z = mxmaca::clamped_layer(object, layer, mxmaca::at_least_one(t.depth));
  return mxmaca::as_texel<T>(mxmaca::sampled(object, 2, x, y, static_cast<float>(z)));
}
// Without mipmaps there is one level.
template <class T>
inline __device__ T tex2DLod(cudaTextureObject_t object, float x, float y, float) {
  return tex2D<T>(object, x, y);
}
template <class T>
inline __device__ T tex3DLod(cudaTextureObject_t object, float x, float y, float z, float) {
  return tex3D<T>(object, x, y, z);
}
template <class T>
inline __device__ void tex1Dfetch(T* result, cudaTextureObject_t object, int i) {
  *result = tex1Dfetch<T>(object, i);
}
template <class T>
inline __device__ void tex1D(T* result, cudaTextureObject_t object, float x) {
  *result = tex1D<T>(object, x);
}
template <class T>
inline __device__ void tex2D(T* result, cudaTextureObject_t object, float x, float y) {
  *result = tex2D<T>(object, x, y);
}
template <class T>
inline __device__ void tex3D(T* result, cudaTextureObject_t object, float x, float y, float z) {
  *result = tex3D<T>(object, x, y, z);
}

// ---- Surfaces: x in bytes --------------------------------------------------------------------------------------------------
namespace mxmaca {
// The element's address; nullptr where the boundary mode answers zero and drops writes.
inline __device__ char* surface_place(cudaSurfaceObject_t object, long x, long y, long z, size_t bytes,
                                      cudaSurfaceBoundaryMode mode) {
  const cudaArray& array = *reinterpret_cast<const SurfaceObject*>(object)->array;
  const size_t element = element_bytes(array.format);
  const long row = static_cast<long>(array.extent.width * element);
  const long limits[3] = {row - static_cast<long>(bytes), static_cast<long>(at_least_one(array.extent.height)) - 1,
                          static_cast<long>(at_least_one(array.extent.depth)) - 1};
  long at[3] = {x, y, z};
  for (int d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] <= limits[d]) continue;
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) __trap();
    at[d] = at[d] < 0 ? 0 : limits[d];
  }
  return array.memory + (at[2] * (limits[1] + 1) + at[1]) * row + at[0];
}
template <class T>
inline __device__ T surface_read(char* place) {
  T value{};
  if (place != nullptr) memcpy(static_cast<void*>(&value), place, sizeof(T));
  return value;
}
template <class T>
inline __device__ void surface_write(char* place, const T& value) {
  if (place != nullptr) memcpy(place, static_cast<const void*>(&value), sizeof(T));
}
}  // namespace mxmaca

#define MXMACA_SURFACE(name, parameters, x, y, z)                                                  \
  template <class T>                                                                               \
  inline __device__ T name##read(cudaSurfaceObject_t object, MXMACA_LIST parameters,               \
                                 cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {            \
    return mxmaca::surface_read<T>(mxmaca::surface_place(object, x, y, z, sizeof(T), mode));       \
  }                                                                                                \
  template <class T>                                                                               \
  inline __device__ void name##read(T* result, cudaSurfaceObject_t object, MXMACA_LIST parameters, \
                                    cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {         \
    *result = mxmaca::surface_read<T>(mxmaca::surface_place(object, x, y, z, sizeof(T), mode));    \
  }                                                                                                \
  template <class T>                                                                               \
  inline __device__ void name##write(T value, cudaSurfaceObject_t object, MXMACA_LIST parameters,  \
                                     cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {        \
    mxmaca::surface_write(mxmaca::surface_place(object, x, y, z, sizeof(T), mode), value);         \
  }
#define MXMACA_LIST(...) __VA_ARGS__
MXMACA_SURFACE(surf1D, (int x), x, 0, 0)
MXMACA_SURFACE(surf2D, (int x, int y), x, y, 0)
MXMACA_SURFACE(surf3D, (int x, int y, int z), x, y, z)
MXMACA_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
MXMACA_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
#undef MXMACA_LIST
#undef MXMACA_SURFACE
#endif
