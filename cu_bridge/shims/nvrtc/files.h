// Files and folders of the compiler's cache. Failures throw std::system_error, which names the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mxmaca {

std::string readFile(const std::string& path);
// Writes beside the place and moves there: the file is whole or absent.
void writeFile(const std::string& path, const std::string& content);
void makeFolders(const std::string& path);
void removeFolder(const std::string& path);

// What tells one state of a file from another; false where there is no such file.
struct FileState {
  int64_t modified = 0;  // nanoseconds
  uint64_t bytes = 0;
};
bool fileState(const std::string& path, FileState* state);

// A folder of its own for one build, gone with the object.
class BuildFolder {
 public:
  explicit BuildFolder(const std::string& parent);
  ~BuildFolder();
  BuildFolder(const BuildFolder&) = delete;
  BuildFolder& operator=(const BuildFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The SDK that this library belongs to: the folder above lib/libmcruntime.so.
std::string sdkRoot();
// $MACA_CACHE_DIR, $XDG_CACHE_HOME/mxmaca or ~/.cache/mxmaca, and in it `name`; not made yet.
std::string cacheFolder(const std::string& name);

// Runs a program with `environment` on top of this process's, and returns its exit status; what it prints goes to
// `output`. -1 where it could not be started.
int runProgram(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& output);

}  // namespace mxmaca
