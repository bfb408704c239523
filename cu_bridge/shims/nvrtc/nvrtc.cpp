// NVRTC: programs can be created, compiling one fails with a log that says why.

#include <cstring>
#include <string>

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

struct _nvrtcProgram {
  std::string log;
};

namespace {
enum Status { kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kCompilation = 6 };
constexpr char kLog[] = "error: the simulated device has no compiler for CUDA C++ source at run time";
}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return kInvalidInput;
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return kSuccess;
}
const char* nvrtcGetErrorString(int status) {
  constexpr const char* kNames[] = {
      "NVRTC_SUCCESS",
      "NVRTC_ERROR_OUT_OF_MEMORY",
      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
      "NVRTC_ERROR_INVALID_INPUT",
      "NVRTC_ERROR_INVALID_PROGRAM",
      "NVRTC_ERROR_INVALID_OPTION",
      "NVRTC_ERROR_COMPILATION",
      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
      "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
      "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
      "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
      "NVRTC_ERROR_INTERNAL_ERROR",
  };
  return status >= 0 && status < 12 ? kNames[status] : "NVRTC_ERROR_UNKNOWN";
}
int nvrtcCreateProgram(_nvrtcProgram** program, const char*, const char*, int, const char* const*, const char* const*) {
  if (program == nullptr) return kInvalidInput;
  *program = new _nvrtcProgram;
  return kSuccess;
}
int nvrtcDestroyProgram(_nvrtcProgram** program) {
  if (program == nullptr || *program == nullptr) return kInvalidProgram;
  delete *program;
  *program = nullptr;
  return kSuccess;
}
int nvrtcAddNameExpression(_nvrtcProgram* program, const char*) {
  return program == nullptr ? kInvalidProgram : kSuccess;
}
int nvrtcCompileProgram(_nvrtcProgram* program, int, const char* const*) {
  if (program == nullptr) return kInvalidProgram;
  program->log = kLog;
  return kCompilation;
}
int nvrtcGetProgramLogSize(_nvrtcProgram* program, size_t* size) {
  if (program == nullptr) return kInvalidProgram;
  *size = program->log.size() + 1;
  return kSuccess;
}
int nvrtcGetProgramLog(_nvrtcProgram* program, char* log) {
  if (program == nullptr) return kInvalidProgram;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return kSuccess;
}
int nvrtcGetSupportedArchs(int* architectures) {
  *architectures = 80;
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
