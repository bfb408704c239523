// Texture and surface references. Compilers of CUDA 12 and later make none, so that none is found in a module; a
// reference that a program creates keeps what is set of it.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "handle_table.h"
#include "mc_device_limits.h"
#include "modules.h"

struct CUtexref_st {
  CUarray array = nullptr;
  CUdeviceptr address = 0;
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  int channels = 1;
  CUaddress_mode addressModes[3] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT, mipmapFilter = CU_TR_FILTER_MODE_POINT;
  float mipmapBias = 0, mipmapLeast = 0, mipmapMost = 0;
  unsigned int maxAnisotropy = 0, flags = 0;
  float border[4] = {0, 0, 0, 0};
};

namespace {

mc::HandleTable<CUtexref_st> references;

mcError_t known(CUtexref reference) {
  if (reference == nullptr) return mcErrorInvalidValue;
  return references.contains(reference) ? mcSuccess : mcErrorInvalidResourceHandle;
}

bool isFormat(CUarray_format format, unsigned int channels) {
  constexpr CUarray_format kFormats[] = {
      CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT8,
      CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_SIGNED_INT32,   CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  const bool named = std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats);
  return named && (channels == 1 || channels == 2 || channels == 4);
}
bool isFilter(CUfilter_mode mode) { return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR; }

// What a setter takes is checked before anything is kept.
template <class Value>
CUresult set(CUtexref reference, Value CUtexref_st::* member, Value value, bool valid = true) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(valueError(valid));
  reference->*member = value;
  return CUDA_SUCCESS;
}
template <class Out, class Value>
CUresult get(Out* out, CUtexref reference, Value CUtexref_st::* member) {
  RETURN_IF_NULL(out);
  RETURN_IF_WRONG(known(reference));
  *out = static_cast<Out>(reference->*member);
  return CUDA_SUCCESS;
}

// A module that is one, and a name: no module has a reference.
template <class Reference>
CUresult findReference(Reference* reference, CUmodule module, const char* name) {
  RETURN_IF_NULL(reference);
  RETURN_IF_NULL(name);
  if (!isModule(module)) return fail(mcErrorInvalidResourceHandle, "module");
  return fail(mcErrorSymbolNotFound, name);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) {
  return findReference(reference, module, name);
}
CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name) {
  return findReference(reference, module, name);
}

CUresult cuTexRefCreate(CUtexref* reference) {
  NEEDS_CONTEXT();
  RETURN_IF_NULL(reference);
  *reference = references.create();
  return CUDA_SUCCESS;
}
CUresult cuTexRefDestroy(CUtexref reference) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(references.destroy(reference) ? mcSuccess : mcErrorInvalidResourceHandle);
  return CUDA_SUCCESS;
}

CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned int flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(valueError(flags == CU_TRSA_OVERRIDE_FORMAT));
  const CUresult error = cuArray3DGetDescriptor(&descriptor, array);
  if (error != CUDA_SUCCESS) return error;
  reference->array = array;
  reference->address = 0;
  reference->format = descriptor.Format;
  reference->channels = static_cast<int>(descriptor.NumChannels);
  return CUDA_SUCCESS;
}
// There are no such arrays in the driver interface yet.
CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray array, unsigned int flags) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(valueError(array != nullptr && flags == CU_TRSA_OVERRIDE_FORMAT));
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuTexRefSetAddress(size_t* offset, CUtexref reference, CUdeviceptr pointer, size_t) {
  RETURN_IF_WRONG(known(reference));
  const size_t beyond = pointer % mc::limits::kTextureAlignment;
  RETURN_IF_WRONG(valueError(offset != nullptr || beyond == 0));
  if (offset != nullptr) *offset = beyond;
  reference->array = nullptr;
  reference->address = pointer;
  return CUDA_SUCCESS;
}
CUresult cuTexRefSetAddress2D(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr pointer,
                              size_t pitch) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_NULL(descriptor);
  const bool aligned =
      pointer % mc::limits::kTextureAlignment == 0 && pitch % mc::limits::kTexturePitchAlignment == 0 && pitch != 0;
  RETURN_IF_WRONG(valueError(aligned && isFormat(descriptor->Format, descriptor->NumChannels)));
  reference->array = nullptr;
  reference->address = pointer;
  reference->format = descriptor->Format;
  reference->channels = static_cast<int>(descriptor->NumChannels);
  return CUDA_SUCCESS;
}
CUresult cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(valueError(isFormat(format, static_cast<unsigned int>(channels))));
  reference->format = format;
  reference->channels = channels;
  return CUDA_SUCCESS;
}
CUresult cuTexRefSetAddressMode(CUtexref reference, int dim, CUaddress_mode mode) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(
      valueError(dim >= 0 && dim < 3 && mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER));
  reference->addressModes[dim] = mode;
  return CUDA_SUCCESS;
}
CUresult cuTexRefSetFilterMode(CUtexref reference, CUfilter_mode mode) {
  return set(reference, &CUtexref_st::filter, mode, isFilter(mode));
}
CUresult cuTexRefSetMipmapFilterMode(CUtexref reference, CUfilter_mode mode) {
  return set(reference, &CUtexref_st::mipmapFilter, mode, isFilter(mode));
}
CUresult cuTexRefSetMipmapLevelBias(CUtexref reference, float bias) {
  return set(reference, &CUtexref_st::mipmapBias, bias);
}
CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most) {
  const CUresult error = set(reference, &CUtexref_st::mipmapLeast, least);
  return error == CUDA_SUCCESS ? set(reference, &CUtexref_st::mipmapMost, most) : error;
}
CUresult cuTexRefSetMaxAnisotropy(CUtexref reference, unsigned int most) {
  return set(reference, &CUtexref_st::maxAnisotropy, most);
}
CUresult cuTexRefSetBorderColor(CUtexref reference, float* color) {
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_NULL(color);
  std::copy_n(color, 4, reference->border);
  return CUDA_SUCCESS;
}
CUresult cuTexRefSetFlags(CUtexref reference, unsigned int flags) {
  constexpr unsigned int kKnown =
      CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  return set(reference, &CUtexref_st::flags, flags, (flags & ~kKnown) == 0);
}

