#include "device_facts.h"

#include "mc_device_limits.h"

namespace mxmaca {

constexpr int kMostAttributes = 160;  // later releases add some

bool deviceAttribute(const mcDeviceProperties& p, int attribute, int* value) {
  switch (attribute) {
#include "device_attributes.inc"
    default: *value = 0;
  }
  return attribute > 0 && attribute < kMostAttributes;
}

}  // namespace mxmaca
