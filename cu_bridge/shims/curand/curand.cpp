// cuRAND's host interface, on the generators that device code has in curand_kernel.h.
//
// Note [Order of the numbers]
// A generator has several threads, each with a subsequence of its own, and they take turns: one number a turn from the
// 4096 threads of XORWOW and MRG32k3a, four from the 65536 of Philox, as cuRAND documents them for its legacy and
// default orders; a normal number comes with its twin. MT19937 is one sequence, which is not cuRAND's order. Numbers of
// Sobol's sequence stand dimension after dimension.

#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <type_traits>
#include <vector>

#include "directions.h"
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
  virtual unsigned poisson(double lambda) {
    return mxmaca::poisson_of(lambda, [this] { return uniformDouble(); });
  }
  virtual unsigned long long longWord() { return word(); }
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

// One dimension of Sobol's sequence from a point on; each number comes from a point of its own.
template <class State>
class Sobol : public Source {
 public:
  template <class Vectors, class Word>
  Sobol(const Vectors& vectors, Word constant, unsigned long long offset) {
    state_.i = 0;
    state_.c = constant;
    std::copy(std::begin(vectors), std::end(vectors), state_.direction_vectors);
    skipahead(static_cast<Word>(offset), &state_);
  }
  unsigned word() override { return static_cast<unsigned>(curand(&state_)); }
  unsigned long long longWord() override { return curand(&state_); }
  float uniform() override { return curand_uniform(&state_); }
  double uniformDouble() override { return curand_uniform_double(&state_); }
  float2 normals() override {
    const float x = curand_normal(&state_), y = curand_normal(&state_);
    return make_float2(x, y);
  }
  double2 normalsDouble() override {
    const double x = curand_normal_double(&state_), y = curand_normal_double(&state_);
    return make_double2(x, y);
  }
  unsigned poisson(double lambda) override { return curand_poisson(&state_, lambda); }

