// Direct factorisations of sparse matrices, as T. Davis, "Direct Methods for Sparse Linear Systems" (2006) explains
// their graphs. What a factorisation needs of the pattern alone can be had before.
#pragma once

#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "sparse/matrix.h"

namespace mxmaca {
namespace sparse {

// A factor by lines, which grows at its end.
template <class T>
struct Factor : Matrix<T> {
  void add(int index, T value) {
    this->index.push_back(index);
    this->values.push_back(value);
  }
  void finishLine() {
    this->offsets.push_back(this->count());
    ++this->lines;
  }
};

template <class T>
Real<T> magnitude(T value) {
  return std::abs(value);
}

// ---- LU -------------------------------------------------------------------------------------------------------------
// P A = L U by columns, left looking (J. Gilbert, T. Peierls, "Sparse partial pivoting in time proportional to
// arithmetic operations", 1988). A row of the diagonal is the pivot if it is at least `threshold` times the greatest.
template <class T>
struct Lu {
  Factor<T> lower;        // by columns, without the ones of the diagonal; in the rows of P A
  Factor<T> upper;        // by columns, without the diagonal
  std::vector<T> pivots;  // the diagonal of U
  std::vector<int> rows;  // row i of P A is row rows[i] of A

  Lu(const Matrix<T>& byRows, Real<T> threshold) {
    const Matrix<T> a = transposed(byRows);
    const int n = a.lines;
    std::vector<int> pivotOf(at(n), -1), seen(at(n), -1), reached, stack;
    std::vector<int64_t> next(at(n));
    std::vector<T> x(at(n), T(0));
    int unused = 0;  // rows before it are pivots
    for (int column = 0; column < n; ++column) {
      reached.clear();  // in the order in which a depth-first search leaves them: dependent rows come first
      for (int64_t i = a.begin(column); i < a.end(column); ++i) {
        search(a.index[at(i)], column, pivotOf, seen, next, stack, reached);
        x[at(a.index[at(i)])] += a.values[at(i)];
      }
      int best = -1;
      Real<T> greatest = -1;
      for (auto row = reached.rbegin(); row != reached.rend(); ++row) {
        const int pivot = pivotOf[at(*row)];
        if (pivot < 0) {
          if (magnitude(x[at(*row)]) > greatest) {
            greatest = magnitude(x[at(*row)]);
            best = *row;
          }
          continue;
        }
        const T value = x[at(*row)];
        upper.add(pivot, value);
        for (int64_t i = lower.begin(pivot); i < lower.end(pivot); ++i) {
          x[at(lower.index[at(i)])] -= lower.values[at(i)] * value;
        }
      }
      upper.finishLine();
      if (seen[at(column)] == column && pivotOf[at(column)] < 0 && greatest > 0 &&
          magnitude(x[at(column)]) >= threshold * greatest) {
        best = column;
      }
      if (best < 0) {  // nothing is left of this column: any row will do
        while (pivotOf[at(unused)] >= 0) ++unused;
        best = unused;
      }
      const T pivot = x[at(best)];
      pivotOf[at(best)] = column;
      rows.push_back(best);
      pivots.push_back(pivot);
      for (const int row : reached) {
        // Zeros stay: a matrix of the same pattern and other values may be factored in the same places.
        if (pivotOf[at(row)] < 0 && pivot != T(0)) lower.add(row, x[at(row)] / pivot);
        x[at(row)] = T(0);
      }
      lower.finishLine();
    }
    for (int& row : lower.index) row = pivotOf[at(row)];
    lower.width = upper.width = n;
  }

  // The first pivot that is not greater than `tolerance`; -1 if there is none.
  int zeroPivot(Real<T> tolerance) const {
    for (size_t i = 0; i < pivots.size(); ++i) {
      if (!(magnitude(pivots[i]) > tolerance)) return static_cast<int>(i);
    }
    return -1;
  }

