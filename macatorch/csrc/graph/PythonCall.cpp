#include "graph/PythonCall.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "arguments/Release.h"
#include "arguments/Walker.h"

#if MACATORCH_TORCH_AT_LEAST(2, 12)
#include <c10/core/impl/PyInterpreterHooks.h>
#endif

namespace macatorch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

/// The interpreter of a tensor of the program's own class. Later releases know one for all tensors.
const c10::impl::PyInterpreterVTable* interpreter_of([[maybe_unused]] const at::Tensor& tensor) {
#if MACATORCH_TORCH_AT_LEAST(2, 12)
  return &**c10::impl::getGlobalPyInterpreter();
#else
  return &**tensor.unsafeGetTensorImpl()->pyobj_slot()->pyobj_interpreter();
#endif
}

const c10::impl::PyInterpreterVTable* interpreter_for(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const int64_t modes = c10::impl::TorchDispatchModeTLS::stack_len();
  if (modes > 0) {
    return &*c10::impl::TorchDispatchModeTLS::get_stack_at(modes - 1)->pyinterpreter();
  }
  const c10::impl::PyInterpreterVTable* interpreter = nullptr;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (interpreter == nullptr && tensor.key_set().has(DispatchKey::Python)) {
        interpreter = interpreter_of(tensor);
      }
    });
  }
  return interpreter;
}

}  // namespace

bool call_python(const c10::OperatorHandle& op, torch::jit::Stack* stack, DispatchKey visible) {
  const c10::impl::PyInterpreterVTable* const interpreter = interpreter_for(op, *stack);
  if (interpreter == nullptr) {
    return false;
  }
  const DispatchKeySet to_python =
      DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Python) | DispatchKeySet(DispatchKey::Python);
  const c10::impl::ExcludeDispatchKeyGuard masked((DispatchKeySet(DispatchKeySet::FULL) ^ to_python) -
                                                  DispatchKeySet(visible));
  interpreter->dispatch(op, stack);
  return true;
}

}  // namespace macatorch
