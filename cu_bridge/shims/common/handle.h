// Handles and descriptors of the libraries: which are there, and what a handle's set functions store.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

#include "mc_runtime.h"

namespace mxmaca {

// What an address that a library has handed out is.
enum class Kind : int {
  Cublas = 1,
  CublasXt,
  CublasLt,
  CublasLtLayout,
  CublasLtOperation,
  CublasLtPreference,
  CublasLtTransform,
  Cusolver,
  CusolverSyevj,
  CusolverGesvdj,
  CusolverParameters,
  CusolverRefinement,
  CusolverRefined,
  CusolverSparse,
  CusolverLu,
  CusolverQr,
  CusolverQrHost,
  CusolverCholesky,
  CusolverCholeskyHost,
  CusolverRefactor,
  Cusparse,
  CusparseMatrix,
  CusparseSparseVector,
  CusparseSparseMatrix,
  CusparseDenseVector,
  CusparseDenseMatrix,
  CusparseSpGemm,
  CusparseSpSv,
  CusparseSpSm,
  CusparseIncompleteLu,
  CusparseIncompleteCholesky,
  CusparseBlockLu,
  CusparseBlockCholesky,
  CusparseBlockSv,
  CusparseBlockSm,
  Cudnn,
  CudnnTensor,
  CudnnFilter,
  CudnnConvolution,
  CudnnPooling,
  CudnnActivation,
  CudnnLrn,
  CudnnDropout,
  CudnnOpTensor,
  CudnnReduceTensor,
  Curand,
  CurandDiscrete,
  NcclCommunicator,
};

// The kind of the objects that pointers to this type name; each library says it for its own.
template <class Object>
struct KindOf;
#define MXMACA_OBJECT(Type, name)                                      \
  template <>                                                          \
  struct mxmaca::KindOf<Type> {                                        \
    static constexpr int value = static_cast<int>(mxmaca::Kind::name); \
  }

// Whether the library has handed out this object and not destroyed it since. Nothing behind the address is read.
template <class Object>
bool live(const Object* object) {
  return mcHandleIs(object, KindOf<std::remove_const_t<Object>>::value) != 0;
}
// A null pointer, where the caller may leave an object out, or a live object.
template <class Object>
bool liveOrNull(const Object* object) {
  return object == nullptr || live(object);
}

// Note [Memory of destroyed objects]
// A program that goes on with a destroyed handle must not meet the next object in its place. So an object ends at once,
// and its memory is used again when as many others have ended after it.
class Resting {
 public:
  void add(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ::operator delete(places_[next_]);
    places_[next_] = memory;
    next_ = (next_ + 1) % kPlaces;
  }

 private:
  static constexpr size_t kPlaces = 256;
  std::mutex mutex_;
  void* places_[kPlaces] = {};
  size_t next_ = 0;
};
inline Resting resting;

template <class Object>
void end(Object* object) {
  static_assert(alignof(Object) <= alignof(std::max_align_t), "made by the plain operator new");
  object->~Object();
  resting.add(object);
}

// Hands out an object of its own; false where there is no memory.
template <class Object>
bool createObject(Object** object, std::unique_ptr<Object> created) {
  if (created == nullptr || mcHandleAdd(created.get(), KindOf<Object>::value) == 0) return false;
  *object = created.release();
  return true;
}
// False where it is not a live one.
template <class Object>
bool destroyObject(const Object* object) {
  if (mcHandleRemove(object, KindOf<std::remove_const_t<Object>>::value) == 0) return false;
  end(const_cast<std::remove_const_t<Object>*>(object));
  return true;
}

struct LibraryHandle {
  void* stream = nullptr;
  int pointerMode = 0;
  int mathMode = 0;
  int atomicsMode = 0;
  int multiprocessors = 0;
  void* workspace = nullptr;
  size_t workspaceBytes = 0;
};

// Handles are opaque types of each library; all are this one inside. For a live handle.
template <class Handle>
LibraryHandle* handleOf(Handle handle) {
  return reinterpret_cast<LibraryHandle*>(const_cast<void*>(static_cast<const void*>(handle)));
}

// Whether work can be submitted to the stream, captures aside.
inline bool isStream(const void* stream) {
  unsigned int flags = 0;
  return mcStreamGetFlags(static_cast<mcStream_t>(const_cast<void*>(stream)), &flags) == mcSuccess;
}

}  // namespace mxmaca
