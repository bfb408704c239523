#include "check/keys.h"

#include <sys/mman.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <ucontext.h>

#include <cstring>
#endif

namespace mc {
namespace check {

#if defined(__x86_64__)

namespace {

int key() {
  static const int given = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  return given;
}

// The component of the processor's saved state that holds the rights (Intel's manual, volume 1, 13.1 and 13.4.3).
constexpr unsigned kRightsComponent = 9;
constexpr size_t kLegacyBytes = 512;
// What Linux writes into the legacy part's spare bytes when state follows it (asm/sigcontext.h).
constexpr size_t kMagicOffset = 464, kStateBytesOffset = 480;
constexpr uint32_t kMagic = 0x46505853;

struct SavedRights {
  uint64_t* present;  // the components that are there
  uint32_t* rights;
};

// Where a signal's frame keeps the rights of the interrupted thread; nulls if it does not.
SavedRights savedRights(void* context) {
  auto* const legacy = reinterpret_cast<char*>(static_cast<ucontext_t*>(context)->uc_mcontext.fpregs);
  if (legacy == nullptr) return {nullptr, nullptr};
  uint32_t magic = 0, stateBytes = 0;
  std::memcpy(&magic, legacy + kMagicOffset, sizeof magic);
  std::memcpy(&stateBytes, legacy + kStateBytesOffset, sizeof stateBytes);
  unsigned bytes = 0, offset = 0, flags = 0, unused = 0;
  if (magic != kMagic || __get_cpuid_count(0xd, kRightsComponent, &bytes, &offset, &flags, &unused) == 0) {
    return {nullptr, nullptr};
  }
  if (bytes < sizeof(uint32_t) || offset < kLegacyBytes || offset + sizeof(uint32_t) > stateBytes) {
    return {nullptr, nullptr};
  }
  return {reinterpret_cast<uint64_t*>(legacy + kLegacyBytes), reinterpret_cast<uint32_t*>(legacy + offset)};
}

}  // namespace

bool haveKey() { return key() > 0; }
void admit() {
  if (haveKey()) pkey_set(key(), 0);
}
void dismiss() {
  if (haveKey()) pkey_set(key(), PKEY_DISABLE_ACCESS);
}

bool admitInterrupted(void* context) {
  const SavedRights saved = savedRights(context);
  if (saved.rights == nullptr) return false;
  // A component that is not there stands for its initial state, which is no restriction at all.
  if ((*saved.present >> kRightsComponent & 1) != 0) *saved.rights &= ~(3U << (2 * key()));
  return true;
}

bool giveKey(uintptr_t from, uintptr_t to) {
  return pkey_mprotect(reinterpret_cast<void*>(from), to - from, PROT_NONE, key()) == 0;
}

Admitted::Admitted() : changed_(haveKey() && pkey_get(key()) != 0) {
  if (changed_) admit();
}

#else

bool haveKey() { return false; }
void admit() {}
void dismiss() {}
bool admitInterrupted(void* /*context*/) { return false; }
bool giveKey(uintptr_t /*from*/, uintptr_t /*to*/) { return false; }
Admitted::Admitted() : changed_(false) {}

#endif

Admitted::~Admitted() {
  if (changed_) dismiss();
}

}  // namespace check
}  // namespace mc
