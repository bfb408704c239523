// Runs the cases whose names stand on the command line, or all. Prints "ok NAME" or "FAILED NAME" for each.
#include "case.h"

int main(int count, char** names) {
  int failed = 0;
  for (Case* one = Case::first(); one != nullptr; one = one->next) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted = wanted || std::strcmp(names[i], one->name) == 0;
    if (!wanted) continue;
    failures() = 0;
    one->run();
    cudaGetLastError();
    std::printf("%s %s\n", failures() == 0 ? "ok" : "FAILED", one->name);
    std::fflush(stdout);
    failed += failures() != 0;
  }
  return failed != 0;
}
