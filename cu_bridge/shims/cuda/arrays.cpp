// Arrays, textures and surfaces. What kernels read is described in textures.h, so objects are made by its functions.

#include <cstddef>
#include <cstring>

#include "contexts.h"
#include "handle_table.h"
#include "result.h"

#pragma GCC visibility push(default)
#include "mxmaca/textures.h"
#pragma GCC visibility pop

namespace {

// What a kernel reads, and behind it what it was made of.
struct Texture : TextureObject {
  CUDA_RESOURCE_DESC made_of;
  CUDA_TEXTURE_DESC way;
};
struct Surface : SurfaceObject {
  CUDA_RESOURCE_DESC made_of;
};

mc::HandleTable<cudaArray> arrays;
mc::HandleTable<Texture> textures;
mc::HandleTable<Surface> surfaces;

// nullptr: it is no array of this interface.
cudaArray* arrayOf(CUarray array) {
  auto* const one = reinterpret_cast<cudaArray*>(array);
  return arrays.contains(one) ? one : nullptr;
}

// The object that the runtime interface has made, as one of a table.
template <class Object, class Own, class... Given>
unsigned long long kept(mc::HandleTable<Own>& table, unsigned long long made, const Given&... given) {
  auto* const object = reinterpret_cast<Object*>(static_cast<uintptr_t>(made));
  Object* const own = table.create(*object, given...);
  delete object;
  return reinterpret_cast<uintptr_t>(own);
}

// Null: it is no object of this interface.
template <class Own>
const Own* objectOf(const mc::HandleTable<Own>& table, unsigned long long object) {
  auto* const one = reinterpret_cast<Own*>(static_cast<uintptr_t>(object));
  return table.contains(one) ? one : nullptr;
}
template <class Own, class Description>
CUresult describe(Description* out, const mc::HandleTable<Own>& table, unsigned long long object,
                  Description Own::* part) {
  RETURN_IF_NULL(out);
  const Own* const one = objectOf(table, object);
  if (one == nullptr) return result(mcSetLastError(mcErrorInvalidResourceHandle, nullptr));
  *out = one->*part;
  return CUDA_SUCCESS;
}

// Of one, two or four equal components; the format says which. False: there is no such format.
bool formatOf(CUarray_format format, unsigned int channels, cudaChannelFormatDesc* out) {
  int bits = 0;
  cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: bits = 8; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: bits = 16; break;
    case CU_AD_FORMAT_UNSIGNED_INT32: bits = 32; break;
    case CU_AD_FORMAT_SIGNED_INT8: bits = 8, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT16: bits = 16, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT32: bits = 32, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_HALF: bits = 16, kind = cudaChannelFormatKindFloat; break;
    case CU_AD_FORMAT_FLOAT: bits = 32, kind = cudaChannelFormatKindFloat; break;
    default: return false;
  }
  if (channels != 1 && channels != 2 && channels != 4) return false;
  *out = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0, kind};
  return true;
}

CUarray_format formatOf(const cudaChannelFormatDesc& format) {
  if (format.f == cudaChannelFormatKindFloat) return format.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
  const bool isSigned = format.f == cudaChannelFormatKindSigned;
  const CUarray_format unsignedOne = format.x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                                     : format.x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                                      : CU_AD_FORMAT_UNSIGNED_INT32;
  return isSigned ? static_cast<CUarray_format>(unsignedOne + 7) : unsignedOne;
}

// One side of a copy: where a row begins. nullptr: the memory type has nothing behind it, or the place lies outside.
struct Side {
  char* base = nullptr;
  size_t pitch = 0, rows = 0;
  bool host = false;

  char* row(size_t y, size_t z) const { return base + (z * rows + y) * pitch; }
};

Side sideOf(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t pitch, size_t height,
            const size_t (&at)[3], const size_t (&size)[3]) {
  Side side;
  if (type == CU_MEMORYTYPE_ARRAY) {
    if (arrayOf(array) == nullptr) return side;
    const cudaArray& one = *arrayOf(array);
    const size_t limits[3] = {one.extent.width * element_bytes(one.format), at_least_one(one.extent.height),
                              at_least_one(one.extent.depth)};
    for (int d = 0; d < 3; ++d) {
      if (at[d] > limits[d] || size[d] > limits[d] - at[d]) return side;
    }
    side.base = one.memory;
    side.pitch = limits[0];
    side.rows = limits[1];
  } else {
    const bool known = type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
    // 0: the rows, and the layers, follow each other.
    side.pitch = pitch == 0 ? at[0] + size[0] : pitch;
    side.rows = height == 0 ? at[1] + size[1] : height;
    side.host = type == CU_MEMORYTYPE_HOST;
    const bool fits = at[0] + size[0] <= side.pitch && (size[2] == 1 || at[1] + size[1] <= side.rows);
    if (!known || !fits) return side;
    side.base = side.host ? static_cast<char*>(const_cast<void*>(host)) : static_cast<char*>(address(device));
  }
  if (side.base != nullptr) side.base = side.row(at[1], at[2]) + at[0];
  return side;
}

