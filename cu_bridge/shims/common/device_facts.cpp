#include "device_facts.h"

namespace mxmaca {
namespace {

struct Attribute {
  int number;
  int value;
};

// What is the same on every simulated device.
constexpr Attribute kFixed[] = {
    {2, 1024},         // block width
    {3, 1024},         // block height
    {4, 64},           // block depth
    {5, 0x7fffffff},   // grid width
    {6, 65535},        // grid height
    {7, 65535},        // grid depth
    {9, 65536},        // constant memory
    {11, 0x7fffffff},  // pitch
    {14, 512},         // texture alignment
    {15, 1},           // copy overlaps
    {17, 0},           // run time limit on kernels
    {18, 0},           // integrated
    {19, 1},           // can map host memory
    {20, 0},           // compute mode
    {30, 512},         // surface alignment
    {31, 1},           // concurrent kernels
    {32, 0},           // ECC
    {35, 0},           // TCC
    {40, 3},           // copy engines
    {41, 1},           // unified addressing
    {51, 32},          // texture pitch alignment
    {78, 1},           // stream priorities
    {79, 1},           // global L1 cache
    {80, 1},           // local L1 cache
    {83, 1},           // managed memory
    {84, 0},           // multi-GPU board
    {85, 0},           // its group
    {86, 1},           // host atomics
    {87, 2},           // single to double performance
    {88, 0},           // pageable memory access
    {89, 1},           // concurrent managed access
    {90, 1},           // compute preemption
    {91, 1},           // registered host pointers are device pointers
    {92, 0},           // stream memory operations (old)
    {93, 0},           // 64-bit stream memory operations (old)
    {95, 1},           // cooperative launch
    {96, 0},           // cooperative launch on several devices
    {98, 0},           // flush of remote writes
    {99, 1},           // host register
    {100, 0},          // pageable memory through the host's page tables
    {101, 0},          // direct managed access from the host
    {102, 1},          // virtual memory management
    {103, 1},          // memory handles as file descriptors
    {104, 0},          // as Windows handles
    {105, 0},          // as Windows KMT handles
    {107, 0},          // compression
    {108, 0},          // persisting L2 cache
    {109, 0},          // access policy window
    {110, 0},          // RDMA with virtual memory
    {112, 0},          // sparse arrays
    {113, 1},          // read-only host register
    {114, 0},          // timeline semaphores
    {115, 1},          // memory pools
    {116, 0},          // RDMA
    {117, 0},          // RDMA flush
    {118, 0},          // RDMA order
    {119, 0},          // shareable pool handles
    {120, 0},          // cluster launch
    {121, 0},          // deferred array mapping
    {122, 0},          // 64-bit stream memory operations
    {123, 0},          // stream wait without or-ing
    {124, 0},          // DMA-BUF
    {125, 1},          // events across processes
    {126, 1},          // memory synchronization domains
    {127, 0},          // tensor map access
    {128, 0},          // fabric handles
    {129, 0},          // unified function pointers
    {130, 0},          // NUMA configuration
    {131, -1},         // NUMA node
    {132, 0},          // multicast
    {133, 0},          // MPS
    {134, -1},         // host NUMA node
    {142, 0},          // pools on NUMA nodes
    {144, 0},          // pools on the host
};

}  // namespace

bool deviceAttribute(const mcDeviceProperties& p, int attribute, int* value) {
  const Attribute own[] = {
      {1, p.maxThreadsPerBlock},
      {8, p.sharedPerBlock},
      {10, p.warpSize},
      {12, p.registersPerBlock},
      {13, p.clockKHz},
      {16, p.multiprocessors},
      {33, p.pciBus},
      {34, p.pciDevice},
      {36, p.memoryClockKHz},
      {37, p.memoryBusBits},
      {38, p.l2Bytes},
      {39, p.maxThreadsPerMultiprocessor},
      {50, p.pciDomain},
      {75, p.major},
      {76, p.minor},
      {81, p.sharedPerMultiprocessor},
      {82, p.registersPerMultiprocessor},
      {97, p.sharedPerBlockOptin},
      {106, p.maxBlocksPerMultiprocessor},
      {111, p.sharedReserved},
  };
  for (const Attribute& entry : own) {
    if (entry.number != attribute) continue;
    *value = entry.value;
    return true;
  }
  for (const Attribute& entry : kFixed) {
    if (entry.number != attribute) continue;
    *value = entry.value;
    return true;
  }
  *value = 0;  // textures, surfaces and what later releases add: not there
  return attribute > 0 && attribute < 160;
}

}  // namespace mxmaca
