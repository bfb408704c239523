// Note [Old glibc]
// The libraries are built on a new system and must load on an old one (glibc 2.28). glibc 2.34 gave functions that
// moved into libc.so.6 new symbol versions, which a linker on a new system chooses and an old system lacks. Here they
// get a local definition that calls the version which both have; what asks for them, in our sources or in the static
// C++ runtime, binds to it. Two that no old system has are written out.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>

#include <cstdint>

#if defined(__x86_64__)
#define BASE_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define BASE_VERSION "GLIBC_2.17"
#else
#error "which is this architecture's first glibc version?"
#endif

#define LOCAL __attribute__((visibility("hidden")))
// `result name(parameters)` as a local function that calls the base version with `arguments`.
#define USE_BASE_VERSION(result, name, parameters, arguments)    \
  extern "C" {                                                   \
  __asm__(".symver base_" #name ", " #name "@" BASE_VERSION);    \
  result base_##name parameters;                                 \
  LOCAL result name parameters { return base_##name arguments; } \
  }

#pragma GCC diagnostic ignored "-Wmissing-attributes"
// pthread_setspecific takes an address and reads nothing there, which a definition here cannot say.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

USE_BASE_VERSION(int, pthread_create,
                 (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
                 (thread, attributes, start, argument))
USE_BASE_VERSION(int, pthread_detach, (pthread_t thread), (thread))
USE_BASE_VERSION(int, pthread_join, (pthread_t thread, void** result), (thread, result))
USE_BASE_VERSION(int, pthread_kill, (pthread_t thread, int number), (thread, number))
USE_BASE_VERSION(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* before), (how, set, before))
USE_BASE_VERSION(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
USE_BASE_VERSION(int, pthread_once, (pthread_once_t * once, void (*routine)()), (once, routine))
USE_BASE_VERSION(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
USE_BASE_VERSION(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
USE_BASE_VERSION(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
USE_BASE_VERSION(int, __pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)), (key, destroy))
USE_BASE_VERSION(int, pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)), (key, destroy))
USE_BASE_VERSION(void*, pthread_getspecific, (pthread_key_t key), (key))
USE_BASE_VERSION(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
USE_BASE_VERSION(void*, dlopen, (const char* file, int mode), (file, mode))
USE_BASE_VERSION(void*, dlsym, (void* handle, const char* name), (handle, name))
USE_BASE_VERSION(int, dladdr, (const void* address, Dl_info* info), (address, info))
USE_BASE_VERSION(int, dlclose, (void* handle), (handle))
USE_BASE_VERSION(char*, dlerror, (), ())

extern "C" {

// The static C++ runtime takes short cuts in single-threaded programs. Never here.
LOCAL char __libc_single_threaded = 0;

// glibc 2.35's way for the unwinder to find the object at an address, on top of the old one.
struct FoundObject {
  unsigned long long flags;
  void* start;
  void* end;
  link_map* map;
  void* exceptionFrames;
  unsigned long long reserved[7];
};

// Under a name of its own here, as new headers declare the function with their own type.
LOCAL int findObject(void* address, FoundObject* found) __asm__("_dl_find_object");

LOCAL int findObject(void* address, FoundObject* found) {
  struct Search {
    uintptr_t address;
    FoundObject* found;
  } search{reinterpret_cast<uintptr_t>(address), found};
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto* const search = static_cast<Search*>(data);
    bool here = false;
    const ElfW(Phdr)* frames = nullptr;
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr) & header = info->dlpi_phdr[i];
      if (header.p_type == PT_GNU_EH_FRAME) frames = &header;
      if (header.p_type != PT_LOAD) continue;
      const uintptr_t low = info->dlpi_addr + header.p_vaddr;
      const uintptr_t high = low + header.p_memsz;
      here = here || (search->address >= low && search->address < high);
      start = low < start ? low : start;
      end = high > end ? high : end;
    }
    if (!here || frames == nullptr) return 0;
    *search->found = {};
    search->found->start = reinterpret_cast<void*>(start);
    search->found->end = reinterpret_cast<void*>(end);
    search->found->exceptionFrames = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
    return 1;
  };
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

}  // extern "C"
