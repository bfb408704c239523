// Checks of the test programs: the first that does not hold ends the program with its text.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)
