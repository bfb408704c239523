// cuRAND's host interface, on the generators that device code has in curand_kernel.h.
//
// Note [Order of the numbers]
// A generator has several threads, each with a subsequence of its own, and they take turns: one number a turn from the
// 4096 threads of XORWOW and MRG32k3a, four from the 65536 of Philox, as cuRAND documents them for its legacy and
// default orders; a normal number comes with its twin. MT19937 is one sequence, which is not cuRAND's order.

#include <memory>
#include <new>
#include <random>
#include <type_traits>
#include <vector>

#include "library.h"
#include "mc_runtime.h"
#include "refuse.h"

#include "curand_kernel.h"

#pragma GCC visibility push(default)
#include "curand.h"
#pragma GCC visibility pop

namespace {

// What a distribution asks of a generator; made for each kind of state.
class Source {
 public:
  virtual ~Source() = default;
  virtual unsigned word() = 0;
  virtual float uniform() = 0;
  virtual double uniformDouble() = 0;
  virtual float2 normals() = 0;
  virtual double2 normalsDouble() = 0;
};

// Threads with a state of curand_kernel.h each, which take turns of `chunk` numbers.
template <class State>
class Threads : public Source {
 public:
  Threads(unsigned long long seed, unsigned long long offset, size_t count, unsigned chunk)
      : states_(count), chunk_(chunk), next_(offset / chunk % count), done_(offset % chunk) {
    curand_init(seed, 0, offset / chunk / count * chunk, &states_[0]);
    for (size_t i = 1; i < count; ++i) {
      states_[i] = states_[i - 1];
      nextSubsequence(&states_[i]);
    }
    for (size_t i = 0; i < next_; ++i) skipahead(chunk, &states_[i]);  // they had their turn already
    skipahead(done_, &states_[next_]);
  }
  unsigned word() override { return curand(turn(1)); }
  float uniform() override { return curand_uniform(turn(1)); }
  double uniformDouble() override {
    State* const state = turn(1);
    if constexpr (std::is_same<State, curandStatePhilox4_32_10_t>::value) {  // as its form for four numbers does
      const unsigned x = curand(state), y = curand(state);
      return mxmaca::uniform_double_of(x, y);
    } else {
      return curand_uniform_double(state);
    }
  }
  float2 normals() override { return curand_normal2(turn(2)); }
  double2 normalsDouble() override { return curand_normal2_double(turn(2)); }

 private:
  State* turn(unsigned numbers) {
    State* const state = &states_[next_];
    done_ += numbers;
    if (done_ >= chunk_) {
      done_ = 0;
      if (++next_ == states_.size()) next_ = 0;
    }
    return state;
  }
  static void nextSubsequence(curandStateXORWOW_t* state) { skipahead_sequence(1, state); }
  static void nextSubsequence(curandStateMRG32k3a_t* state) { skipahead_subsequence(1, state); }
  static void nextSubsequence(curandStatePhilox4_32_10_t* state) { skipahead_sequence(1, state); }

  std::vector<State> states_;
  unsigned chunk_;
  size_t next_;    // whose turn it is
  unsigned done_;  // numbers of that turn
};

// The Mersenne twister of the C++ library, one sequence.
class Twister : public Source {
 public:
  explicit Twister(unsigned long long seed) : engine_(static_cast<unsigned>(seed)) {}
  unsigned word() override { return static_cast<unsigned>(engine_()); }
  float uniform() override { return mxmaca::uniform_of(word()); }
  double uniformDouble() override {
    const unsigned x = word(), y = word();
    return mxmaca::uniform_double_of(x, y);
  }
  float2 normals() override {
    const unsigned x = word(), y = word();
    return mxmaca::normals_of(x, y);
  }
  double2 normalsDouble() override {
    const unsigned x0 = word(), x1 = word(), y0 = word(), y1 = word();
    return mxmaca::normals_of(x0, x1, y0, y1);
  }

