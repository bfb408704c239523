// What a library computes for a stream: at once in the calling thread, or later, as a node of the graph that captures
// the stream or behind the work that is pending on it.
//
// Note [Calls that are made later]
// A function of a library checks its arguments, then computes. Where its work has to be done later, the function is
// called twice with one list of arguments. The first call is the program's own and ends where data of the device would
// be touched (reachData): what is wrong with the arguments is said as it is said elsewhere. The second call computes.
// Its handle and descriptors are copies, since a program may change or destroy its own, and scalars on the host are
// those of the first call. Memory of the host that no rule of the library's speaks of cannot be kept, and neither can a
// result that the program reads behind the call: such a call is refused in a capture, as on CUDA, and waits elsewhere.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "handle.h"

// Hundreds of functions have it, and few programs need it.
#define MXMACA_SELDOM __attribute__((noinline, cold))

namespace mxmaca {

// The statuses that every library has, under its own names.
template <class Status>
struct Answers;

// What computes in the calling thread with device memory, as the runtime's check of memory knows it.
class DeviceWork {
 public:
  explicit DeviceWork(const char* what) : what_(mcCheckMode() != 0 ? what : nullptr) {
    if (what_ != nullptr) mcCheckEnter();
  }
  ~DeviceWork() {
    if (what_ != nullptr) mcCheckLeave(what_);
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

 private:
  const char* what_;
};

// ---- The two calls --------------------------------------------------------------------------------------------------
enum class Phase : unsigned char { Plain, Checking, Computing };
inline Phase phase() { return static_cast<Phase>(mcThreadLibraryBytes()[0]); }
inline unsigned char& dataReached() { return mcThreadLibraryBytes()[1]; }

class PhaseScope {
 public:
  explicit PhaseScope(Phase now) : before_(std::exchange(mcThreadLibraryBytes()[0], static_cast<unsigned char>(now))) {}
  ~PhaseScope() { mcThreadLibraryBytes()[0] = before_; }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  unsigned char before_;
};

// The end of a first call.
struct DataReached {};
// Stands before the first access of a function to data of the device, behind its checks.
inline void reachData() {
  if (phase() == Phase::Checking) throw DataReached();
}

// Whether work for the stream is a node of a capture, or waits.
inline bool defers(mcStream_t stream) {
  int later = 0;
  return phase() == Phase::Plain && mcStreamDefers(stream, &later) == mcSuccess && later != 0;
}
template <class Context>
mcStream_t streamOf(Context* handle) {
  return static_cast<mcStream_t>(handleOf(handle)->stream);
}
template <class Context>
bool defers(Context* handle) {
  return live(handle) && defers(streamOf(handle));
}

// Submits work that nothing has to be said about any more.
template <class Work>
MXMACA_SELDOM mcError_t submitLater(mcStream_t stream, const char* function, Work&& work) {
  using Kept = std::decay_t<Work>;
  auto kept = std::make_unique<Kept>(std::forward<Work>(work));
  return mcStreamSubmit(
      stream, "operator", function, 0, [](void* data) -> mcError_t { return (*static_cast<Kept*>(data))(); },
      kept.release(), [](void* data) { delete static_cast<Kept*>(data); });
}

// ---- Arguments, and what is kept of them ----------------------------------------------------------------------------
// Thrown for what cannot be kept.
struct NotKept {};

// Memory that the second call can use.
MXMACA_SELDOM inline bool isDeviceMemory(const void* pointer) {
  mcPointerAttributes attributes;
  return mcPointerGetAttributes(&attributes, pointer) == mcSuccess && attributes.kind != mcMemoryUnregistered;
}
MXMACA_SELDOM inline void requireDeviceMemory(const void* pointer) {
  if (pointer != nullptr && !isDeviceMemory(pointer)) throw NotKept();
}

template <class T>
struct KeptValue {
  T value;
  T use() { return value; }
};

struct DestroyCopy {
  template <class Object>
  void operator()(Object* object) const {
    destroyObject(object);
  }
};
// A descriptor. One that the function does not look at may be none.
template <class Object>
class KeptObject {
  using Plain = std::remove_const_t<Object>;

 public:
  MXMACA_SELDOM explicit KeptObject(Object* object) : given_(object) {
    if (!live(object)) return;
    Plain* copy = nullptr;
    if (!createObject(&copy, std::make_unique<Plain>(*object))) throw std::bad_alloc();
    copy_.reset(copy);
  }
  Object* use() { return copy_ != nullptr ? copy_.get() : given_; }

