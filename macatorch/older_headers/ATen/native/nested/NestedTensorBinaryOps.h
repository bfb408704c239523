// 2.1 declares the table in a header that is not installed.
#pragma once

#include <ATen/native/DispatchStub.h>

#include <cstdint>

namespace at {
namespace native {
enum class NESTED_DENSE_OP : uint8_t { ADD, MUL };
using nested_dense_elementwise_fn = void (*)(Tensor&, const Tensor&, const Tensor&, const NESTED_DENSE_OP&);
DECLARE_DISPATCH(nested_dense_elementwise_fn, nested_dense_elementwise_stub);
}  // namespace native
}  // namespace at
