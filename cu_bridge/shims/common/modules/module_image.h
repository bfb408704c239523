// The forms of a module that the driver interface loads: a shared object of the host, which cucc and NVRTC make, the
// same as text, for what asks for PTX, and an object file of the host, which Triton makes.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>

namespace mxmaca {

constexpr char kModuleText[] = "// MXMACA module 1: a shared object of the host in base64; no PTX.\n";

// What an image is, told by its first bytes.
enum class ImageKind { kModule, kModuleText, kObject, kPtx, kFatbinary, kGpuCode, kUnknown };

inline ImageKind imageKind(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    constexpr int kEmCuda = 190;
    if (header.e_machine == kEmCuda) return ImageKind::kGpuCode;
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return ImageKind::kUnknown;
    if (header.e_type == ET_REL) return ImageKind::kObject;
    return header.e_type == ET_DYN ? ImageKind::kModule : ImageKind::kUnknown;
  }
  constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba}, kWrapper[] = {0xb1, 0x43, 0x62, 0x46};
  if (std::memcmp(bytes, kFatbin, 4) == 0 || std::memcmp(bytes, kWrapper, 4) == 0) return ImageKind::kFatbinary;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, kModuleText, sizeof kModuleText - 1) == 0) return ImageKind::kModuleText;
  return std::strstr(text, ".version") != nullptr ? ImageKind::kPtx : ImageKind::kUnknown;
}

// The length of a shared object or object file, which a caller hands over without: its last part is the section table.
inline size_t moduleSize(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string moduleToText(const std::string& module) {
  std::string text = kModuleText;
  text.reserve(text.size() + module.size() / 3 * 4 + module.size() / 54 + 8);
  size_t column = 0;
  for (size_t i = 0; i < module.size(); i += 3) {
    unsigned bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < module.size() ? static_cast<unsigned char>(module[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j) text += i + j <= module.size() ? kBase64[bits >> (18 - 6 * j) & 63] : '=';
    if (++column % 18 == 0) text += '\n';
  }
  return text;
}

// Empty where the text is damaged.
inline std::string moduleFromText(const char* text) {
  std::string module;
  unsigned bits = 0;
  int digits = 0;
  for (const char* at = text + sizeof kModuleText - 1; *at != '\0' && *at != '='; ++at) {
    if (*at == '\n') continue;
    const char* found = std::strchr(kBase64, *at);
    if (found == nullptr) return "";
    bits = bits << 6 | static_cast<unsigned>(found - kBase64);
    if (++digits % 4 == 0) {
      for (int shift = 16; shift >= 0; shift -= 8) module += static_cast<char>(bits >> shift);
      bits = 0;
    }
  }
  if (digits % 4 == 3) module += {static_cast<char>(bits >> 10), static_cast<char>(bits >> 2)};
  if (digits % 4 == 2) module += static_cast<char>(bits >> 4);
  return module;
}

}  // namespace mxmaca
