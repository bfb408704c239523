#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <optional>

#include "graph/GraphCapture.h"

namespace macatorch {

/// The CUDA generator's place, which is advanced. None means the default generator of `device`.
PhiloxPosition draw_position(const std::optional<at::Generator>& cuda_generator, c10::DeviceIndex device);

/// The CPU generator of a place.
at::Generator generator_at(PhiloxPosition position);

/// A CPU generator for one operator on `device`, whose stream is a function of the CUDA generator's seed and offset
/// alone; advances that offset. None means the device's default generator. A generator of another device raises
/// upstream's error.
at::Generator cpu_generator(const std::optional<at::Generator>& cuda_generator, c10::DeviceIndex device);

}  // namespace macatorch
