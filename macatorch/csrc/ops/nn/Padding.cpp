#include <ATen/ATen.h>

#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// The CPU's kernels for borders that repeat or mirror what is inside keep channels_last. CUDA's go through contiguous
// memory, and programs call `view` on what they give.
struct Pad {
  template <class Form, class Padding>
  static typename Form::Result call(const Form& form, const at::Tensor& self, const Padding& padding) {
    return form.kernel(self.is_contiguous() ? self : self.contiguous(), padding);
  }
};

}  // namespace
}  // namespace macatorch

#include "registered/nn/Padding.h"
