#include "net/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace nccl::net {
namespace {

struct FrameHead {
  uint32_t magic;
  FrameKind kind;
  uint32_t bytes;
};
constexpr uint32_t kMagic = 0x6d636e31;
constexpr uint32_t kMost = 64U << 20;  // bytes of a frame

}  // namespace

Wire::Wire(int file) : file_(file) {
  const int on = 1;
  setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer that takes nothing in any more does not keep the writer for ever.
  const timeval limit = {5, 0};
  setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Wire::~Wire() { close(file_); }

bool Wire::write(FrameKind kind, const std::string& bytes) {
  if (broken_) return false;
  const std::string all = bytesOf(FrameHead{kMagic, kind, static_cast<uint32_t>(bytes.size())}) + bytes;
  for (size_t done = 0; done < all.size();) {
    const ssize_t more = send(file_, all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      broken_ = true;
      return false;
    }
    done += static_cast<size_t>(more);
  }
  return true;
}

bool Wire::fill() {
  char some[16384];
  for (;;) {
    const ssize_t got = recv(file_, some, sizeof some, MSG_DONTWAIT);
    if (got > 0) {
      heard_ = Clock::now();
      in_.append(some, static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool Wire::next(Frame* frame) {
  FrameHead head;
  if (in_.size() < sizeof head) return false;
  std::memcpy(&head, in_.data(), sizeof head);
  if (head.magic != kMagic || head.bytes > kMost) {  // someone else's connection
    broken_ = true;
    shutdown(file_, SHUT_RDWR);
    in_.clear();
    return false;
  }
  if (in_.size() < sizeof head + head.bytes) return false;
  *frame = {head.kind, in_.substr(sizeof head, head.bytes)};
  in_.erase(0, sizeof head + head.bytes);
  return true;
}

}  // namespace nccl::net
