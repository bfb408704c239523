#include "directions.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "curand_kernel.h"

namespace mxmaca {
namespace {

constexpr int kMostInitial = 18;
constexpr unsigned long long kScrambleSeed = 0x536f626f6cULL;

// A line of the table: the degree of the polynomial, its inner coefficients, the initial numbers.
struct Dimension {
  int degree = 0;
  unsigned polynomial = 0;
  unsigned initial[kMostInitial] = {};
};

// mxmaca/lib/cuda12/libcurand.so.10, or mxmaca/cuda12/lib64/…: the facts lie two folders up.
std::string tablePath() {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::unique_ptr<char, void (*)(void*)> path(realpath(info.dli_fname, nullptr), std::free);
  std::string folder = path != nullptr ? path.get() : info.dli_fname;
  for (int level = 0; level < 3; ++level) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) return "";
    folder.resize(slash);
  }
  return folder + "/facts/sobol_directions.txt";
}

bool readLine(const char* line, Dimension* dimension) {
  char numbers[64];
  if (std::sscanf(line, "%x %63[0-9a-f]", &dimension->polynomial, numbers) != 2 || dimension->polynomial < 3) {
    return false;
  }
  dimension->degree = 31 - __builtin_clz(dimension->polynomial);
  if (dimension->degree > kMostInitial) return false;
  const size_t length = std::strlen(numbers);
  size_t place = 0;  // of the next bit, from the end of the digits
  const auto bit = [&]() -> unsigned {
    const size_t digit = place / 4, shift = place % 4;
    ++place;
    if (digit >= length) return 0;
    const char c = numbers[length - 1 - digit];
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) >> shift & 1;
  };
  for (int i = 0; i < dimension->degree; ++i) {
    dimension->initial[i] = 1;
    for (int k = 1; k <= i; ++k) dimension->initial[i] |= bit() << k;
  }
  return true;
}

const std::vector<Dimension>& table() {
  static const auto* const read = [] {
    auto* const dimensions = new std::vector<Dimension>;
    const std::string path = tablePath();
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    char line[160];
    while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
      Dimension dimension;
      if (line[0] != '#' && readLine(line, &dimension)) dimensions->push_back(dimension);
    }
    if (dimensions->size() != kSobolDimensions - 1) {
      std::fprintf(stderr,
                   "mxmaca: no direction vectors, so no numbers of Sobol's sequence: %s is missing or not whole; "
                   "install mxmaca again\n",
                   path.c_str());
      dimensions->clear();
    }
    return dimensions;
  }();
  return *read;
}

// The first dimension is van der Corput's sequence.
template <class Word>
void makeVectors(const Dimension* dimension, Word* v) {
  constexpr int bits = 8 * sizeof(Word);
  if (dimension == nullptr) {
    for (int k = 0; k < bits; ++k) v[k] = Word{1} << (bits - 1 - k);
    return;
  }
  const int degree = dimension->degree;
  for (int k = 0; k < bits; ++k) {
    if (k < degree) {
      v[k] = Word{dimension->initial[k]} << (bits - 1 - k);
      continue;
    }
    v[k] = v[k - degree] ^ v[k - degree] >> degree;
    for (int j = 1; j < degree; ++j) {
      if ((dimension->polynomial >> (degree - j) & 1) != 0) v[k] ^= v[k - j];
    }
  }
}

template <class Word>
Word randomWord(curandStatePhilox4_32_10_t* state) {
  Word word = 0;
  for (size_t part = 0; part < sizeof(Word); part += 4) word = (word << 16 << 16) | curand(state);
  return word;
}

template <class Word>
void scramble(unsigned dimension, Word* v) {
  constexpr int bits = 8 * sizeof(Word);
  curandStatePhilox4_32_10_t state;
  curand_init(kScrambleSeed, dimension, 0, &state);
  Word rows[bits];
  for (int row = 0; row < bits; ++row) {
    const Word diagonal = Word{1} << (bits - 1 - row);
    rows[row] = (randomWord<Word>(&state) & ~(diagonal | (diagonal - 1))) | diagonal;
  }
  for (int k = 0; k < bits; ++k) {
    Word mixed = 0;
    for (int row = 0; row < bits; ++row) mixed = mixed << 1 | static_cast<Word>(__builtin_parityll(rows[row] & v[k]));
    v[k] = mixed;
  }
}

template <class Word>
using Vectors = Word[8 * sizeof(Word)];

template <class Word>
Vectors<Word>* makeAll(bool scrambled) {
  if (table().empty()) return nullptr;
  auto* const vectors = new Vectors<Word>[kSobolDimensions];
  for (unsigned i = 0; i < kSobolDimensions; ++i) {
    makeVectors(i == 0 ? nullptr : &table()[i - 1], vectors[i]);
    if (scrambled) scramble(i, vectors[i]);
  }
  return vectors;
}
template <class Word>
Word* makeConstants() {
  auto* const constants = new Word[kSobolDimensions];
  curandStatePhilox4_32_10_t state;
  curand_init(kScrambleSeed, kSobolDimensions, 0, &state);
  for (unsigned i = 0; i < kSobolDimensions; ++i) constants[i] = randomWord<Word>(&state);
  return constants;
}

}  // namespace

curandDirectionVectors32_t* directions32(bool scrambled) {
  static auto* const plain = makeAll<unsigned int>(false);
  if (!scrambled) return plain;
  static auto* const mixed = makeAll<unsigned int>(true);
  return mixed;
}
curandDirectionVectors64_t* directions64(bool scrambled) {
  static auto* const plain = makeAll<unsigned long long>(false);
  if (!scrambled) return plain;
  static auto* const mixed = makeAll<unsigned long long>(true);
  return mixed;
}
unsigned int* scrambleConstants32() {
  static auto* const constants = makeConstants<unsigned int>();
  return constants;
}
unsigned long long* scrambleConstants64() {
  static auto* const constants = makeConstants<unsigned long long>();
  return constants;
}

}  // namespace mxmaca
