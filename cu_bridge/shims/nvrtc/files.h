// Files and folders of the compiler's cache. Failures throw std::exception, whose text names the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mxmaca {

std::string readFile(const std::string& path);
void writeFile(const std::string& path, const std::string& content);
void makeFolders(const std::string& path);
void removeFolder(const std::string& path);
// The paths of the folder's files with this ending, in order.
std::vector<std::string> filesIn(const std::string& path, const std::string& ending);

// What tells one state of a file from another; false where there is no such file.
struct FileState {
  int64_t modified = 0, changed = 0;  // nanoseconds; nobody can set the second
  uint64_t bytes = 0;
};
bool fileState(const std::string& path, FileState* state);

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// A folder that holds what only this user may have written. It is made with mode 0700 where it is not there. One that
// belongs to another user, that others can write to, or that anybody can put another one in the place of, is refused.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& path);
  const std::string& path() const { return path_; }

  // False where there is no such file. Refused are links, files of other users, and files of which others have one of
  // the rights `forbidden` (mode bits).
  bool read(const std::string& name, unsigned forbidden, std::string* content) const;
  // Writes beside the place and moves there: the file is whole or absent. Its mode is 0600.
  void write(const std::string& name, const std::string& content) const;
  // As write, but a file that is there already stays.
  void writeNew(const std::string& name, const std::string& content) const;

 private:
  std::string unfinished(const std::string& content) const;
  std::string path_;
  Descriptor folder_;
};
constexpr unsigned kOthersWrite = 0022, kOthersAnything = 0077;

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
// $XDG_STATE_HOME/mxmaca or ~/.local/state/mxmaca; not made yet.
std::string stateFolder();

// Runs a program with `environment` on top of this process's, and returns its exit status; what it prints goes to
// `output`. -1 where it could not be started.
int runProgram(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& output);

}  // namespace mxmaca
