#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#if __has_include(<torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>)
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#else
#include <torch/csrc/distributed/c10d/SymmetricMemory.hpp>
#endif

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments/Arguments.h"
#include "dispatch/Operators.h"
#include "ops/distributed/Signals.h"

// Collectives over symmetric memory (torch.ops.symm_mem). The buffers of a group are memory of the host that each of
// its processes has mapped, so a rank reads and writes its peers' directly. The ranks meet at barriers on the first
// channel of the signal pads, as upstream's kernels do. All of it is work that waits: the call returns, the stream is
// busy.
//
// The device has no multicast (has_multicast_support() is false, no address of a buffer stands for all of them). The
// multimem operators compute what they compute with it, over the peers' buffers.

namespace macatorch {
namespace {

using c10d::symmetric_memory::SymmetricMemory;

constexpr int kChannel = 0;
constexpr int64_t kPiece = 4096;  // elements that are summed at a time, and stay in the cache

/// The memory of one symmetric tensor on all ranks.
struct Peers {
  SignalPads pads;
  std::vector<char*> buffers;  // where the tensor begins

  char* own() const { return buffers[static_cast<size_t>(pads.rank())]; }
};

/// A function of ours under one of upstream's names, in whose words it complains.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : given(op, stack), name(op.schema().operator_name().name.c_str() + sizeof("symm_mem::") - 1) {}

  std::string text(const char* argument) const { return given[argument].toStringRef(); }

  void check_sum() const { TORCH_CHECK(text("reduce_op") == "sum", name, ": only sum is supported for now."); }

  /// Rendezvous of the group on `tensor`, which is a collective call the first time.
  Peers peers(const at::Tensor& tensor, const char* what = "input") const {
    TORCH_CHECK(tensor.is_contiguous(), name, ": ", what, " must be contiguous.");
    const c10::intrusive_ptr<SymmetricMemory> memory = c10d::symmetric_memory::rendezvous(tensor, text("group_name"));
    TORCH_CHECK(memory != nullptr, name, ": ", what, " must be allocated with empty_strided_p2p().");
    std::vector<uint32_t*> pads;
    for (void* pad : memory->get_signal_pad_ptrs()) {
      pads.push_back(static_cast<uint32_t*>(pad));
    }
    std::vector<char*> buffers;
    for (void* buffer : memory->get_buffer_ptrs()) {
      buffers.push_back(static_cast<char*>(buffer));
    }
    const ptrdiff_t offset = static_cast<char*>(tensor.data_ptr()) - buffers[static_cast<size_t>(memory->get_rank())];
    for (char*& buffer : buffers) {
      buffer += offset;
    }
    return {SignalPads(name, std::move(pads), memory->get_rank()), std::move(buffers)};
  }

  /// Upstream's kernels move words of 4 to 16 bytes, and refuse what lies or ends between them.
  void check_alignment(const at::Tensor& tensor, const char* what = "input") const {
    constexpr uintptr_t kWord = 4;
    TORCH_CHECK(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % kWord == 0, name, ": ", what,
                " ptr + offset must be at least 4-byte aligned.");
    TORCH_CHECK(tensor.nbytes() % kWord == 0, name, ": ", what, " size must be at least 4-byte aligned.");
  }

  void check_dtype(const at::Tensor& tensor) const {
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16, '"', name,
                                "\" not implemented for '", tensor.scalar_type(), "'");
  }

  /// The tensor `out` or `output`, for as many elements as `like` has; without one in this form, a new tensor.
  at::Tensor output(const at::Tensor& like, const at::Tensor& out) const {
    if (!out.defined()) {
      return at::empty_like(like);
    }
    TORCH_CHECK(out.is_contiguous(), name, ": output must be contiguous.");
    TORCH_CHECK(out.sizes() == like.sizes(), name, ": input/output size mismatch, input.sizes(): ", like.sizes(),
                ", output.sizes(): ", out.sizes());
    TORCH_CHECK(out.scalar_type() == like.scalar_type(), name, ": input/output dtype mismatch.");
    return out;
  }

