#include "arguments.h"

#include <cmath>
#include <cstring>

#include "driver.h"

namespace launcher {
namespace {

const char kKnown[] = "*bhilBHILetfd_";

bool isOfClass(PyObject* object, unsigned long flag) {
  PyObject* const type = PyObject_Type(object);
  const bool is = (PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type)) & flag) != 0;
  Py_DecRef(type);
  return is;
}

template <class T>
void put(uint64_t* value, T from) {
  std::memcpy(value, &from, sizeof from);
}

template <class T>
bool takeSigned(PyObject* object, bool strict, uint64_t* value) {
  // Objects that are no integers, and answer for one, are asked by the same call.
  const long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred() != nullptr) return false;
  const auto narrow = static_cast<T>(number);
  if (strict && narrow != number) {
    PyErr_Format(PyExc_OverflowError, "%lld does not fit into a parameter of %d bytes", number,
                 static_cast<int>(sizeof(T)));
    return false;
  }
  put(value, narrow);
  return true;
}

template <class T>
bool takeUnsigned(PyObject* object, uint64_t* value) {
  const unsigned long long number = PyLong_AsUnsignedLongLongMask(object);
  if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  put(value, static_cast<T>(number));
  return true;
}

// To the nearest half, ties to even; 0x7c00 and more for what is too large.
uint16_t halfOf(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  const double magnitude = std::fabs(value);
  // Zero has no exponent.
  if (magnitude == 0) return sign;
  if (std::isinf(value) || magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Steps of the result: 2^-24 for subnormal ones, else 11 bits of the magnitude.
  const int step = exponent - 11 < -24 ? -24 : exponent - 11;
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, -step)));
  // A mantissa that rounds up to the next power of two carries into the exponent by itself.
  const unsigned biased = step == -24 ? steps : (static_cast<unsigned>(step + 24) << 10) + steps;
  return static_cast<uint16_t>(sign | biased);
}

bool takeFloat(PyObject* object, char sign, uint64_t* value) {
  const double number = PyFloat_AsDouble(object);
  if (number == -1.0 && PyErr_Occurred() != nullptr) return false;
  const auto single = static_cast<float>(number);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  switch (sign) {
    case 'd': put(value, number); break;
    case 'f': put(value, single); break;
    // Triton cuts the lower half off.
    case 't': put(value, static_cast<uint16_t>(bits >> 16)); break;
    default: {
      const uint16_t half = halfOf(number);
      if (!std::isinf(number) && (half & 0x7fff) == 0x7c00) {
        PyErr_SetString(PyExc_OverflowError, "float too large to pack with e format");
        return false;
      }
      put(value, half);
    }
  }
  return true;
}

bool takeOne(char sign, PyObject* object, int position, bool strict, uint64_t* value) {
  switch (sign) {
    case '*': return takePointer(object, position, value);
    case 'b': return takeSigned<int8_t>(object, strict, value);
    case 'h': return takeSigned<int16_t>(object, strict, value);
    case 'i': return takeSigned<int32_t>(object, strict, value);
    case 'l': return takeSigned<int64_t>(object, strict, value);
    case 'B': return takeUnsigned<uint8_t>(object, value);
    case 'H': return takeUnsigned<uint16_t>(object, value);
    case 'I': return takeUnsigned<uint32_t>(object, value);
    case 'L': return takeUnsigned<uint64_t>(object, value);
    default: return takeFloat(object, sign, value);
  }
}

// Walks over a plan, and over the objects beside it.
class Taker {
 public:
  Taker(const Plan& plan, uint64_t* values) : plan_(plan), at_(plan.text.c_str()), values_(values) {}

  bool takeAll(PyObject* const* arguments, ssize_t count) {
    ssize_t index = 0;
    for (; *at_ != '\0'; ++index) {
      if (index == count) break;
      position_ = plan_.positions.empty() ? -1 : plan_.positions[static_cast<size_t>(index)];
      if (!take(arguments[index])) return false;
    }
    if (*at_ == '\0' && index == count) return true;
    PyErr_Format(PyExc_TypeError, "the launch has %zd arguments; the compiled kernel wants another number", count);
    return false;
  }

 private:
  bool take(PyObject* object) {
    const char sign = *at_++;
    if (sign == '_') return true;
    if (sign != '(') return takeOne(sign, object, position_, plan_.strict, values_++);
    return takeTuple(object);
  }

  bool takeTuple(PyObject* object) {
    if (!isOfClass(object, Py_TPFLAGS_TUPLE_SUBCLASS)) {
      PyErr_SetString(PyExc_TypeError, "an argument that the kernel was compiled for as a tuple is none");
      return false;
    }
    const ssize_t size = PyTuple_Size(object);
    ssize_t index = 0;
    for (; *at_ != ')' && index < size; ++index) {
      if (!take(PyTuple_GetItem(object, index))) return false;
    }
    if (*at_ != ')' || index != size) {
      PyErr_SetString(PyExc_TypeError, "a tuple has another length than the kernel was compiled for");
      return false;
    }
    ++at_;
    return true;
  }

  const Plan& plan_;
  const char* at_;
  uint64_t* values_;
  int position_ = -1;
};

}  // namespace

bool isPlan(const std::string& text, size_t* parameters) {
  int depth = 0;
  *parameters = 0;
  for (const char sign : text) {
    if (sign == '(') {
      ++depth;
    } else if (sign == ')') {
      if (--depth < 0) return false;
    } else if (sign == '\0' || std::strchr(kKnown, sign) == nullptr) {
      return false;
    } else if (sign != '_') {
      ++*parameters;
    }
  }
  return depth == 0;
}

bool takeArguments(const Plan& plan, PyObject* const* arguments, ssize_t count, uint64_t* values) {
  return Taker(plan, values).takeAll(arguments, count);
}

bool takePointer(PyObject* object, int position, uint64_t* value) {
  *value = 0;
  if (object == &_Py_NoneStruct) return true;
  if (isOfClass(object, Py_TPFLAGS_LONG_SUBCLASS)) {
    *value = PyLong_AsUnsignedLongLong(object);
    return PyErr_Occurred() == nullptr;
  }
  static PyObject* const method = PyUnicode_InternFromString("data_ptr");
  PyObject* const result = PyObject_CallMethodObjArgs(object, method, nullptr);
  if (result == nullptr) {
    PyErr_SetString(PyExc_TypeError, "Pointer argument must be either uint64 or have data_ptr method");
    return false;
  }
  const bool isNumber = isOfClass(result, Py_TPFLAGS_LONG_SUBCLASS);
  if (isNumber) *value = PyLong_AsUnsignedLongLong(result);
  Py_DecRef(result);
  if (!isNumber) {
    PyErr_SetString(PyExc_TypeError, "data_ptr method of Pointer object must return 64-bit int");
    return false;
  }
  if (*value == 0) return PyErr_Occurred() == nullptr;
  CUdeviceptr onDevice = 0;
  const CUresult status = driver()->pointerGetAttribute(&onDevice, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, *value);
  if (status == CUDA_ERROR_INVALID_VALUE && position >= 0) {
    PyErr_Format(PyExc_ValueError, "Pointer argument (at %d) cannot be accessed from Triton (cpu tensor?)", position);
    return false;
  }
  if (status == CUDA_ERROR_INVALID_VALUE) {
    PyErr_SetString(PyExc_ValueError, "Pointer argument cannot be accessed from Triton (cpu tensor?)");
    return false;
  }
  if (!succeeded(status)) return false;
  *value = onDevice;
  return true;
}

}  // namespace launcher
