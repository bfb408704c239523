#include "ledger.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "process.h"
#include "residency.h"

namespace mc {

// One operation on the ledger. It begins with what the file may have lost of this process.
class Ledger::Use {
 public:
  explicit Use(Ledger& ledger) : guard_(ledger.mutex_), session(ledger.file_) {
    const int64_t pid = getpid();
    if (ledger.pid_ != pid) {
      // The first use, perhaps in a forked child, whose parent holds what is on its own account. Records of the same
      // pid are those of an earlier program of this process, or of a dead one.
      ledger.pid_ = pid;
      ledger.start_ = startTime(pid);
      ledger.own_.clear();
      for (size_t place = 1; place < session.records().size(); ++place) {
        if (session.records()[place].pid == pid) session.write(place, Record{});
      }
    }
    for (Own& entry : ledger.own_) ledger.publish(session, entry);
  }

 private:
  std::lock_guard<std::mutex> guard_;

 public:
  LedgerFile::Session session;
};

Ledger::Ledger() {
  // A child must not inherit the mutex or the file in use.
  static Ledger* const self = this;
  pthread_atfork([] { self->mutex_.lock(); }, [] { self->mutex_.unlock(); }, [] { self->mutex_.unlock(); });
}

Ledger::Own& Ledger::own(uint64_t key) {
  const auto found = std::find_if(own_.begin(), own_.end(), [key](const Own& entry) { return entry.key == key; });
  if (found != own_.end()) return *found;
  own_.push_back({key, 0, LedgerFile::kNowhere});
  return own_.back();
}

uint64_t Ledger::ownBytes(uint64_t key) const {
  const auto found = std::find_if(own_.begin(), own_.end(), [key](const Own& entry) { return entry.key == key; });
  return found == own_.end() ? 0 : found->bytes;
}

Record Ledger::recordOf(const Own& entry) const {
  const RangesFile ranges = ownRanges();
  return {pid_, start_, entry.key, entry.bytes, ranges.file, ranges.inode, {}};
}

void Ledger::publish(LedgerFile::Session& session, Own& entry) {
  if (!session.usable() || (entry.bytes == 0 && entry.place == LedgerFile::kNowhere)) return;
  const Record wanted = recordOf(entry);
  const std::vector<Record>& records = session.records();
  if (entry.place < records.size()) {
    const Record& found = records[entry.place];
    if (found.pid == pid_ && found.start == start_ && found.key == entry.key) {
      const bool same = found.bytes == wanted.bytes && found.rangesFile == wanted.rangesFile &&
                        found.rangesInode == wanted.rangesInode;
      if (!same) session.write(entry.place, wanted);
      return;
    }
  }
  entry.place = LedgerFile::kNowhere;
  if (session.locked()) {
    for (size_t place = 1; place < records.size(); ++place) {
      if (records[place].pid != 0 && isLiving(records[place].pid, records[place].start)) continue;
      if (session.write(place, wanted)) entry.place = place;
      return;
    }
  }
  entry.place = session.append(wanted);
}

uint64_t Ledger::sum(LedgerFile::Session& session, uint64_t key, bool onlyLiving) {
  uint64_t total = ownBytes(key);
  const std::vector<Record>& records = session.records();
  for (size_t place = 0; place < records.size(); ++place) {
    const Record& record = records[place];
    if (record.key != key || record.pid == 0 || record.pid == pid_ || record.bytes == 0) continue;
    if (onlyLiving && !isLiving(record.pid, record.start)) {
      if (session.locked()) session.write(place, Record{});
      continue;
    }
    total += std::min(record.bytes, UINT64_MAX - total);
  }
  return total;
}

bool Ledger::charge(uint64_t key, size_t bytes, size_t capacity) {
  Use use(*this);
  Own& entry = own(key);
  if (bytes > capacity || entry.bytes > capacity - bytes) return false;
  entry.bytes += bytes;
  publish(use.session, entry);
  // Read again: what another process published before this one must be seen, or both might be granted the same bytes.
  const bool known = !use.session.usable() || use.session.read();
  if (known && (sum(use.session, key, false) <= capacity || sum(use.session, key, true) <= capacity)) return true;
  entry.bytes -= bytes;
  publish(use.session, entry);
  return false;
}

void Ledger::release(uint64_t key, size_t bytes) {
  Use use(*this);
  Own& entry = own(key);
  entry.bytes -= std::min<uint64_t>(bytes, entry.bytes);
  publish(use.session, entry);
}

size_t Ledger::used(uint64_t key) {
  Use use(*this);
  return sum(use.session, key, true);
}

std::vector<mcProcessUse> Ledger::users(uint64_t key) {
  Use use(*this);
  std::vector<mcProcessUse> result;
  if (ownBytes(key) != 0) result.push_back({static_cast<int>(pid_), ownBytes(key)});
  for (const Record& record : use.session.records()) {
    if (record.key != key || record.bytes == 0 || record.pid == pid_ || !isLiving(record.pid, record.start)) continue;
    result.push_back({static_cast<int>(record.pid), record.bytes});
  }
  return result;
}

size_t Ledger::heldByAll() {
  Use use(*this);
  uint64_t total = 0;
  for (const Own& entry : own_) total += entry.bytes;
  for (const Record& record : use.session.records()) {
    if (record.pid != 0 && record.pid != pid_) total += std::min(record.bytes, UINT64_MAX - total);
  }
  return total;
}

std::vector<Holder> Ledger::holders() {
  Use use(*this);
  std::vector<Holder> result;
  const auto add = [&result](const Record& record) {
    if (record.bytes == 0) return;
    const auto same = std::find_if(result.begin(), result.end(),
                                   [&record](const Holder& holder) { return holder.pid == record.pid; });
    if (same != result.end()) {
      same->bytes += record.bytes;
    } else {
      result.push_back({record.pid, record.bytes, record.rangesFile, record.rangesInode});
    }
  };
  for (const Own& entry : own_) add(recordOf(entry));
  for (const Record& record : use.session.records()) {
    if (record.pid != pid_ && isLiving(record.pid, record.start)) add(record);
  }
  return result;
}

Ledger& ledger() {
  static auto* const instance = new Ledger;
  return *instance;
}

}  // namespace mc
