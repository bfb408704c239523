// What a program assembles into a module, by cuLink or nvJitLink. Here that is one module of NVRTC's or cucc's, whole
// as it is. PTX and GPU code are refused as what they are, and several modules as well: a shared object is not linked
// again.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "mc_runtime.h"
#include "modules/module_image.h"

namespace mxmaca {

struct LinkedModule {
  std::string image;  // what was added, and zeros behind it
  size_t bytes = 0;
  bool completed = false;

  // `detail`: what is wrong.
  mcError_t add(const char* data, size_t size, const char** detail) {
    constexpr size_t kHeader = 64;
    constexpr char kEmptyArchive[] = "!<arch>\n";
    std::string given(data, size);
    // libcudadevrt.a, which programs add for kernels that launch kernels: its functions are in the device library.
    if (given == kEmptyArchive) return mcSuccess;
    given.append(kHeader, '\0');
    const auto wrong = [&](mcError_t error, const char* what) {
      *detail = what;
      return error;
    };
    switch (imageKind(given.data())) {
      case ImageKind::kModule:
      case ImageKind::kObject:
        if (moduleSize(given.data()) > size) return wrong(mcErrorInvalidKernelImage, "a module that is cut short");
        break;
      case ImageKind::kModuleText: break;
      case ImageKind::kPtx:
        return wrong(mcErrorInvalidPtx, "PTX cannot run on this device: compile its source with cucc");
      case ImageKind::kFatbinary: return wrong(mcErrorNoKernelImageForDevice, "fat binary of NVIDIA's nvcc");
      case ImageKind::kGpuCode: return wrong(mcErrorNoKernelImageForDevice, "cubin of an NVIDIA GPU");
      case ImageKind::kUnknown: return wrong(mcErrorInvalidKernelImage, "no module of cucc or NVRTC");
    }
    if (!image.empty()) return wrong(mcErrorNotSupported, "modules that are linked with each other");
    image = std::move(given);
    bytes = size;
    return mcSuccess;
  }
};

// False: the file cannot be opened.
inline bool readWhole(const char* path, std::string* bytes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "rbe"), std::fclose);
  if (file == nullptr) return false;
  char buffer[1 << 16];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file.get())) != 0;) bytes->append(buffer, got);
  return true;
}

}  // namespace mxmaca