 private:
  Object* given_;
  std::unique_ptr<Plain, DestroyCopy> copy_;
};

template <class Context>
class KeptHandle {
 public:
  MXMACA_SELDOM explicit KeptHandle(Context* handle) : copy_(std::make_unique<LibraryHandle>(*handleOf(handle))) {
    if (mcHandleAdd(copy_.get(), KindOf<Context>::value) == 0) throw std::bad_alloc();
  }
  MXMACA_SELDOM ~KeptHandle() {
    if (copy_ != nullptr) mcHandleRemove(copy_.get(), KindOf<Context>::value);
  }
  KeptHandle(KeptHandle&&) noexcept = default;
  KeptHandle(const KeptHandle&) = delete;
  KeptHandle& operator=(const KeptHandle&) = delete;
  KeptHandle& operator=(KeptHandle&&) = delete;
  Context* use() { return reinterpret_cast<Context*>(copy_.get()); }

 private:
  std::unique_ptr<LibraryHandle> copy_;
};

// Scalars lie on the host or on the device, as the handle's pointer mode says. How large one is that has no type, only
// the function knows: as many bytes are read as the largest one has and its page.
template <class T>
struct Scalars {
  const T* pointer;
  bool onHost;
  size_t count;
};
template <class T>
class KeptScalars {
 public:
  MXMACA_SELDOM explicit KeptScalars(const Scalars<T>& given) : pointer_(given.pointer), copied_(given.onHost) {
    if (!copied_) {
      requireDeviceMemory(pointer_);
    } else if (pointer_ == nullptr) {
      copied_ = false;
    } else {
      static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
      size_t bytes = given.count * kBytes;
      if (std::is_void<T>::value) bytes = std::min<size_t>(bytes, page - reinterpret_cast<uintptr_t>(pointer_) % page);
      // Not memcpy: a sanitizer of the program's would find bytes behind its scalar.
      const auto* const from = reinterpret_cast<const volatile unsigned char*>(pointer_);
      for (size_t i = 0; i < bytes; ++i) bytes_[i] = from[i];
    }
  }
  const T* use() { return copied_ ? reinterpret_cast<const T*>(bytes_.data()) : pointer_; }

 private:
  static constexpr size_t kLargest = 16;
  static constexpr size_t bytesOf(...) { return kLargest; }
  template <class U, class = std::enable_if_t<!std::is_void<U>::value>>
  static constexpr size_t bytesOf(const U*) {
    return sizeof(U);
  }
  static constexpr size_t kBytes = bytesOf(static_cast<const T*>(nullptr));

