// Launches in several calls, for the file that unloads modules.
#pragma once

#include "result.h"

namespace mxmaca {

// A kernel is gone: another one may come to stand at its address.
void forgetLaunch(CUfunction function);

}  // namespace mxmaca