 private:
  std::mt19937 engine_;
};

constexpr size_t kInterleaved = 4096;
constexpr size_t kPhiloxThreads = 65536;

std::unique_ptr<Source> makeSource(curandRngType_t type, unsigned long long seed, unsigned long long offset) {
  switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT:
    case CURAND_RNG_PSEUDO_XORWOW: return std::make_unique<Threads<curandStateXORWOW_t>>(seed, offset, kInterleaved, 1);
    case CURAND_RNG_PSEUDO_MRG32K3A:
      return std::make_unique<Threads<curandStateMRG32k3a_t>>(seed, offset, kInterleaved, 1);
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
      return std::make_unique<Threads<curandStatePhilox4_32_10_t>>(seed, offset, kPhiloxThreads, 4);
    case CURAND_RNG_PSEUDO_MT19937: return std::make_unique<Twister>(seed);
    default: return nullptr;
  }
}

bool isQuasi(curandRngType_t type) {
  return type >= CURAND_RNG_QUASI_DEFAULT && type <= CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

}  // namespace

struct curandGenerator_st {
  curandRngType_t type;
  unsigned long long seed = 0;
  unsigned long long offset = 0;
  cudaStream_t stream = nullptr;
  std::unique_ptr<Source> source;  // made when the first number is wanted
};

MXMACA_OBJECT(curandGenerator_st, Curand);
MXMACA_ANSWERS(curandStatus_t, CURAND_STATUS_SUCCESS, CURAND_STATUS_NOT_INITIALIZED, CURAND_STATUS_OUT_OF_RANGE,
               CURAND_STATUS_ALLOCATION_FAILED, CURAND_STATUS_PREEXISTING_FAILURE);

