// Where the ranks of a communicator over several hosts are, and what connects them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "net/link.h"
#include "net/ucx.h"

namespace nccl::net {

struct Hosts {
  std::shared_ptr<Link> link;
  std::shared_ptr<Endpoint> endpoint;
  std::vector<std::vector<int>> members;  // the ranks of each host, rising; hosts in the order of their first rank
  std::vector<size_t> hostOf, placeOf;    // by rank; the place is that among the ranks of its host
  size_t own = 0;                         // this rank's host
  uint64_t turns = 0;                     // exchanges so far, of the collective whose turn it is

  size_t count() const { return members.size(); }
  const std::vector<int>& mine() const { return members[own]; }
  int leader(size_t host) const { return members[host][0]; }
  bool here(int rank) const { return hostOf[static_cast<size_t>(rank)] == own; }

  // Sorts the ranks by their hosts.
  void arrange(const std::vector<Member>& all, int self) {
    std::map<uint64_t, size_t> known;
    std::vector<std::string> addresses(all.size());
    hostOf.resize(all.size());
    placeOf.resize(all.size());
    for (const Member& member : all) {  // by rank
      const auto rank = static_cast<size_t>(member.facts.rank);
      const auto host = known.emplace(member.facts.host, known.size()).first->second;
      members.resize(known.size());
      hostOf[rank] = host;
      placeOf[rank] = members[host].size();
      members[host].push_back(member.facts.rank);
      addresses[rank] = member.endpoint;
    }
    own = hostOf[static_cast<size_t>(self)];
    endpoint->setPeers(std::move(addresses));
  }
};

}  // namespace nccl::net
