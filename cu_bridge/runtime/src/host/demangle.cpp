#include "host/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace mc {

std::string demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? text.get() : mangled;
}

}  // namespace mc
