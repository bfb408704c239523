#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>

// The backends are parameters of the build, MACATORCH_DEVICE and MACATORCH_HOST in CMakeLists.txt: by default CUDA,
// whose operators ours take the place of, and CPU. PrivateUse1 has other dispatch keys and another device type. What is
// called of c10::cuda (streams, the caching allocator, generators) is no parameter.

namespace macatorch {

constexpr c10::DeviceType kDevice = c10::DeviceType::MACATORCH_DEVICE;
constexpr c10::DispatchKey kDeviceKey = c10::DispatchKey::MACATORCH_DEVICE;
constexpr c10::DispatchKey kHostKey = c10::DispatchKey::MACATORCH_HOST;
constexpr c10::BackendComponent kDeviceBackend = c10::toBackendComponent(kDeviceKey);
constexpr c10::BackendComponent kHostBackend = c10::toBackendComponent(kHostKey);

constexpr c10::DispatchKey kQuantizedDeviceKey =
    c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Quantized, kDeviceBackend);
constexpr c10::DispatchKey kQuantizedHostKey =
    c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Quantized, kHostBackend);

inline bool is_on_device(c10::Device device) { return device.type() == kDevice; }

/// False for an undefined tensor.
inline bool is_on_device(const at::TensorBase& tensor) { return tensor.defined() && is_on_device(tensor.device()); }

}  // namespace macatorch
