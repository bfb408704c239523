#include "build.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "files.h"
#include "sha256.h"

namespace mxmaca {
namespace {

// Options that only the run-time compiler has; the others are those of cucc, which refuses what it does not know.
enum class Treatment {
  kMet,         // says what holds here anyway, or concerns only how NVIDIA's compiler works
  kMetByValue,  // the same, and its value is the next argument where none is joined with "="
  kRefused,
};
struct RtcOption {
  const char* name;
  Treatment treatment;
};
constexpr RtcOption kRtcOptions[] = {
    {"default-device", Treatment::kMet},
    {"device-as-default-execution-space", Treatment::kMet},
    {"extra-device-vectorization", Treatment::kMet},
    {"modify-stack-limit", Treatment::kMet},
    {"builtin-move-forward", Treatment::kMet},
    {"builtin-initializer-list", Treatment::kMet},
    {"no-source-include", Treatment::kMet},
    {"minimal", Treatment::kMet},
    {"device-int128", Treatment::kMet},
    {"brief-diagnostics", Treatment::kMet},
    {"no-display-error-number", Treatment::kMet},
    {"display-error-number", Treatment::kMet},
    {"version-ident", Treatment::kMet},
    {"split-compile", Treatment::kMet},
    {"jump-table-density", Treatment::kMet},
    {"dopt", Treatment::kMetByValue},
    {"dlink-time-opt", Treatment::kRefused},
    {"dlto", Treatment::kRefused},
    {"optix-ir", Treatment::kRefused},
};

const RtcOption* rtcOption(const std::string& option) {
  const size_t start = option.find_first_not_of('-');
  if (start == std::string::npos || start == 0) return nullptr;
  const std::string name = option.substr(start, option.find('=') - start);
  for (const RtcOption& known : kRtcOptions) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

// What cucc gets; an option that cannot be met is thrown by its name.
std::vector<std::string> compilerOptions(const std::vector<std::string>& options) {
  std::vector<std::string> passed;
  for (size_t i = 0; i < options.size(); ++i) {
    const RtcOption* known = rtcOption(options[i]);
    if (known == nullptr) {
      passed.push_back(options[i]);
    } else if (known->treatment == Treatment::kRefused) {
      throw std::invalid_argument(options[i]);
    } else if (known->treatment == Treatment::kMetByValue && options[i].find('=') == std::string::npos) {
      ++i;
    }
  }
  return passed;
}

std::string keyOf(const Source& source, const std::string& sdk) {
  Sha256 hash;
  hash.field("module 2 " MXMACA_VERSION);
  hash.field(std::to_string(MXMACA_CUDA_MAJOR));
  hash.field(sdk);
  hash.field(source.text);
  hash.field(source.name);
  for (const auto& header : source.headers) {
    hash.field(header.first);
    hash.field(header.second);
  }
  hash.field("expressions");
  for (const std::string& expression : source.expressions) hash.field(expression);
  hash.field("options");
  for (const std::string& option : source.options) hash.field(option);
  // What else chooses the compiler and its search.
  for (const char* name : {"PATH", "CXX", "NVCC_CCBIN", "CPATH", "CPLUS_INCLUDE_PATH", "NVCC_PREPEND_FLAGS",
                           "NVCC_APPEND_FLAGS", "MACA_PATH"}) {
    const char* value = std::getenv(name);
    hash.field(value != nullptr ? value : "");
  }
  return hash.hex();
}

// ---- The cache ------------------------------------------------------------------------------------------------------
// Note: sealed modules
// ~~~~~~~~~~~~~~~~~~~~
// What is loaded from the cache runs in the user's programs, so it must be what this user's compiler wrote there. The
// cache is a private folder (PrivateFolder). A file KEY.module in it says what it was made of, and begins with a seal:
// an HMAC over its name and the rest, with a key that is kept in another folder. Damage breaks the seal, and so does
// who writes a file, a digest or the whole cache without being able to read the key. Whatever is not as it should be is
// compiled anew and replaced.
//
// Form: the line kForm, 32 bytes of seal; lines "name EXPRESSION-NUMBER MANGLED" and "file MODIFIED CHANGED BYTES
// PATH"; the line "module"; the shared object.

constexpr char kForm[] = "mxmaca module 2\n";
constexpr char kKeyName[] = "cache.key";
constexpr size_t kSealBytes = 32, kKeyBytes = 32;

std::string newKey() {
  std::string key(kKeyBytes, '\0');
  if (syscall(SYS_getrandom, key.data(), key.size(), 0) != static_cast<long>(key.size())) {
    throw std::runtime_error("no random numbers for the key of the cache");
  }
  return key;
}

std::string cacheKey() {
  const PrivateFolder folder(stateFolder());
  std::string key;
  if (!folder.read(kKeyName, kOthersAnything, &key)) {
    folder.writeNew(kKeyName, newKey());
  } else if (key.size() != kKeyBytes) {
    folder.write(kKeyName, newKey());
  } else {
    return key;
  }
  // Another process may have been faster.
  if (!folder.read(kKeyName, kOthersAnything, &key) || key.size() != kKeyBytes) {
    throw std::runtime_error(folder.path() + "/" + kKeyName + " does not stay as it was written");
  }
  return key;
}

struct Cache {
  PrivateFolder folder;
  std::string key;   // of the seals
  std::string name;  // of the file
};

std::string sealOf(const Cache& cache, const std::string& content) {
  return hmac(cache.key, cache.name + "\n" + content);
}

void say(const std::string& text) { std::fprintf(stderr, "mxmaca: %s\n", text.c_str()); }

void sayOnce(std::once_flag& once, const std::string& text) {
  std::call_once(once, [&] { say(text); });
}

// The content behind a seal that is right; "" where there is none. What is not as it should be is said once.
std::string unsealed(const Cache& cache) {
  static std::once_flag once;
  std::string file;
  try {
    if (!cache.folder.read(cache.name, kOthersWrite, &file)) return "";
  } catch (const std::exception& problem) {
    sayOnce(once, std::string(problem.what()) + ", so the kernel is compiled anew");
    return "";
  }
  constexpr size_t kHead = sizeof kForm - 1 + kSealBytes;
  if (file.size() > kHead && file.compare(0, sizeof kForm - 1, kForm) == 0) {
    std::string content = file.substr(kHead);
    if (file.compare(sizeof kForm - 1, kSealBytes, sealOf(cache, content)) == 0) return content;
  }
  sayOnce(once, cache.folder.path() + "/" + cache.name +
                    " is damaged or was not written by this user's programs, so the kernel is compiled anew");
  return "";
}

bool fromCache(const Cache& cache, const Source& source, Built* built) {
  std::istringstream facts(unsealed(cache));
  for (std::string line; std::getline(facts, line);) {
    std::istringstream fields(line);
    std::string kind;
    fields >> kind;
    if (kind == "module") {
      const auto begin = static_cast<size_t>(facts.tellg());
      if (built->lowered.size() != source.expressions.size()) return false;
      built->module = facts.str().substr(begin);
      built->done = true;
      return true;
    }
    if (kind == "name") {
      size_t number = 0;
      std::string mangled;
      fields >> number >> mangled;
      if (number < source.expressions.size()) built->lowered[source.expressions[number]] = mangled;
    } else if (kind == "file") {
      FileState then, now;
      std::string file;
      fields >> then.modified >> then.changed >> then.bytes >> std::ws;
      std::getline(fields, file);
      const bool same = fileState(file, &now) && now.modified == then.modified && now.changed == then.changed;
      if (!same || now.bytes != then.bytes) return false;
    }
  }
  return false;
}

// The files of a make rule, without those of the build folder.
std::vector<std::string> dependencies(const std::string& rule, const std::string& without) {
  std::vector<std::string> files;
  std::string word;
  const auto finish = [&] {
    const bool target = !word.empty() && word.back() == ':';
    if (!word.empty() && !target && word.compare(0, without.size(), without) != 0) files.push_back(word);
    word.clear();
  };
  for (size_t i = 0; i < rule.size(); ++i) {
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\0';
    if (rule[i] == '\\' && next == '\n') {
      ++i;
      finish();
    } else if (rule[i] == '\\' && (next == ' ' || next == '#')) {
      word += rule[++i];
    } else if (std::isspace(static_cast<unsigned char>(rule[i])) != 0) {
      finish();
    } else {
      word += rule[i];
    }
  }
  finish();
  return files;
}

void toCache(const Cache& cache, const Source& source, const Built& built, const std::string& rule,
             const std::string& folder, const std::string& sdk) {
  std::ostringstream facts;
  for (size_t i = 0; i < source.expressions.size(); ++i) {
    facts << "name " << i << " " << built.lowered.at(source.expressions[i]) << "\n";
  }
  // The compiler as well as what it read.
  std::vector<std::string> files = dependencies(rule, folder);
  for (const char* part : {"/cucc", "/cucc/rewriting", "/cucc/rewriting/arithmetic", "/cucc/rewriting/assembly",
                           "/cucc/rewriting/waiting"}) {
    for (const std::string& name : filesIn(sdk + part, ".py")) files.push_back(name);
  }
  for (const std::string& file : files) {
    FileState state;
    if (!fileState(file, &state)) return;  // whether it changes could not be told
    facts << "file " << state.modified << " " << state.changed << " " << state.bytes << " " << file << "\n";
  }
  const std::string content = facts.str() + "module\n" + built.module;
  cache.folder.write(cache.name, kForm + sealOf(cache, content) + content);
}

// ---- Building -------------------------------------------------------------------------------------------------------

// What cucc says, and nothing else, of an option that it does not know.
constexpr char kUnknownOption[] = "cucc: fatal: Unknown option";
constexpr char kExpressionVariable[] = "mxmaca_name_expression_";

std::string programText(const Source& source) {
  std::ostringstream text;
  text << "#line 1 \"" << source.name << "\"\n" << source.text << "\n";
  // A pointer to what an expression names brings the template to life and, once loaded, leads to its symbol.
  for (size_t i = 0; i < source.expressions.size(); ++i) {
    const std::string& expression = source.expressions[i];
    text << "#line 1 \"name expression " << i + 1 << "\"\nextern \"C\" __attribute__((used, visibility(\"default\"))) "
         << "const void* const " << kExpressionVariable << i << " = (const void*)("
         << (expression.find_first_not_of(" \t") != std::string::npos &&
                     expression[expression.find_first_not_of(" \t")] == '&'
                 ? ""
                 : "&")
         << expression << ");\n";
  }
  return text.str();
}

void writeHeaders(const Source& source, const std::string& folder) {
  for (const auto& header : source.headers) {
    const std::string& name = header.first;
    if (name.empty() || name[0] == '/' || ("/" + name + "/").find("/../") != std::string::npos) {
      throw std::runtime_error("header name " + name + " is no path inside a folder");
    }
    const size_t slash = name.find_last_of('/');
    if (slash != std::string::npos) makeFolders(folder + "/" + name.substr(0, slash));
    writeFile(folder + "/" + name, header.second);
  }
}

// The mangled name of each expression, read from the loaded module.
bool findNames(const std::string& path, const Source& source, Built* built) {
  if (source.expressions.empty()) return true;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* problem = dlerror();
    built->log += std::string("error: the module cannot be loaded: ") + (problem != nullptr ? problem : "") + "\n";
    return false;
  }
  for (size_t i = 0; i < source.expressions.size(); ++i) {
    const void* variable = dlsym(handle, (kExpressionVariable + std::to_string(i)).c_str());
    Dl_info info;
    if (variable == nullptr || dladdr(*static_cast<void* const*>(variable), &info) == 0 || info.dli_sname == nullptr) {
      built->log += "error: no symbol for the name expression " + source.expressions[i] + "\n";
      built->badExpression = true;
    } else {
      built->lowered[source.expressions[i]] = info.dli_sname;
    }
  }
  dlclose(handle);
  return !built->badExpression;
}

// What cucc is started with: the process's own interpreter, where it is one of a release that cucc knows. It is there
// whatever PATH says, and pip has compiled cucc's modules for it. Elsewhere the first line of cucc finds one.
std::vector<std::string> interpreter() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == sizeof path || getenv("PYTHONHOME") != nullptr) return {};
  const std::string found(path, length);
  int minor = 0;
  const bool known = sscanf(found.c_str() + found.find_last_of('/') + 1, "python3.%d", &minor) == 1 && minor >= 8;
  // It may have been replaced since the process began.
  if (!known || access(found.c_str(), X_OK) != 0) return {};
  return {found, "-I", "-S"};
}

