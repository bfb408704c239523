// Storage types for half precision on the host.
#pragma once

typedef struct __attribute__((aligned(2))) __half_raw {
  unsigned short x;
} __half_raw;

#ifdef __cplusplus
struct __attribute__((aligned(2))) __half {
  unsigned short __x;
  __half() = default;
  constexpr __half(const __half_raw& raw) : __x(raw.x) {}
  constexpr operator __half_raw() const { return __half_raw{__x}; }
};
struct __attribute__((aligned(4))) __half2 {
  __half x, y;
};
typedef __half half;
typedef __half2 half2;
#else
typedef __half_raw __half;
#endif
