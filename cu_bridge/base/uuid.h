// UUIDs of devices as programs write them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace mc {

inline std::string uuidText(const uint8_t* uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

}  // namespace mc
