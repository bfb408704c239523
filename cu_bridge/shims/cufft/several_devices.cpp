// Transforms that are spread over several devices: refused by name, as the generated refusals of what upstream's wheels
// ask for are.

#include "refuse.h"

#define REFUSED(name)                                                    \
  extern "C" __attribute__((weak, visibility("default"))) long name() {  \
    return mxmaca::refuse("libcufft", #name, 16, "CUFFT_NOT_SUPPORTED"); \
  }
REFUSED(cufftXtSetGPUs)
REFUSED(cufftXtSetWorkArea)
REFUSED(cufftXtMalloc)
REFUSED(cufftXtFree)
REFUSED(cufftXtMemcpy)
REFUSED(cufftXtExecDescriptor)
REFUSED(cufftXtExecDescriptorC2C)
REFUSED(cufftXtExecDescriptorZ2Z)
REFUSED(cufftXtExecDescriptorR2C)
REFUSED(cufftXtExecDescriptorD2Z)
REFUSED(cufftXtExecDescriptorC2R)
REFUSED(cufftXtExecDescriptorZ2D)