// Bytes of an array from `offset` on, over the ends of rows; nullptr where it has not as many.
void* bytesOf(CUarray array, size_t offset, size_t bytes) {
  if (arrayOf(array) == nullptr) return nullptr;
  const cudaArray& one = *arrayOf(array);
  const size_t all =
      one.extent.width * element_bytes(one.format) * at_least_one(one.extent.height) * at_least_one(one.extent.depth);
  return offset <= all && bytes <= all - offset ? one.memory + offset : nullptr;
}
CUresult copyBytes(void* to, const void* from, size_t bytes, mcMemcpyKind kind, CUstream stream) {
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(valueError(to != nullptr && from != nullptr));
  return result(mcMemcpyAsync(to, from, bytes, kind, own(stream)));
}
CUresult done(CUresult error) { return error == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : error; }

CUresult copyBox(const CUDA_MEMCPY3D& p, CUstream stream) {
  const size_t size[3] = {p.WidthInBytes, p.Height, p.Depth};
  const Side from = sideOf(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray, p.srcPitch, p.srcHeight,
                           {p.srcXInBytes, p.srcY, p.srcZ}, size);
  const Side to = sideOf(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray, p.dstPitch, p.dstHeight,
                         {p.dstXInBytes, p.dstY, p.dstZ}, size);
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(valueError(from.base != nullptr && to.base != nullptr && p.srcLOD == 0 && p.dstLOD == 0));
  const mcMemcpyKind kinds[2][2] = {{mcMemcpyDeviceToDevice, mcMemcpyDeviceToHost},
                                    {mcMemcpyHostToDevice, mcMemcpyHostToHost}};
  const bool unified = p.srcMemoryType == CU_MEMORYTYPE_UNIFIED || p.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  const mcMemcpyKind kind = unified ? mcMemcpyDefault : kinds[from.host ? 1 : 0][to.host ? 1 : 0];
  for (size_t z = 0; z < p.Depth; ++z) {
    RETURN_IF_WRONG(mcMemcpy2DAsync(to.row(0, z), to.pitch, from.row(0, z), from.pitch, p.WidthInBytes, p.Height, kind,
                                    own(stream)));
  }
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D boxOf(const CUDA_MEMCPY2D& p) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = p.srcXInBytes;
  box.srcY = p.srcY;
  box.srcMemoryType = p.srcMemoryType;
  box.srcHost = p.srcHost;
  box.srcDevice = p.srcDevice;
  box.srcArray = p.srcArray;
  box.srcPitch = p.srcPitch;
  box.dstXInBytes = p.dstXInBytes;
  box.dstY = p.dstY;
  box.dstMemoryType = p.dstMemoryType;
  box.dstHost = p.dstHost;
  box.dstDevice = p.dstDevice;
  box.dstArray = p.dstArray;
  box.dstPitch = p.dstPitch;
  box.WidthInBytes = p.WidthInBytes;
  box.Height = p.Height;
  box.Depth = 1;
  return box;
}

// The contexts stand where the plain structure has reserved words.
CUDA_MEMCPY3D boxOf(const CUDA_MEMCPY3D_PEER& p) {
  static_assert(
      sizeof(CUDA_MEMCPY3D) == sizeof p && offsetof(CUDA_MEMCPY3D, Depth) == offsetof(CUDA_MEMCPY3D_PEER, Depth),
      "layout of a copy between contexts");
  CUDA_MEMCPY3D box{};
  std::memcpy(&box, &p, sizeof box);
  box.reserved0 = box.reserved1 = nullptr;
  return box;
}

