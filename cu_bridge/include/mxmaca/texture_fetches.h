// What kernels read through textures and surfaces. Addressing and filtering: CUDA C++ Programming Guide, appendix
// "Texture Fetching".
#pragma once

#include "textures.h"

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

// The four texels that a linear filter would weigh, one component of each: against the clock from the lower left.
inline __device__ Channels gathered(cudaTextureObject_t object, float x, float y, int component) {
  const TextureObject& t = *reinterpret_cast<const TextureObject*>(object);
  const bool normalized = t.texture.normalizedCoords != 0;
  const ptrdiff_t i = place_of(x, t.width, normalized, true).index, j = place_of(y, t.height, normalized, true).index;
  const int c = component & 3;
  return {
      {texel(t, i, j + 1, 0).c[c], texel(t, i + 1, j + 1, 0).c[c], texel(t, i + 1, j, 0).c[c], texel(t, i, j, 0).c[c]}};
}

inline __device__ size_t clamped_layer(cudaTextureObject_t object, int layer, size_t layers) {
  static_cast<void>(object);
  return layer < 0 ? 0 : static_cast<size_t>(layer) < layers ? static_cast<size_t>(layer) : layers - 1;
}

// Where a direction meets a cube around the origin. Face and axes: CUDA C++ Programming Guide, "Cubemap Textures".
inline __device__ Channels cube_sampled(cudaTextureObject_t object, float x, float y, float z, int layer) {
  const TextureObject& t = *reinterpret_cast<const TextureObject*>(object);
  const float ax = ::fabsf(x), ay = ::fabsf(y), az = ::fabsf(z);
  float most, across, down;
  int face;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    most = ax;
    across = x >= 0 ? -z : z;
    down = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    most = ay;
    across = x;
    down = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    most = az;
    across = z >= 0 ? x : -x;
    down = -y;
  }
  const size_t cube = clamped_layer(object, layer, at_least_one(t.depth / 6));
  const float place = static_cast<float>(cube * 6 + static_cast<size_t>(face));
  return sampled(object, 2, (across / most + 1) / 2, (down / most + 1) / 2, place);
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
template <class T>
inline __device__ T texCubemap(cudaTextureObject_t object, float x, float y, float z) {
  return mxmaca::as_texel<T>(mxmaca::cube_sampled(object, x, y, z, 0));
}
template <class T>
inline __device__ T texCubemapLayered(cudaTextureObject_t object, float x, float y, float z, int layer) {
  return mxmaca::as_texel<T>(mxmaca::cube_sampled(object, x, y, z, layer));
}
// Without mipmaps there is one level.
template <class T>
inline __device__ T texCubemapLod(cudaTextureObject_t object, float x, float y, float z, float) {
  return texCubemap<T>(object, x, y, z);
}
template <class T>
inline __device__ T tex2DLod(cudaTextureObject_t object, float x, float y, float) {
  return tex2D<T>(object, x, y);
}
template <class T>
inline __device__ T tex3DLod(cudaTextureObject_t object, float x, float y, float z, float) {
  return tex3D<T>(object, x, y, z);
}
template <class T>
inline __device__ T tex1DLod(cudaTextureObject_t object, float x, float) {
  return tex1D<T>(object, x);
}
template <class T>
inline __device__ T tex1DGrad(cudaTextureObject_t object, float x, float, float) {
  return tex1D<T>(object, x);
}
template <class T>
inline __device__ T tex2DGrad(cudaTextureObject_t object, float x, float y, float2, float2) {
  return tex2D<T>(object, x, y);
}
template <class T>
inline __device__ T tex3DGrad(cudaTextureObject_t object, float x, float y, float z, float4, float4) {
  return tex3D<T>(object, x, y, z);
}
template <class T>
inline __device__ T tex2DLayeredLod(cudaTextureObject_t object, float x, float y, int layer, float) {
  return tex2DLayered<T>(object, x, y, layer);
}
// T: a vector of four.
template <class T>
inline __device__ T tex2Dgather(cudaTextureObject_t object, float x, float y, int component = 0) {
  return mxmaca::as_texel<T>(mxmaca::gathered(object, x, y, component));
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

// ---- Surfaces: x in bytes -------------------------------------------------------------------------------------------
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
