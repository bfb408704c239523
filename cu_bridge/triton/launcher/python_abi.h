// What the launcher needs of Python's stable ABI. Declared here, as the build has no headers of Python: it wants a C++
// compiler and no package of the system besides. Everything in it holds from Python 3.8 on, for builds with the global
// lock and without it (PEP 703): an object is known by its address alone, as the two lay it out differently.
#pragma once

#include <sys/types.h>

extern "C" {

struct PyObject;
struct PyTypeObject;
struct PyThreadState;
using PyCFunctionFast = PyObject* (*)(PyObject* self, PyObject* const* arguments, ssize_t count);
struct PyMethodDef {
  const char* name;
  PyCFunctionFast function;
  int flags;
  const char* doc;
};
constexpr int METH_FASTCALL = 0x80;
constexpr unsigned long Py_TPFLAGS_LONG_SUBCLASS = 1UL << 24, Py_TPFLAGS_TUPLE_SUBCLASS = 1UL << 26;

extern PyObject _Py_NoneStruct;
extern PyObject *PyExc_MemoryError, *PyExc_OverflowError, *PyExc_RuntimeError, *PyExc_TypeError, *PyExc_ValueError;

void Py_IncRef(PyObject* object);
void Py_DecRef(PyObject* object);
PyObject* PyObject_Type(PyObject* object);
unsigned long PyType_GetFlags(PyTypeObject* type);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_CallMethodObjArgs(PyObject* object, PyObject* name, ...);
ssize_t PyTuple_Size(PyObject* tuple);
PyObject* PyTuple_GetItem(PyObject* tuple, ssize_t index);  // borrowed
long PyLong_AsLong(PyObject* number);
long long PyLong_AsLongLong(PyObject* number);
unsigned long long PyLong_AsUnsignedLongLong(PyObject* number);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject* number);
double PyFloat_AsDouble(PyObject* number);
int PyObject_IsTrue(PyObject* object);
const char* PyUnicode_AsUTF8AndSize(PyObject* text, ssize_t* size);
PyObject* PyUnicode_InternFromString(const char* text);
int PyBytes_AsStringAndSize(PyObject* bytes, char** data, ssize_t* size);
PyObject* Py_BuildValue(const char* format, ...);
PyObject* PyErr_Occurred();
void PyErr_Clear();
PyObject* PyErr_Format(PyObject* type, const char* format, ...);
void PyErr_SetString(PyObject* type, const char* text);
PyObject* PyCapsule_New(void* pointer, const char* name, void (*destructor)(PyObject*));
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
PyThreadState* PyEval_SaveThread();
void PyEval_RestoreThread(PyThreadState* state);

}  // extern "C"
