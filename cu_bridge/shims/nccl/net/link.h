// A rank's connection to the root of its communicator (root.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/interfaces.h"
#include "net/ucx.h"
#include "net/wire.h"

namespace nccl::net {

struct Member {
  RankFacts facts;
  std::string endpoint;  // its address
};

class Link {
 public:
  // Connects and asks for the block of this host, in a thread of its own. nullptr: no thread.
  static std::shared_ptr<Link> open(const Address& root, const Asking& asking);

  virtual ~Link() = default;
  // Each is false as long as the answer has not come.
  virtual bool home(UniqueId* block) = 0;
  virtual bool table(std::vector<Member>* members) = 0;
  virtual void hello(const RankFacts& facts, const std::string& endpoint) = 0;

  // Carries on what the endpoint has left to do when no task of this rank does: another rank may wait for it, such as
  // for the end of a long message. nullptr: not any more.
  virtual void serve(const std::shared_ptr<Endpoint>& endpoint) = 0;

  // Whether that rank will do nothing any more: with the result that this is for those who wait, and why; and whether
  // it has left in good order, so that what it had sent before still comes.
  struct Loss {
    Result result = kSuccess;
    bool orderly = false;
    std::string why;
  };
  virtual bool lost(int rank, Loss* loss) = 0;
  // The first failure of all ranks, and of the connection to the root.
  virtual bool failed(Loss* loss) = 0;

  // Tells the others that this rank leaves. The first time counts.
  virtual void leave(Presence presence, Result result, const std::string& text) = 0;
  virtual bool allLeft() = 0;  // all ranks, or the root itself
};

}  // namespace nccl::net
