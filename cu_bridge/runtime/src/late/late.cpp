#include "late/late.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/place.h"
#include "state/activity.h"
#include "state/locked.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {
namespace {

bool readMode() {
  const char* const text = std::getenv("MACA_ASYNC");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return false;
  if (std::strcmp(text, "late") == 0) {
    activity.tasks.fetch_add(1);
    return true;
  }
  std::fprintf(stderr, "mxmaca: MACA_ASYNC is '%s'; it may be 'late' or nothing\n", text);
  return false;
}

uint32_t readPattern() {
  const char* const text = std::getenv("MACA_SEED");
  const uint64_t seed = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  // The upper half makes it a NaN of every floating dtype and a large negative integer.
  return 0xffc00000U | static_cast<uint32_t>((seed * 0x9e3779b97f4a7c15ULL + 0xdead) >> 13 & 0xffff);
}

// A stream, whether it has a handle of its own or not.
using Key = uint64_t;
// How many late copies of each stream come before something.
using Clock = std::map<Key, uint64_t>;

struct StreamKind {
  int device = 0;
  bool legacy = false, blocking = false;
};

struct Range {
  const char* start;
  size_t bytes;
  bool overlaps(const Range& other) const { return start < other.start + other.bytes && other.start < start + bytes; }
};

struct Copy {
  Key stream;
  uint64_t number;  // among those of its stream, from 1
  std::string place;
  std::vector<char> bytes;  // what was copied
  char* to;
  const char* from;
  bool read;  // the source has been read; always so for one to the host
};

struct Late {
  std::map<Key, StreamKind> kinds;
  std::map<Key, Clock> clocks;
  std::map<mcEvent_t, Clock> events;
  Clock host;
  std::vector<Copy> toHost;        // not arrived
  std::vector<Copy> fromHost;      // not read, or the host does not know that it is done
  std::vector<std::string> found;  // not reported yet
};

// Where the program is; without the lock, as it may ask an interpreter.
std::string place() {
  const std::string text = pythonPlace();
  return text.empty() ? "an unknown place" : text;
}

void merge(Clock* into, const Clock& from) {
  for (const auto& [stream, count] : from) {
    uint64_t& own = (*into)[stream];
    if (own < count) own = count;
  }
}

bool covers(const Clock& clock, const Copy& copy) {
  const auto found = clock.find(copy.stream);
  return found != clock.end() && found->second >= copy.number;
}

std::string nameOf(Key stream) {
  constexpr Key kDefaults = Key{1} << 40;
  if (stream < kDefaults) return "stream " + std::to_string(stream);
  return stream % 128 < 64 ? "the default stream" : "the thread's default stream";
}

struct Reports {
  std::set<std::string> seen;
};

// Says what has been found, each thing once, and where. Without the lock of what was looked at.
void report(const std::vector<std::string>& found) {
  constexpr size_t kMost = 100;
  if (found.empty()) return;
  const std::string here = place();
  const Writing<Reports> all;
  for (const std::string& what : found) {
    const std::string text = what + "; found at " + here;
    if (all->seen.size() >= kMost || !all->seen.insert(text).second) continue;
    std::fprintf(stderr, "mxmaca: MACA_ASYNC=late: %s\n", text.c_str());
  }
}

void fillPattern(char* to, size_t bytes) {
  static const uint32_t pattern = readPattern();
  for (size_t i = 0; i + sizeof pattern <= bytes; i += sizeof pattern) std::memcpy(to + i, &pattern, sizeof pattern);
  std::memcpy(to + bytes / sizeof pattern * sizeof pattern, &pattern, bytes % sizeof pattern);
}

bool holdsPattern(const char* at, size_t bytes) {
  std::vector<char> expected(bytes);
  fillPattern(expected.data(), bytes);
  return std::memcmp(at, expected.data(), bytes) == 0;
}

std::string describe(const Copy& copy) { return "a copy on " + nameOf(copy.stream) + " (" + copy.place + ")"; }

// With the lock. The stream's key; its clock knows what its next work comes after.
Key use(Late& all, mcStream_t stream) {
  constexpr Key kDefaults = Key{1} << 40, kThreads = 64;
  static std::atomic<Key> lastThread{0};
  thread_local Key thread = 0;
  const int device = streamDevice(stream);
  Key key = 0;
  StreamKind kind{device, false, false};
  if (!isDefaultStream(stream)) {
    key = stream->id;
    kind.blocking = stream->flags == 0;
  } else if (reinterpret_cast<uintptr_t>(stream) != 2) {
    key = kDefaults + static_cast<Key>(device);
    kind.legacy = true;
  } else {
    if (thread == 0) thread = ++lastThread;
    key = kDefaults + thread * 128 + kThreads + static_cast<Key>(device);
    kind.blocking = true;
  }
  all.kinds[key] = kind;
  Clock& clock = all.clocks[key];
  merge(&clock, all.host);
  if (kind.legacy || kind.blocking) {
    for (const auto& [other, known] : all.kinds) {
      if (other == key || known.device != device) continue;
      if (kind.legacy ? known.blocking : known.legacy) merge(&clock, all.clocks[other]);
    }
  }
  return key;
}

void arrive(Late& all, const Copy& copy) {
  if (!holdsPattern(copy.to, copy.bytes.size())) {
    all.found.push_back("the host wrote to pinned memory while a copy to it on " + nameOf(copy.stream) + " (" +
                        copy.place + ") was under way");
  }
  std::memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
}

// With the lock: what work that comes after `clock` on the device finds in pinned memory.
void arriveFor(Late& all, const Clock& clock, const Range& range, const std::string& what) {
  for (auto it = all.toHost.begin(); it != all.toHost.end();) {
    if (!range.overlaps({it->to, it->bytes.size()})) {
      ++it;
      continue;
    }
    if (!covers(clock, *it)) {
      all.found.push_back(what + " uses pinned memory that a copy on " + nameOf(it->stream) + " (" + it->place +
                          ") writes, and does not come after that");
      ++it;
      continue;
    }
    arrive(all, *it);
    it = all.toHost.erase(it);
  }
}

void readSource(Late& all, Copy& copy) {
  if (copy.read) return;
  copy.read = true;
  arriveFor(all, all.clocks[copy.stream], {copy.from, copy.bytes.size()}, describe(copy));
  std::memcpy(copy.bytes.data(), copy.from, copy.bytes.size());
  std::memcpy(copy.to, copy.from, copy.bytes.size());
}

// What comes before the next work of a stream must have been read. Work of a stream that waits for another one's is
// read where the event is recorded.
void readSourcesOf(Late& all, Key key) {
  const StreamKind& kind = all.kinds[key];
  for (Copy& copy : all.fromHost) {
    const StreamKind& other = all.kinds[copy.stream];
    const bool ordered = (kind.legacy && other.blocking) || (kind.blocking && other.legacy);
    if (copy.stream == key || (ordered && kind.device == other.device)) readSource(all, copy);
  }
}

void hostKnows(Late& all, const Clock& clock) {
  merge(&all.host, clock);
  for (auto it = all.fromHost.begin(); it != all.fromHost.end();) {
    if (!covers(all.host, *it)) {
      ++it;
      continue;
    }
    readSource(all, *it);
    if (std::memcmp(it->from, it->bytes.data(), it->bytes.size()) != 0) {
      all.found.push_back("pinned memory was written while a copy from it on " + nameOf(it->stream) + " (" + it->place +
                          ") was under way");
    }
    it = all.fromHost.erase(it);
  }
  for (auto it = all.toHost.begin(); it != all.toHost.end();) {
    if (!covers(all.host, *it)) {
      ++it;
      continue;
    }
    arrive(all, *it);
    it = all.toHost.erase(it);
  }
}

}  // namespace

