#include <c10/util/Exception.h>

#include "dispatch/DeviceAsserts.h"
#include "dispatch/Foreign.h"
#include "dispatch/KernelTeam.h"
#include "dispatch/Operators.h"
#include "fast/DeviceAllocator.h"
#include "graph/GraphCapture.h"
#include "memory/ThreadAllocator.h"
#include "ops/RecursiveFilter.h"
#include "ops/Sleep.h"
#include "ops/distributed/Signals.h"
#include "profile/MarkRecords.h"
#include "profile/MemoryCheck.h"
#include "profile/OperatorRecords.h"
#include "profile/PythonPlace.h"

namespace macatorch {
namespace {

// Upstream warns when a kernel is registered over one of its own. Here that is the purpose, and nothing may print on
// import. The table has one row for what is registered, so none of ours is registered over another one of ours.
class QuietHandler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

struct Registration {
  Registration() {
    QuietHandler handler;
    c10::WarningUtils::WarningHandlerGuard guard(&handler);
    register_memory_check();
    install_device_allocator();
    install_allocator();
    register_operators();
    register_foreign();
    register_device_asserts();
    register_graph_capture();
    register_sleep();
    register_recursive_filter();
    register_kernel_team();
    register_signals();
    register_operator_records();
    register_mark_records();
    register_python_place();
  }
};

// libtorch loads this library, and it needs libtorch_cuda: its constructors run after upstream's registrations.
const Registration registration;

}  // namespace
}  // namespace macatorch

/// The parts of csrc/fast that are in this library; tests that are about one ask.
extern "C" __attribute__((visibility("default"))) const char* macatorch_fast_parts() { return MACATORCH_FAST_PARTS; }