  /// Puts `work` on the current stream of `device`; what it returns false for is the device's error.
  void submit(c10::Device device, std::function<bool()> work) const {
    const c10::cuda::CUDAGuard guard(device);
    const auto run = [](void* data) -> mcError_t {
      // An operator may have failed here, too.
      try {
        return (*static_cast<std::function<bool()>*>(data))() ? mcSuccess : mcErrorLaunchFailure;
      } catch (const std::exception& error) {
        return mcSetLastError(mcErrorLaunchFailure, error.what());
      }
    };
    const auto destroy = [](void* data) { delete static_cast<std::function<bool()>*>(data); };
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
    C10_CUDA_CHECK(
        static_cast<cudaError_t>(mcStreamSubmit(reinterpret_cast<mcStream_t>(stream), "kernel", name, mcTaskWaits, run,
                                                new std::function<bool()>(std::move(work)), destroy)));
  }

  Arguments given;
  const char* name;
};

/// What computes with memory of the device, as the check of memory knows it (MACA_CHECK=memory).
class Computes {
 public:
  explicit Computes(const char* name) : name_(mcCheckMode() != 0 ? name : nullptr) {
    if (name_ != nullptr) {
      mcCheckEnter();
    }
  }
  ~Computes() {
    if (name_ != nullptr) {
      mcCheckLeave(name_);
    }
  }
  Computes(const Computes&) = delete;
  Computes& operator=(const Computes&) = delete;

 private:
  const char* name_;
};

template <class T>
void sum_as(const std::vector<char*>& buffers, int64_t first, int64_t count, const std::vector<char*>& targets) {
  float sums[kPiece];
  for (int64_t done = 0; done < count; done += kPiece) {
    const int64_t length = std::min(kPiece, count - done);
    std::fill_n(sums, length, 0.0F);
    bool begins = true;
    for (const char* buffer : buffers) {
      const T* const from = reinterpret_cast<const T*>(buffer) + first + done;
      for (int64_t i = 0; i < length; ++i) {
        sums[i] = begins ? static_cast<float>(from[i]) : sums[i] + static_cast<float>(from[i]);
      }
      begins = false;
    }
    for (char* target : targets) {
      T* const to = reinterpret_cast<T*>(target) + done;
      std::transform(sums, sums + length, to, [](float sum) { return static_cast<T>(sum); });
    }
  }
}

/// Sums `count` elements from the `first` on over all buffers into each of `targets`, in the order of the ranks: all
/// ranks have the same bits. bfloat16 is summed in float and rounded once.
void sum(at::ScalarType dtype, const std::vector<char*>& buffers, int64_t first, int64_t count,
         const std::vector<char*>& targets) {
  if (dtype == at::kFloat) {
    sum_as<float>(buffers, first, count, targets);
  } else {
    sum_as<at::BFloat16>(buffers, first, count, targets);
  }
}

/// Work over `peers` between two barriers: behind the first one all have written what is read, and before the end of
/// the second one nobody writes anew. `last` follows it, and is about memory that only this rank writes.
void exchange(const Call& call, const at::Tensor& tensor, Peers peers, std::function<void(const Peers&)> middle,
              std::function<void(const Peers&)> last = {}) {
  call.submit(tensor.device(),
              [name = call.name, peers = std::move(peers), middle = std::move(middle), last = std::move(last)] {
                if (!peers.pads.barrier(kChannel)) {
                  return false;
                }
                {
                  const Computes computes(name);
                  middle(peers);
                }
                if (!peers.pads.barrier(kChannel)) {
                  return false;
                }
                if (last) {
                  const Computes computes(name);
                  last(peers);
                }
                return true;
              });
}

char* data_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

/// Each rank sums all of it.
void one_shot_all_reduce(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor input = call.given.tensor("input");
  call.check_sum();
  const Peers peers = call.peers(input);
  call.check_alignment(input);
  call.check_dtype(input);
  const at::Tensor out = call.output(input, call.given.tensor("out"));
  exchange(call, input, peers,
           [dtype = input.scalar_type(), count = input.numel(), to = data_of(out)](const Peers& all) {
             sum(dtype, all.buffers, 0, count, {to});
           });
  call.given.give(out);
}

/// The same for an input that is not symmetric: `symm_buffer` receives it first.
void one_shot_all_reduce_copy(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor buffer = call.given.tensor("symm_buffer");
  const at::Tensor local = call.given.tensor("local_input");
  call.check_sum();
  TORCH_CHECK(local.is_contiguous(), call.name, ": local input must be contiguous.");
  TORCH_CHECK(local.numel() <= buffer.numel(), call.name, ": local input size must be smaller than symm buffer size.");
  TORCH_CHECK(local.scalar_type() == buffer.scalar_type(), call.name,
              ": local input and symm buffer must have the same dtype.");
  const Peers peers = call.peers(buffer, "symm_buffer");
  call.check_alignment(local, "local input");
  call.check_dtype(local);
  const at::Tensor out = call.output(local, call.given.tensor("out"));
  const auto reduce = [dtype = local.scalar_type(), count = local.numel(), to = data_of(out)](const Peers& all) {
    sum(dtype, all.buffers, 0, count, {to});
  };
  call.submit(buffer.device(), [name = call.name, peers, from = data_of(local), bytes = local.nbytes()] {
    const Computes computes(name);
    std::memcpy(peers.own(), from, bytes);
    return true;
  });
  exchange(call, buffer, peers, reduce);
  call.given.give(out);
}