// The resource in the runtime interface's words.
CUresult resourceOf(const CUDA_RESOURCE_DESC& given, cudaResourceDesc* out) {
  *out = {};
  switch (given.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      out->resType = cudaResourceTypeArray;
      out->res.array.array = arrayOf(given.res.array.hArray);
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = given.res.linear;
      out->resType = cudaResourceTypeLinear;
      out->res.linear.devPtr = address(linear.devPtr);
      out->res.linear.sizeInBytes = linear.sizeInBytes;
      return result(valueError(formatOf(linear.format, linear.numChannels, &out->res.linear.desc)));
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& pitched = given.res.pitch2D;
      out->resType = cudaResourceTypePitch2D;
      out->res.pitch2D.devPtr = address(pitched.devPtr);
      out->res.pitch2D.width = pitched.width;
      out->res.pitch2D.height = pitched.height;
      out->res.pitch2D.pitchInBytes = pitched.pitchInBytes;
      return result(valueError(formatOf(pitched.format, pitched.numChannels, &out->res.pitch2D.desc)));
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// The type of what is read follows from the texture in the driver interface: integers of 8 and 16 bits are fractions
// unless they are asked for.
cudaTextureDesc textureOf(const CUDA_TEXTURE_DESC& given, const cudaChannelFormatDesc& format) {
  cudaTextureDesc made{};
  for (int d = 0; d < 3; ++d) made.addressMode[d] = static_cast<cudaTextureAddressMode>(given.addressMode[d]);
  made.filterMode = static_cast<cudaTextureFilterMode>(given.filterMode);
  const bool fractions = format.f != cudaChannelFormatKindFloat && format.x < 32;
  made.readMode =
      fractions && (given.flags & CU_TRSF_READ_AS_INTEGER) == 0 ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  made.sRGB = (given.flags & CU_TRSF_SRGB) != 0;
  made.normalizedCoords = (given.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  made.seamlessCubemap = (given.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  made.maxAnisotropy = given.maxAnisotropy;
  for (int c = 0; c < 4; ++c) made.borderColor[c] = given.borderColor[c];
  return made;
}

bool isMode(const CUDA_TEXTURE_DESC& texture) {
  for (const CUaddress_mode mode : texture.addressMode) {
    if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER) return false;
  }
  return texture.filterMode == CU_TR_FILTER_MODE_POINT || texture.filterMode == CU_TR_FILTER_MODE_LINEAR;
}

constexpr unsigned int kTextureFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                       CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  constexpr unsigned int kKnown =
      CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
  cudaChannelFormatDesc format;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(array);
  RETURN_IF_NULL(descriptor);
  RETURN_IF_WRONG(valueError(formatOf(descriptor->Format, descriptor->NumChannels, &format)));
  RETURN_IF_WRONG(checkFlags(descriptor->Flags, kKnown));
  const cudaExtent extent{descriptor->Width, descriptor->Height, descriptor->Depth};
  const bool cube = (descriptor->Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  RETURN_IF_WRONG(valueError(!cube || is_cube(extent, (descriptor->Flags & CUDA_ARRAY3D_LAYERED) != 0)));
  void* memory = nullptr;
  const size_t bytes = element_bytes(format) * extent.width * at_least_one(extent.height) * at_least_one(extent.depth);
  RETURN_IF_WRONG(valueError(bytes != 0));
  RETURN_IF_WRONG(mcMalloc(&memory, bytes));
  // The flags are of one value in both interfaces.
  cudaArray* const made = arrays.create(cudaArray{format, extent, descriptor->Flags, static_cast<char*>(memory)});
  *array = reinterpret_cast<CUarray>(made);
  return CUDA_SUCCESS;
}
CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  RETURN_IF_NULL(descriptor);
  const CUDA_ARRAY3D_DESCRIPTOR whole{descriptor->Width,  descriptor->Height,      0,
                                      descriptor->Format, descriptor->NumChannels, 0};
  return cuArray3DCreate(array, &whole);
}
CUresult cuArrayDestroy(CUarray array) {
  RETURN_IF_WRONG(arrayOf(array) == nullptr ? mcErrorInvalidResourceHandle : mcSuccess);
  char* const memory = arrayOf(array)->memory;
  RETURN_IF_WRONG(arrays.destroy(arrayOf(array)) ? mcSuccess : mcErrorInvalidResourceHandle);
  return result(mcFree(memory));
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  RETURN_IF_NULL(descriptor);
  RETURN_IF_WRONG(arrayOf(array) == nullptr ? mcErrorInvalidResourceHandle : mcSuccess);
  const cudaArray& one = *arrayOf(array);
  const unsigned int channels = one.format.z != 0 ? 4 : one.format.y != 0 ? 2 : 1;
  *descriptor = {one.extent.width, one.extent.height, one.extent.depth, formatOf(one.format), channels, one.flags};
  return CUDA_SUCCESS;
}
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  RETURN_IF_NULL(descriptor);
  const CUresult error = cuArray3DGetDescriptor(&whole, array);
  if (error == CUDA_SUCCESS) *descriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return error;
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  RETURN_IF_NULL(copy);
  return copyBox(*copy, stream);
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* copy) {
  const CUresult error = cuMemcpy3DAsync(copy, nullptr);
  return error == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : error;
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  RETURN_IF_NULL(copy);
  return copyBox(boxOf(*copy), stream);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) {
  const CUresult error = cuMemcpy2DAsync(copy, nullptr);
  return error == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : error;
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) { return cuMemcpy2D(copy); }

// All contexts of a device share its memory, and a copy finds the devices of what it copies.
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  int device = 0;
  unsigned int part = 0;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(copy);
  for (const CUcontext context : {copy->srcContext, copy->dstContext}) {
    if (!isContext(context, &device, &part)) return CUDA_ERROR_INVALID_CONTEXT;
  }
  return copyBox(boxOf(*copy), stream);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return done(cuMemcpy3DPeerAsync(copy, nullptr)); }

