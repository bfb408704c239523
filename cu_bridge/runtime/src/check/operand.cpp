#include "check/operand.h"

#include <ucontext.h>

#include <cstring>

namespace mc {

// The encoding is that of Intel's manual, volume 2, chapter 2: prefixes, an opcode of one of four maps, ModR/M, SIB and
// a displacement.

#if defined(__x86_64__)
namespace {

struct Decoder {
  const uint8_t* at;
  unsigned index = 0;  // the upper bits of the registers' numbers
  unsigned base = 0;
  int64_t scale = 1;  // of a displacement of one byte
  bool known = true;

  uint8_t next() { return *at++; }

  void extend(unsigned inverted) {
    index = (inverted & 2) != 0 ? 0 : 8;
    base = (inverted & 1) != 0 ? 0 : 8;
  }

  // Up to ModR/M.
  void readOpcode() {
    uint8_t byte = next();
    while (byte == 0x66 || byte == 0xf2 || byte == 0xf3) byte = next();
    if (byte == 0xc5) {  // VEX of two bytes
      at += 2;
      return;
    }
    if (byte == 0xc4) {  // VEX of three
      extend(*at >> 5);
      at += 3;
      return;
    }
    if (byte == 0x62) {  // EVEX, whose short displacements count whole vectors
      extend(*at >> 5);
      scale = int64_t{16} << (at[2] >> 5 & 3);
      at += 4;
      return;
    }
    if ((byte & 0xf0) == 0x40) {  // REX
      index = (byte & 2) != 0 ? 8 : 0;
      base = (byte & 1) != 0 ? 8 : 0;
      byte = next();
    }
    if (byte == 0x0f) {
      byte = next();
      if (byte == 0x38 || byte == 0x3a) next();
      return;
    }
    const bool arithmetic = byte < 0x40 && (byte & 7) < 4;
    known = arithmetic || byte == 0x63 || byte == 0x69 || byte == 0x6b || (byte >= 0x80 && byte <= 0x8f) ||
            byte == 0xc0 || byte == 0xc1 || byte == 0xc6 || byte == 0xc7 || (byte >= 0xd0 && byte <= 0xd3) ||
            (byte >= 0xd8 && byte <= 0xdf) || byte == 0xf6 || byte == 0xf7 || byte >= 0xfe;
  }
};

uint64_t valueOf(const greg_t* registers, unsigned number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(registers[kOrder[number]]);
}

}  // namespace

bool operandOf(void* context, uintptr_t* address) {
  const greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Decoder code{reinterpret_cast<const uint8_t*>(registers[REG_RIP])};
  code.readOpcode();
  if (!code.known) return false;
  const uint8_t form = code.next();
  const unsigned mode = form >> 6, field = form & 7;
  if (mode == 3) return false;  // a register
  uint64_t sum = 0;
  bool wide = mode == 2;
  if (field == 4) {
    const uint8_t scaled = code.next();
    const unsigned index = (scaled >> 3 & 7) | code.index, base = scaled & 7;
    if (index != 4) sum += valueOf(registers, index) << (scaled >> 6);
    if (base == 5 && mode == 0) {
      wide = true;
    } else {
      sum += valueOf(registers, base | code.base);
    }
  } else if (field == 5 && mode == 0) {
    return false;  // relative to the instruction's end
  } else {
    sum += valueOf(registers, field | code.base);
  }
  if (wide) {
    int32_t displacement = 0;
    std::memcpy(&displacement, code.at, sizeof displacement);
    sum += static_cast<uint64_t>(int64_t{displacement});
  } else if (mode == 1) {
    sum += static_cast<uint64_t>(static_cast<int8_t>(code.next()) * code.scale);
  }
  *address = sum;
  return true;
}
#else
bool operandOf(void*, uintptr_t*) { return false; }
#endif

}  // namespace mc
