// The records of an event that several processes know.
#pragma once

#include <cstdint>
#include <memory>

namespace mc {

// What another process opens an event by. Only processes of the same user can, and while its maker lives.
struct SharedEventHandle {
  int64_t pid;
  uint64_t inode;       // of the file, so that a number used again is not mistaken for it
  uint64_t generation;  // of the slot, for the same reason
  int32_t file;
  int32_t slot;
};

// An event is reached when its last record is. A record whose process has ended is: nothing of that process is pending
// any more. So is every record of an event that its maker has destroyed.
class SharedEvent {
 public:
  virtual ~SharedEvent() = default;
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  virtual SharedEventHandle handle() const = 0;
  // Begins a record, and returns its number.
  virtual uint64_t record() = 0;
  virtual void reach(uint64_t record) = 0;
  // The number of the last record by any process; 0: none.
  virtual uint64_t last() const = 0;
  virtual bool isReached(uint64_t record) const = 0;
  virtual void waitFor(uint64_t record) const = 0;

 protected:
  SharedEvent() = default;
};

// nullptr: the system gives no file or no memory.
std::shared_ptr<SharedEvent> makeSharedEvent();
// nullptr: the event or its maker is gone, or is another user's.
std::shared_ptr<SharedEvent> openSharedEvent(const SharedEventHandle& handle);

}  // namespace mc
