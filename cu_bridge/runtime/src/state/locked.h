// Data of the process behind a lock. It is never destroyed, as other threads run on while the process ends.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace mc {

template <class Data>
struct Guarded {
  std::shared_mutex mutex;
  Data data;

  static Guarded& instance() {
    static auto* const made = new Guarded;
    return *made;
  }
};

// Access to the one Data with the lock held: Reading, by several at once, or Writing.
template <class Data, class Lock, class Seen>
class Locked {
 public:
  Seen* operator->() const { return &Guarded<Data>::instance().data; }
  Seen& operator*() const { return *operator->(); }

 private:
  const Lock lock_{Guarded<Data>::instance().mutex};
};
template <class Data>
using Reading = Locked<Data, std::shared_lock<std::shared_mutex>, const Data>;
template <class Data>
using Writing = Locked<Data, std::unique_lock<std::shared_mutex>, Data>;

}  // namespace mc
