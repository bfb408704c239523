// An operator with an object of a class among its arguments, for both devices and for tensors without data.
#include <torch/custom_class.h>
#include <torch/library.h>

#include <ATen/ATen.h>

struct Counter : torch::CustomClassHolder {
  int64_t count;
  explicit Counter(int64_t begin) : count(begin) {}
  at::Tensor added_to(const at::Tensor& x) { return x + count; }
  std::tuple<std::tuple<std::string, int64_t>> flattened() { return {{"count", count}}; }
};

static at::Tensor add_count(const c10::intrusive_ptr<Counter>& counter, const at::Tensor& x) {
  return counter->added_to(x);
}

TORCH_LIBRARY(maca_tests, library) {
  library.class_<Counter>("Counter")
      .def(torch::init<int64_t>())
      .def("added_to", &Counter::added_to)
      .def("__obj_flatten__", &Counter::flattened)
      .def_pickle([](const c10::intrusive_ptr<Counter>& self) { return self->count; },
                  [](int64_t count) { return c10::make_intrusive<Counter>(count); });
  library.def("add_count(__torch__.torch.classes.maca_tests.Counter counter, Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(maca_tests, CUDA, library) { library.impl("add_count", add_count); }
TORCH_LIBRARY_IMPL(maca_tests, CPU, library) { library.impl("add_count", add_count); }
TORCH_LIBRARY_IMPL(maca_tests, Meta, library) { library.impl("add_count", add_count); }