  // Solves A x = b.
  void solve(const T* b, T* x) const {
    const int n = lower.lines;
    std::vector<T> y(at(n));
    for (int i = 0; i < n; ++i) y[at(i)] = b[rows[at(i)]];
    for (int j = 0; j < n; ++j) {
      for (int64_t i = lower.begin(j); i < lower.end(j); ++i)
        y[at(lower.index[at(i)])] -= lower.values[at(i)] * y[at(j)];
    }
    for (int j = n - 1; j >= 0; --j) {
      y[at(j)] /= pivots[at(j)];
      for (int64_t i = upper.begin(j); i < upper.end(j); ++i)
        y[at(upper.index[at(i)])] -= upper.values[at(i)] * y[at(j)];
    }
    std::copy(y.begin(), y.end(), x);
  }

 private:
  // What a row of the column touches: through the columns of L whose pivot rows are reached.
  void search(int start, int column, const std::vector<int>& pivotOf, std::vector<int>& seen,
              std::vector<int64_t>& next, std::vector<int>& stack, std::vector<int>& reached) const {
    if (seen[at(start)] == column) return;
    const auto visit = [&](int row) {
      seen[at(row)] = column;
      stack.push_back(row);
      next[at(row)] = pivotOf[at(row)] < 0 ? 0 : lower.begin(pivotOf[at(row)]);
    };
    visit(start);
    while (!stack.empty()) {
      const int row = stack.back(), pivot = pivotOf[at(row)];
      if (pivot >= 0) {
        int64_t& place = next[at(row)];
        while (place < lower.end(pivot) && seen[at(lower.index[at(place)])] == column) ++place;
        if (place < lower.end(pivot)) {
          visit(lower.index[at(place++)]);
          continue;
        }
      }
      stack.pop_back();
      reached.push_back(row);
    }
  }
};

// ---- Cholesky -------------------------------------------------------------------------------------------------------
// The elimination tree of a symmetric matrix, of which the rows' elements below the diagonal are read.
inline std::vector<int> eliminationTree(const Pattern& rows) {
  std::vector<int> parent(at(rows.lines), -1), ancestor(at(rows.lines), -1);
  for (int row = 0; row < rows.lines; ++row) {
    for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
      for (int v = rows.index[at(i)]; v < row && v >= 0;) {
        const int up = ancestor[at(v)];
        ancestor[at(v)] = row;
        if (up < 0) parent[at(v)] = row;
        if (up == row) break;
        v = up;
      }
    }
  }
  return parent;
}
// The columns that a row of the factor has elements in, in order: the paths of the tree from the matrix's elements.
inline void reachOfRow(const Pattern& rows, int row, const std::vector<int>& parent, std::vector<int>& seen,
                       std::vector<int>& reached) {
  reached.clear();
  seen[at(row)] = row;
  for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
    for (int v = rows.index[at(i)]; v < row && seen[at(v)] != row; v = parent[at(v)]) {
      seen[at(v)] = row;
      reached.push_back(v);
    }
  }
  std::sort(reached.begin(), reached.end());
}

// A = L L^H, of a matrix whose lower half is read, row by row (up looking).
template <class T>
struct Cholesky {
  struct Column {
    std::vector<int> rows;
    std::vector<T> values;
  };
  std::vector<Column> columns;    // below the diagonal
  std::vector<Real<T>> diagonal;  // up to the first that is not positive, which is kept as it was before its root
  int failed = -1;                // its place

  explicit Cholesky(const Matrix<T>& a) : columns(at(a.lines)) {
    const std::vector<int> parent = eliminationTree(a);
    std::vector<int> seen(at(a.lines), -1), reached;
    std::vector<T> x(at(a.lines), T(0));
    for (int row = 0; row < a.lines; ++row) {
      reachOfRow(a, row, parent, seen, reached);
      Real<T> rest = 0;
      for (int64_t i = a.begin(row); i < a.end(row); ++i) {
        if (a.index[at(i)] < row) x[at(a.index[at(i)])] += a.values[at(i)];
        if (a.index[at(i)] == row) rest += std::real(a.values[at(i)]);
      }
      for (const int j : reached) {
        Column& column = columns[at(j)];
        const T value = x[at(j)] / diagonal[at(j)];
        x[at(j)] = T(0);
        for (size_t i = 0; i < column.rows.size(); ++i) x[at(column.rows[i])] -= value * conjugate(column.values[i]);
        rest -= std::norm(value);
        column.rows.push_back(row);
        column.values.push_back(value);
      }
      if (!(rest > 0)) {
        failed = row;
        diagonal.push_back(rest);
        return;
      }
      diagonal.push_back(std::sqrt(rest));
    }
  }

