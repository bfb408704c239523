// Orders that keep factors sparse. Each is a permutation: place i of the result holds row order[i] of the matrix.
#pragma once

#include <vector>

#include "sparse/matrix.h"

namespace mxmaca {
namespace sparse {

// Reverse Cuthill-McKee: E. Cuthill, J. McKee, "Reducing the bandwidth of sparse symmetric matrices" (1969), from a
// pseudo-peripheral vertex of each component (A. George, J. Liu, 1979), reversed.
std::vector<int> reverseCuthillMcKee(const Pattern& matrix);

// Minimum degree on the quotient graph; with approximate degrees as P. Amestoy, T. Davis, I. Duff, "An approximate
// minimum degree ordering algorithm" (1996) bound them, or with exact ones.
std::vector<int> minimumDegree(const Pattern& matrix, bool approximate);

// Nested dissection (A. George, 1973): the middle level of a breadth-first search separates a part, and parts that are
// small are put in order of minimum degree.
std::vector<int> nestedDissection(const Pattern& matrix);

// Rows such that as many elements of the diagonal as possible are not zero: augmenting paths (I. Duff, "On algorithms
// for obtaining a maximum transversal", 1981). `found`: how many.
std::vector<int> maximumTransversal(const Pattern& rows, int* found);

}  // namespace sparse
}  // namespace mxmaca
