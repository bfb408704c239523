#include "refuse.h"

#include "mc_runtime.h"

namespace mxmaca {

__attribute__((weak)) long refuse(const char* library, const char* function, int status, const char* statusName) {
  mcReportRefusal(library, function, statusName);
  return status;
}

}  // namespace mxmaca
