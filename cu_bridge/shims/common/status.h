// What statuses are called and what they say, in one form for every library: a table of its own.
#pragma once

#include <cstddef>

namespace mxmaca {

struct StatusName {
  int status;
  const char* name;
  const char* text;
};
#define MXMACA_STATUS(status, text) {status, #status, text}

// What a status is called, or says; `unknown` for any other number.
template <size_t count>
const char* statusText(const StatusName (&names)[count], int status, const char* StatusName::* member,
                       const char* unknown) {
  for (const StatusName& entry : names) {
    if (entry.status == status) return entry.*member;
  }
  return unknown;
}

}  // namespace mxmaca