  const T* pointer_;
  bool copied_;
  alignas(kLargest) std::array<unsigned char, 3 * kLargest> bytes_{};
};
template <class Context, class T>
Scalars<T> scalars(Context* handle, const T* pointer, size_t count = 1) {
  return {pointer, handleOf(handle)->pointerMode == 0, count};
}

// An array on the host.
template <class T>
struct HostArray {
  const T* pointer;
  size_t count;
};
template <class T>
struct KeptArray {
  std::vector<T> values;
  const T* use() { return values.data(); }
};
template <class T, class Count>
HostArray<T> hostArray(const T* pointer, Count count) {
  return {pointer, count > 0 ? static_cast<size_t>(count) : 0};
}

// A result that lies where the pointer mode says: with that of the host the program reads it behind the call.
template <class T>
struct Result {
  T* pointer;
  bool onHost;
};
template <class Context, class T>
Result<T> resultOf(Context* handle, T* pointer) {
  return {pointer, handleOf(handle)->pointerMode == 0};
}

// What the function says about its arguments, to memory of the host: 0 where it goes on to compute.
template <class T>
struct Verdict {
  T* pointer;
};
template <class T>
struct KeptVerdict {
  T value{};
  T* use() { return &value; }
};
template <class T>
Verdict<T> verdict(T* pointer) {
  return {pointer};
}

// What the function does not read through.
template <class T>
struct Unread {
  T value;
};
template <class T>
Unread<T> unread(T value) {
  return {value};
}

// What the first call is given.
template <class T>
T given(T value) {
  return value;
}
template <class T>
const T* given(const Scalars<T>& scalars) {
  return scalars.pointer;
}
template <class T>
const T* given(const HostArray<T>& array) {
  return array.pointer;
}
template <class T>
T* given(const Result<T>& result) {
  return result.pointer;
}
template <class T>
T* given(const Verdict<T>& verdict) {
  return verdict.pointer;
}
template <class T>
T given(const Unread<T>& unread) {
  return unread.value;
}

template <class Object, class = void>
constexpr bool kIsKind = false;
template <class Object>
constexpr bool kIsKind<Object, std::void_t<decltype(KindOf<std::remove_const_t<Object>>::value)>> = true;
// Handles are of types that nobody defines.
template <class Object, class = void>
constexpr bool kIsDefined = false;
template <class Object>
constexpr bool kIsDefined<Object, std::void_t<decltype(sizeof(Object))>> = true;

// What the second call is given.
template <class T>
auto keep(T value) {
  if constexpr (!std::is_pointer<T>::value) {
    return KeptValue<T>{value};
  } else {
    using Object = std::remove_pointer_t<T>;
    if constexpr (!kIsKind<Object>) {
      requireDeviceMemory(value);
      return KeptValue<T>{value};
    } else if constexpr (kIsDefined<Object>) {
      return KeptObject<Object>(value);
    } else {
      return KeptHandle<Object>(value);
    }
  }
}
template <class T>
auto keep(const Scalars<T>& scalars) {
  return KeptScalars<T>(scalars);
}
template <class T>
auto keep(const HostArray<T>& array) {
  return KeptArray<T>{{array.pointer, array.pointer + (array.pointer == nullptr ? 0 : array.count)}};
}
template <class T>
auto keep(const Result<T>& result) {
  if (result.onHost) throw NotKept();
  requireDeviceMemory(result.pointer);
  return KeptValue<T*>{result.pointer};
}
template <class T>
auto keep(const Verdict<T>& verdict) {
  if (verdict.pointer != nullptr) *verdict.pointer = T{};
  return KeptVerdict<T>{};
}
template <class T>
auto keep(const Unread<T>& unread) {
  return KeptValue<T>{unread.value};
}

// Whether the call has been made, or will be: *status is its answer. False: its arguments cannot be kept. `first` makes
// the first call; `keepCall` keeps the arguments and returns what makes the second.
template <class Status, class First, class KeepCall>
MXMACA_SELDOM bool madeLater(Status* status, mcStream_t stream, const char* name, First&& first, KeepCall&& keepCall) {
  using Known = Answers<Status>;
  {
    const PhaseScope checking(Phase::Checking);
    dataReached() = 0;
    *status = first();
  }
  if (*status != Known::kSuccess || dataReached() == 0) return true;
  try {
    const mcError_t error = submitLater(stream, name, [second = keepCall()]() mutable {
      const PhaseScope computing(Phase::Computing);
      return second() == Known::kSuccess ? mcSuccess : mcErrorLaunchFailure;
    });
    *status = error == mcSuccess ? Known::kSuccess : Known::kExecutionFailed;
  } catch (const NotKept&) {
    return false;
  } catch (const std::bad_alloc&) {
    *status = Known::kNoMemory;
  }
  return true;
}

// The same for a function and its arguments.
template <class Status, class... Parameters, class... Arguments>
bool madeLater(Status* status, mcStream_t stream, const char* name, Status (*function)(Parameters...),
               const Arguments&... arguments) {
  return madeLater(
      status, stream, name, [&] { return function(given(arguments)...); },
      [&] {
        using Call = std::tuple<decltype(keep(arguments))...>;
        return [function, call = std::make_unique<Call>(keep(arguments)...)] {
          return std::apply([&](auto&... argument) { return function(argument.use()...); }, *call);
        };
      });
}

}  // namespace mxmaca

// The first statement of a function that computes for the stream of `handle`: leaves it where the work is done later.
// Behind the handle stand the function's arguments.
#define MXMACA_LATER(Status, function, handle, ...)                                                       \
  do {                                                                                                    \
    Status answer_;                                                                                       \
    if (mxmaca::defers(handle) &&                                                                         \
        mxmaca::madeLater(&answer_, mxmaca::streamOf(handle), __func__, function, handle, __VA_ARGS__)) { \
      return answer_;                                                                                     \
    }                                                                                                     \
  } while (false)
