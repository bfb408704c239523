#include "net/interfaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace nccl::net {
namespace {

// NCCL's form of a choice: a list of beginnings of names; `^`: all but those; `=`: whole names (`^=` both).
bool fits(const std::string& pattern, const std::string& name) {
  size_t at = 0;
  const bool except = at < pattern.size() && pattern[at] == '^';
  if (except) ++at;
  const bool whole = at < pattern.size() && pattern[at] == '=';
  if (whole) ++at;
  std::istringstream list(pattern.substr(at));
  std::string item;
  while (std::getline(list, item, ',')) {
    if (item.empty()) continue;
    if (whole ? name == item : name.compare(0, item.size(), item) == 0) return !except;
  }
  return except;
}

// Lower is better: what leads outside before bridges of containers, those before the loopback.
int order(const std::string& name, unsigned int flags, int family) {
  int place = family == AF_INET ? 0 : 1;
  if (name.compare(0, 6, "docker") == 0) place += 2;
  if ((flags & IFF_LOOPBACK) != 0) place += 4;
  return place;
}

socklen_t toSystem(const Address& address, sockaddr_storage* system) {
  std::memset(system, 0, sizeof *system);
  system->ss_family = address.family;
  if (address.family == AF_INET) {
    auto* const four = reinterpret_cast<sockaddr_in*>(system);
    std::memcpy(&four->sin_addr, address.bytes, 4);
    four->sin_port = htons(address.port);
    return sizeof *four;
  }
  auto* const six = reinterpret_cast<sockaddr_in6*>(system);
  std::memcpy(&six->sin6_addr, address.bytes, 16);
  six->sin6_port = htons(address.port);
  return sizeof *six;
}

}  // namespace

bool chooseInterface(std::string* name, Address* address) {
  const char* const asked = std::getenv("NCCL_SOCKET_IFNAME");
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  int best = 100;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (asked != nullptr && *asked != '\0' && !fits(asked, one->ifa_name)) continue;
    const int place = order(one->ifa_name, one->ifa_flags, family);
    if (place >= best) continue;
    Address found{};
    found.family = static_cast<uint16_t>(family);
    if (family == AF_INET) {
      std::memcpy(found.bytes, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, 4);
    } else {
      const auto* const six = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) continue;  // means nothing on another host
      std::memcpy(found.bytes, &six->sin6_addr, 16);
    }
    best = place;
    *name = one->ifa_name;
    *address = found;
  }
  freeifaddrs(all);
  return best < 100;
}

std::string chosenInterface() {
  std::string name;
  Address address;
  return chooseInterface(&name, &address) ? name : std::string();
}

int listenOn(Address* address) {
  const int file = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -1;
  sockaddr_storage system;
  const socklen_t length = toSystem(*address, &system);
  socklen_t got = sizeof system;
  if (bind(file, reinterpret_cast<sockaddr*>(&system), length) != 0 || listen(file, 1024) != 0 ||
      getsockname(file, reinterpret_cast<sockaddr*>(&system), &got) != 0) {
    close(file);
    return -1;
  }
  // The port stands at the same place in both families.
  address->port = ntohs(reinterpret_cast<const sockaddr_in*>(&system)->sin_port);
  return file;
}

int connectTo(const Address& address, int milliseconds) {
  const int file = socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  sockaddr_storage system;
  const socklen_t length = toSystem(address, &system);
  int error = 0;
  if (connect(file, reinterpret_cast<const sockaddr*>(&system), length) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd wanted = {file, POLLOUT, 0};
      socklen_t size = sizeof error;
      if (poll(&wanted, 1, milliseconds) <= 0) {
        error = ETIMEDOUT;
      } else if (getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
      }
    }
  }
  if (error == 0) {
    fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
  }
  close(file);
  errno = error;
  return -1;
}

std::string textOf(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.family, address.bytes, text, sizeof text);
  return std::string(text) + ", port " + std::to_string(address.port);
}

}  // namespace nccl::net
