#include "capture/user_objects.h"

#include <atomic>
#include <utility>

#include "handle_table.h"
#include "state/state.h"

struct mcUserObject {
  void* pointer;
  void (*destroy)(void*);
  std::atomic<unsigned> references;
};

namespace mc {
namespace {

HandleTable<mcUserObject> userObjects;

// False: there are fewer references. The object's end is the program's own function, so no lock is held here.
bool release(mcUserObject_t object, unsigned count) {
  unsigned before = object->references.load();
  do {
    if (before < count) return false;
  } while (!object->references.compare_exchange_weak(before, before - count));
  if (before != count) return true;
  const auto destroy = object->destroy;
  void* const pointer = object->pointer;
  userObjects.destroy(object);
  destroy(pointer);
  return true;
}

}  // namespace

UserObjects::UserObjects(const UserObjects& other) { share(other); }

UserObjects& UserObjects::operator=(const UserObjects& other) {
  UserObjects copy(other);
  std::swap(held_, copy.held_);
  return *this;
}

UserObjects::~UserObjects() {
  for (const auto& [object, count] : held_) release(object, count);
}

bool UserObjects::giveBack(mcUserObject_t object, unsigned count) {
  if (!userObjects.contains(object) || count == 0) return false;
  const auto found = held_.find(object);
  if (found == held_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) held_.erase(found);
  return release(object, count);
}

mcError_t UserObjects::receive(mcUserObject_t object, unsigned count) {
  if (!userObjects.contains(object) || count == 0 || object->references.load() < count) {
    return fail(mcErrorInvalidValue);
  }
  held_[object] += count;
  return mcSuccess;
}

void UserObjects::share(const UserObjects& other) {
  for (const auto& [object, count] : other.held_) {
    object->references += count;
    held_[object] += count;
  }
}

}  // namespace mc

using namespace mc;

mcError_t mcUserObjectCreate(mcUserObject_t* object, void* pointer, void (*destroy)(void*), unsigned int references) {
  if (object == nullptr || destroy == nullptr || references == 0) return fail(mcErrorInvalidValue);
  *object = userObjects.create(pointer, destroy, references);
  return mcSuccess;
}

mcError_t mcUserObjectRetain(mcUserObject_t object, unsigned int count) {
  if (!userObjects.contains(object) || count == 0) return fail(mcErrorInvalidValue);
  object->references += count;
  return mcSuccess;
}

mcError_t mcUserObjectRelease(mcUserObject_t object, unsigned int count) {
  if (!userObjects.contains(object) || count == 0) return fail(mcErrorInvalidValue);
  return release(object, count) ? mcSuccess : fail(mcErrorInvalidValue);
}
