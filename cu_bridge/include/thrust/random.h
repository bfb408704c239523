// Random engines and distributions: the C++ library's, with the members that thrust's have.
#pragma once

#include <random>

#include "../host_defines.h"
#include "detail/config.h"

namespace thrust {
namespace random {

using std::discard_block_engine;
using std::linear_congruential_engine;
using std::minstd_rand;
using std::minstd_rand0;
using std::ranlux24;
using std::ranlux24_base;
using std::ranlux48;
using std::ranlux48_base;
using std::subtract_with_carry_engine;
using default_random_engine = std::minstd_rand;

template <class T>
class uniform_real_distribution {
 public:
  using result_type = T;
  __host__ __device__ explicit uniform_real_distribution(T a = 0, T b = 1) : a_(a), b_(b) {}
  template <class Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    // [a, b), from one number of the engine.
    const T unit = static_cast<T>(engine() - Engine::min()) / (static_cast<T>(Engine::max() - Engine::min()) + T(1));
    return unit * (b_ - a_) + a_;
  }
  __host__ __device__ T a() const { return a_; }
  __host__ __device__ T b() const { return b_; }

 private:
  T a_, b_;
};
template <class T>
class uniform_int_distribution {
 public:
  using result_type = T;
  __host__ __device__ explicit uniform_int_distribution(T a = 0, T b = std::numeric_limits<T>::max()) : a_(a), b_(b) {}
  template <class Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    return std::uniform_int_distribution<T>(a_, b_)(engine);
  }

 private:
  T a_, b_;
};
template <class T>
class normal_distribution {
 public:
  using result_type = T;
  __host__ __device__ explicit normal_distribution(T mean = 0, T stddev = 1) : mean_(mean), stddev_(stddev) {}
  template <class Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    return std::normal_distribution<T>(mean_, stddev_)(engine);
  }

 private:
  T mean_, stddev_;
};
}  // namespace random

using random::default_random_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::ranlux24;
using random::ranlux48;
using random::uniform_int_distribution;
using random::uniform_real_distribution;
}  // namespace thrust
