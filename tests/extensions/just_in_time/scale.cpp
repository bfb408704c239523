#include <torch/extension.h>

at::Tensor scale(const at::Tensor& x, double factor);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("scale", &scale); }
