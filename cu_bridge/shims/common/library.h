// What the libraries that compute have in common: how they make handles and descriptors, check arguments and answer.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "handle.h"
#include "openblas.h"
#include "status.h"
#include "stream_work.h"

#pragma GCC visibility push(default)
#include "library_types.h"
#pragma GCC visibility pop

#define MXMACA_EXPORT extern "C" __attribute__((visibility("default")))

// Leaves the function, whose statuses are of the type `Status`, unless the condition holds.
#define MXMACA_REQUIRE(condition)                                    \
  do {                                                               \
    if (!(condition)) return mxmaca::Answers<Status>::kInvalidValue; \
  } while (false)
// Leaves the function with a status that is no success.
#define MXMACA_RETURN_IF_FAILED(check)                                  \
  do {                                                                  \
    const Status checked_ = (check);                                    \
    if (checked_ != mxmaca::Answers<Status>::kSuccess) return checked_; \
  } while (false)

namespace mxmaca {

#define MXMACA_ANSWERS(Status, success, notInitialized, invalidValue, noMemory, executionFailed)                \
  template <>                                                                                                   \
  struct mxmaca::Answers<Status> {                                                                              \
    static constexpr Status kSuccess = success, kNotInitialized = notInitialized, kInvalidValue = invalidValue, \
                            kNoMemory = noMemory, kExecutionFailed = executionFailed;                           \
  }

// An enumeration whose values follow one another.
template <class Enum>
struct Range;
#define MXMACA_RANGE(Enum, first, last)                 \
  template <>                                           \
  struct mxmaca::Range<Enum> {                          \
    static constexpr Enum kFirst = first, kLast = last; \
  }
template <class Enum>
bool valid(Enum value) {
  return value >= Range<Enum>::kFirst && value <= Range<Enum>::kLast;
}

// A pointer to data is null where elements must be read or written.
struct MissingData {};
template <class Pointer>
Pointer there(Pointer data) {
  if (data == nullptr) throw MissingData();
  return data;
}

// A type as a value. MXMACA_WITH_TYPE calls `choose(work)`, which calls its argument with the Typed of what was chosen:
// the body, in which that type has the name `Name`.
template <class T>
struct Typed {
  using Type = T;
};
#define MXMACA_WITH_TYPE(choose, type, Name, ...) \
  choose(type, [&](auto chosen) -> Status {       \
    using Name = typename decltype(chosen)::Type; \
    __VA_ARGS__                                   \
    return mxmaca::Answers<Status>::kSuccess;     \
  })

// What goes wrong in the work of a function becomes a status.
template <class Work>
auto attempt(const char* function, Work&& work) -> decltype(work()) {
  using Known = Answers<decltype(work())>;
  const DeviceWork computes(function);
  try {
    return work();
  } catch (const DataReached&) {
    dataReached() = 1;
    return Known::kSuccess;
  } catch (const MissingData&) {
    return Known::kInvalidValue;
  } catch (const BadIndex&) {
    return Known::kExecutionFailed;
  } catch (const BlasMissing&) {
    return Known::kNotInitialized;
  } catch (const std::bad_alloc&) {
    return Known::kNoMemory;
  }
}
// Runs the work of a function for a handle, whose stream must be one. The work is done at once (MXMACA_LATER stands
// before where it need not be).
template <class Context, class Work>
auto guarded(Context* handle, Work&& work, const char* function = __builtin_FUNCTION()) -> decltype(work()) {
  using Known = Answers<decltype(work())>;
  if (!live(handle)) return Known::kNotInitialized;
  if (phase() == Phase::Plain && mcStreamCheck(static_cast<mcStream_t>(handleOf(handle)->stream)) != mcSuccess) {
    return Known::kExecutionFailed;
  }
  return attempt(function, std::forward<Work>(work));
}
// The same for a function that does nothing on the stream: a question, or a preparation that reads no data.
template <class Context, class Work>
auto described(Context* handle, Work&& work, const char* function = __builtin_FUNCTION()) -> decltype(work()) {
  using Known = Answers<decltype(work())>;
  if (!live(handle)) return Known::kNotInitialized;
  int defers = 0;
  if (mcStreamDefers(static_cast<mcStream_t>(handleOf(handle)->stream), &defers) != mcSuccess) {
    return Known::kExecutionFailed;
  }
  return attempt(function, std::forward<Work>(work));
}

// ---- Handles --------------------------------------------------------------------------------------------------------
// Creating a handle needs a device and allocates on it, as it does on real hardware: a capture may forbid it.
template <class Status, class Context>
Status createHandle(Context** handle) {
  MXMACA_REQUIRE(handle != nullptr);
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return Answers<Status>::kNotInitialized;
  if (mcCaptureForbids() != mcSuccess) return Answers<Status>::kNoMemory;
  auto created = std::unique_ptr<LibraryHandle>(new (std::nothrow) LibraryHandle);
  if (created == nullptr || mcHandleAdd(created.get(), KindOf<Context>::value) == 0) {
    return Answers<Status>::kNotInitialized;
  }
  *handle = reinterpret_cast<Context*>(created.release());
  return Answers<Status>::kSuccess;
}
template <class Status, class Context>
Status destroyHandle(Context* handle) {
  if (mcHandleRemove(handle, KindOf<Context>::value) == 0) return Answers<Status>::kNotInitialized;
  mcCaptureForbids();  // its memory is freed: the handle goes, and so does a capture that forbids it
  end(handleOf(handle));
  return Answers<Status>::kSuccess;
}

// What a handle keeps: set to a value that must be valid, or read to where the caller wants it.
template <class Status, class Context, class Field, class Value>
Status setField(Context* handle, Field LibraryHandle::* field, Value value, bool valid) {
  if (!live(handle)) return Answers<Status>::kNotInitialized;
  MXMACA_REQUIRE(valid);
  handleOf(handle)->*field = value;
  return Answers<Status>::kSuccess;
}
template <class Status, class Context, class Field, class Value>
Status getField(Context* handle, Field LibraryHandle::* field, Value* value) {
  if (!live(handle)) return Answers<Status>::kNotInitialized;
  MXMACA_REQUIRE(value != nullptr);
  *value = static_cast<Value>(handleOf(handle)->*field);
  return Answers<Status>::kSuccess;
}
template <class Status, class Context, class Stream>
Status setStream(Context* handle, Stream stream) {
  return setField<Status>(handle, &LibraryHandle::stream, stream, isStream(stream));
}
template <class Status, class Context, class Stream>
Status getStream(Context* handle, Stream* stream) {
  return getField<Status>(handle, &LibraryHandle::stream, stream);
}

// ---- Descriptors ----------------------------------------------------------------------------------------------------
template <class Status, class Descriptor>
Status createDescriptor(Descriptor** descriptor, const Descriptor& value = {}) {
  MXMACA_REQUIRE(descriptor != nullptr);
  auto created = std::unique_ptr<Descriptor>(new (std::nothrow) Descriptor(value));
  return createObject(descriptor, std::move(created)) ? Answers<Status>::kSuccess : Answers<Status>::kNoMemory;
}
template <class Status, class Descriptor>
Status destroyDescriptor(const Descriptor* descriptor) {
  return destroyObject(descriptor) ? Answers<Status>::kSuccess : Answers<Status>::kInvalidValue;
}

// ---- Versions -------------------------------------------------------------------------------------------------------
template <class Status>
Status getVersion(int* to, int version) {
  MXMACA_REQUIRE(to != nullptr);
  *to = version;
  return Answers<Status>::kSuccess;
}
template <class Status>
Status getProperty(libraryPropertyType type, int* value, int major, int minor, int patch) {
  MXMACA_REQUIRE(value != nullptr && type >= MAJOR_VERSION && type <= PATCH_LEVEL);
  *value = type == MAJOR_VERSION ? major : type == MINOR_VERSION ? minor : patch;
  return Answers<Status>::kSuccess;
}

}  // namespace mxmaca