 private:
  State state_;
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
bool isLong(curandRngType_t type) {
  return type == CURAND_RNG_QUASI_SOBOL64 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

// A dimension of a quasi-random generator; null where the direction vectors are missing.
std::unique_ptr<Source> makeDimension(curandRngType_t type, unsigned dimension, unsigned long long offset) {
  const bool scrambled = type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
  if (isLong(type)) {
    const auto* const vectors = mxmaca::directions64(scrambled);
    const unsigned long long constant = scrambled ? mxmaca::scrambleConstants64()[dimension] : 0;
    if (vectors == nullptr) return nullptr;
    return std::make_unique<Sobol<curandStateSobol64_t>>(vectors[dimension], constant, offset);
  }
  const auto* const vectors = mxmaca::directions32(scrambled);
  const unsigned constant = scrambled ? mxmaca::scrambleConstants32()[dimension] : 0;
  if (vectors == nullptr) return nullptr;
  return std::make_unique<Sobol<curandStateSobol32_t>>(vectors[dimension], constant, offset);
}

}  // namespace

// Where a generator is in its numbers. Lies on the device as far as a program knows: work for later goes on from there
// when its turn comes, each launch of a graph from where the last one has stopped.
struct Numbers {
  explicit Numbers(curandRngType_t kind) : type(kind) {}
  const curandRngType_t type;
  unsigned long long seed = 0;
  unsigned long long offset = 0;
  std::unique_ptr<Source> source;  // made when the first number is wanted; of pseudo-random generators
  unsigned dimensions = 1;         // of quasi-random ones
  std::mutex mutex;                // of all that changes
};

struct curandGenerator_st {
  curandRngType_t type;
  cudaStream_t stream = nullptr;
  std::shared_ptr<Numbers> numbers;
};

MXMACA_OBJECT(curandGenerator_st, Curand);
MXMACA_OBJECT(curandDiscreteDistribution_st, CurandDiscrete);
MXMACA_ANSWERS(curandStatus_t, CURAND_STATUS_SUCCESS, CURAND_STATUS_NOT_INITIALIZED, CURAND_STATUS_OUT_OF_RANGE,
               CURAND_STATUS_ALLOCATION_FAILED, CURAND_STATUS_PREEXISTING_FAILURE);

namespace {

using mxmaca::live;

curandStatus_t refused(const char* function) {
  mcReportRefusal("libcurand", function, "CURAND_STATUS_TYPE_ERROR");
  return CURAND_STATUS_TYPE_ERROR;
}

// Calls `fill` with a source and the place and number of what it has to give: once, or for each dimension.
template <class Number, class Fill>
curandStatus_t draw(Numbers& numbers, Number* output, size_t count, const Fill& fill) {
  const std::lock_guard<std::mutex> lock(numbers.mutex);
  if (isQuasi(numbers.type)) {
    const size_t points = count / numbers.dimensions;
    for (unsigned dimension = 0; dimension < numbers.dimensions; ++dimension) {
      const auto source = makeDimension(numbers.type, dimension, numbers.offset);
      if (source == nullptr) return CURAND_STATUS_INITIALIZATION_FAILED;
      fill(*source, output + dimension * points, points);
    }
    numbers.offset += points;
    return CURAND_STATUS_SUCCESS;
  }
  if (numbers.source == nullptr) numbers.source = makeSource(numbers.type, numbers.seed, numbers.offset);
  fill(*numbers.source, output, count);
  return CURAND_STATUS_SUCCESS;
}

// What changes a generator comes behind the work that waits to draw from it.
template <class Change>
curandStatus_t change(curandGenerator_t generator, Change&& change) {
  if (mcStreamWaitTurn(reinterpret_cast<mcStream_t>(generator->stream)) != mcSuccess) {
    return CURAND_STATUS_PREEXISTING_FAILURE;
  }
  const std::lock_guard<std::mutex> lock(generator->numbers->mutex);
  change(*generator->numbers);
  return CURAND_STATUS_SUCCESS;
}

template <class Number, class Fill>
curandStatus_t generate(curandGenerator_t generator, Number* output, size_t count, bool pairs, const Fill& fill) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  const bool quasi = isQuasi(generator->type);
  if (count % (quasi ? generator->numbers->dimensions : pairs ? 2 : 1) != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (count == 0) return CURAND_STATUS_SUCCESS;
  if (output == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  const auto compute = [numbers = generator->numbers, output, count, fill] {
    return draw(*numbers, output, count, fill);
  };
  const auto stream = reinterpret_cast<mcStream_t>(generator->stream);
  if (mxmaca::defers(stream) && mxmaca::isDeviceMemory(output)) {
    const mcError_t error = mxmaca::submitLater(stream, "curandGenerate", [compute] {
      return mxmaca::attempt("curandGenerate", compute) == CURAND_STATUS_SUCCESS ? mcSuccess : mcErrorLaunchFailure;
    });
    return error == mcSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_PREEXISTING_FAILURE;
  }
  if (mcStreamCheck(stream) != mcSuccess) return CURAND_STATUS_PREEXISTING_FAILURE;
  return mxmaca::attempt("curandGenerate", compute);
}

template <class Number, class Two>
curandStatus_t generateNormals(curandGenerator_t generator, Number* output, size_t count, Number mean, Number deviation,
                               bool ofLogarithm, Two (Source::*two)()) {
  return generate(generator, output, count, true, [=](Source& source, Number* out, size_t numbers) {
    for (size_t i = 0; i < numbers; i += 2) {
      const Two both = (source.*two)();
      out[i] = mean + deviation * both.x;
      if (i + 1 < numbers) out[i + 1] = mean + deviation * both.y;  // a dimension may have an odd number of points
    }
    if (ofLogarithm) {
      for (size_t i = 0; i < numbers; ++i) out[i] = std::exp(out[i]);
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
    default:
      if (!isQuasi(type)) return CURAND_STATUS_TYPE_ERROR;
  }
  if (mcCaptureForbids() != mcSuccess) return CURAND_STATUS_ALLOCATION_FAILED;  // it allocates on the device
  auto created = std::unique_ptr<curandGenerator_st>(new (std::nothrow) curandGenerator_st{type, nullptr, nullptr});
  if (created != nullptr) created->numbers = std::make_shared<Numbers>(type);
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
  if (isQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;  // it has none
  return change(generator, [&](Numbers& numbers) {
    numbers.seed = seed;
    numbers.source.reset();
  });
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->type == CURAND_RNG_PSEUDO_MT19937) return CURAND_STATUS_TYPE_ERROR;  // it cannot skip
  return change(generator, [&](Numbers& numbers) {
    numbers.offset = offset;
    numbers.source.reset();
  });
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (isQuasi(generator->type)) {
    return order == CURAND_ORDERING_QUASI_DEFAULT ? CURAND_STATUS_SUCCESS : CURAND_STATUS_OUT_OF_RANGE;
  }
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
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned int dimensions) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!isQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions == 0 || dimensions > mxmaca::kSobolDimensions) return CURAND_STATUS_OUT_OF_RANGE;
  return change(generator, [&](Numbers& numbers) { numbers.dimensions = dimensions; });
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  int anything = 0;
  if (live(generator) && isQuasi(generator->type)) return CURAND_STATUS_SUCCESS;  // points are found without a state
  return generate(generator, &anything, 1, false, [](Source&, int*, size_t) {});
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* output, size_t count) {
  if (live(generator) && isLong(generator->type)) return CURAND_STATUS_TYPE_ERROR;  // its words have 64 bits
  return generate(generator, output, count, false, [](Source& source, unsigned* out, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) out[i] = source.word();
  });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* output, size_t count) {
  if (live(generator) && !isLong(generator->type)) return CURAND_STATUS_TYPE_ERROR;  // for 64-bit Sobol alone
  return generate(generator, output, count, false, [](Source& source, unsigned long long* out, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) out[i] = source.longWord();
  });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* output, size_t count) {
  return generate(generator, output, count, false, [](Source& source, float* out, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) out[i] = source.uniform();
  });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* output, size_t count) {
  return generate(generator, output, count, false, [](Source& source, double* out, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) out[i] = source.uniformDouble();
  });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                    float deviation) {
  return generateNormals(generator, output, count, mean, deviation, false, &Source::normals);
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* output, size_t count, double mean,
                                          double deviation) {
  return generateNormals(generator, output, count, mean, deviation, false, &Source::normalsDouble);
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* output, size_t count, float mean,
                                       float deviation) {
  return generateNormals(generator, output, count, mean, deviation, true, &Source::normals);
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* output, size_t count, double mean,
                                             double deviation) {
  return generateNormals(generator, output, count, mean, deviation, true, &Source::normalsDouble);
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* output, size_t count, double lambda) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (!(lambda > 0 && lambda <= 400000)) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, output, count, false, [=](Source& source, unsigned* out, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) out[i] = source.poisson(lambda);
  });
}
curandStatus_t curandGenerateBinomial(curandGenerator_t generator, unsigned int* output, size_t count, unsigned int n,
                                      double p) {
  if (!live(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (isQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  if (!(p >= 0 && p <= 1) || n > 0x7fffffffU) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, output, count, false, [=](Source& source, unsigned* out, size_t numbers) {
    std::binomial_distribution<int> distribution(static_cast<int>(n), p);
    Bits bits{&source};
    for (size_t i = 0; i < numbers; ++i) out[i] = static_cast<unsigned>(distribution(bits));
  });
}

curandStatus_t curandCreatePoissonDistribution(double lambda, curandDiscreteDistribution_t* distribution) {
  if (!(lambda > 0 && lambda <= 400000) || distribution == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  const double begin = mxmaca::poisson_begin(lambda);
  const auto count = static_cast<size_t>(lambda + 14 * std::sqrt(lambda) + 40 - begin) + 1;
  // One piece of memory: a destroyed distribution ends as a whole.
  void* const memory = ::operator new(sizeof(curandDiscreteDistribution_st) + count * sizeof(double), std::nothrow);
  if (memory == nullptr) return CURAND_STATUS_ALLOCATION_FAILED;
  auto* const created = new (memory) curandDiscreteDistribution_st{static_cast<unsigned>(begin), count, nullptr};
  created->cumulative = reinterpret_cast<double*>(created + 1);
  double k = begin, p = mxmaca::poisson_probability(lambda, k), sum = 0;
  for (size_t i = 0; i < count; ++i, p *= lambda / ++k) created->cumulative[i] = sum += p;
  for (size_t i = 0; i < count; ++i) created->cumulative[i] /= sum;
  if (mcHandleAdd(created, mxmaca::KindOf<curandDiscreteDistribution_st>::value) == 0) {
    ::operator delete(memory);
    return CURAND_STATUS_ALLOCATION_FAILED;
  }
  *distribution = created;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandDestroyDistribution(curandDiscreteDistribution_t distribution) {
  return mxmaca::destroyObject(distribution) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[], curandDirectionVectorSet_t set) {
  const bool scrambled = set == CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6;
  if (vectors == nullptr || (!scrambled && set != CURAND_DIRECTION_VECTORS_32_JOEKUO6)) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  *vectors = mxmaca::directions32(scrambled);
  return *vectors != nullptr ? CURAND_STATUS_SUCCESS : CURAND_STATUS_INITIALIZATION_FAILED;
}
curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[], curandDirectionVectorSet_t set) {
  const bool scrambled = set == CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6;
  if (vectors == nullptr || (!scrambled && set != CURAND_DIRECTION_VECTORS_64_JOEKUO6)) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  *vectors = mxmaca::directions64(scrambled);
  return *vectors != nullptr ? CURAND_STATUS_SUCCESS : CURAND_STATUS_INITIALIZATION_FAILED;
}
curandStatus_t curandGetScrambleConstants32(unsigned int** constants) {
  if (constants == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  *constants = mxmaca::scrambleConstants32();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetScrambleConstants64(unsigned long long** constants) {
  if (constants == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  *constants = mxmaca::scrambleConstants64();
  return CURAND_STATUS_SUCCESS;
}

}  // extern "C"
