// What the process that made a unique id does for ranks on other hosts: it tells them the block of their host and all
// ranks of the communicator, and which ranks have left or are lost.
#pragma once

#include <cstdint>

#include "host/shared_block.h"
#include "net/interfaces.h"

namespace nccl::net {

// Lets ranks of other hosts join by this id, whose block this process has made: listens in a thread of its own, and
// writes where into the id. Without an interface the id stays one of this host.
void makeReachable(UniqueId* id);
// No more ranks will join; those that are connected are served on.
void retireRoot(uint64_t number);

// Where the root of an id listens; false if it is one of its host only.
bool rootOf(const UniqueId& id, Address* address);

}  // namespace nccl::net
