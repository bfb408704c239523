// What Triton's driver calls: loading a compiled kernel, and launching it. One builtin serves all kernels of all
// releases; upstream compiles one for each signature on the user's machine.

#include <cstring>
#include <memory>
#include <vector>

#include "arguments.h"
#include "driver.h"
#include "mc_device_limits.h"
#include "python_abi.h"

namespace {

using launcher::driver;
using launcher::Plan;
using launcher::succeeded;

constexpr char kCapsule[] = "mxmaca.triton.Launcher";
// Of a launch, before the kernel's own: the grid, stream, function, the packed metadata, metadata and the two hooks.
constexpr ssize_t kLeading = 9;
// Behind the kernel's own parameters come the addresses of scratch memory that newer releases hand over.
constexpr size_t kTrailing = 2;
constexpr size_t kFewParameters = 64;

struct Launcher {
  Plan plan;
  size_t parameters;
  bool cooperative;
};

PyObject* none() {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

bool isNone(PyObject* object) { return object == &_Py_NoneStruct; }

// Python's lock, given up for a while.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// A thread that has not used the device yet has no context.
bool ensureContext(int device) {
  CUcontext context = nullptr;
  if (!succeeded(driver()->ctxGetCurrent(&context))) return false;
  if (context != nullptr) return true;
  return succeeded(driver()->devicePrimaryCtxRetain(&context, device)) && succeeded(driver()->ctxSetCurrent(context));
}

bool callHook(PyObject* hook, PyObject* metadata) {
  if (isNone(hook)) return true;
  PyObject* const result = PyObject_CallFunctionObjArgs(hook, metadata, nullptr);
  if (result == nullptr) return false;
  Py_DecRef(result);
  return true;
}

// A member of the packed metadata: threads / 32, blocks of a cluster, bytes of shared memory.
bool takeMember(PyObject* metadata, ssize_t index, unsigned* value) {
  PyObject* const member = PyTuple_GetItem(metadata, index);
  if (member == nullptr) return false;
  const long number = PyLong_AsLong(member);
  if (number == -1 && PyErr_Occurred() != nullptr) return false;
  *value = static_cast<unsigned>(number);
  return true;
}

bool takeGrid(PyObject* const* arguments, long long* grid) {
  for (int i = 0; i < 3; ++i) {
    grid[i] = PyLong_AsLongLong(arguments[i]);
    if (grid[i] == -1 && PyErr_Occurred() != nullptr) return false;
    if (grid[i] > 0x7fffffff || grid[i] < -0x7fffffff - 1) {
      PyErr_Format(PyExc_OverflowError, "a grid of %lld programs in one direction", grid[i]);
      return false;
    }
  }
  return true;
}

bool takeHandle(PyObject* object, uint64_t* value) {
  *value = PyLong_AsUnsignedLongLongMask(object);
  return *value != static_cast<uint64_t>(-1) || PyErr_Occurred() == nullptr;
}

bool launchTaken(const Launcher& self, PyObject* const* arguments, const long long* grid, uint64_t* values,
                 void** pointers) {
  uint64_t stream = 0, function = 0;
  unsigned warps = 0, cluster = 0, shared = 0;
  if (!takeHandle(arguments[3], &stream) || !takeHandle(arguments[4], &function)) return false;
  PyObject* const packed = arguments[5];
  if (!takeMember(packed, 0, &warps) || !takeMember(packed, 1, &cluster) || !takeMember(packed, 2, &shared)) {
    return false;
  }
  if (cluster != 1) return succeeded(CUDA_ERROR_NOT_SUPPORTED);
  for (size_t i = 0; i < self.parameters + kTrailing; ++i) pointers[i] = &values[i];
  const auto x = static_cast<unsigned>(grid[0]), y = static_cast<unsigned>(grid[1]), z = static_cast<unsigned>(grid[2]);
  const auto kernel = reinterpret_cast<CUfunction>(function);
  const auto queue = reinterpret_cast<CUstream>(stream);
  CUresult status = CUDA_SUCCESS;
  {
    const Unlocked unlocked;
    status = self.cooperative ? driver()->launchCooperativeKernel(kernel, x, y, z, mc::limits::kWarpSize * warps, 1, 1,
                                                                  shared, queue, pointers)
                              : driver()->launchKernel(kernel, x, y, z, mc::limits::kWarpSize * warps, 1, 1, shared,
                                                       queue, pointers, nullptr);
  }
  return succeeded(status);
}

PyObject* launch(PyObject* capsule, PyObject* const* arguments, ssize_t count) {
  const auto* const self = static_cast<const Launcher*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (self == nullptr) return nullptr;
  if (count < kLeading) {
    PyErr_Format(PyExc_TypeError, "a launch has at least %d arguments, not %zd", static_cast<int>(kLeading), count);
    return nullptr;
  }
  long long grid[3];
  if (!takeGrid(arguments, grid) || !ensureContext(0)) return nullptr;
  if (!callHook(arguments[7], arguments[6])) return nullptr;
  uint64_t fewValues[kFewParameters] = {};
  void* fewPointers[kFewParameters];
  std::vector<uint64_t> manyValues;
  std::vector<void*> manyPointers;
  uint64_t* values = fewValues;
  void** pointers = fewPointers;
  const size_t needed = self->parameters + kTrailing;
  if (needed > kFewParameters) {
    manyValues.resize(needed);
    manyPointers.resize(needed);
    values = manyValues.data();
    pointers = manyPointers.data();
  }
  if (!launcher::takeArguments(self->plan, arguments + kLeading, count - kLeading, values)) return nullptr;
  const bool runs = grid[0] > 0 && grid[1] > 0 && grid[2] > 0;
  if (runs && !launchTaken(*self, arguments, grid, values, pointers)) return nullptr;
  if (!callHook(arguments[8], arguments[6])) return nullptr;
  return none();
}

PyMethodDef launchMethod = {"launch", &launch, METH_FASTCALL, nullptr};

void destroyLauncher(PyObject* capsule) { delete static_cast<Launcher*>(PyCapsule_GetPointer(capsule, kCapsule)); }

bool wants(const char* function, ssize_t wanted, ssize_t count) {
  if (wanted == count) return true;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, wanted, count);
  return false;
}

// make_launcher(plan, strict, positions, cooperative): a builtin that launches kernels of this signature.
PyObject* makeLauncher(PyObject*, PyObject* const* arguments, ssize_t count) {
  if (!wants("make_launcher", 4, count) || driver() == nullptr) return nullptr;
  auto made = std::make_unique<Launcher>();
  const char* const text = PyUnicode_AsUTF8AndSize(arguments[0], nullptr);
  if (text == nullptr) return nullptr;
  made->plan.text = text;
  made->plan.strict = PyObject_IsTrue(arguments[1]) == 1;
  if (!launcher::isPlan(made->plan.text, &made->parameters)) {
    PyErr_Format(PyExc_ValueError, "'%s' is no plan of a kernel's arguments", text);
    return nullptr;
  }
  for (ssize_t i = 0, size = PyTuple_Size(arguments[2]); i < size; ++i) {
    made->plan.positions.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GetItem(arguments[2], i))));
  }
  if (!made->plan.positions.empty() && made->plan.positions.size() < made->plan.text.size()) {
    PyErr_SetString(PyExc_ValueError, "a position for each argument, or none at all");
    return nullptr;
  }
  made->cooperative = PyObject_IsTrue(arguments[3]) == 1;
  if (PyErr_Occurred() != nullptr) return nullptr;
  PyObject* const capsule = PyCapsule_New(made.get(), kCapsule, &destroyLauncher);
  if (capsule == nullptr) return nullptr;
  made.release();
  PyObject* const result = PyCFunction_NewEx(&launchMethod, capsule, nullptr);
  Py_DecRef(capsule);
  return result;
}