void compile(const Source& source, const std::vector<std::string>& options, const std::string& sdk,
             const std::string& parent, const Cache* cache, Built* built) {
  const BuildFolder folder(parent);
  const std::string program = folder.path() + "/program.cu", module = folder.path() + "/module.so";
  const std::string rule = folder.path() + "/module.d", output = folder.path() + "/output.txt";
  const std::string include = folder.path() + "/include";
  makeFolders(include);
  writeHeaders(source, include);
  writeFile(program, programText(source));
  std::vector<std::string> command = interpreter();
  command.insert(command.end(),
                 {sdk + "/bin/cucc", "-shared", "-Xlinker", "-Bsymbolic", "-Xcompiler", "-fPIC", "-x", "cu"});
  command.insert(command.end(), {"-D__CUDACC_RTC__", "-I" + include, "-MD", "-MF", rule});
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {program, "-o", module});
  const int status = runProgram(command, {"CUCC_CUDA_MAJOR=" + std::to_string(MXMACA_CUDA_MAJOR)}, output);
  if (status < 0) throw std::runtime_error(command[0] + " cannot be run: is the MXMACA SDK complete?");
  built->log += readFile(output);
  if (status != 0) {
    if (built->log.empty()) built->log = "error: cucc ended with status " + std::to_string(status) + "\n";
    built->badOption = built->log.rfind(kUnknownOption, 0) == 0;
    return;
  }
  built->module = readFile(module);
  if (!findNames(module, source, built)) return;
  built->done = true;
  if (cache != nullptr) {
    FileState state;
    toCache(*cache, source, *built, fileState(rule, &state) ? readFile(rule) : "", folder.path(), sdk);
  }
}

}  // namespace

