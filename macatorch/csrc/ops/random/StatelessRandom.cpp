#include <ATen/ATen.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <cmath>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Release.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// torch.func._random (torch 2.12 and later): numbers that are a function of a key alone. A key is (seed, offset) in the
// stream of Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011); ATen's own engine computes it.

/// The words of a key's stream, one after the other.
at::philox_engine stream_of(const uint64_t* key) { return at::philox_engine(key[0], 0, key[1]); }

/// The key that `data` makes of another one: words of a stream that belongs to `data`.
void fold(const uint64_t* key, uint64_t data, uint64_t* result) {
  at::philox_engine words(key[0], data + 1, key[1]);
  const uint64_t low = words(), high = words();
  result[0] = high << 32 | low;
  result[1] = 0;
}

at::Tensor checked_keys(DeviceCall& call, const at::Tensor& key, const char* name) {
  TORCH_CHECK(key.dim() >= 1 && key.size(-1) == 2, name, ": key must have shape (*batch, 2), got shape ", key.sizes());
  TORCH_CHECK(key.scalar_type() == kUInt64, name, ": key must have dtype uint64, got ", key.dtype());
  return call(key).contiguous();
}

void key_split(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const int64_t count = *given.integer("num_splits");
  TORCH_CHECK(count > 0, "_philox_key_split: num_splits must be positive, got ", count);
  DeviceCall call(given.tensor("key"));
  const at::Tensor keys = checked_keys(call, given.tensor("key"), "_philox_key_split");
  std::vector<int64_t> shape = keys.sizes().vec();
  shape.insert(shape.begin(), count);
  const at::Tensor result = at::empty(shape, keys.options());
  const auto* from = static_cast<const uint64_t*>(keys.const_data_ptr());
  auto* to = static_cast<uint64_t*>(result.mutable_data_ptr());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < keys.numel(); j += 2, to += 2) {
      fold(from + j, static_cast<uint64_t>(i), to);
    }
  }
  given.give(call.result(result));
}

void key_fold_in(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  DeviceCall call(given.tensor("key"));
  const at::Tensor keys = checked_keys(call, given.tensor("key"), "_philox_key_fold_in");
  const at::Tensor result = at::empty_like(keys);
  const auto* from = static_cast<const uint64_t*>(keys.const_data_ptr());
  auto* to = static_cast<uint64_t*>(result.mutable_data_ptr());
  for (int64_t j = 0; j < keys.numel(); j += 2) {
    fold(from + j, static_cast<uint64_t>(*given.integer("data")), to + j);
  }
  given.give(call.result(result));
}

/// A number of [0, 1) from one word: its upper 24 bits, or 53 of two words.
double uniform(at::philox_engine& words, bool wide) {
  if (!wide) {
    return static_cast<double>(words() >> 8) * 0x1p-24;
  }
  const uint64_t high = words(), low = words();
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

/// Box and Muller (1958): the cosine half of a pair.
double normal(at::philox_engine& words, bool wide) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log1p(-uniform(words, wide)));
  return radius * std::cos(kTwoPi * uniform(words, wide));
}

/// Fills `self`, of whose leading dimensions each place has a key of its own; `draw` gives a number of a stream.
template <class Draw>
void fill(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* name, const Draw& draw) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self");
  const at::Tensor key = given.tensor("key");
  TORCH_CHECK(self.is_floating_point(), name, ": self must be a floating point tensor, got ", self.dtype());
  TORCH_CHECK(self.device() == key.device(), name, ": self and key must be on the same device, got ", self.device(),
              " and ", key.device());
  {
    DeviceCall call(self);
    at::Tensor keys = checked_keys(call, key, name);
    at::Tensor target = call(self, true);
    int64_t streams = 1;
    if (keys.dim() > 1) {
      TORCH_CHECK(keys.dim() == self.dim() + 1, name, ": batched key must have ndim == output ndim + 1, got key shape ",
                  keys.sizes(), " with output shape ", self.sizes());
      // The leading dimensions up to the last one that has more than one key belong to keys, what follows to a stream.
      int64_t leading = keys.dim() - 1;
      while (leading > 0 && keys.size(leading - 1) == 1) {
        --leading;
      }
      std::vector<int64_t> shape = keys.sizes().vec();
      for (int64_t dim = 0; dim < keys.dim() - 1; ++dim) {
        TORCH_CHECK(shape[dim] == 1 || shape[dim] == self.size(dim), name, ": key batch shape ",
                    keys.sizes().slice(0, keys.dim() - 1), " is not broadcastable with output shape ", self.sizes());
        if (dim < leading) {
          shape[dim] = self.size(dim);
          streams *= self.size(dim);
        }
      }
      keys = keys.expand(shape).contiguous();
    }
    const bool wide = self.scalar_type() == at::kDouble;
    at::Tensor values = at::empty(self.sizes(), at::TensorOptions().dtype(at::kDouble));
    auto* to = values.mutable_data_ptr<double>();
    const auto* from = static_cast<const uint64_t*>(keys.const_data_ptr());
    const int64_t length = streams == 0 ? 0 : self.numel() / streams;
    for (int64_t i = 0; i < streams; ++i) {
      at::philox_engine words = stream_of(from + 2 * i);
      for (int64_t j = 0; j < length; ++j) {
        *to++ = draw(given, words, wide);
      }
    }
    target.copy_(values);
  }
  given.give(self);
}

void philox_uniform(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fill(op, stack, "_philox_uniform_", [](const Arguments& given, at::philox_engine& words, bool wide) {
    const double low = *given.number("low"), high = *given.number("high");
    return low + (high - low) * uniform(words, wide);
  });
}

void philox_normal(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fill(op, stack, "_philox_normal_", [](const Arguments& given, at::philox_engine& words, bool wide) {
    return *given.number("mean") + *given.number("std") * normal(words, wide);
  });
}

}  // namespace
}  // namespace macatorch

#include "registered/random/StatelessRandom.h"