  int zeroPivot(Real<T> tolerance) const {
    for (size_t i = 0; i < diagonal.size(); ++i) {
      if (!(diagonal[i] > tolerance)) return static_cast<int>(i);
    }
    return -1;
  }

  void solve(const T* b, T* x) const {
    std::vector<T> y(b, b + columns.size());
    for (size_t j = 0; j < columns.size(); ++j) {
      y[j] /= diagonal[j];
      for (size_t i = 0; i < columns[j].rows.size(); ++i) y[at(columns[j].rows[i])] -= columns[j].values[i] * y[j];
    }
    for (size_t j = columns.size(); j-- > 0;) {
      for (size_t i = 0; i < columns[j].rows.size(); ++i) {
        y[j] -= conjugate(columns[j].values[i]) * y[at(columns[j].rows[i])];
      }
      y[j] /= diagonal[j];
    }
    std::copy(y.begin(), y.end(), x);
  }
};

// ---- QR -------------------------------------------------------------------------------------------------------------
// What QR needs of the pattern: for each row its first column, for each column the one whose reflection takes its rows
// over (the elimination tree of A^T A, which is not formed).
struct QrTree {
  std::vector<int> first, parent;

  QrTree() = default;
  explicit QrTree(const Pattern& rows) : first(at(rows.lines), -1), parent(at(rows.width), -1) {
    const Pattern columns = transposed(rows);
    std::vector<int> ancestor(at(rows.width), -1), previous(at(rows.lines), -1);
    for (int column = 0; column < columns.lines; ++column) {
      for (int64_t i = columns.begin(column); i < columns.end(column); ++i) {
        const int row = columns.index[at(i)];
        if (first[at(row)] < 0) first[at(row)] = column;
        for (int v = previous[at(row)]; v >= 0 && v < column;) {
          const int up = ancestor[at(v)];
          ancestor[at(v)] = column;
          if (up < 0) parent[at(v)] = column;
          v = up;
        }
        previous[at(row)] = column;
      }
    }
  }
};

// A = Q R by columns with Householder's reflections. A column of which no more than `tolerance` is left depends on
// those before it: it gets no row of R, and its rows go to the next column (M. Heath, "Some extensions of an algorithm
// for sparse linear least squares problems", 1982).
template <class T>
struct Qr {
  struct Reflection {  // I - factor v v^H
    std::vector<int> rows;
    std::vector<T> values;
    Real<T> factor = 0;
    int pivot = -1;  // the row of A that becomes the row of R; -1: a dependent column
  };
  std::vector<Reflection> reflections;
  Factor<T> upper;          // by columns, above the diagonal; indices are columns
  std::vector<T> diagonal;  // of a dependent column what was left of it

