// Memory faults, traps and arithmetic faults inside kernels become errors of their launch; all others go where they
// went before.
#pragma once

namespace mc {

void installFaultHandlers();
// For the calling thread, which is to run kernels.
void prepareFaultStack();

}  // namespace mc
