// Sparse matrices as the solvers compute with them, and what they read of the caller's arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "openblas.h"
#include "sparse.h"

namespace mxmaca {
namespace sparse {

inline size_t at(int64_t index) { return static_cast<size_t>(index); }

// Lines (rows, or columns) with the indices of their elements, all from zero. Indices of a line may be in any order,
// and twice the same: their values are added.
struct Pattern {
  int lines = 0, width = 0;
  std::vector<int64_t> offsets{0};
  std::vector<int> index;

  int64_t begin(int line) const { return offsets[at(line)]; }
  int64_t end(int line) const { return offsets[at(line) + 1]; }
  int64_t count() const { return static_cast<int64_t>(index.size()); }
};
template <class T>
struct Matrix : Pattern {
  std::vector<T> values;
};

// The arrays of a matrix in CSR, of `rows` x `columns`. `ends` are the rows' ends where they are not the next starts.
// Throws BadIndex.
inline Pattern readPattern(int rows, int columns, int count, int base, const int* starts, const int* ends,
                           const int* indices) {
  Pattern pattern;
  pattern.lines = rows;
  pattern.width = columns;
  pattern.offsets.reserve(at(rows) + 1);
  pattern.index.reserve(at(count));
  for (int row = 0; row < rows; ++row) {
    const int64_t begin = int64_t{starts[row]} - base, end = int64_t{ends[row]} - base;
    if (begin < 0 || end < begin || end > count) throw BadIndex();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = int64_t{indices[i]} - base;
      if (column < 0 || column >= columns) throw BadIndex();
      pattern.index.push_back(static_cast<int>(column));
    }
    pattern.offsets.push_back(pattern.count());
  }
  return pattern;
}
// The same with values; the rows must follow one another and fill the arrays.
template <class T>
Matrix<T> readMatrix(int rows, int columns, int count, int base, const int* offsets, const int* indices,
                     const T* values) {
  Matrix<T> matrix{readPattern(rows, columns, count, base, offsets, offsets + 1, indices), {}};
  if (offsets[0] != base || matrix.count() != count) throw BadIndex();
  matrix.values.assign(values, values + count);
  return matrix;
}

// Columns instead of rows, or the other way; indices come out in order. `from`: where each element was.
inline Pattern transposed(const Pattern& pattern, std::vector<int64_t>* from = nullptr) {
  Pattern result;
  result.lines = pattern.width;
  result.width = pattern.lines;
  result.offsets.assign(at(result.lines) + 1, 0);
  for (const int index : pattern.index) ++result.offsets[at(index) + 1];
  std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
  std::vector<int64_t> next(result.offsets.begin(), result.offsets.end() - 1);
  result.index.resize(pattern.index.size());
  if (from != nullptr) from->resize(pattern.index.size());
  for (int line = 0; line < pattern.lines; ++line) {
    for (int64_t i = pattern.begin(line); i < pattern.end(line); ++i) {
      const int64_t place = next[at(pattern.index[at(i)])]++;
      result.index[at(place)] = line;
      if (from != nullptr) (*from)[at(place)] = i;
    }
  }
  return result;
}
template <class T>
Matrix<T> transposed(const Matrix<T>& matrix) {
  std::vector<int64_t> from;
  Matrix<T> result{transposed(static_cast<const Pattern&>(matrix), &from), {}};
  result.values.reserve(from.size());
  for (const int64_t place : from) result.values.push_back(matrix.values[at(place)]);
  return result;
}

// A(order, order): line and index i of the result are order[i] of the matrix.
inline std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[at(order[i])] = static_cast<int>(i);
  return result;
}
template <class T>
Matrix<T> permuted(const Matrix<T>& matrix, const std::vector<int>& lines, const std::vector<int>& indices) {
  const std::vector<int> to = inverse(indices);
  Matrix<T> result;
  result.lines = matrix.lines;
  result.width = matrix.width;
  result.index.reserve(matrix.index.size());
  result.values.reserve(matrix.index.size());
  for (const int line : lines) {
    for (int64_t i = matrix.begin(line); i < matrix.end(line); ++i) {
      result.index.push_back(to[at(matrix.index[at(i)])]);
      result.values.push_back(matrix.values[at(i)]);
    }
    result.offsets.push_back(result.count());
  }
  return result;
}

// Neighbours in the graph of A + A^T, without loops, in order and each once.
inline Pattern symmetricGraph(const Pattern& pattern) {
  const Pattern other = transposed(pattern);
  Pattern graph;
  graph.lines = graph.width = pattern.lines;
  std::vector<int> line;
  for (int row = 0; row < pattern.lines; ++row) {
    line.clear();
    for (const Pattern* each : {&pattern, &other}) {
      for (int64_t i = each->begin(row); i < each->end(row); ++i) {
        if (each->index[at(i)] != row) line.push_back(each->index[at(i)]);
      }
    }
    std::sort(line.begin(), line.end());
    graph.index.insert(graph.index.end(), line.begin(), std::unique(line.begin(), line.end()));
    graph.offsets.push_back(graph.count());
  }
  return graph;
}

}  // namespace sparse
}  // namespace mxmaca
