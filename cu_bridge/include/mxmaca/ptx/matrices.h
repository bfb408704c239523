// Matrices of a warp in inline PTX: ldmatrix, stmatrix, movmatrix, mma. Included by ptx.h.
#pragma once

namespace mxmaca {
namespace ptx {

// ---- 8 x 8 matrices of 16-bit elements ------------------------------------------------------------------------------
// Lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, or of that column where the matrix is transposed.
template <bool transposed>
inline void place_in_matrix(unsigned half, unsigned& row, unsigned& column) {
  const unsigned across = lane() >> 2, along = 2 * (lane() & 3) + half;
  row = transposed ? along : across;
  column = transposed ? across : along;
}

// row: lanes 8 i to 8 i + 7 hold the addresses of matrix i.
template <int count, bool transposed>
inline void load_matrices(const void* row, uint32_t (&result)[count]) {
  WarpTable& table = warp_table();
  table.first[lane()] = row;
  __syncwarp();
  for (int m = 0; m < count; ++m) {
    uint16_t pair[2];
    for (unsigned j = 0; j < 2; ++j) {
      unsigned r, c;
      place_in_matrix<transposed>(j, r, c);
      memcpy(&pair[j], static_cast<const char*>(table.first[8 * m + static_cast<int>(r)]) + 2 * c, 2);
    }
    result[m] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
  }
  __syncwarp();
}
template <int count, bool transposed>
inline void store_matrices(void* row, const uint32_t (&values)[count]) {
  WarpTable& table = warp_table();
  table.first[lane()] = row;
  __syncwarp();
  for (int m = 0; m < count; ++m) {
    for (unsigned j = 0; j < 2; ++j) {
      const uint16_t half = static_cast<uint16_t>(values[m] >> (16 * j));
      unsigned r, c;
      place_in_matrix<transposed>(j, r, c);
      char* const line = static_cast<char*>(const_cast<void*>(table.first[8 * m + static_cast<int>(r)]));
      memcpy(line + 2 * c, &half, 2);
    }
  }
  __syncwarp();
}
inline uint32_t transpose_matrix(uint32_t value) {
  WarpTable& table = warp_table();
  table.first[lane()] = &value;
  __syncwarp();
  uint32_t result = 0;
  for (unsigned j = 0; j < 2; ++j) {
    unsigned r, c;
    place_in_matrix<true>(j, r, c);
    const uint32_t word = *static_cast<const uint32_t*>(table.first[4 * r + c / 2]);
    result |= (word >> (16 * (c & 1)) & 0xffff) << (16 * j);
  }
  __syncwarp();
  return result;
}

// ---- Elements of a register -----------------------------------------------------------------------------------------
template <int bits, bool negative>
struct Integers {
  static constexpr unsigned count = 32 / bits;
  static int at(uint32_t word, unsigned number) {
    if (negative) return static_cast<int32_t>(word << (32 - bits * (number + 1))) >> (32 - bits);
    return static_cast<int>(word >> (bits * number) & ((1U << bits) - 1));
  }
};
template <class T>
struct Halves {
  static constexpr unsigned count = 2;
  static float at(uint32_t word, unsigned number) { return value(T{static_cast<uint16_t>(word >> (16 * number))}); }
};
// 8-bit formats: FP8, with and without infinities.
template <bool wide>
struct Quarters {
  static constexpr unsigned count = 4;
  static float at(uint32_t word, unsigned number) {
    return fp8_value<wide>(static_cast<uint8_t>(word >> (8 * number)));
  }
};
// The processor does not look at what a float has beyond 10 bits of the fraction.
struct Tf32 {
  static constexpr unsigned count = 1;
  static float at(uint32_t word, unsigned) { return bit_cast<float>(word & 0xffffe000U); }
};
struct Doubles {
  static constexpr unsigned count = 1;
  static double at(double word, unsigned) { return word; }
};

// What the registers x of a row and y of a column add to an element.
template <class A, class B>
struct Products {
  template <class Sum, class Word>
  static void add(Sum& sum, Word x, Word y) {
    for (unsigned e = 0; e < A::count; ++e) {
      if constexpr (std::is_same<Sum, double>::value) {
        sum = std::fma(A::at(x, e), B::at(y, e), sum);
      } else {
        sum += A::at(x, e) * B::at(y, e);
      }
    }
  }
};
template <bool different>
struct CountedBits {
  static void add(int64_t& sum, uint32_t x, uint32_t y) { sum += __builtin_popcount(different ? x ^ y : x & y); }
};

template <bool>
inline float element_of(float, float sum) {
  return sum;
}
template <bool>
inline double element_of(double, double sum) {
  return sum;
}
template <bool>
inline F16 element_of(F16, float sum) {
  return rounded_to(F16(), sum);
}
template <bool saturate>
inline int32_t element_of(int32_t, int64_t sum) {
  if (!saturate) return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum)));
  return static_cast<int32_t>(sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum);
}
inline double value(double a) { return a; }
inline int32_t value(int32_t a) { return a; }
template <class T>
using SumOf = std::conditional_t<std::is_same<T, int32_t>::value, int64_t,
                                 std::conditional_t<std::is_same<T, double>::value, double, float>>;

