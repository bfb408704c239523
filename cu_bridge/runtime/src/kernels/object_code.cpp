#include "kernels/object_code.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

// Note [Object code]
// ~~~~~~~~~~~~~~~~~~
// Triton's kernels are compiled on the user's machine by a compiler that writes object files. There is no linker, and
// none is needed: a file refers to itself, to the runtime, and to the C library.
// All sections of a file lie in one mapping: code, then constants, then what is written; so the distances fit into
// 32 bits. For each symbol there is a place that holds its address and a jump through that place, which serve what lies
// farther away. Pages are made executable after the references have been filled in, and no page is ever both writable
// and executable.

namespace mc {
namespace {

enum Group : size_t { kCode, kConstants, kData, kGroups };

constexpr size_t kJumpBytes = 16;

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#else
constexpr int kMachine = EM_AARCH64;
#endif

size_t roundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// What code of kernels may call outside of its file: the runtime, then the C library.
void* external(const char* name) {
  static void* const runtime = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&external), &info) == 0) return static_cast<void*>(nullptr);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  static void* const libraries[] = {dlopen("libm.so.6", RTLD_NOW), dlopen("libc.so.6", RTLD_NOW)};
  if (std::strncmp(name, "mc", 2) == 0 && runtime != nullptr) {
    if (void* const found = dlsym(runtime, name); found != nullptr) return found;
  }
  for (void* library : libraries) {
    if (library == nullptr) continue;
    if (void* const found = dlsym(library, name); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

class ObjectLoader {
 public:
  ObjectLoader(const void* image, size_t bytes, std::string* problem)
      : image_(static_cast<const char*>(image)), bytes_(bytes), problem_(problem) {}

  std::unique_ptr<ObjectCode> load() {
    if (!readHeader() || !readSections() || !readSymbolTable() || !place() || !resolve() || !relocate() || !protect()) {
      return nullptr;
    }
    return std::move(code_);
  }

 private:
  bool refuse(const std::string& why) {
    *problem_ = why;
    return false;
  }

  // Whether `size` bytes from `offset` on lie in the file.
  bool inFile(uint64_t offset, uint64_t size) const { return offset <= bytes_ && size <= bytes_ - offset; }

  template <class T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, image_ + offset, sizeof value);
    return value;
  }

  bool readHeader() {
    if (!inFile(0, sizeof header_)) return refuse("object file, cut short");
    header_ = read<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64 ||
        header_.e_type != ET_REL) {
      return refuse("no object file");
    }
    if (header_.e_machine != kMachine) return refuse("object file of another processor");
    if (header_.e_shentsize != sizeof(Elf64_Shdr) ||
        !inFile(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr))) {
      return refuse("object file, cut short");
    }
    return true;
  }

  bool readSections() {
    for (size_t i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
      const Elf64_Shdr& section = sections_.back();
      if (section.sh_type != SHT_NOBITS && !inFile(section.sh_offset, section.sh_size)) {
        return refuse("object file, cut short");
      }
      if ((section.sh_flags & SHF_ALLOC) == 0) continue;
      if ((section.sh_flags & SHF_TLS) != 0) return refuse("object file with variables of threads");
      const bool starts = section.sh_type == SHT_INIT_ARRAY || section.sh_type == SHT_FINI_ARRAY;
      if (starts && section.sh_size != 0) return refuse("object file with functions to run at its start");
    }
    return true;
  }

  bool readSymbolTable() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections_.size()) {
        return refuse("object file with a damaged table of symbols");
      }
      const Elf64_Shdr& strings = sections_[section.sh_link];
      if (strings.sh_type != SHT_STRTAB) return refuse("object file with a damaged table of symbols");
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
        symbols_.push_back(read<Elf64_Sym>(section.sh_offset + at));
        const uint64_t name = symbols_.back().st_name;
        const char* const text = image_ + strings.sh_offset + name;
        if (name >= strings.sh_size || std::memchr(text, 0, strings.sh_size - name) == nullptr) {
          return refuse("object file with a damaged table of symbols");
        }
        names_.emplace_back(text);
      }
      return true;
    }
    return refuse("object file without symbols");
  }

  static Group groupOf(const Elf64_Shdr& section) {
    if ((section.sh_flags & SHF_EXECINSTR) != 0) return kCode;
    return (section.sh_flags & SHF_WRITE) != 0 ? kData : kConstants;
  }

  // Chooses the places of the sections, and copies them there.
  bool place() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    places_.assign(sections_.size(), 0);
    size_t end = 0;
    for (size_t group = 0; group < kGroups; ++group) {
      starts_[group] = end = roundUp(end, page);
      for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& section = sections_[i];
        if ((section.sh_flags & SHF_ALLOC) == 0 || groupOf(section) != group) continue;
        const uint64_t alignment = section.sh_addralign == 0 ? 1 : section.sh_addralign;
        if (alignment > page || (alignment & (alignment - 1)) != 0 || section.sh_size > (size_t{1} << 30)) {
          return refuse("object file with a section that has no place");
        }
        places_[i] = end = roundUp(end, alignment);
        end += section.sh_size;
        if (end > (size_t{1} << 30)) return refuse("object file of more than a gigabyte");
      }
      // For each symbol a jump, behind the code, and the address that it jumps to, behind the constants.
      if (group == kCode) jumps_ = end = roundUp(end, kJumpBytes);
      if (group == kCode) end += symbols_.size() * kJumpBytes;
      if (group == kConstants) addresses_ = end = roundUp(end, sizeof(uint64_t));
      if (group == kConstants) end += symbols_.size() * sizeof(uint64_t);
    }
    starts_[kGroups] = roundUp(end, page);
    void* const memory = mmap(nullptr, starts_[kGroups], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return refuse(std::string("no memory for object code: ") + std::strerror(errno));
    code_.reset(new ObjectCode);
    code_->memory_ = static_cast<char*>(memory);
    code_->mapped_ = starts_[kGroups];
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS) continue;
      std::memcpy(code_->memory_ + places_[i], image_ + section.sh_offset, section.sh_size);
    }
    return true;
  }

  uintptr_t base() const { return reinterpret_cast<uintptr_t>(code_->memory_); }

  // Gives each symbol its address, and its jump.
  bool resolve() {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      uintptr_t address = 0;
      if (symbol.st_shndx == SHN_ABS) {
        address = symbol.st_value;
      } else if (symbol.st_shndx == SHN_UNDEF) {
        if (!names_[i].empty()) {
          address = reinterpret_cast<uintptr_t>(external(names_[i].c_str()));
          if (address == 0 && ELF64_ST_BIND(symbol.st_info) != STB_WEAK) {
            return refuse("object file that calls " + names_[i] + ", which is not there");
          }
        }
      } else if (symbol.st_shndx < sections_.size()) {
        const Elf64_Shdr& section = sections_[symbol.st_shndx];
        if (symbol.st_value > section.sh_size) return refuse("object file with a damaged table of symbols");
        if ((section.sh_flags & SHF_ALLOC) != 0) address = base() + places_[symbol.st_shndx] + symbol.st_value;
        const int binding = ELF64_ST_BIND(symbol.st_info);
        if (address != 0 && binding != STB_LOCAL) code_->symbols_.push_back({names_[i], address});
      } else {
        return refuse("object file with the symbol " + names_[i] + " in no section");
      }
      values_.push_back(address);
      std::memcpy(code_->memory_ + addressPlace(i), &address, sizeof address);
      writeJump(i);
    }
    return true;
  }

  size_t addressPlace(size_t symbol) const { return addresses_ + symbol * sizeof(uint64_t); }
  size_t jumpPlace(size_t symbol) const { return jumps_ + symbol * kJumpBytes; }

  void writeJump(size_t symbol) {
    char* const at = code_->memory_ + jumpPlace(symbol);
#if defined(__x86_64__)
    constexpr size_t kInstruction = 6;  // jmp *distance(%rip)
    at[0] = static_cast<char>(0xff);
    at[1] = 0x25;
    const auto distance = static_cast<int32_t>(addressPlace(symbol) - (jumpPlace(symbol) + kInstruction));
    std::memcpy(at + 2, &distance, sizeof distance);
#else
    const auto address = static_cast<int64_t>(base() + addressPlace(symbol));
    const auto here = static_cast<int64_t>(base() + jumpPlace(symbol));
    // x16 is the register that a linker's code between a call and its target may change.
    const uint32_t instructions[] = {
        0x90000010U | pageField(pageOf(address) - pageOf(here)),  // adrp x16, the page of the address
        0xf9400210U | lowField(address, 3),                       // ldr x16, [x16, its place in the page]
        0xd61f0200U,                                              // br x16
    };
    static_assert(sizeof instructions <= kJumpBytes, "the room of a jump");
    std::memcpy(at, instructions, sizeof instructions);
#endif
  }

  bool relocate() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_REL) return refuse("object file with references of an unknown form");
      if (section.sh_type != SHT_RELA || section.sh_info >= sections_.size()) continue;
      const Elf64_Shdr& target = sections_[section.sh_info];
      if ((target.sh_flags & SHF_ALLOC) == 0) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size; at += sizeof(Elf64_Rela)) {
        const auto entry = read<Elf64_Rela>(section.sh_offset + at);
        const uint64_t room = entry.r_offset < target.sh_size ? target.sh_size - entry.r_offset : 0;
        if (target.sh_type == SHT_NOBITS || ELF64_R_SYM(entry.r_info) >= symbols_.size()) {
          return refuse("object file with a damaged reference");
        }
        if (!apply(entry, places_[section.sh_info] + entry.r_offset, room)) return false;
      }
    }
    return true;
  }

  bool put64(size_t place, uint64_t room, uint64_t value) {
    if (room < sizeof value) return refuse("object file with a damaged reference");
    std::memcpy(code_->memory_ + place, &value, sizeof value);
    return true;
  }

  bool put32(size_t place, uint64_t room, int64_t value, const std::string& name) {
    const auto narrow = static_cast<int32_t>(value);
    if (room < sizeof narrow) return refuse("object file with a damaged reference");
    if (narrow != value) return refuseFar(name);
    std::memcpy(code_->memory_ + place, &narrow, sizeof narrow);
    return true;
  }