/// The part of `count` elements that is `rank`'s: equal parts, the last ones shorter or empty.
std::pair<int64_t, int64_t> part_of(int64_t count, int rank, int ranks) {
  const int64_t size = (count + ranks - 1) / ranks;
  const int64_t first = std::min(count, size * rank);
  return {first, std::min(size, count - first)};
}

/// Each rank sums its part and writes it to all: in place, or behind it into `output`.
void two_shot_all_reduce(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor input = call.given.tensor("input");
  call.check_sum();
  const Peers peers = call.peers(input);
  call.check_alignment(input);
  call.check_dtype(input);
  const at::Tensor given = call.given.tensor("output");
  const at::Tensor result = given.defined() ? call.output(input, given) : input;
  const auto reduce = [dtype = input.scalar_type(), count = input.numel(),
                       bytes = static_cast<int64_t>(input.element_size())](const Peers& all) {
    const auto [first, length] = part_of(count, all.pads.rank(), all.pads.ranks());
    std::vector<char*> targets = all.buffers;
    for (char*& target : targets) {
      target += first * bytes;
    }
    sum(dtype, all.buffers, first, length, targets);
  };
  std::function<void(const Peers&)> copy;
  if (given.defined()) {
    copy = [to = data_of(result), bytes = input.nbytes()](const Peers& all) { std::memmove(to, all.own(), bytes); };
  }
  exchange(call, input, peers, reduce, std::move(copy));
  call.given.give(result);
}

/// One rank alone gets the sum.
void one_shot_reduce(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor input = call.given.tensor("input");
  const int64_t root = *call.given.integer("root");
  call.check_sum();
  const Peers peers = call.peers(input);
  TORCH_CHECK(root >= 0 && root < peers.pads.ranks(), call.name, ": root must be in [0, world_size).");
  call.check_alignment(input);
  call.check_dtype(input);
  at::Tensor out = call.given.tensor("out");
  const bool receives = root == peers.pads.rank();
  if (receives) {
    out = call.output(input, out);
  }
  exchange(
      call, input, peers,
      [dtype = input.scalar_type(), count = input.numel(), to = receives ? data_of(out) : nullptr](const Peers& all) {
        if (to != nullptr) {
          sum(dtype, all.buffers, 0, count, {to});
        }
      });
  call.given.give(out);
}

/// Each rank writes its input into `out` of all.
void all_gather(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor input = call.given.tensor("input");
  const at::Tensor out = call.given.tensor("out");
  const Peers peers = call.peers(out, "output");
  TORCH_CHECK(input.is_contiguous(), call.name, ": input must be contiguous.");
  TORCH_CHECK(input.dim() == out.dim() && input.dim() > 0, call.name, ": input/output dimension mismatch.");
  TORCH_CHECK(input.sizes().slice(1) == out.sizes().slice(1), call.name,
              ": all non-0th dimension of input and output must match.");
  TORCH_CHECK(out.size(0) == input.size(0) * peers.pads.ranks(), call.name,
              ": out.sizes()[0] must be equal to input.sizes[0] * world_size. (out.sizes():", out.sizes(),
              ", input.sizes(): ", input.sizes(), ", world_size: ", peers.pads.ranks(), ")");
  TORCH_CHECK(input.scalar_type() == out.scalar_type(), call.name, ": input/output dtype mismatch.");
  call.check_alignment(input);
  exchange(call, out, peers, [from = data_of(input), bytes = input.nbytes()](const Peers& all) {
    for (char* buffer : all.buffers) {
      std::memmove(buffer + bytes * static_cast<size_t>(all.pads.rank()), from, bytes);
    }
  });
  call.given.give(out);
}

