// NVRTC: cucc at run time. What it makes is a module for the driver interface, no machine code of a GPU.

#include <cstring>
#include <mutex>
#include <string>

#include "build.h"
#include "handle_table.h"
#include "modules/module_image.h"
#include "refuse.h"
#include "status.h"

#pragma GCC visibility push(default)
#include "nvrtc.h"

struct _nvrtcProgram {
  mxmaca::Source source;
  mxmaca::Built built;
  std::string text;
  bool compiled = false;
};

namespace {

// A message is the name.
constexpr mxmaca::StatusName kStatuses[] = {
    MXMACA_STATUS(NVRTC_SUCCESS, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_OUT_OF_MEMORY, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_INVALID_INPUT, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_INVALID_PROGRAM, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_INVALID_OPTION, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_COMPILATION, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_INTERNAL_ERROR, nullptr),
    MXMACA_STATUS(NVRTC_ERROR_TIME_FILE_WRITE_FAILED, nullptr),
};

nvrtcResult giveSize(const std::string& value, size_t extra, size_t* size) {
  if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *size = value.size() + extra;
  return NVRTC_SUCCESS;
}

nvrtcResult give(const std::string& value, size_t extra, char* out) {
  if (out == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(out, value.c_str(), value.size() + extra);
  return NVRTC_SUCCESS;
}

mc::HandleTable<_nvrtcProgram> programs;

bool isProgram(nvrtcProgram program) { return programs.contains(program); }
bool ready(nvrtcProgram program) { return isProgram(program) && program->built.done; }

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult result) {
  return mxmaca::statusText(kStatuses, result, &mxmaca::StatusName::name, "NVRTC_ERROR unknown");
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int headerCount,
                               const char* const* headers, const char* const* includeNames) {
  const bool noHeaders = headerCount > 0 && (headers == nullptr || includeNames == nullptr);
  if (program == nullptr || source == nullptr || headerCount < 0 || noHeaders) return NVRTC_ERROR_INVALID_INPUT;
  for (int i = 0; i < headerCount; ++i) {
    if (headers[i] == nullptr || includeNames[i] == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  }
  _nvrtcProgram* const created = programs.create();
  created->source.text = source;
  created->source.name = name != nullptr && *name != '\0' ? name : "default_program";
  for (int i = 0; i < headerCount; ++i) created->source.headers.emplace_back(includeNames[i], headers[i]);
  *program = created;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program == nullptr || !programs.destroy(*program)) return NVRTC_ERROR_INVALID_PROGRAM;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (!isProgram(program)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  for (const std::string& known : program->source.expressions) {
    if (known == expression) return NVRTC_SUCCESS;
  }
  program->source.expressions.emplace_back(expression);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int optionCount, const char* const* options) {
  if (!isProgram(program)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (optionCount < 0 || (optionCount > 0 && options == nullptr)) return NVRTC_ERROR_INVALID_INPUT;
  for (int i = 0; i < optionCount; ++i) {
    if (options[i] == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  }
  program->source.options.assign(options, options + optionCount);
  program->compiled = true;
  program->built = mxmaca::buildModule(program->source);
  program->text = program->built.done ? mxmaca::moduleToText(program->built.module) : "";
  if (program->built.done) return NVRTC_SUCCESS;
  if (program->built.badOption) return NVRTC_ERROR_INVALID_OPTION;
  return program->built.badExpression ? NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** lowered) {
  if (!isProgram(program)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr || lowered == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (!ready(program)) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const auto found = program->built.lowered.find(expression);
  if (found == program->built.lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *lowered = found->second.c_str();
  return NVRTC_SUCCESS;
}

// PTX is a text and so ends with a zero; a cubin is bytes.
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) {
  return ready(program) ? giveSize(program->text, 1, size) : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  return ready(program) ? give(program->text, 1, ptx) : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  return ready(program) ? giveSize(program->built.module, 0, size) : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  return ready(program) ? give(program->built.module, 0, cubin) : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  return isProgram(program) ? giveSize(program->built.log, 1, size) : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  return isProgram(program) ? give(program->built.log, 1, log) : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *count = 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  if (architectures == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *architectures = 80;
  return NVRTC_SUCCESS;
}

#define NO_SUCH_FORM(name) \
  long name() { return mxmaca::refuse("libnvrtc", #name, NVRTC_ERROR_INVALID_PROGRAM, "NVRTC_ERROR_INVALID_PROGRAM"); }
NO_SUCH_FORM(nvrtcGetLTOIRSize)
NO_SUCH_FORM(nvrtcGetLTOIR)
NO_SUCH_FORM(nvrtcGetOptiXIRSize)
NO_SUCH_FORM(nvrtcGetOptiXIR)
NO_SUCH_FORM(nvrtcGetNVVMSize)
NO_SUCH_FORM(nvrtcGetNVVM)

}  // extern "C"
#pragma GCC visibility pop
