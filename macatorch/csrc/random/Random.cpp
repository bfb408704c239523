#include "random/Random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <mutex>

namespace macatorch {
namespace {

// Philox offsets advance in steps of four, one per 32-bit word of a counter's output; upstream checks the multiple.
constexpr uint64_t kOffsetStep = 4;

// SplitMix64 (Steele, Lea, Flood 2014): equidistributed, and any two states of it give unrelated words.
uint64_t next_word(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

// mt19937's own seeding takes 32 bits, so that two calls in a long run would share a stream; all of its state is
// filled.
at::mt19937 engine(uint64_t seed, uint64_t offset) {
  uint64_t mixed = seed;
  uint64_t state = next_word(mixed) ^ (offset * 0xd1342543de82ef95ULL);
  at::mt19937_data_pod data{};
  data.seed_ = seed;
  data.left_ = 1;
  data.seeded_ = true;
  data.next_ = 0;
  for (size_t i = 0; i < data.state_.size(); i += 2) {
    const uint64_t word = next_word(state);
    data.state_[i] = static_cast<uint32_t>(word);
    data.state_[i + 1] = static_cast<uint32_t>(word >> 32);
  }
  at::mt19937 result;
  result.set_data(data);
  return result;
}

}  // namespace

PhiloxPosition draw_position(const std::optional<at::Generator>& cuda_generator, c10::DeviceIndex device) {
  if (const auto launched = launched_position()) {
    return *launched;
  }
  auto* cuda = at::get_generator_or_default<at::CUDAGeneratorImpl>(cuda_generator,
                                                                   at::cuda::detail::getDefaultCUDAGenerator(device));
  std::lock_guard<std::mutex> lock(cuda->mutex_);
  if (in_captured_operator()) {
    return captured_position(cuda->philox_cuda_state(kOffsetStep));
  }
  const auto [seed, offset] = cuda->philox_engine_inputs(kOffsetStep);
  return {seed, offset};
}

at::Generator generator_at(PhiloxPosition position) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(position.seed);
  static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl())
      ->set_engine(engine(position.seed, position.offset));
  return generator;
}

at::Generator cpu_generator(const std::optional<at::Generator>& cuda_generator, c10::DeviceIndex device) {
  return generator_at(draw_position(cuda_generator, device));
}

}  // namespace macatorch
