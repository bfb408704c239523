// What CUDA's driver interface keeps of its first years: a launch in several calls, contexts that are counted, texture
// and surface references. Compilers of CUDA 12 and later make no references, so that no module has any and no kernel
// reads one; what is set of a reference can be asked.
#pragma once

#include "arrays.h"

typedef struct CUtexref_st* CUtexref;
typedef struct CUsurfref_st* CUsurfref;

#define CU_TRSA_OVERRIDE_FORMAT 0x01
#define CU_PARAM_TR_DEFAULT -1

#define cuTexRefSetAddress cuTexRefSetAddress_v2
#define cuTexRefSetAddress2D cuTexRefSetAddress2D_v3
#define cuTexRefGetAddress cuTexRefGetAddress_v2

#ifdef __cplusplus
extern "C" {
#endif

CUresult cuCtxAttach(CUcontext* context, unsigned int flags);
CUresult cuCtxDetach(CUcontext context);

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes);
CUresult cuParamSetSize(CUfunction function, unsigned int bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void* value, unsigned int bytes);
CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref reference);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);

CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name);
CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name);
CUresult cuTexRefCreate(CUtexref* reference);
CUresult cuTexRefDestroy(CUtexref reference);
CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned int flags);
CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray array, unsigned int flags);
CUresult cuTexRefSetAddress(size_t* offset, CUtexref reference, CUdeviceptr pointer, size_t bytes);
CUresult cuTexRefSetAddress2D(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr pointer,
                              size_t pitch);
CUresult cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels);
CUresult cuTexRefSetAddressMode(CUtexref reference, int dim, CUaddress_mode mode);
CUresult cuTexRefSetFilterMode(CUtexref reference, CUfilter_mode mode);
CUresult cuTexRefSetMipmapFilterMode(CUtexref reference, CUfilter_mode mode);
CUresult cuTexRefSetMipmapLevelBias(CUtexref reference, float bias);
CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most);
CUresult cuTexRefSetMaxAnisotropy(CUtexref reference, unsigned int most);
CUresult cuTexRefSetBorderColor(CUtexref reference, float* color);
CUresult cuTexRefSetFlags(CUtexref reference, unsigned int flags);
CUresult cuTexRefGetAddress(CUdeviceptr* pointer, CUtexref reference);
CUresult cuTexRefGetArray(CUarray* array, CUtexref reference);
CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* array, CUtexref reference);
CUresult cuTexRefGetAddressMode(CUaddress_mode* mode, CUtexref reference, int dim);
CUresult cuTexRefGetFilterMode(CUfilter_mode* mode, CUtexref reference);
CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref reference);
CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* mode, CUtexref reference);
CUresult cuTexRefGetMipmapLevelBias(float* bias, CUtexref reference);
CUresult cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref reference);
CUresult cuTexRefGetMaxAnisotropy(int* most, CUtexref reference);
CUresult cuTexRefGetBorderColor(float* color, CUtexref reference);
CUresult cuTexRefGetFlags(unsigned int* flags, CUtexref reference);
CUresult cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned int flags);
CUresult cuSurfRefGetArray(CUarray* array, CUsurfref reference);

#ifdef __cplusplus
}  // extern "C"
#endif