CUresult cuTexRefGetAddress(CUdeviceptr* pointer, CUtexref reference) {
  const CUresult error = get(pointer, reference, &CUtexref_st::address);
  return error == CUDA_SUCCESS && *pointer == 0 ? CUDA_ERROR_INVALID_VALUE : error;
}
CUresult cuTexRefGetArray(CUarray* array, CUtexref reference) {
  const CUresult error = get(array, reference, &CUtexref_st::array);
  return error == CUDA_SUCCESS && *array == nullptr ? CUDA_ERROR_INVALID_VALUE : error;
}
CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* array, CUtexref reference) {
  RETURN_IF_NULL(array);
  RETURN_IF_WRONG(known(reference));
  return CUDA_ERROR_INVALID_VALUE;  // none is bound
}
CUresult cuTexRefGetAddressMode(CUaddress_mode* mode, CUtexref reference, int dim) {
  RETURN_IF_NULL(mode);
  RETURN_IF_WRONG(known(reference));
  RETURN_IF_WRONG(valueError(dim >= 0 && dim < 3));
  *mode = reference->addressModes[dim];
  return CUDA_SUCCESS;
}
CUresult cuTexRefGetFilterMode(CUfilter_mode* mode, CUtexref reference) {
  return get(mode, reference, &CUtexref_st::filter);
}
CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref reference) {
  RETURN_IF_WRONG(known(reference));
  if (format != nullptr) *format = reference->format;
  if (channels != nullptr) *channels = reference->channels;
  return CUDA_SUCCESS;
}
CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* mode, CUtexref reference) {
  return get(mode, reference, &CUtexref_st::mipmapFilter);
}
CUresult cuTexRefGetMipmapLevelBias(float* bias, CUtexref reference) {
  return get(bias, reference, &CUtexref_st::mipmapBias);
}
CUresult cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref reference) {
  const CUresult error = get(least, reference, &CUtexref_st::mipmapLeast);
  return error == CUDA_SUCCESS ? get(most, reference, &CUtexref_st::mipmapMost) : error;
}
CUresult cuTexRefGetMaxAnisotropy(int* most, CUtexref reference) {
  return get(most, reference, &CUtexref_st::maxAnisotropy);
}
CUresult cuTexRefGetBorderColor(float* color, CUtexref reference) {
  RETURN_IF_NULL(color);
  RETURN_IF_WRONG(known(reference));
  std::copy_n(reference->border, 4, color);
  return CUDA_SUCCESS;
}
CUresult cuTexRefGetFlags(unsigned int* flags, CUtexref reference) {
  return get(flags, reference, &CUtexref_st::flags);
}

CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref reference) {
  RETURN_IF_WRONG(mcKernelCheck(function));
  RETURN_IF_WRONG(known(reference));
  return unit == CU_PARAM_TR_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A surface reference comes from a module alone, and no module has one.
CUresult cuSurfRefSetArray(CUsurfref reference, CUarray, unsigned int flags) {
  RETURN_IF_NULL(reference);
  RETURN_IF_WRONG(checkFlags(flags, 0));
  return result(mcSetLastError(mcErrorInvalidResourceHandle, "surface reference"));
}
CUresult cuSurfRefGetArray(CUarray* array, CUsurfref reference) {
  RETURN_IF_NULL(array);
  RETURN_IF_NULL(reference);
  return result(mcSetLastError(mcErrorInvalidResourceHandle, "surface reference"));
}

}  // extern "C"
#pragma GCC visibility pop
