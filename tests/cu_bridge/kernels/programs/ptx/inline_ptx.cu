// Inline PTX: special registers, integers, floating point, half, memory, atomics, copies to shared memory.
#include <cstdint>

#include "../../check.h"

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

// Integers in parts of a word, chosen bits, saturation; conversions to packed formats; modifiers of half.
__global__ void packed_numbers() {
  unsigned r, q;
  int s;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(s) : "r"(0x80ff7f01u), "r"(0xff02ff03u), "r"(-5));
  EXPECT(s == -128 * 255 - 2 + 127 * 255 + 3 - 5);
  asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(0x8000fffeu), "r"(0x80ff0000u), "r"(7));
  EXPECT(s == -32768 * -128 + 2 + 7);
  asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(0x8000fffeu), "r"(0x0000ff02u), "r"(7u));
  EXPECT(r == 0x8000u * 255 + 0xfffeu * 2 + 7);
  asm("vadd4.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(r) : "r"(0x7f80ff01u), "r"(0x01ff0102u), "r"(0u));
  EXPECT(r == 0x7f800003u);
  asm("vadd4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(0x7f80ff01u), "r"(0x01ff0102u), "r"(0u));
  EXPECT(r == 0x807f0003u);
  asm("vsub2.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(r) : "r"(0x0001fff0u), "r"(0x00020001u), "r"(0u));
  EXPECT(r == 0x0000ffefu);
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(0x00ff1020u), "r"(0xff002010u), "r"(100u));
  EXPECT(r == 255 + 255 + 16 + 16 + 100);
  asm("vavrg4.s32.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(0xff01fd7fu), "r"(0xfe02fd7fu), "r"(0u));
  EXPECT(r == 0xfe02fd7fu);
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(-300), "r"(5), "r"(0xaabbccddu));
  EXPECT(r == 0xccdd8005u);
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(r) : "r"(70000), "r"(-1));
  EXPECT(r == 0xffff0000u);
  asm("prmt.b32 %0, %1, %2, 0xc087;" : "=r"(r) : "r"(0x112233f4u), "r"(0x55667788u));
  EXPECT(r == 0xfff4ff55u);
  asm("prmt.b32.f4e %0, %1, %2, 3;" : "=r"(r) : "r"(0x44332211u), "r"(0x88776655u));
  EXPECT(r == 0x77665544u);
  asm("prmt.b32.b4e %0, %1, %2, 1;" : "=r"(r) : "r"(0x44332211u), "r"(0x88776655u));
  EXPECT(r == 0x77881122u);
  asm("prmt.b32.ecl %0, %1, %2, 2;" : "=r"(r) : "r"(0x44332211u), "r"(0u));
  EXPECT(r == 0x44333333u);
  asm("prmt.b32.rc16 %0, %1, %2, 1;" : "=r"(r) : "r"(0x44332211u), "r"(0u));
  EXPECT(r == 0x44334433u);
  asm("fns.b32 %0, %1, 4, -2;" : "=r"(r) : "r"(0x0000001au));
  EXPECT(r == 3);
  asm("bmsk.clamp.b32 %0, 30, 5;" : "=r"(r));
  EXPECT(r == 0xc0000000u);
  asm("szext.wrap.s32 %0, %1, 4;" : "=r"(s) : "r"(0x1239));
  EXPECT(s == -7);
  asm("add.sat.s32 %0, %1, %2;" : "=r"(s) : "r"(2147483647), "r"(5));
  EXPECT(s == 2147483647);
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(s) : "r"(-2147483647), "r"(5));
  EXPECT(s == -2147483647 - 1);
  asm("mul24.hi.s32 %0, %1, %2;" : "=r"(s) : "r"(0x00ffffff), "r"(0x00400000));
  EXPECT(s == -64);
  asm("max.s16x2 %0, %1, %2;" : "=r"(r) : "r"(0x8000fffeu), "r"(0x00010002u));
  EXPECT(r == 0x00010002u);
  asm("lop3.b32 %0, %1, %2, %3, (0xf0 & 0xcc) | 0xaa;" : "=r"(r) : "r"(0xcu), "r"(0xau), "r"(0x1u));
  EXPECT(r == 9);
  asm("{ .reg .pred p; lop3.or.b32 %0|p, %2, %3, %4, 0x80, 0; selp.u32 %1, 1, 0, p; }"
      : "=r"(r), "=r"(q)
      : "r"(0xcu), "r"(0xau), "r"(0x7u));
  EXPECT(r == 0 && q == 0);

  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(1.00048828125f));  // half of the last of 10 bits
  EXPECT(r == 0x3f802000u);
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(1.00048828125f));
  EXPECT(r == 0x3f800000u);
  unsigned short h;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(-1000.0f), "f"(1.0625f));
  EXPECT(h == 0xfe38);
  asm("cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;" : "=h"(h) : "f"(-1.0f), "f"(1e9f));
  EXPECT(h == 0x007b);
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(h) : "r"(0xc0003c00u));
  EXPECT(h == 0xc038);
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(static_cast<unsigned short>(0x0138)));
  EXPECT(r == 0x18003c00u);
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"(static_cast<unsigned short>(0xfc3c)));
  EXPECT(r == 0xfc003c00u);
  asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(1.999f), "f"(-1.999f));
  EXPECT(r == 0x3fffbfffu);
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(2.0f), "f"(-2.0f));
  EXPECT(r == 0x40000000u);
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(0x40003c00u), "r"(0xbc003c00u), "r"(0x3c003c00u));
  EXPECT(r == 0x00004000u);
  asm("add.sat.f16x2 %0, %1, %2;" : "=r"(r) : "r"(0x3c007e00u), "r"(0x3c003c00u));
  EXPECT(r == 0x3c000000u);
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(0x7fc03f80u), "r"(0x3f804000u));
  EXPECT(r == 0x7fff4000u);
  asm("ex2.approx.ftz.f16x2 %0, %1;" : "=r"(r) : "r"(0x40000001u));
  EXPECT(r == 0x44003c00u);
  float f;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(f) : "f"(2.0f), "f"(3.0f), "f"(-1.0f));
  EXPECT(f == 1);
  asm("mul.ftz.f32 %0, %1, %2;" : "=f"(f) : "f"(1e-40f), "f"(1e30f));
  EXPECT(f == 0);

  asm("{ .reg .pred p, q; setp.lt.and.s32 p|q, %2, %3, 1; selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"
      : "=r"(r), "=r"(q)
      : "r"(-1), "r"(0));
  EXPECT(r == 1 && q == 0);
  asm("{ .reg .pred p; setp.gt.f16 p, %1, %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(r)
      : "h"(static_cast<unsigned short>(0x4000)), "h"(static_cast<unsigned short>(0xc200)));
  EXPECT(r == 1);
  // A loop with labels, and a register of the same name in two scopes.
  asm("{ .reg .pred p; .reg .u32 n; mov.u32 n, 0; mov.u32 %0, 0;\n"
      "AGAIN: add.u32 %0, %0, n; add.u32 n, n, 1; setp.le.u32 p, n, %1; @p bra AGAIN; }\n"
      "{ .reg .u64 n; cvt.u64.u32 n, %0; cvt.u32.u64 %0, n; }"
      : "=&r"(r)
      : "r"(10u));
  EXPECT(r == 55);
}