namespace {

using mxmaca::live;

curandStatus_t refused(const char* function) {
  mcReportRefusal("libcurand", function, "CURAND_STATUS_TYPE_ERROR");
  return CURAND_STATUS_TYPE_ERROR;
}

template <class Fill>
curandStatus_t generate(curandGenerator_t generator, const void* output, size_t count, bool pairs, Fill&& fill) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (pairs && count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (count == 0) return CURAND_STATUS_SUCCESS;
  if (output == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  if (mcStreamCheck(reinterpret_cast<mcStream_t>(generator->stream)) != mcSuccess) {
    return CURAND_STATUS_PREEXISTING_FAILURE;
  }
  const mxmaca::DeviceWork computes("curandGenerate");
  try {
    if (generator->source == nullptr) {
      generator->source = makeSource(generator->type, generator->seed, generator->offset);
    }
    fill(*generator->source);
  } catch (const std::bad_alloc&) {
    return CURAND_STATUS_ALLOCATION_FAILED;
  }
  return CURAND_STATUS_SUCCESS;
}

template <class Number, class Two>
curandStatus_t generateNormals(curandGenerator_t generator, Number* output, size_t count, Number mean, Number deviation,
                               Two (Source::*two)()) {
  return generate(generator, output, count, true, [=](Source& source) {
    for (size_t i = 0; i < count; i += 2) {
      const Two both = (source.*two)();
      output[i] = mean + deviation * both.x;
      output[i + 1] = mean + deviation * both.y;
    }
  });
}

// The words of a source for the distributions of the C++ library.
struct Bits {
  using result_type = unsigned;
  static constexpr unsigned min() { return 0; }
  static constexpr unsigned max() { return ~0U; }
  unsigned operator()() { return source->word(); }
  Source* source;
};

}  // namespace

extern "C" {

curandStatus_t curandGetVersion(int* version) { return mxmaca::getVersion<curandStatus_t>(version, CURAND_VERSION); }
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
  return mxmaca::getProperty<curandStatus_t>(type, value, CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH);
}

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  if (generator == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return CURAND_STATUS_INITIALIZATION_FAILED;
  switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT:
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10: break;
    case CURAND_RNG_PSEUDO_MTGP32: return refused("curandCreateGenerator(CURAND_RNG_PSEUDO_MTGP32)");
    default: return isQuasi(type) ? refused("curandCreateGenerator(CURAND_RNG_QUASI_*)") : CURAND_STATUS_TYPE_ERROR;
  }
  auto created =
      std::unique_ptr<curandGenerator_st>(new (std::nothrow) curandGenerator_st{type, 0, 0, nullptr, nullptr});
  return mxmaca::createObject(generator, std::move(created)) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return curandCreateGenerator(generator, type);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  return mxmaca::destroyObject(generator) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!mxmaca::isStream(stream)) return CURAND_STATUS_OUT_OF_RANGE;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  generator->source.reset();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->type == CURAND_RNG_PSEUDO_MT19937) return CURAND_STATUS_TYPE_ERROR;  // it cannot skip
  generator->offset = offset;
  generator->source.reset();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  switch (order) {
    case CURAND_ORDERING_PSEUDO_BEST:
    case CURAND_ORDERING_PSEUDO_DEFAULT:
    case CURAND_ORDERING_PSEUDO_LEGACY: return CURAND_STATUS_SUCCESS;  // one order serves all three
    case CURAND_ORDERING_PSEUDO_SEEDED:
    case CURAND_ORDERING_PSEUDO_DYNAMIC:
      return refused("curandSetGeneratorOrdering(CURAND_ORDERING_PSEUDO_SEEDED or _DYNAMIC)");
    default: return CURAND_STATUS_OUT_OF_RANGE;
  }
}
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned int) {
  return !live(generator) ? CURAND_STATUS_NOT_INITIALIZED : CURAND_STATUS_TYPE_ERROR;
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  static const int anything = 0;
  return generate(generator, &anything, 1, false, [](Source&) {});
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* output, size_t count) {
  return generate(generator, output, count, false, [=](Source& source) {
    for (size_t i = 0; i < count; ++i) output[i] = source.word();
  });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long*, size_t) {
  return !live(generator) ? CURAND_STATUS_NOT_INITIALIZED : CURAND_STATUS_TYPE_ERROR;  // for 64-bit Sobol alone
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* output, size_t count) {
  return generate(generator, output, count, false, [=](Source& source) {
    for (size_t i = 0; i < count; ++i) output[i] = source.uniform();
  });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* output, size_t count) {
  return generate(generator, output, count, false, [=](Source& source) {
    for (size_t i = 0; i < count; ++i) output[i] = source.uniformDouble();
  });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                    float deviation) {
  return generateNormals(generator, output, count, mean, deviation, &Source::normals);
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* output, size_t count, double mean,
                                          double deviation) {
  return generateNormals(generator, output, count, mean, deviation, &Source::normalsDouble);
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                       float deviation) {
  const curandStatus_t status = curandGenerateNormal(generator, output, count, mean, deviation);
  for (size_t i = 0; status == CURAND_STATUS_SUCCESS && i < count; ++i) output[i] = std::exp(output[i]);
  return status;
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* output, size_t count, double mean,
                                             double deviation) {
  const curandStatus_t status = curandGenerateNormalDouble(generator, output, count, mean, deviation);
  for (size_t i = 0; status == CURAND_STATUS_SUCCESS && i < count; ++i) output[i] = std::exp(output[i]);
  return status;
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* output, size_t count, double lambda) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!(lambda > 0 && lambda <= 400000)) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, output, count, false, [=](Source& source) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = mxmaca::poisson_of(lambda, [&source] { return source.uniformDouble(); });
    }
  });
}
curandStatus_t curandGenerateBinomial(curandGenerator_t generator, unsigned int* output, size_t count, unsigned int n,
                                      double p) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!(p >= 0 && p <= 1) || n > 0x7fffffffU) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, output, count, false, [=](Source& source) {
    std::binomial_distribution<int> distribution(static_cast<int>(n), p);
    Bits bits{&source};
    for (size_t i = 0; i < count; ++i) output[i] = static_cast<unsigned>(distribution(bits));
  });
}

}  // extern "C"