  Qr(const Matrix<T>& byRows, const QrTree& tree, Real<T> tolerance) {
    const Matrix<T> a = transposed(byRows);
    const int n = a.lines;
    std::vector<T> x(at(a.width), T(0));
    std::vector<std::vector<int>> pending(at(n));  // rows that a column has to deal with
    for (int row = 0; row < a.width; ++row) {
      if (tree.first[at(row)] >= 0) pending[at(tree.first[at(row)])].push_back(row);
    }
    std::vector<int> seen(at(n), -1), reached;
    for (int column = 0; column < n; ++column) {
      reached.clear();
      seen[at(column)] = column;
      for (int64_t i = a.begin(column); i < a.end(column); ++i) {
        const int row = a.index[at(i)];
        x[at(row)] += a.values[at(i)];
        for (int v = tree.first[at(row)]; v >= 0 && v < column && seen[at(v)] != column; v = tree.parent[at(v)]) {
          seen[at(v)] = column;
          reached.push_back(v);
        }
      }
      std::sort(reached.begin(), reached.end());
      for (const int j : reached) {
        const Reflection& reflection = reflections[at(j)];
        if (reflection.pivot < 0) continue;
        reflect(reflection, x.data());
        upper.add(j, x[at(reflection.pivot)]);
        x[at(reflection.pivot)] = T(0);
      }
      upper.finishLine();
      reflections.push_back(eliminate(pending[at(column)], x, tolerance));
      const int parent = tree.parent[at(column)];
      if (parent >= 0) {
        std::vector<int>& rows = pending[at(parent)];
        for (const int row : pending[at(column)]) {
          if (row != reflections.back().pivot) rows.push_back(row);
        }
      }
      std::vector<int>().swap(pending[at(column)]);
    }
    upper.width = n;
  }

  // The first column that depends on those before it, or whose diagonal is not greater than `tolerance`; else -1.
  int zeroPivot(Real<T> tolerance) const {
    for (size_t j = 0; j < diagonal.size(); ++j) {
      if (reflections[j].pivot < 0 || !(magnitude(diagonal[j]) > tolerance)) return static_cast<int>(j);
    }
    return -1;
  }
  int rank() const {
    return static_cast<int>(
        std::count_if(reflections.begin(), reflections.end(), [](const Reflection& each) { return each.pivot >= 0; }));
  }

  // The x of the least |A x - b|, with zeros for dependent columns.
  void solve(const T* b, int rows, T* x) const {
    std::vector<T> y(b, b + rows);
    const int n = upper.lines;
    for (const Reflection& reflection : reflections) reflect(reflection, y.data());
    for (int j = n - 1; j >= 0; --j) {
      const int pivot = reflections[at(j)].pivot;
      x[j] = pivot < 0 ? T(0) : y[at(pivot)] / diagonal[at(j)];
      for (int64_t i = upper.begin(j); i < upper.end(j); ++i) {
        y[at(reflections[at(upper.index[at(i)])].pivot)] -= upper.values[at(i)] * x[j];
      }
    }
  }

 private:
  static void reflect(const Reflection& reflection, T* x) {
    T sum(0);
    for (size_t i = 0; i < reflection.rows.size(); ++i) sum += conjugate(reflection.values[i]) * x[reflection.rows[i]];
    sum *= reflection.factor;
    for (size_t i = 0; i < reflection.rows.size(); ++i) x[reflection.rows[i]] -= reflection.values[i] * sum;
  }

  Reflection eliminate(const std::vector<int>& rows, std::vector<T>& x, Real<T> tolerance) {
    Reflection reflection;
    Real<T> greatest = 0;
    for (const int row : rows) greatest = std::max(greatest, magnitude(x[at(row)]));
    Real<T> norm = 0;  // scaled, so that squares neither overflow nor vanish
    for (const int row : rows) {
      if (greatest > 0) norm += std::norm(x[at(row)] / greatest);
    }
    norm = greatest * std::sqrt(norm);
    if (!(norm > tolerance)) {
      for (const int row : rows) x[at(row)] = T(0);
      diagonal.push_back(T(norm));
      return reflection;
    }
    reflection.pivot = rows.front();
    const T head = x[at(reflection.pivot)];
    const T phase = head == T(0) ? T(1) : head / magnitude(head);
    diagonal.push_back(-phase * norm);
    // v is divided by the norm; the factor is 2 / |v|^2.
    reflection.factor = 1 / (1 + magnitude(head) / norm);
    for (const int row : rows) {
      const T value = row == reflection.pivot ? head / norm + phase : x[at(row)] / norm;
      x[at(row)] = T(0);
      if (value == T(0)) continue;
      reflection.rows.push_back(row);
      reflection.values.push_back(value);
    }
    return reflection;
  }
};

}  // namespace sparse
}  // namespace mxmaca
