#include "host/files.h"

#include <unistd.h>

#include <cerrno>

namespace mc {

bool readFile(const std::string& path, std::string* text) {
  text->clear();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char block[16384];
  ssize_t length;
  while ((length = read(file, block, sizeof block)) > 0 || (length < 0 && errno == EINTR)) {
    if (length > 0) text->append(block, static_cast<size_t>(length));
  }
  close(file);
  return true;
}

std::string readFile(const std::string& path) {
  std::string text;
  readFile(path, &text);
  return text;
}

}  // namespace mc
