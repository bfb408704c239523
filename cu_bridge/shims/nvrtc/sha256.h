// SHA-256 (FIPS 180-4), for names of files that stand for their content, and HMAC (FIPS 198-1) by it, for seals.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace mxmaca {

class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  // A length before the text keeps neighbouring fields apart.
  void field(const std::string& text);
  std::string hex();
  std::string raw();  // the same as 32 bytes

 private:
  void block();

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> buffer_{};
  uint64_t bytes_ = 0;
};

// Whoever does not have the key cannot make it. The key has at most 64 bytes.
std::string hmac(const std::string& key, const std::string& message);

}  // namespace mxmaca
