#include "work/communicator.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nccl {
namespace {

std::string nameOf(int rank, const PeerProcess* peer) {
  return "rank " + std::to_string(rank) +
         (peer == nullptr ? std::string() : " (process " + std::to_string(peer->process()) + ")");
}

}  // namespace

void Communicator::noteFailure(Result result, const std::string& text) {
  const std::lock_guard<std::mutex> lock(failureMutex_);
  if (failure_ != kSuccess) return;
  // Who sees the failure asks for its text at once: ncclGetLastError has it before.
  if (text != lastError()) fail(result, text);
  failure_ = result;
  failureText_ = text;
}

Result Communicator::failure(std::string* text) const {
  const std::lock_guard<std::mutex> lock(failureMutex_);
  if (text != nullptr) *text = failureText_;
  return failure_;
}

void Communicator::arrive() {
  Header& header = block.header();
  const uint64_t next = ++barriers;
  block.rank(rank).barriers.store(next);
  if (header.arrivals.fetch_add(1) + 1 != next * static_cast<uint64_t>(ranksHere())) return;
  header.round.word.store(static_cast<uint32_t>(next));
  header.round.wake();
}

bool Communicator::passed() const {
  return static_cast<int32_t>(block.header().round.word.load() - static_cast<uint32_t>(barriers)) >= 0;
}

void Communicator::leave(Presence presence) {
  block.rank(rank).presence.store(presence);
  block.header().round.wake();
  block.header().door.wake();
  for (int other = 0; other < size; ++other) block.rank(other).bell.wake();
  if (hosts == nullptr) return;
  std::string text;
  const Result why = failure(&text);
  hosts->link->leave(presence, why, text);
}

void Communicator::abort() {
  // Peers are told before this rank's work ends: a buffer that they read is not given back until they know.
  if (block.ranks() > 0) {
    block.rank(rank).presence.store(Presence::Aborted);
    awaitWriters();
  }
  aborted = true;
  // What it had begun to send may be other data from now on.
  if (hosts != nullptr) hosts->link->serve(nullptr);
  if (block.ranks() > 0) leave(Presence::Aborted);
  turn.wake();
}

// A peer that has looked before may still write one piece of a Reduce. One that is stopped is not waited for.
void Communicator::awaitWriters() const {
  constexpr int kWaits = 20000;
  constexpr int kPause = 50;  // microseconds
  for (int other = 0; other < size; ++other) {
    if (other == rank || !here(other)) continue;
    const std::atomic<uint32_t>& writes = block.rank(other).writesTo;
    for (int waited = 0; writes.load() == static_cast<uint32_t>(rank) + 1 && waited < kWaits; ++waited) {
      usleep(kPause);
      if (waited % 100 == 99 && !whyLost(other).empty()) break;
    }
  }
}

std::string Communicator::whyLost(int other) const {
  const Presence presence = block.rank(other).presence.load();
  const PeerProcess* const peer =
      static_cast<size_t>(other) < peers.size() ? peers[static_cast<size_t>(other)].get() : nullptr;
  if (presence == Presence::Aborted) return nameOf(other, peer) + " has aborted its communicator";
  if (presence == Presence::Finished) return nameOf(other, peer) + " has destroyed its communicator";
  if (peer != nullptr && !peer->lives()) return nameOf(other, peer) + " has ended";
  return {};
}

Result Communicator::read(void* to, int other, uint64_t from, size_t bytes) const {
  const PeerProcess* const peer = peers[static_cast<size_t>(other)].get();
  if (peer == nullptr) {
    std::memmove(to, reinterpret_cast<const void*>(from), bytes);
    return kSuccess;
  }
  if (peer->read(to, from, bytes)) return kSuccess;
  const int error = errno;
  return fail(kRemoteError, "cannot read memory of " + nameOf(other, peer) + ": " + std::strerror(error));
}

Result Communicator::write(int other, uint64_t to, const void* from, size_t bytes) const {
  const PeerProcess* const peer = peers[static_cast<size_t>(other)].get();
  if (peer == nullptr) {
    std::memmove(reinterpret_cast<void*>(to), from, bytes);
    return kSuccess;
  }
  if (peer->write(to, from, bytes)) return kSuccess;
  const int error = errno;
  return fail(kRemoteError, "cannot write memory of " + nameOf(other, peer) + ": " + std::strerror(error));
}

const void* Communicator::view(int other, uint64_t from, size_t bytes, void* scratch) const {
  if (peers[static_cast<size_t>(other)] == nullptr) return reinterpret_cast<const void*>(from);
  return read(scratch, other, from, bytes) == kSuccess ? scratch : nullptr;
}

}  // namespace nccl
