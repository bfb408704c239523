// Rights of a thread on memory that is open: by a protection key of the processor, where it and the system have any.
//
// Memory that has the key can be touched by threads that are admitted, and no others. A thread that is made inherits
// the rights of its maker; else nobody is admitted. Without keys every thread is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mc {
namespace check {

// Whether there is a key. Asked for once.
bool haveKey();

// For the calling thread, outside of signal handlers.
void admit();
void dismiss();

// From a signal's handler: the interrupted thread is admitted when it goes on. False: the system does not say where its
// rights are kept.
bool admitInterrupted(void* context);

// The pages are closed to all, and have the key. False: they have not got it.
bool giveKey(uintptr_t from, uintptr_t to);

// For what the runtime itself reads and writes there.
class Admitted {
 public:
  Admitted();
  ~Admitted();
  Admitted(const Admitted&) = delete;
  Admitted& operator=(const Admitted&) = delete;

 private:
  bool changed_;
};

}  // namespace check
}  // namespace mc