// What a loaded kernel answers about itself.
struct Loaded {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int registers = 0, localBytes = 0, mostThreads = 0;
};

CUresult loadModule(const char* name, const void* image, int shared, Loaded* loaded) {
  CUresult status = driver()->moduleLoadData(&loaded->module, image);
  if (status != CUDA_SUCCESS) return status;
  const auto attribute = [loaded, &status](int* value, CUfunction_attribute which) {
    if (status == CUDA_SUCCESS) status = driver()->funcGetAttribute(value, which, loaded->function);
  };
  status = driver()->moduleGetFunction(&loaded->function, loaded->module, name);
  attribute(&loaded->registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
  attribute(&loaded->localBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attribute(&loaded->mostThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (status == CUDA_SUCCESS && shared > static_cast<int>(mc::limits::kSharedPerBlock)) {
    status = driver()->funcSetAttribute(loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
  }
  if (status != CUDA_SUCCESS) driver()->moduleUnload(loaded->module);
  return status;
}

// The length that the header of an object file gives it; 0 where it is none.
size_t lengthByHeader(const char* image, size_t bytes) {
  constexpr size_t kHeader = 64, kSections = 40, kEntryBytes = 58, kEntries = 60;
  if (bytes < kHeader || std::memcmp(image,
                                     "\x7f"
                                     "ELF",
                                     4) != 0)
    return 0;
  uint64_t sections = 0;
  uint16_t entryBytes = 0, entries = 0;
  std::memcpy(&sections, image + kSections, sizeof sections);
  std::memcpy(&entryBytes, image + kEntryBytes, sizeof entryBytes);
  std::memcpy(&entries, image + kEntries, sizeof entries);
  return sections + size_t{entryBytes} * entries;
}

// load_binary(name, image, shared, device): module, function, registers, spilled words, most threads of a block.
PyObject* loadBinary(PyObject*, PyObject* const* arguments, ssize_t count) {
  if (!wants("load_binary", 4, count) || driver() == nullptr) return nullptr;
  char* image = nullptr;
  ssize_t bytes = 0;
  const char* const name = PyUnicode_AsUTF8AndSize(arguments[0], nullptr);
  if (name == nullptr || PyBytes_AsStringAndSize(arguments[1], &image, &bytes) != 0) return nullptr;
  const long shared = PyLong_AsLong(arguments[2]), device = PyLong_AsLong(arguments[3]);
  if (PyErr_Occurred() != nullptr || !ensureContext(static_cast<int>(device))) return nullptr;
  const size_t wanted = lengthByHeader(image, static_cast<size_t>(bytes));
  if (wanted == 0 || wanted > static_cast<size_t>(bytes)) {
    PyErr_Format(PyExc_RuntimeError,
                 "Triton Error [CUDA]: the compiled kernel %s is damaged: %zd bytes of an object file", name, bytes);
    return nullptr;
  }
  Loaded loaded;
  CUresult status = CUDA_SUCCESS;
  {
    const Unlocked unlocked;
    status = loadModule(name, image, static_cast<int>(shared), &loaded);
  }
  if (!succeeded(status)) return nullptr;
  constexpr int kWord = 4;
  return Py_BuildValue("(KKiii)", reinterpret_cast<unsigned long long>(loaded.module),
                       reinterpret_cast<unsigned long long>(loaded.function), loaded.registers,
                       loaded.localBytes / kWord, loaded.mostThreads);
}

// A kernel that waits for its turn needs the code that is to go. Python lets go of kernels whenever it collects
// garbage, also while something is captured, which waiting must not disturb.
CUresult unloadWhenDone(CUmodule module) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CUresult status = driver()->threadExchangeStreamCaptureMode(&mode);
  if (status != CUDA_SUCCESS) return status;
  status = driver()->ctxSynchronize();
  if (status == CUDA_SUCCESS) status = driver()->moduleUnload(module);
  driver()->threadExchangeStreamCaptureMode(&mode);
  return status;
}

// unload_module(module): the memory of its code is free again.
PyObject* unloadModule(PyObject*, PyObject* const* arguments, ssize_t count) {
  if (!wants("unload_module", 1, count) || driver() == nullptr) return nullptr;
  uint64_t module = 0;
  if (!takeHandle(arguments[0], &module) || !ensureContext(0)) return nullptr;
  CUresult status = CUDA_SUCCESS;
  {
    const Unlocked unlocked;
    status = unloadWhenDone(reinterpret_cast<CUmodule>(module));
  }
  return succeeded(status) ? none() : nullptr;
}

// device_attribute(device, number): the value.
PyObject* deviceAttribute(PyObject*, PyObject* const* arguments, ssize_t count) {
  if (!wants("device_attribute", 2, count) || driver() == nullptr) return nullptr;
  const long device = PyLong_AsLong(arguments[0]), which = PyLong_AsLong(arguments[1]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  int value = 0;
  const auto attribute = static_cast<CUdevice_attribute>(which);
  if (!succeeded(driver()->deviceGetAttribute(&value, attribute, static_cast<int>(device)))) return nullptr;
  return Py_BuildValue("i", value);
}

PyMethodDef methods[] = {
    {"make_launcher", &makeLauncher, METH_FASTCALL, nullptr},
    {"load_binary", &loadBinary, METH_FASTCALL, nullptr},
    {"device_attribute", &deviceAttribute, METH_FASTCALL, nullptr},
    {"unload_module", &unloadModule, METH_FASTCALL, nullptr},
};

}  // namespace

#pragma GCC visibility push(default)
// The builtins make_launcher, load_binary, device_attribute and unload_module, as a tuple. To be called with Python's
// lock.
extern "C" PyObject* mcTritonFunctions() {
  PyObject* functions[4] = {};
  for (int i = 0; i < 4; ++i) functions[i] = PyCFunction_NewEx(&methods[i], nullptr, nullptr);
  for (PyObject* function : functions) {
    if (function == nullptr) return nullptr;
  }
  return Py_BuildValue("(NNNN)", functions[0], functions[1], functions[2], functions[3]);
}
#pragma GCC visibility pop
