// Which network interface a host is reached by: what NCCL_SOCKET_IFNAME asks for, else the first that is up.
#pragma once

#include <netinet/in.h>

#include <string>

namespace nccl::net {

// Where a process listens. Plain data, as it travels within a unique id.
struct Address {
  unsigned char bytes[16];  // IPv4: the first four
  uint16_t family;          // AF_INET, AF_INET6; 0: there is none
  uint16_t port;            // of the host's byte order
};

// The interface's name and address without a port. False: no interface fits.
bool chooseInterface(std::string* name, Address* address);
std::string chosenInterface();  // its name; empty if none fits

// A socket that listens on the chosen interface, -1 if that cannot be; sets the port.
int listenOn(Address* address);
// A socket that is connected within that time, or -1 with errno.
int connectTo(const Address& address, int milliseconds);

std::string textOf(const Address& address);

}  // namespace nccl::net
