// Advice about managed memory, as both of CUDA's interfaces number it.
#pragma once

#include "checks.h"

namespace mxmaca {

// The arguments have been checked. `place` counts where the advice names one: a device, or mcPlaceHost.
inline mcError_t recordAdvice(const void* pointer, size_t bytes, int advice, int place) {
  constexpr mcAdvice kWhat[] = {mcAdviceReadMostly, mcAdvicePreferred, mcAdviceAccessedBy};
  return mcMemAdvise(pointer, bytes, kWhat[(advice - 1) / 2], place, advice % 2);
}
inline mcError_t recordPrefetch(const void* pointer, size_t bytes, int place) {
  return mcMemAdvise(pointer, bytes, mcAdvicePrefetched, place, 1);
}

inline int placeOfLocation(int type, int id) { return type == kLocationDevice ? id : mcPlaceHost; }

// What holds for the whole range: attributes 1 to 4, and the kinds (5, 7) and numbers (6, 8) of the places of 2 and 4.
inline mcError_t rangeAttribute(void* data, size_t size, int attribute, const void* pointer, size_t bytes) {
  constexpr mcAdvice kWhat[] = {mcAdviceReadMostly, mcAdvicePreferred, mcAdviceAccessedBy, mcAdvicePrefetched,
                                mcAdvicePreferred,  mcAdvicePreferred, mcAdvicePrefetched, mcAdvicePrefetched};
  constexpr int kUsers = 3, kPlaces = 5, kLast = 8;
  auto* const answers = static_cast<int*>(data);
  const bool fits = attribute == kUsers ? size != 0 && size % sizeof(int) == 0 : size == sizeof(int);
  if (data == nullptr || attribute < 1 || attribute > kLast || !fits) return mcErrorInvalidValue;
  const mcError_t error = mcMemAdviceGet(pointer, bytes, kWhat[attribute - 1], answers, size / sizeof(int));
  if (error != mcSuccess || attribute < kPlaces) return error;
  const int place = *answers;
  constexpr int kNowhere = -2;
  if (attribute % 2 == 0) {
    *answers = place >= 0 ? place : kNowhere;  // the host has no number
  } else {
    *answers = place >= 0 ? kLocationDevice : place == mcPlaceHost ? kLocationHost : 0;
  }
  return mcSuccess;
}
template <class Attribute>
mcError_t rangeAttributes(void** data, const size_t* sizes, const Attribute* attributes, size_t count,
                          const void* pointer, size_t bytes) {
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0) return mcErrorInvalidValue;
  mcError_t error = mcSuccess;
  for (size_t i = 0; i < count && error == mcSuccess; ++i) {
    error = rangeAttribute(data[i], sizes[i], attributes[i], pointer, bytes);
  }
  return error;
}

}  // namespace mxmaca
