// A test case is a function that launches one kernel and compares what it wrote with a plain loop on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

struct Case {
  const char* name;
  void (*run)();
  Case* next;
  static Case*& first() {
    static Case* head = nullptr;
    return head;
  }
  Case(const char* caseName, void (*function)()) : name(caseName), run(function), next(first()) { first() = this; }
};

#define CASE(name)                            \
  static void name();                         \
  static Case registered_##name(#name, name); \
  static void name()

inline int& failures() {
  static int count = 0;
  return count;
}

#define EXPECT(condition)                                           \
  do {                                                              \
    if (!(condition) && failures()++ < 5) {                         \
      std::printf("  %s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                               \
  } while (0)

#define CUDA(call)                                                                              \
  do {                                                                                          \
    const cudaError_t status_ = (call);                                                         \
    if (status_ != cudaSuccess) {                                                               \
      std::printf("  %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
      ++failures();                                                                             \
      return;                                                                                   \
    }                                                                                           \
  } while (0)

#define DONE()              \
  CUDA(cudaGetLastError()); \
  CUDA(cudaDeviceSynchronize())

// Device memory with a copy on each side.
template <class T>
class Array {
 public:
  explicit Array(size_t count, T value = T()) : host_(count, value) {
    cudaMalloc(&device_, count * sizeof(T));
    put();
  }
  template <class F>
  static Array of(size_t count, F f) {
    Array made(count);
    for (size_t i = 0; i < count; ++i) made.host_[i] = f(i);
    made.put();
    return made;
  }
  Array(Array&& other) : device_(other.device_), host_(std::move(other.host_)) { other.device_ = nullptr; }
  Array(const Array&) = delete;
  ~Array() {
    if (device_ != nullptr) cudaFree(device_);
  }
  void put() { cudaMemcpy(device_, host_.data(), host_.size() * sizeof(T), cudaMemcpyHostToDevice); }
  const std::vector<T>& get() {
    cudaMemcpy(host_.data(), device_, host_.size() * sizeof(T), cudaMemcpyDeviceToHost);
    return host_;
  }
  T* data() { return device_; }
  T& operator[](size_t i) { return host_[i]; }
  size_t size() const { return host_.size(); }

 private:
  T* device_ = nullptr;
  std::vector<T> host_;
};

// For kernels that write a number for each thread of two blocks, and read one.
namespace two_blocks {

const int kThreads = 64;

inline int at(int i) { return i * 13 % 37; }
inline int of(int b, int t) { return at(b * kThreads + t); }
// Launches two blocks on in[i] = at(i) and compares what each thread wrote.
template <class Kernel, class Expected>
void check(Kernel kernel, Expected expected) {
  auto in = Array<int>::of(2 * kThreads, [](size_t i) { return at(int(i)); });
  Array<int> out(2 * kThreads, -1);
  kernel(in.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < kThreads; ++t) EXPECT(v[b * kThreads + t] == expected(b, t));
}

}  // namespace two_blocks
