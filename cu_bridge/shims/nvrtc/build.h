// Compiling a program with cucc, and the cache of what came out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mxmaca {

struct Source {
  std::string text;
  std::string name;
  std::vector<std::pair<std::string, std::string>> headers;  // include name, text
  std::vector<std::string> expressions;                      // whose mangled names are asked for
  std::vector<std::string> options;                          // as nvrtcCompileProgram got them
};

struct Built {
  bool done = false;
  bool badOption = false;
  bool badExpression = false;
  std::string log;
  std::string module;                          // the shared object
  std::map<std::string, std::string> lowered;  // expression to mangled name
};

// Takes the module from the cache where nothing that went into it has changed, else runs cucc. Never throws.
Built buildModule(const Source& source);

}  // namespace mxmaca