CUresult cuMemcpyHtoAAsync(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  return copyBytes(bytesOf(to, offset, bytes), from, bytes, mcMemcpyHostToDevice, stream);
}
CUresult cuMemcpyAtoHAsync(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return copyBytes(to, bytesOf(from, offset, bytes), bytes, mcMemcpyDeviceToHost, stream);
}
CUresult cuMemcpyHtoA(CUarray to, size_t offset, const void* from, size_t bytes) {
  return done(cuMemcpyHtoAAsync(to, offset, from, bytes, nullptr));
}
CUresult cuMemcpyAtoH(void* to, CUarray from, size_t offset, size_t bytes) {
  return done(cuMemcpyAtoHAsync(to, from, offset, bytes, nullptr));
}
CUresult cuMemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return done(copyBytes(bytesOf(to, offset, bytes), address(from), bytes, mcMemcpyDeviceToDevice, nullptr));
}
CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return done(copyBytes(address(to), bytesOf(from, offset, bytes), bytes, mcMemcpyDeviceToDevice, nullptr));
}
CUresult cuMemcpyAtoA(CUarray to, size_t toOffset, CUarray from, size_t offset, size_t bytes) {
  return done(
      copyBytes(bytesOf(to, toOffset, bytes), bytesOf(from, offset, bytes), bytes, mcMemcpyDeviceToDevice, nullptr));
}

CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  cudaResourceDesc made;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(object);
  RETURN_IF_NULL(resource);
  RETURN_IF_NULL(texture);
  RETURN_IF_WRONG(view == nullptr ? mcSuccess : mcErrorNotSupported);
  RETURN_IF_WRONG(valueError(resource->flags == 0 && isMode(*texture)));
  RETURN_IF_WRONG(checkFlags(texture->flags, kTextureFlags));
  const CUresult error = resourceOf(*resource, &made);
  if (error != CUDA_SUCCESS) return error;
  const bool array = made.resType == cudaResourceTypeArray;
  RETURN_IF_WRONG(valueError(!array || made.res.array.array != nullptr));
  const cudaChannelFormatDesc& format = array                                    ? made.res.array.array->format
                                        : made.resType == cudaResourceTypeLinear ? made.res.linear.desc
                                                                                 : made.res.pitch2D.desc;
  const cudaTextureDesc wanted = textureOf(*texture, format);
  cudaTextureObject_t texel = 0;
  const cudaError_t status = cudaCreateTextureObject(&texel, &made, &wanted, nullptr);
  if (status == cudaSuccess) *object = kept<TextureObject>(textures, texel, *resource, *texture);
  // A filter of integers has an error of its own in the runtime interface alone.
  if (status == cudaErrorInvalidNormSetting) return CUDA_ERROR_INVALID_VALUE;
  return static_cast<CUresult>(status);
}
CUresult cuTexObjectDestroy(CUtexObject object) {
  auto* const one = reinterpret_cast<Texture*>(static_cast<uintptr_t>(object));
  return textures.destroy(one) ? CUDA_SUCCESS : result(mcSetLastError(mcErrorInvalidResourceHandle, nullptr));
}
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return describe(resource, textures, object, &Texture::made_of);
}
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  return describe(texture, textures, object, &Texture::way);
}
// A texture of a view is refused, so none has one.
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  RETURN_IF_NULL(view);
  return objectOf(textures, object) != nullptr ? CUDA_ERROR_INVALID_VALUE
                                               : result(mcSetLastError(mcErrorInvalidResourceHandle, nullptr));
}
CUresult cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  cudaResourceDesc made;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(object);
  RETURN_IF_NULL(resource);
  RETURN_IF_WRONG(valueError(resource->flags == 0));
  const CUresult error = resourceOf(*resource, &made);
  if (error != CUDA_SUCCESS) return error;
  cudaSurfaceObject_t surface = 0;
  const cudaError_t status = cudaCreateSurfaceObject(&surface, &made);
  if (status == cudaSuccess) *object = kept<SurfaceObject>(surfaces, surface, *resource);
  return static_cast<CUresult>(status);
}
CUresult cuSurfObjectDestroy(CUsurfObject object) {
  auto* const one = reinterpret_cast<Surface*>(static_cast<uintptr_t>(object));
  return surfaces.destroy(one) ? CUDA_SUCCESS : result(mcSetLastError(mcErrorInvalidResourceHandle, nullptr));
}
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return describe(resource, surfaces, object, &Surface::made_of);
}

}  // extern "C"
#pragma GCC visibility pop
