// Inline PTX: special registers, integers, floating point, half, memory, atomics, copies to shared memory.
#include <cstdint>

#include "../check.h"

__device__ unsigned lane() {
  unsigned result;
  asm("mov.u32 %0, %%laneid;" : "=r"(result));
  return result;
}

__global__ void kernel(float* sum, const float4* vectors, unsigned* words, unsigned long long* wide) {
  const unsigned i = threadIdx.x;
  EXPECT(lane() == i % 32);

  unsigned r, p;
  asm("{\n\t.reg .pred q;\n\tsetp.gt.u32 q, %1, 5;\n\tselp.u32 %0, 1, 0, q;\n\t}" : "=r"(r) : "r"(i));
  EXPECT(r == (i > 5 ? 1 : 0));
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(0x12345678u));
  EXPECT(r == 0x67);
  int s;
  asm("bfe.s32 %0, %1, 4, 8;" : "=r"(s) : "r"(0xf80));
  EXPECT(s == -8);
  asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(r) : "r"(0xau), "r"(0xffffffffu));
  EXPECT(r == 0xfffffaff);
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(0xcu), "r"(0xau), "r"(0x1u));
  EXPECT(r == ((0xcu & 0xau) | 0x1u));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r) : "r"(0x1111aaaau), "r"(0x2222bbbbu));
  EXPECT(r == 0xbbbbaaaa);
  asm("shf.r.wrap.b32 %0, %1, %2, 8;" : "=r"(r) : "r"(0x11223344u), "r"(0xaabbccddu));
  EXPECT(r == 0xdd112233);
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(-3), "r"(5), "r"(1));
  EXPECT(s == -14);
  unsigned long long l;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(l) : "r"(0xffffffffu), "r"(2u));
  EXPECT(l == 0x1fffffffeull);
  asm("mov.b64 {%0, %1}, %2;" : "=r"(r), "=r"(p) : "l"(0x1122334455667788ull));
  EXPECT(r == 0x55667788 && p == 0x11223344);
  asm("mov.b64 %0, {%1, %2};" : "=l"(l) : "r"(1u), "r"(2u));
  EXPECT(l == 0x200000001ull);
  asm("shl.b32 %0, %1, 40;" : "=r"(r) : "r"(1u));
  EXPECT(r == 0);

  float f;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(f) : "f"(2.0f), "f"(3.0f), "f"(0.5f));
  EXPECT(f == 6.5f);
  asm("add.rp.f32 %0, %1, 0f2EDBE6FF;" : "=f"(f) : "f"(1.0f));
  EXPECT(f > 1.0f);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(f) : "f"(3.0f));
  EXPECT(f == 8.0f);
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(s) : "f"(2.5f));
  EXPECT(s == 2);
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(s) : "f"(1e20f));
  EXPECT(s == 2147483647);
  asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(300));
  EXPECT(r == 255);
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(2.0f), "f"(1.0f));
  EXPECT(r == 0x40003c00);
  asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(r) : "r"(0x40003c00u));
  EXPECT(r == 0x46004000);

  float x, y, z, w;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
               : "l"(vectors + i));
  EXPECT(x == i && y == i + 1 && z == i + 2 && w == i + 3);
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p red.global.add.f32 [%1], %2; }"
               :
               : "r"(i % 2), "l"(sum), "f"(1.0f)
               : "memory");
  asm volatile("atom.global.max.u32 %0, [%1+4], %2;" : "=r"(r) : "l"(words), "r"(i) : "memory");
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(words + 2 + i), "r"(i * i) : "memory");

  __shared__ __align__(16) float tile[256];
  const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[4 * i]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(vectors + i) : "memory");
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group %0;" ::"n"(0));
  asm volatile("bar.sync 0;");
  EXPECT(tile[(4 * i + 4) % 256] == (i + 1) % 64);
  asm volatile("ld.shared.f32 %0, [%1+12];" : "=f"(f) : "r"(place));
  EXPECT(f == i + 3);
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(r) : "r"(i));
  EXPECT(r == (i ^ 1));
  asm volatile("membar.gl;");
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(l));
  if (i == 0) *wide = l;
}

// Sums, differences and a product of numbers of several words, as the carry flag makes them.
__global__ void carries(unsigned long long a, unsigned long long b) {
  const unsigned a0 = a, a1 = a >> 32, b0 = b, b1 = b >> 32, i = threadIdx.x;
  unsigned x, y, z;
  asm("add.cc.u32 %0, %3, %5;\n\taddc.cc.u32 %1, %4, %6;\n\taddc.u32 %2, 0, 0;"
      : "=r"(x), "=r"(y), "=r"(z)
      : "r"(a0), "r"(a1), "r"(b0 + i), "r"(b1));
  const unsigned __int128 sum = static_cast<unsigned __int128>(a) + ((b & ~0xffffffffull) | (b0 + i));
  EXPECT(x == static_cast<unsigned>(sum) && y == static_cast<unsigned>(sum >> 32) && z == (sum >> 64));
  // The flag lives on to the next statement.
  asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(x) : "r"(b0), "r"(a0));
  asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(y) : "r"(b1), "r"(a1));
  asm volatile("subc.u32 %0, 0, 0;" : "=r"(z));
  EXPECT(((static_cast<unsigned long long>(y) << 32) | x) == b - a && z == (b < a ? ~0u : 0u));
  unsigned p0, p1, p2, p3;
  asm("mul.lo.u32 %0, %4, %6;\n\tmul.hi.u32 %1, %4, %6;\n\t"
      "mad.lo.cc.u32 %1, %5, %6, %1;\n\tmadc.hi.u32 %2, %5, %6, 0;\n\t"
      "mad.lo.cc.u32 %1, %4, %7, %1;\n\tmadc.hi.cc.u32 %2, %4, %7, %2;\n\taddc.u32 %3, 0, 0;\n\t"
      "mad.lo.cc.u32 %2, %5, %7, %2;\n\tmadc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(p0), "=&r"(p1), "=&r"(p2), "=&r"(p3)
      : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  EXPECT(p0 == static_cast<unsigned>(product) && p1 == static_cast<unsigned>(product >> 32));
  EXPECT(p2 == static_cast<unsigned>(product >> 64) && p3 == static_cast<unsigned>(product >> 96));
  unsigned long long w, v;
  asm("add.cc.u64 %0, %2, %3;\n\taddc.u64 %1, %2, %3;" : "=l"(w), "=l"(v) : "l"(a), "l"(b));
  EXPECT(w == a + b && v == a + b + (a + b < a));
}

int main() {
  float* sum;
  float4* vectors;
  unsigned* words;
  unsigned long long* wide;
  cudaMallocManaged(&sum, sizeof *sum);
  cudaMallocManaged(&vectors, 64 * sizeof *vectors);
  cudaMallocManaged(&words, 66 * sizeof *words);
  cudaMallocManaged(&wide, sizeof *wide);
  *sum = 0;
  words[1] = 0;
  for (int i = 0; i < 64; ++i) vectors[i] = make_float4(i, i + 1, i + 2, i + 3);
  kernel<<<1, 64>>>(sum, vectors, words, wide);
  carries<<<1, 32>>>(0xfffffffefffffff0ull, 0x123456789abcdef1ull);
  carries<<<1, 32>>>(0x00000001fffffff0ull, 0xffffffff00000000ull);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*sum == 32 && words[1] == 63 && words[2 + 9] == 81 && *wide > 1500000000000000000ull);
  return summary();
}
