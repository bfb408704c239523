// Importing the module loads the library, whose static initialisers register the operators.
#include <Python.h>

extern "C" PyObject* PyInit__C() {
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&definition);
}
