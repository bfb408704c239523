// Warp exchanges of any trivially copyable type, word by word.
#pragma once

#include <string.h>

#include <type_traits>

#include "../cuda_runtime.h"

#ifdef __CUDACC__
namespace mxmaca {

template <class T, class Shuffle>
__device__ T shuffle_words(const T& value, Shuffle shuffle) {
  using Word = std::conditional_t<(sizeof(T) > 4), unsigned long long, unsigned>;
  constexpr int words = static_cast<int>((sizeof(T) + sizeof(Word) - 1) / sizeof(Word));
  Word word[words] = {};
  memcpy(word, static_cast<const void*>(&value), sizeof(T));
  for (int i = 0; i < words; ++i) word[i] = shuffle(word[i]);
  T result;
  memcpy(static_cast<void*>(&result), word, sizeof(T));
  return result;
}
template <class T>
__device__ T shuffle_from(unsigned mask, const T& value, int lane) {
  return shuffle_words(value, [=](auto word) { return __shfl_sync(mask, word, lane, 32); });
}
// The lanes of mask whose value has the same bits.
template <class T>
__device__ unsigned match_any(unsigned mask, const T& value) {
  if constexpr (sizeof(T) <= 4) {
    unsigned word = 0;
    memcpy(&word, &value, sizeof(T));
    return __match_any_sync(mask, word);
  } else {
    static_assert(sizeof(T) == 8, "match: a type of at most 8 bytes");
    unsigned long long word = 0;
    memcpy(&word, &value, sizeof(T));
    return __match_any_sync(mask, word);
  }
}

}  // namespace mxmaca
#endif
