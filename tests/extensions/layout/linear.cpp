#include <torch/extension.h>

#include <vector>

at::Tensor read_memory(const at::Tensor& x);
void number_memory(at::Tensor x);

std::vector<at::Tensor> read_all(const std::vector<at::Tensor>& given) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& x : given) {
    result.push_back(read_memory(x));
  }
  return result;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("read", &read_memory);
  module.def("read_all", &read_all);
  module.def("number", &number_memory);
}