// d = a b + c. Fragments are alike in all shapes but m8n8k4 of half. With g = lane / 4, t = lane % 4: register r of b
// holds elements of column g, from row (4 r + t) n on, as many (n) as fit into it. So does one of a in row g, or two of
// them in turn in rows g and g + 8. Of c and d each lane has elements 2 t and 2 t + 1 of rows g and g + 8.
template <class Dot, bool saturate, int rows, int count, class Word, class T>
inline void multiply_matrices(T (&d)[rows / 4], const Word (&a)[count * rows / 8], const Word (&b)[count],
                              const T (&c)[rows / 4]) {
  WarpTable& table = warp_table();
  table.first[lane()] = a;
  table.second[lane()] = b;
  __syncwarp();
  for (unsigned i = 0; i < rows / 4; ++i) {
    const unsigned row = lane() >> 2, second = i / 2, column = 2 * (lane() & 3) + (i & 1);
    SumOf<T> sum = value(c[i]);
    for (unsigned r = 0; r < count; ++r) {
      for (unsigned t = 0; t < 4; ++t) {
        Dot::add(sum, static_cast<const Word*>(table.first[4 * row + t])[rows / 8 * r + second],
                 static_cast<const Word*>(table.second[4 * column + t])[r]);
      }
    }
    d[i] = element_of<saturate>(T(), sum);
  }
  __syncwarp();
}

// m8n8k4 of half: four products, each of lanes 4 q to 4 q + 3 and the same behind lane 16, which have the lower rows
// of a and c, and the right columns of b.
template <bool a_columns, bool b_columns, class T>
inline void multiply_quarters(T (&d)[8], const uint32_t (&a)[2], const uint32_t (&b)[2], const T (&c)[8]) {
  WarpTable& table = warp_table();
  table.first[lane()] = a;
  table.second[lane()] = b;
  __syncwarp();
  const unsigned own = lane(), first = own & 12, lower = own < 16 ? 0 : 4;
  const auto element = [](const void* registers, unsigned number) {
    return Halves<F16>::at(static_cast<const uint32_t*>(registers)[number / 2], number & 1);
  };
  for (unsigned i = 0; i < 8; ++i) {
    constexpr bool wide = std::is_same<T, float>::value;
    const unsigned row = (wide ? (own & 1) + (i & 2) : own & 3) + lower;
    const unsigned column = wide ? (i & 4) + (own & 2) + (i & 1) : i;
    float sum = value(c[i]);
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned left = first + (row < 4 ? 0 : 16), right = first + (column < 4 ? 0 : 16);
      sum += element(table.first[left + (a_columns ? k : row & 3)], a_columns ? row & 3 : k) *
             element(table.second[right + (b_columns ? column & 3 : k)], b_columns ? k : column & 3);
    }
    d[i] = element_of<false>(T(), sum);
  }
  __syncwarp();
}

}  // namespace ptx
}  // namespace mxmaca
