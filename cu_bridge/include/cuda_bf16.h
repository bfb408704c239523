// Storage types for bfloat16 on the host.
#pragma once

typedef struct __attribute__((aligned(2))) __nv_bfloat16_raw {
  unsigned short x;
} __nv_bfloat16_raw;

#ifdef __cplusplus
struct __attribute__((aligned(2))) __nv_bfloat16 {
  unsigned short __x;
  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
  constexpr operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{__x}; }
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#else
typedef __nv_bfloat16_raw __nv_bfloat16;
#endif
