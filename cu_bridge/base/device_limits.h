// What every simulated device allows: the limits of compute capability 8.0. The one place for the runtime and the CUDA
// libraries; what differs between devices is in runtime/profiles.txt.
#pragma once

namespace mc::limits {

constexpr int kDevices = 64;

constexpr unsigned kWarpSize = 32;
constexpr unsigned kThreadsPerBlock = 1024;
constexpr unsigned kBlockX = 1024, kBlockY = 1024, kBlockZ = 64;
constexpr unsigned kGridX = 0x7fffffff, kGridY = 65535, kGridZ = 65535;

constexpr unsigned kThreadsPerMultiprocessor = 2048;
constexpr unsigned kWarpsPerMultiprocessor = kThreadsPerMultiprocessor / kWarpSize;
constexpr unsigned kBlocksPerMultiprocessor = 32;
constexpr unsigned kRegistersPerMultiprocessor = 65536;

// Bytes of shared memory: of a block, of a block whose kernel asks for more, of all blocks together. Each block takes
// the reserved bytes beside its own.
constexpr unsigned kSharedPerBlock = 48 << 10;
constexpr unsigned kSharedPerBlockOptin = 163 << 10;
constexpr unsigned kSharedPerMultiprocessor = 164 << 10;
constexpr unsigned kSharedReserved = 1 << 10;

constexpr unsigned kConstantBytes = 65536;
constexpr unsigned kPitch = 0x7fffffff;
constexpr unsigned kTextureAlignment = 512;  // of pitched allocations and surfaces too
constexpr unsigned kTexturePitchAlignment = 32;

}  // namespace mc::limits