Built buildModule(const Source& source) {
  static std::once_flag onceUnusable, onceNotKept;
  Built built;
  try {
    const std::vector<std::string> options = compilerOptions(source.options);
    const std::string sdk = sdkRoot();
    const char* temporary = std::getenv("TMPDIR");
    std::string parent = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
    std::unique_ptr<const Cache> cache;
    try {
      cache.reset(new Cache{PrivateFolder(cacheFolder("nvrtc")), cacheKey(), keyOf(source, sdk) + ".module"});
      parent = cache->folder.path();
    } catch (const std::exception& problem) {
      // Slower, but right: the module is made anew each time.
      sayOnce(onceUnusable, "the cache for compiled kernels cannot be used (" + std::string(problem.what()) +
                                "), so each is compiled anew; set MACA_CACHE_DIR, and XDG_STATE_HOME for the key of "
                                "its seals, to folders of this user's own");
    }
    if (cache != nullptr && fromCache(*cache, source, &built)) return built;
    built = Built();
    compile(source, options, sdk, parent, cache.get(), &built);
  } catch (const std::invalid_argument& option) {
    built.badOption = true;
    built.log = std::string("error: option ") + option.what() + " is not supported on this device\n";
  } catch (const std::exception& problem) {
    if (built.done) {
      sayOnce(onceNotKept, std::string("a compiled kernel could not be kept: ") + problem.what());
    } else {
      built.log += std::string("error: ") + problem.what() + "\n";
    }
  }
  return built;
}

}  // namespace mxmaca
