#include "openblas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace mxmaca {
namespace {

constexpr const char* kSoname = "libscipy_openblas64_.so";

struct Library {
  void* handle = nullptr;
  std::string tried;
};

// site-packages/mxmaca/lib/cuda12/libcublas.so.12 -> site-packages
std::string sitePackages() {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::unique_ptr<char, void (*)(void*)> path(realpath(info.dli_fname, nullptr), std::free);
  std::string folder = path != nullptr ? path.get() : info.dli_fname;
  for (int level = 0; level < 4; ++level) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) return "";
    folder.resize(slash);
  }
  return folder;
}

void* open(const std::string& path, std::string& tried) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    tried += std::string("\n  ") + (reason != nullptr ? reason : path.c_str());
  }
  return handle;
}

Library load() {
  Library library;
  const char* const chosen = std::getenv("MACA_BLAS_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') {
    library.handle = open(chosen, library.tried);
  } else {
    const std::string site = sitePackages();
    if (!site.empty()) library.handle = open(site + "/scipy_openblas64/lib/" + kSoname, library.tried);
    if (library.handle == nullptr) library.handle = open(kSoname, library.tried);
  }
  if (library.handle == nullptr) {
    std::fprintf(stderr,
                 "mxmaca: no OpenBLAS, so nothing of dense linear algebra can be computed. Install it with "
                 "`pip install scipy-openblas64`, or set MACA_BLAS_LIBRARY to its %s. Tried:%s\n",
                 kSoname, library.tried.c_str());
    return library;
  }
  // A NaN in a matrix is data here, not a wrong argument.
  if (void* const check = dlsym(library.handle, "scipy_LAPACKE_set_nancheck64_")) {
    reinterpret_cast<void (*)(int)>(check)(0);
  }
  return library;
}

Library& library() {
  static auto* const loaded = new Library(load());
  return *loaded;
}

}  // namespace

void* openblasSymbol(const char* name) {
  Library& blas = library();
  if (blas.handle == nullptr) throw BlasMissing();
  const std::string full = std::string("scipy_") + name + "64_";
  void* const found = dlsym(blas.handle, full.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "mxmaca: the OpenBLAS that was loaded has no %s; install a newer scipy-openblas64\n",
                 full.c_str());
    throw BlasMissing();
  }
  return found;
}

void* openblasTyped(const char* pattern, char letter) {
  std::string name = pattern;
  const size_t place = name.find('?');
  if (place != std::string::npos) name[place] = letter;
  void* const found = openblasSymbol(name.c_str());
  reachData();
  return found;
}

}  // namespace mxmaca