#if defined(__aarch64__)
  // Fields of instructions, as the Arm Architecture Reference Manual (DDI 0487, C6.2) has them.
  static int64_t pageOf(int64_t address) { return address & ~int64_t{0xfff}; }
  // Of ADR and ADRP: a distance in pages of 4 KiB, the two lowest bits apart from the others.
  static uint32_t pageField(int64_t distance) {
    const auto pages = static_cast<uint32_t>(distance >> 12);
    return (pages & 3U) << 29 | (pages >> 2 & 0x7ffffU) << 5;
  }
  // Of ADD, loads and stores: the place in such a page, in units of what is loaded (1 << shift bytes).
  static uint32_t lowField(int64_t address, int shift) {
    return static_cast<uint32_t>((address & 0xfff) >> shift) << 10;
  }

  bool putField(size_t place, uint64_t room, uint32_t mask, uint32_t field) {
    uint32_t instruction;
    if (room < sizeof instruction) return refuse("object file with a damaged reference");
    std::memcpy(&instruction, code_->memory_ + place, sizeof instruction);
    instruction = (instruction & ~mask) | field;
    std::memcpy(code_->memory_ + place, &instruction, sizeof instruction);
    return true;
  }

  bool putPage(size_t place, uint64_t room, int64_t target, const std::string& name) {
    const int64_t distance = pageOf(target) - pageOf(static_cast<int64_t>(base() + place));
    if (distance < -(int64_t{1} << 32) || distance >= int64_t{1} << 32) return refuseFar(name);
    return putField(place, room, 0x60ffffe0U, pageField(distance));
  }

  bool putLow(size_t place, uint64_t room, int64_t target, int shift) {
    if ((target & ((1 << shift) - 1)) != 0) return refuse("object file with a damaged reference");
    return putField(place, room, 0x003ffc00U, lowField(target, shift));
  }

  bool putCall(size_t place, uint64_t room, int64_t target, const std::string& name) {
    const int64_t distance = target - static_cast<int64_t>(base() + place);
    if (distance < -(int64_t{1} << 27) || distance >= int64_t{1} << 27) return refuseFar(name);
    return putField(place, room, 0x03ffffffU, static_cast<uint32_t>(distance >> 2) & 0x03ffffffU);
  }