/// Each rank sums its part of the first dimension into `output`, or of the last one.
void reduce_scatter(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor input = call.given.tensor("input");
  const at::Tensor output = call.given.tensor("output");
  const bool last = call.given.flag("split_last_dim");
  const Peers peers = call.peers(input);
  const int64_t ranks = peers.pads.ranks();
  TORCH_CHECK(output.is_contiguous(), call.name, ": output must be contiguous.");
  TORCH_CHECK(input.dim() > 0 && output.dim() == input.dim(), call.name, ": input/output dimension mismatch.");
  const int64_t dim = last ? input.dim() - 1 : 0;
  std::vector<int64_t> expected = input.sizes().vec();
  expected[static_cast<size_t>(dim)] /= ranks;
  TORCH_CHECK(input.size(dim) % ranks == 0 && output.sizes() == at::IntArrayRef(expected), call.name, ": dimension ",
              dim, " of input must be world_size times that of output, and the others equal: input ", input.sizes(),
              ", output ", output.sizes(), ", world_size ", ranks);
  TORCH_CHECK(input.scalar_type() == output.scalar_type(), call.name, ": input/output dtype mismatch.");
  call.check_alignment(input);
  call.check_alignment(output, "output");
  call.check_dtype(input);
  // Rows, of each of which a rank has one piece.
  const int64_t rows = last ? input.numel() / std::max<int64_t>(input.size(dim), 1) : 1;
  const int64_t length = output.numel() / std::max<int64_t>(rows, 1);
  exchange(call, input, peers,
           [dtype = input.scalar_type(), rows, length, bytes = static_cast<int64_t>(input.element_size()),
            to = data_of(output)](const Peers& all) {
             for (int64_t row = 0; row < rows; ++row) {
               const int64_t first = (row * all.pads.ranks() + all.pads.rank()) * length;
               sum(dtype, all.buffers, first, length, {to + row * length * bytes});
             }
           });
  call.given.give(output);
}

/// a @ b, whose rows arrive while it runs: equal chunks of `a`, each of which is there when its signal is not 0.
void async_input_mm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call call(op, stack);
  const at::Tensor a = call.given.tensor("a");
  const at::Tensor b = call.given.tensor("b");
  const at::Tensor signals = call.given.tensor("a_chunk_signals");
  const int64_t pivot = *call.given.integer("a_chunk_pivot");
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, call.name, ": a and b must be matrices");
  TORCH_CHECK(a.is_contiguous(), call.name, ": a must be in row-major layout");
  TORCH_CHECK(a.size(1) == b.size(0), call.name, ": a and b cannot be multiplied: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && a.is_floating_point(), call.name,
              ": a and b must have one floating dtype, got ", a.dtype(), " and ", b.dtype());
  TORCH_CHECK(a.device() == b.device() && a.device() == signals.device(), call.name,
              ": a, b and a_chunk_signals must be on the same device");
  TORCH_CHECK(signals.scalar_type() == at::kUInt32 && signals.is_contiguous() && signals.numel() > 0, call.name,
              ": a_chunk_signals must be contiguous and have dtype uint32");
  const int64_t chunks = signals.numel();
  TORCH_CHECK(a.size(0) % chunks == 0, call.name, ": the rows of a (", a.size(0),
              ") must be a multiple of the number of chunks (", chunks, ")");
  TORCH_CHECK(pivot >= 0 && pivot < chunks, call.name, ": a_chunk_pivot must be the number of a chunk, got ", pivot);
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  const auto on_host = [](const at::Tensor& tensor) {
    return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                         at::TensorOptions().dtype(tensor.scalar_type()));
  };
  const auto* const words = static_cast<const uint32_t*>(signals.const_data_ptr());
  call.submit(a.device(), [name = call.name, words, chunks, pivot, left = on_host(a), right = on_host(b),
                           target = on_host(out)] {
    const at::AutoDispatchBelowADInplaceOrView below;
    const int64_t rows = left.size(0) / chunks;
    // Low precision is computed in float, and rounded once.
    const at::ScalarType wide = left.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor factor;
    for (int64_t step = 0; step < chunks; ++step) {
      const int64_t chunk = (pivot + step) % chunks;
      wait_for_word(words + chunk);
      const Computes computes(name);
      if (!factor.defined()) {
        factor = right.to(wide);
      }
      target.narrow(0, chunk * rows, rows).copy_(at::mm(left.narrow(0, chunk * rows, rows).to(wide), factor));
    }
    return true;
  });
  call.given.give(out);
}

}  // namespace
}  // namespace macatorch

#include "registered/distributed/SymmetricMemory.h"
