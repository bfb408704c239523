// Facts of a device that several interfaces report.
#pragma once

#include <cstdio>
#include <cstring>

#include "mc_runtime.h"

namespace mxmaca {

// Value of a device attribute. The numbers are the same in the runtime and the driver interface.
bool deviceAttribute(const mcDeviceProperties& p, int attribute, int* value);

inline void pciBusId(const mcDeviceProperties& p, char* text, size_t length) {
  std::snprintf(text, length, "%04x:%02x:%02x.0", p.pciDomain, p.pciBus, p.pciDevice);
}

// Visible device with that PCI bus id; -1 if there is none.
inline int deviceByPciBusId(const char* id) {
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return -1;
  for (int device = 0; device < count; ++device) {
    mcDeviceProperties p;
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    if (mcGetDeviceProperties(&p, device) != mcSuccess) return -1;
    if (std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return -1;
    if (static_cast<int>(domain) == p.pciDomain && static_cast<int>(bus) == p.pciBus) return device;
  }
  return -1;
}

}  // namespace mxmaca