// What lanes exchange, votes of a block, mbarrier, atomic operations of vectors.
__global__ void together(float* sums, unsigned* halves) {
  __shared__ unsigned long long meeting[2];
  __shared__ __align__(16) float tile[64];
  const unsigned i = threadIdx.x, lane = i % 32;
  unsigned r, q;
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0x0, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(q)
               : "r"(i));
  EXPECT(r == (lane < 3 ? i : i - 3) && q == (lane >= 3));
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 5, 0x181f, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(q)
               : "r"(i));
  EXPECT(r == (lane % 8 < 3 ? i + 5 : i) && q == (lane % 8 < 3));
  // Lanes beyond the fifth are outside.
  asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, 0x4, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(q)
               : "r"(i), "r"(lane / 4));
  EXPECT(r == (lane / 4 <= 4 ? i - lane + lane / 4 : i) && q == (lane / 4 <= 4));
  asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(q)
               : "r"(i / 32));
  EXPECT(r == 0xffffffffu && q == 1);
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(r), "=r"(q));
  EXPECT(r == 0 && q == (lane == 0));
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 7; bar.red.popc.u32 %0, 0, p; }" : "=r"(r) : "r"(i));
  EXPECT(r == 7);

  const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&meeting[0]));
  const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  if (i == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;");
  __syncthreads();
  for (unsigned phase = 0; phase < 3; ++phase) {
    if (i == 0) {
      asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(barrier) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(place),
          "l"(sums + 64 * phase + 64), "r"(barrier)
          : "memory");
    }
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    if (phase == 1) {
      do {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(r)
                     : "r"(barrier), "l"(state)
                     : "memory");
      } while (r == 0);
    } else {
      asm volatile(
          "{ .reg .pred P1;\nLAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
          "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(barrier),
          "r"(phase & 1)
          : "memory");
    }
    EXPECT(tile[63 - i] == 64 * phase + 64 + 63 - i);
    __syncthreads();
  }
  asm volatile("red.global.gpu.add.v2.f32 [%0], {%1, %2};" ::"l"(sums), "f"(1.0f), "f"(2.0f) : "memory");
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" ::"l"(halves), "r"(0x40003f80u) : "memory");
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;" : "=r"(r) : "l"(halves + 1), "r"(1u) : "memory");
  EXPECT(r < 64);
  asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(halves + 4 + i), "r"(i + 1) : "memory");
  asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(r) : "l"(halves + 4 + i) : "memory");
  EXPECT(r == i + 1);
  __syncthreads();
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];"
               : "=r"(r), "=r"(q)
               : "l"(halves + 4 + (i & ~1u)));
  EXPECT(i % 2 == 0 || r == i);
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(r), "=r"(q) : "l"(halves + 4 + (i & ~1u)));
  EXPECT(i % 2 == 1 ? q == i + 1 : r == i + 1);
  asm volatile("griddepcontrol.wait;");
  asm volatile("griddepcontrol.launch_dependents;");
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
  packed_numbers<<<1, 32>>>();
  float* sums;
  unsigned* halves;
  cudaMallocManaged(&sums, 256 * sizeof *sums);
  cudaMallocManaged(&halves, 68 * sizeof *halves);
  for (int i = 0; i < 256; ++i) sums[i] = i < 2 ? 0 : i;
  halves[0] = halves[1] = 0;
  together<<<1, 64>>>(sums, halves);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(sums[0] == 64 && sums[1] == 128 && sums[2] == 2 && halves[0] == 0x43004280 && halves[1] == 64);
  return summary();
}
