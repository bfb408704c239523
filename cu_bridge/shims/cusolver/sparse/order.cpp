#include "sparse/order.h"

#include <set>

namespace mxmaca {
namespace sparse {
namespace {

// Vertices by their distance from a root, among those whose part is `part`.
struct Levels {
  std::vector<int> order;       // breadth first
  std::vector<size_t> offsets;  // where each level starts in it
  size_t count() const { return offsets.size() - 1; }
};

class Search {
 public:
  explicit Search(const Pattern& graph) : graph_(graph), seen_(at(graph.lines), 0) {}

  Levels from(int root, const std::vector<int>& part) {
    ++round_;
    Levels levels;
    levels.order.push_back(root);
    levels.offsets = {0};
    seen_[at(root)] = round_;
    for (size_t begin = 0; begin < levels.order.size();) {
      const size_t end = levels.order.size();
      levels.offsets.push_back(end);
      for (; begin < end; ++begin) {
        const int vertex = levels.order[begin];
        for (int64_t i = graph_.begin(vertex); i < graph_.end(vertex); ++i) {
          const int next = graph_.index[at(i)];
          if (seen_[at(next)] == round_ || part[at(next)] != part[at(root)]) continue;
          seen_[at(next)] = round_;
          levels.order.push_back(next);
        }
      }
    }
    return levels;
  }

  // Levels from a vertex that is nearly as far away from others as there are any.
  Levels fromPeriphery(int root, const std::vector<int>& part) {
    Levels levels = from(root, part);
    while (true) {
      const size_t last = levels.offsets[levels.count() - 1];
      const auto least = std::min_element(levels.order.begin() + static_cast<int64_t>(last), levels.order.end(),
                                          [this](int a, int b) { return degree(a) < degree(b); });
      Levels other = from(*least, part);
      if (other.count() <= levels.count()) return levels;
      levels = std::move(other);
    }
  }
  int64_t degree(int vertex) const { return graph_.end(vertex) - graph_.begin(vertex); }

