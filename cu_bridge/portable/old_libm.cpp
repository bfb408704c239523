// As in old_glibc.cpp: mathematical functions that got a new symbol version after glibc 2.28 bind to their first one.

#if defined(__x86_64__)
#define BASE_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define BASE_VERSION "GLIBC_2.17"
#else
#error "which is this architecture's first glibc version?"
#endif

// Under names of their own here, since the compiler knows the functions and would not let them be hidden.
#define USE_BASE_VERSION(result, name, parameters, arguments)                                            \
  extern "C" {                                                                                           \
  __asm__(".symver base_" #name ", " #name "@" BASE_VERSION);                                            \
  result base_##name parameters;                                                                         \
  __attribute__((visibility("hidden"))) result local_##name parameters __asm__(#name);                   \
  __attribute__((visibility("hidden"))) result local_##name parameters { return base_##name arguments; } \
  }

USE_BASE_VERSION(double, exp, (double x), (x))
USE_BASE_VERSION(double, log, (double x), (x))
USE_BASE_VERSION(double, log2, (double x), (x))
USE_BASE_VERSION(double, pow, (double x, double y), (x, y))
USE_BASE_VERSION(double, hypot, (double x, double y), (x, y))
USE_BASE_VERSION(float, hypotf, (float x, float y), (x, y))
USE_BASE_VERSION(float, expf, (float x), (x))
USE_BASE_VERSION(float, logf, (float x), (x))
USE_BASE_VERSION(float, powf, (float x, float y), (x, y))
USE_BASE_VERSION(double, lgamma, (double x), (x))
USE_BASE_VERSION(double, fmod, (double x, double y), (x, y))
