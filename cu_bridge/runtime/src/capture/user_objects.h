// References to objects of the program's that a graph, or a copy of one for launches, holds.
#pragma once

#include <map>

#include "mc_runtime.h"

namespace mc {

class UserObjects {
 public:
  UserObjects() = default;
  UserObjects(const UserObjects& other);
  UserObjects& operator=(const UserObjects& other);
  ~UserObjects();

  // References that somebody else held until now. InvalidValue: there are fewer, or no such object.
  mcError_t receive(mcUserObject_t object, unsigned count);
  // False, and nothing is given back: there are fewer, or no such object.
  bool giveBack(mcUserObject_t object, unsigned count);
  // As many references more as `other` holds.
  void share(const UserObjects& other);

 private:
  std::map<mcUserObject_t, unsigned> held_;
};

}  // namespace mc
