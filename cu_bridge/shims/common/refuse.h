// What a function of the interface does that the simulated device does not implement.
#pragma once

namespace mxmaca {

// Says once which function was asked for, and returns `status`. A shim may define its own, which then takes the place
// of the common one.
long refuse(const char* library, const char* function, int status, const char* statusName);

}  // namespace mxmaca