 private:
  const Pattern& graph_;
  std::vector<int> seen_;
  int round_ = 0;
};

}  // namespace

std::vector<int> reverseCuthillMcKee(const Pattern& matrix) {
  const Pattern graph = symmetricGraph(matrix);
  Search search(graph);
  const std::vector<int> whole(at(graph.lines), 0);
  std::vector<char> placed(at(graph.lines), 0);
  std::vector<int> order, near;
  for (int vertex = 0; vertex < graph.lines; ++vertex) {
    if (placed[at(vertex)] != 0) continue;
    const int root = search.fromPeriphery(vertex, whole).order.front();
    placed[at(root)] = 1;
    order.push_back(root);
    for (size_t next = order.size() - 1; next < order.size(); ++next) {
      near.clear();
      for (int64_t i = graph.begin(order[next]); i < graph.end(order[next]); ++i) {
        const int other = graph.index[at(i)];
        if (placed[at(other)] != 0) continue;
        placed[at(other)] = 1;
        near.push_back(other);
      }
      std::stable_sort(near.begin(), near.end(), [&](int a, int b) { return search.degree(a) < search.degree(b); });
      order.insert(order.end(), near.begin(), near.end());
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Note [Quotient graph]
// An eliminated vertex becomes an element: the set of its neighbours, who are now all neighbours of one another. A
// vertex keeps its neighbours of the matrix that no element covers, and the elements that it lies in. The next element
// takes in those of its vertex, which then are gone. Degrees are of the graph that all this stands for.
std::vector<int> minimumDegree(const Pattern& matrix, bool approximate) {
  const Pattern graph = symmetricGraph(matrix);
  const size_t n = at(graph.lines);
  std::vector<std::vector<int>> near(n), inElements(n), element(n);
  std::vector<int64_t> degree(n), outside(n, 0);
  std::vector<int> mark(n, -1), counted(n, -1);
  std::vector<char> gone(n, 0), absorbed(n, 0);
  std::set<std::pair<int64_t, int>> queue;
  for (int v = 0; v < graph.lines; ++v) {
    near[at(v)].assign(graph.index.begin() + graph.begin(v), graph.index.begin() + graph.end(v));
    degree[at(v)] = static_cast<int64_t>(near[at(v)].size());
    queue.emplace(degree[at(v)], v);
  }
  std::vector<int> order;
  order.reserve(n);
  while (!queue.empty()) {
    const int pivot = queue.begin()->second;
    queue.erase(queue.begin());
    gone[at(pivot)] = 1;
    const int round = static_cast<int>(order.size());
    order.push_back(pivot);
    std::vector<int>& members = element[at(pivot)];
    const auto join = [&](const std::vector<int>& vertices) {
      for (const int v : vertices) {
        if (gone[at(v)] != 0 || mark[at(v)] == round) continue;
        mark[at(v)] = round;
        members.push_back(v);
      }
    };
    join(near[at(pivot)]);
    for (const int e : inElements[at(pivot)]) {
      join(element[at(e)]);
      absorbed[at(e)] = 1;
      std::vector<int>().swap(element[at(e)]);
    }
    std::vector<int>().swap(near[at(pivot)]);
    // How much of each element that a member lies in is not in the new one.
    for (const int v : members) {
      std::vector<int>& elements = inElements[at(v)];
      elements.erase(std::remove_if(elements.begin(), elements.end(), [&](int e) { return absorbed[at(e)] != 0; }),
                     elements.end());
      for (const int e : elements) {
        if (counted[at(e)] != round) {
          counted[at(e)] = round;
          std::vector<int>& all = element[at(e)];
          all.erase(std::remove_if(all.begin(), all.end(), [&](int u) { return gone[at(u)] != 0; }), all.end());
          outside[at(e)] = static_cast<int64_t>(all.size());
        }
        --outside[at(e)];
      }
    }
    const auto left = static_cast<int64_t>(queue.size());
    for (const int v : members) {
      std::vector<int>& others = near[at(v)];
      others.erase(
          std::remove_if(others.begin(), others.end(), [&](int u) { return gone[at(u)] != 0 || mark[at(u)] == round; }),
          others.end());
      // An element that lies in the new one as a whole says nothing more.
      std::vector<int>& elements = inElements[at(v)];
      elements.erase(std::remove_if(elements.begin(), elements.end(), [&](int e) { return outside[at(e)] == 0; }),
                     elements.end());
      int64_t next = static_cast<int64_t>(others.size() + members.size()) - 1;
      if (approximate) {
        for (const int e : elements) next += outside[at(e)];
        next = std::min({next, degree[at(v)] + static_cast<int64_t>(members.size()) - 1, left - 1});
      } else {
        std::vector<int> reached;
        const auto reach = [&](int u) {
          if (mark[at(u)] != round && counted[at(u)] != round + graph.lines && gone[at(u)] == 0) {
            counted[at(u)] = round + graph.lines;
            reached.push_back(u);
          }
        };
        // `counted` serves two ends here: the marks of elements are of eliminated vertices, these of others.
        for (const int u : others) reach(u);
        for (const int e : elements) {
          for (const int u : element[at(e)]) reach(u);
        }
        next = static_cast<int64_t>(reached.size() + members.size()) - 1;
        for (const int u : reached) counted[at(u)] = -1;
      }
      elements.push_back(pivot);
      queue.erase({degree[at(v)], v});
      degree[at(v)] = next;
      queue.emplace(next, v);
    }
  }
  return order;
}

std::vector<int> nestedDissection(const Pattern& matrix) {
  constexpr size_t kSmall = 64;
  const Pattern graph = symmetricGraph(matrix);
  Search search(graph);
  std::vector<int> part(at(graph.lines), 0), place(at(graph.lines), -1);
  std::vector<int> order(at(graph.lines));
  size_t end = order.size();  // separators are put before it, from the last place on
  struct Piece {
    std::vector<int> vertices;
    bool separator;
  };
  std::vector<int> all(at(graph.lines));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Piece> pieces;
  pieces.push_back({std::move(all), false});
  int parts = 0;
  while (!pieces.empty()) {
    const Piece piece = std::move(pieces.back());
    pieces.pop_back();
    if (piece.vertices.empty()) continue;
    if (piece.separator || piece.vertices.size() <= kSmall) {
      Pattern inside;
      inside.lines = inside.width = static_cast<int>(piece.vertices.size());
      for (size_t i = 0; i < piece.vertices.size(); ++i) place[at(piece.vertices[i])] = static_cast<int>(i);
      for (const int v : piece.vertices) {
        for (int64_t i = graph.begin(v); i < graph.end(v); ++i) {
          if (place[at(graph.index[at(i)])] >= 0) inside.index.push_back(place[at(graph.index[at(i)])]);
        }
        inside.offsets.push_back(inside.count());
      }
      for (const int v : piece.vertices) place[at(v)] = -1;
      const std::vector<int> local = minimumDegree(inside, true);
      end -= local.size();
      for (size_t i = 0; i < local.size(); ++i) order[end + i] = piece.vertices[at(local[i])];
      continue;
    }
    ++parts;
    for (const int v : piece.vertices) part[at(v)] = parts;
    const Levels levels = search.fromPeriphery(piece.vertices.front(), part);
    if (levels.order.size() < piece.vertices.size()) {  // more than one component
      const int whole = parts;
      for (const int v : piece.vertices) {
        if (part[at(v)] != whole) continue;
        Levels component = search.from(v, part);
        ++parts;
        for (const int u : component.order) part[at(u)] = parts;
        pieces.push_back({std::move(component.order), false});
      }
      continue;
    }
    if (levels.count() < 3) {  // nearly all are neighbours of one another
      pieces.push_back({levels.order, true});
      continue;
    }
    size_t middle = 1;
    while (middle + 2 < levels.count() && levels.offsets[middle + 1] < levels.order.size() / 2) ++middle;
    const auto from = [&](size_t level) { return levels.order.begin() + static_cast<int64_t>(levels.offsets[level]); };
    pieces.push_back({{levels.order.begin(), from(middle)}, false});
    pieces.push_back({{from(middle + 1), levels.order.end()}, false});
    pieces.push_back({{from(middle), from(middle + 1)}, true});  // taken next: it comes last
  }
  return order;
}

std::vector<int> maximumTransversal(const Pattern& rows, int* found) {
  const Pattern columns = transposed(rows);
  const int n = rows.lines;
  std::vector<int> columnOf(at(n), -1), rowOf(at(n), -1), seen(at(n), -1);
  std::vector<int64_t> next(at(n));
  std::vector<int> path;
  *found = 0;
  for (int start = 0; start < n; ++start) {
    path.assign(1, start);
    next[at(start)] = columns.begin(start);
    bool free = false;
    while (!path.empty() && !free) {
      const int column = path.back();
      if (next[at(column)] == columns.end(column)) {
        path.pop_back();
        continue;
      }
      const int row = columns.index[at(next[at(column)]++)];
      if (seen[at(row)] == start) continue;
      seen[at(row)] = start;
      if (columnOf[at(row)] < 0) {
        free = true;
      } else {
        path.push_back(columnOf[at(row)]);
        next[at(path.back())] = columns.begin(path.back());
      }
    }
    if (!free) continue;
    // Each column of the path takes the row that it looked at last.
    for (const int column : path) {
      const int row = columns.index[at(next[at(column)] - 1)];
      rowOf[at(column)] = row;
      columnOf[at(row)] = column;
    }
    ++*found;
  }
  for (int column = 0, row = 0; column < n; ++column) {
    if (rowOf[at(column)] >= 0) continue;
    while (columnOf[at(row)] >= 0) ++row;
    rowOf[at(column)] = row;
    columnOf[at(row)] = column;
  }
  return rowOf;
}

}  // namespace sparse
}  // namespace mxmaca