const bool lateMode = readMode();

namespace late {

namespace {
// Does `step` with the lock, and reports what it has found.
template <class Step>
void with(Step&& step) {
  std::vector<std::string> found;
  {
    const check::Scope copies("a late copy");
    const Writing<Late> all;
    step(*all);
    found.swap(all->found);
  }
  report(found);
}
}  // namespace

void takeCopy(void* to, const void* from, size_t bytes, bool toHost, mcStream_t stream) {
  const std::string here = place();
  with([&](Late& all) {
    const Key key = use(all, stream);
    readSourcesOf(all, key);
    Clock& clock = all.clocks[key];
    Copy copy{
        key,   clock[key] + 1, here, std::vector<char>(bytes), static_cast<char*>(to), static_cast<const char*>(from),
        toHost};
    if (toHost) {
      arriveFor(all, clock, {copy.to, bytes}, describe(copy));
      std::memcpy(copy.bytes.data(), from, bytes);
      fillPattern(copy.to, bytes);
    }
    clock[key] = copy.number;
    (toHost ? all.toHost : all.fromHost).push_back(std::move(copy));
  });
}

void workBegins(mcStream_t stream) {
  with([&](Late& all) { readSourcesOf(all, use(all, stream)); });
}

void eventRecorded(mcEvent_t event, mcStream_t stream) {
  with([&](Late& all) {
    const Key key = use(all, stream);
    readSourcesOf(all, key);
    all.events[event] = all.clocks[key];
  });
}

void streamWaits(mcStream_t stream, mcEvent_t event) {
  with([&](Late& all) {
    Clock& clock = all.clocks[use(all, stream)];
    const auto found = all.events.find(event);
    if (found != all.events.end()) merge(&clock, found->second);
  });
}

void eventGone(mcEvent_t event) { Writing<Late>()->events.erase(event); }

void hostWaitedFor(mcStream_t stream) {
  with([&](Late& all) { hostKnows(all, Clock(all.clocks[use(all, stream)])); });
}

void hostWaitedForEvent(mcEvent_t event) {
  with([&](Late& all) {
    const auto found = all.events.find(event);
    if (found != all.events.end()) hostKnows(all, Clock(found->second));
  });
}

void hostWaitedForDevice(int device) {
  with([&](Late& all) {
    Clock clock;
    for (const auto& [key, kind] : all.kinds) {
      if (kind.device == device) merge(&clock, all.clocks[key]);
    }
    hostKnows(all, clock);
  });
}

}  // namespace late
}  // namespace mc

int mcLateMode(void) { return mc::lateMode ? 1 : 0; }
