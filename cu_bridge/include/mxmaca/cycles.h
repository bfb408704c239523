// The processor's counter of cycles, which stands for the device's: it never goes back.
#pragma once

namespace mxmaca {

static inline long long cycles() {
#if defined(__x86_64__)
  unsigned low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
  return static_cast<long long>(static_cast<unsigned long long>(high) << 32 | low);
#else
  // A counter of some ten million ticks a second, given in nanoseconds: about as many as a device has cycles.
  long long value, frequency;
  __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(value));
  __asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency > 0 && frequency < 1000000000 ? value * (1000000000 / frequency) : value;
#endif
}

}  // namespace mxmaca