#endif

  bool refuseFar(const std::string& name) {
    return refuse("object file with a reference to " + name + " that is too far away");
  }

  // One reference. The names are those of the processor's ABI: S the symbol, A the addend, P the place.
  bool apply(const Elf64_Rela& entry, size_t place, uint64_t room) {
    const size_t symbol = ELF64_R_SYM(entry.r_info);
    const std::string& name = names_[symbol];
    const bool outside = symbols_[symbol].st_shndx == SHN_UNDEF;
    const auto value = static_cast<int64_t>(values_[symbol]);
    const auto here = static_cast<int64_t>(base() + place);
    const auto jump = static_cast<int64_t>(base() + jumpPlace(symbol));
    const auto address = static_cast<int64_t>(base() + addressPlace(symbol));
#if defined(__x86_64__)
    switch (ELF64_R_TYPE(entry.r_info)) {
      case R_X86_64_NONE: return true;
      case R_X86_64_64: return put64(place, room, static_cast<uint64_t>(value + entry.r_addend));
      case R_X86_64_PC64: return put64(place, room, static_cast<uint64_t>(value + entry.r_addend - here));
      case R_X86_64_PLT32: return put32(place, room, (outside ? jump : value) + entry.r_addend - here, name);
      case R_X86_64_PC32: return put32(place, room, value + entry.r_addend - here, name);
      case R_X86_64_32S: return put32(place, room, value + entry.r_addend, name);
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: return put32(place, room, address + entry.r_addend - here, name);
      default: break;
    }
#else
    const int64_t target = value + entry.r_addend;
    switch (ELF64_R_TYPE(entry.r_info)) {
      case R_AARCH64_NONE: return true;
      case R_AARCH64_ABS64: return put64(place, room, static_cast<uint64_t>(target));
      case R_AARCH64_PREL64: return put64(place, room, static_cast<uint64_t>(target - here));
      case R_AARCH64_PREL32: return put32(place, room, target - here, name);
      case R_AARCH64_CALL26:
      case R_AARCH64_JUMP26: return putCall(place, room, outside ? jump : target, name);
      case R_AARCH64_ADR_PREL_PG_HI21: return putPage(place, room, target, name);
      case R_AARCH64_ADD_ABS_LO12_NC:
      case R_AARCH64_LDST8_ABS_LO12_NC: return putLow(place, room, target, 0);
      case R_AARCH64_LDST16_ABS_LO12_NC: return putLow(place, room, target, 1);
      case R_AARCH64_LDST32_ABS_LO12_NC: return putLow(place, room, target, 2);
      case R_AARCH64_LDST64_ABS_LO12_NC: return putLow(place, room, target, 3);
      case R_AARCH64_LDST128_ABS_LO12_NC: return putLow(place, room, target, 4);
      case R_AARCH64_ADR_GOT_PAGE: return putPage(place, room, address, name);
      case R_AARCH64_LD64_GOT_LO12_NC: return putLow(place, room, address, 3);
      default: break;
    }
#endif
    return refuse("object file with a reference of kind " + std::to_string(ELF64_R_TYPE(entry.r_info)) +
                  ", which is unknown here");
  }

  bool protect() {
    char* const memory = code_->memory_;
    // Arm's caches of instructions do not follow what is written to memory.
    __builtin___clear_cache(memory + starts_[kCode], memory + starts_[kConstants]);
    if (mprotect(memory + starts_[kCode], starts_[kConstants] - starts_[kCode], PROT_READ | PROT_EXEC) != 0 ||
        mprotect(memory + starts_[kConstants], starts_[kData] - starts_[kConstants], PROT_READ) != 0) {
      return refuse(std::string("the system lets no code be made: ") + std::strerror(errno));
    }
    return true;
  }

  const char* image_;
  size_t bytes_;
  std::string* problem_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<std::string> names_;  // of the symbols
  std::vector<uintptr_t> values_;   // of the symbols
  std::vector<size_t> places_;      // of the sections, in the mapping
  size_t starts_[kGroups + 1] = {};
  size_t jumps_ = 0, addresses_ = 0;
  std::unique_ptr<ObjectCode> code_;
};

std::unique_ptr<ObjectCode> ObjectCode::load(const void* image, size_t bytes, std::string* problem) {
  return ObjectLoader(image, bytes, problem).load();
}

ObjectCode::~ObjectCode() {
  if (memory_ == nullptr) return;
  mmap(memory_, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void* ObjectCode::symbol(const char* name) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.name == name) return reinterpret_cast<void*>(symbol.address);
  }
  return nullptr;
}

}  // namespace mc
