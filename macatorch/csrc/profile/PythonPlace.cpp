#include "profile/PythonPlace.h"

#include <dlfcn.h>
#include <mc_runtime.h>

#include <cstdio>
#include <cstring>

namespace macatorch {
namespace {

/// What is needed of Python's stable interface, which this library is not linked with.
struct Python {
  using Object = void;
  int (*is_initialized)() = nullptr;
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  Object* (*frame)() = nullptr;
  int (*line)(Object*) = nullptr;
  Object* (*attribute)(Object*, const char*) = nullptr;
  const char* (*text)(Object*) = nullptr;
  void (*drop)(Object*) = nullptr;
  void (*fetch_error)(Object**, Object**, Object**) = nullptr;
  void (*restore_error)(Object*, Object*, Object*) = nullptr;

  Python() {
    find("Py_IsInitialized", &is_initialized);
    find("PyGILState_Ensure", &ensure);
    find("PyGILState_Release", &release);
    find("PyEval_GetFrame", &frame);
    find("PyFrame_GetLineNumber", &line);
    find("PyObject_GetAttrString", &attribute);
    find("PyUnicode_AsUTF8", &text);
    find("Py_DecRef", &drop);
    find("PyErr_Fetch", &fetch_error);
    find("PyErr_Restore", &restore_error);
  }
  template <class Function>
  static void find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
  explicit operator bool() const {
    return is_initialized && ensure && release && frame && line && attribute && text && drop && fetch_error &&
           restore_error;
  }
};

const Python& python() {
  static const Python functions;
  return functions;
}

/// Writes "file:line" of a frame. False for one of torch's own.
bool write_frame(Python::Object* frame, char* text, size_t room) {
  Python::Object* const code = python().attribute(frame, "f_code");
  Python::Object* const name = code == nullptr ? nullptr : python().attribute(code, "co_filename");
  const char* const file = name == nullptr ? nullptr : python().text(name);
  const bool found = file != nullptr && std::strstr(file, "/site-packages/torch/") == nullptr;
  if (found) {
    std::snprintf(text, room, "%s:%d", file, python().line(frame));
  }
  if (name != nullptr) {
    python().drop(name);
  }
  if (code != nullptr) {
    python().drop(code);
  }
  return found;
}

void write_place(char* text, size_t room) {
  if (python().is_initialized() == 0) {
    return;
  }
  const int state = python().ensure();
  // Memory may be freed while an exception is on its way.
  Python::Object *type = nullptr, *value = nullptr, *trace = nullptr;
  python().fetch_error(&type, &value, &trace);
  Python::Object* const innermost = python().frame();  // borrowed
  Python::Object* outer = nullptr;                     // owned
  for (Python::Object* frame = innermost; frame != nullptr && !write_frame(frame, text, room);) {
    Python::Object* const next = python().attribute(frame, "f_back");
    if (outer != nullptr) {
      python().drop(outer);
    }
    outer = next;
    frame = next;
  }
  if (outer != nullptr) {
    python().drop(outer);
  }
  // None has no code: the outermost frame has been passed, and that error goes.
  python().restore_error(type, value, trace);
  python().release(state);
}

}  // namespace

void register_python_place() {
  if ((mcLateMode() != 0 || mcCheckMode() != 0) && python()) {
    mcSetPlaceHook(&write_place);
  }
}

}  // namespace macatorch
