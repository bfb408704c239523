#include <c10/util/Exception.h>
#include <torch/library.h>

#include "alias/DeviceScope.h"
#include "dispatch/Foreign.h"
#include "dispatch/Operators.h"
#include "fast/DeviceAllocator.h"
#include "graph/GraphCapture.h"
#include "ops/NeuralNet.h"
#include "ops/copy/Layout.h"

namespace macatorch {
namespace {

// Upstream warns when a kernel is registered over another one. Here that is the purpose, and nothing may print on import.
class QuietHandler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

/// Registrations live as long as the process, as upstream's own do.
struct Registration {
  torch::Library cuda{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};

  Registration() {
    QuietHandler handler;
    c10::WarningUtils::WarningHandlerGuard guard(&handler);
    install_device_allocator();
    install_allocator();
    register_generated();
    register_stubs_0();
    register_stubs_1();
    register_sparse_stubs();
    register_nested();
    register_linear_algebra(cuda);
    register_fourier(cuda);
    register_dense_products(cuda);
    register_integer_division(cuda);
    register_complex_functions(cuda);
    register_foreach(cuda);
    register_sums(cuda);
    register_log_sigmoid(cuda);
    register_reductions(cuda);
    register_copies(cuda);
    register_quantized();
    register_views(cuda);
    register_convolutions(cuda);
    register_normalizations(cuda);
    register_dropout(cuda);
    register_recurrent(cuda);
    register_attention(cuda);
    register_sequence_attention(cuda);
    register_softmax(cuda);
    register_losses(cuda);
    register_pooling(cuda);
    register_dtypes(cuda);
    register_grid_samplers(cuda);
    register_matrix_products(cuda);
    register_semi_structured(cuda);
    register_sparse_products();
    register_sparse_sums();
    register_embedding_bag(cuda);
    register_stateless_random(cuda);
    register_random_fills(cuda);
    register_foreign();
    register_graph_capture();
    register_sleep();
  }
};

// libtorch loads this library, and it needs libtorch_cuda: its constructors run after upstream's registrations.
const Registration registration;

}  // namespace
}  // namespace macatorch
