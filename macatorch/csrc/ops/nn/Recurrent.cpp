#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/RNN.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "dispatch/Precision.h"
#include "fast/Processor.h"
#include "graph/GraphCapture.h"
#include "ops/random/Draws.h"
#include "random/Random.h"
#include "registered/Specs.h"

#include <array>
#include <cstring>

namespace macatorch {
namespace {

// Note [Recurrent layers]
// cuDNN has a fused operator for RNN, LSTM and GRU with a backward of its own. Here its forward runs upstream's CPU
// layers under autograd, on detached aliases, and hands that graph on in the `reserve` tensor, which is what cuDNN uses
// `reserve` for. The backward differentiates the graph. A reserve that was copied on the way (saved-tensor hooks) has
// lost the graph but still tells the place in the random stream, so that the forward can be run again.
// Halves are computed in float and rounded at the end: the CPU's layers take ten times as long for them.

enum class Mode : int64_t { RnnRelu = 0, RnnTanh = 1, Lstm = 2, Gru = 3 };

struct Layers {
  Mode mode;
  int64_t weights_per_direction;
  int64_t projection;
  int64_t count;
  bool batch_first;
  double dropout;
  bool train;
  bool bidirectional;
  std::vector<int64_t> batch_sizes;

  bool has_biases() const { return weights_per_direction >= 4; }
};

struct Operands {
  at::Tensor input, hx, cx;
  std::vector<at::Tensor> weights;
};

/// A CPU alias, or its values in float where the CPU is slow in their dtype.
at::Tensor computable(const at::Tensor& tensor) {
  static const bool bfloat16 = has_bfloat16_products();
  return bfloat16 && tensor.scalar_type() == at::kBFloat16 ? tensor : widen(tensor);
}

Operands computable(DeviceCall& call, const at::Tensor& input, at::TensorList weight, const at::Tensor& hx,
                    const std::optional<at::Tensor>& cx) {
  Operands operands{computable(call(input)), computable(call(hx)), computable(call(cx.value_or(at::Tensor()))), {}};
  for (const at::Tensor& w : weight) {
    operands.weights.push_back(computable(call(w)));
  }
  return operands;
}

using Outputs = std::array<at::Tensor, 3>;  // output, hy, cy

Outputs run_layer(const Layers& layers, const at::Tensor& x, const at::Tensor& h, const at::Tensor& c,
                  at::TensorList w) {
  const bool packed = !layers.batch_sizes.empty(), biases = layers.has_biases();
  const at::Tensor sizes = packed ? at::tensor(layers.batch_sizes, at::kLong) : at::Tensor();
  const auto run = [&](const auto& layer, const auto& state) {
    return packed ? layer(x, sizes, state, w, biases, 1, 0.0, layers.train, layers.bidirectional)
                  : layer(x, state, w, biases, 1, 0.0, layers.train, layers.bidirectional, layers.batch_first);
  };
  const auto run_rnn = [&](const auto& layer) -> Outputs {
    auto [output, hy] = run(layer, h);
    return {output, hy, at::Tensor()};
  };
  switch (layers.mode) {
    case Mode::Lstm: {
      auto [output, hy, cy] = run([](const auto&... a) { return at::lstm(a...); }, at::TensorList({h, c}));
      return {output, hy, cy};
    }
    case Mode::Gru: return run_rnn([](const auto&... a) { return at::gru(a...); });
    case Mode::RnnTanh: return run_rnn([](const auto&... a) { return at::rnn_tanh(a...); });
    case Mode::RnnRelu: return run_rnn([](const auto&... a) { return at::rnn_relu(a...); });
  }
  TORCH_CHECK(false, "unknown RNN mode ", static_cast<int64_t>(layers.mode));
}

/// All layers, with dropout between them drawn from `position` of the device's random stream.
Outputs run_layers(const Layers& layers, const Operands& operands, PhiloxPosition position) {
  const int64_t directions = layers.bidirectional ? 2 : 1;
  const int64_t per_layer = directions * layers.weights_per_direction;
  const bool drops = layers.train && layers.dropout > 0 && layers.count > 1;
  const std::optional<at::Generator> generator = drops ? std::make_optional(generator_at(position)) : std::nullopt;
  at::Tensor x = operands.input;
  std::vector<at::Tensor> hy, cy;
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    const at::TensorList w = at::TensorList(operands.weights).slice(layer * per_layer, per_layer);
    const at::Tensor h = operands.hx.narrow(0, layer * directions, directions);
    const at::Tensor c = operands.cx.defined() ? operands.cx.narrow(0, layer * directions, directions) : at::Tensor();
    Outputs out = run_layer(layers, x, h, c, w);
    x = out[0];
    hy.push_back(out[1]);
    if (out[2].defined()) {
      cy.push_back(out[2]);
    }
    if (drops && layer + 1 < layers.count) {
      if (layers.dropout >= 1) {
        x = x * 0;
      } else {
        const DrawsInside draws;
        x = x * at::empty_like(x).detach().bernoulli_(1 - layers.dropout, generator).div_(1 - layers.dropout);
      }
    }
  }
  return {x, at::cat(hy, 0), cy.empty() ? at::Tensor() : at::cat(cy, 0)};
}

/// Lets autograd see the operators that run on the aliases.
class AutogradScope {
 public:
  AutogradScope() : keys_(with_autograd()), mode_(true) {}

 private:
  static c10::impl::LocalDispatchKeySet with_autograd() {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return keys;
  }
  c10::impl::ForceDispatchKeyGuard keys_;
  c10::AutoGradMode mode_;
};

/// What `reserve` carries: the bytes that a copy of it keeps, and the graph.
struct Reserve {
  PhiloxPosition position;
  Operands leaves;
  Outputs outputs;
};

void delete_reserve(void* context) { delete static_cast<Reserve*>(context); }

at::Tensor leaf(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach().requires_grad_() : tensor; }

/// Runs the forward under autograd and keeps the graph.
std::unique_ptr<Reserve> record(const Layers& layers, const Operands& operands, PhiloxPosition position) {
  AutogradScope autograd;
  auto reserve = std::make_unique<Reserve>();
  reserve->position = position;
  reserve->leaves = {leaf(operands.input), leaf(operands.hx), leaf(operands.cx), {}};
  for (const at::Tensor& weight : operands.weights) {
    reserve->leaves.weights.push_back(leaf(weight));
  }
  reserve->outputs = run_layers(layers, reserve->leaves, position);
  return reserve;
}

at::Tensor reserve_tensor(std::unique_ptr<Reserve> reserve, c10::Device device) {
  void* data = &reserve->position;
  c10::DataPtr owner(data, reserve.release(), &delete_reserve, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), sizeof(PhiloxPosition), std::move(owner), nullptr,
                       /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(kDeviceKey),
                                                               caffe2::TypeMeta::Make<uint8_t>());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(sizeof(PhiloxPosition))});
  return tensor;
}

Reserve* graph_of(const at::Tensor& reserve) {
  const c10::DataPtr& data = reserve.storage().data_ptr();
  return data.get_deleter() == &delete_reserve ? static_cast<Reserve*>(data.get_context()) : nullptr;
}

Layers describe(int64_t mode, int64_t stride, const c10::SymInt& projection, int64_t count, bool batch_first,
                double dropout, bool train, bool bidirectional, c10::SymIntArrayRef batch_sizes) {
  TORCH_CHECK(mode >= 0 && mode <= 3, "unknown RNN mode ", mode);
  return {static_cast<Mode>(mode),
          stride,
          projection.expect_int(),
          count,
          batch_first,
          dropout,
          train,
          bidirectional,
          C10_AS_INTARRAYREF_SLOW(batch_sizes).vec()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> cudnn_rnn(
    const at::Tensor& input, at::TensorList weight, int64_t weight_stride,
    const std::optional<at::Tensor>& /*weight_buf*/, const at::Tensor& hx, const std::optional<at::Tensor>& cx,
    int64_t mode, c10::SymInt /*hidden_size*/, c10::SymInt proj_size, int64_t num_layers, bool batch_first,
    double dropout, bool train, bool bidirectional, c10::SymIntArrayRef batch_sizes,
    const std::optional<at::Tensor>& /*dropout_state*/) {
  const Layers layers =
      describe(mode, weight_stride, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes);
  TORCH_CHECK(layers.mode != Mode::Lstm || (cx && cx->defined()), "rnn: an LSTM needs cx");
  // Here and not before: autocast makes one dtype of several.
  at::native::check_attributes(input, weight, cx && cx->defined() ? at::TensorList({hx, *cx}) : at::TensorList(hx),
                               /*check_dtype=*/true);
  DeviceCall call(input);
  const Operands operands = computable(call, input, weight, hx, cx);
  PhiloxPosition position;
  if (train && dropout > 0 && num_layers > 1) {
    position = draw_position(std::nullopt, call.device().index());
  }
  const auto finish = [&](const Outputs& outputs, const at::Tensor& reserve) {
    const auto result = [&](const at::Tensor& tensor) {
      return tensor.defined() ? call.result(tensor.to(input.scalar_type())) : at::empty({0}, input.options());
    };
    return std::make_tuple(result(outputs[0]), result(outputs[1]), result(outputs[2]), reserve,
                           at::empty({0}, input.options()));
  };
  // Without a graph the backward runs the forward again, from the place in the random stream.
  const auto place_alone = [&] {
    at::Tensor bytes = at::empty({static_cast<int64_t>(sizeof(PhiloxPosition))}, at::TensorOptions().dtype(at::kByte));
    std::memcpy(bytes.mutable_data_ptr(), &position, sizeof position);
    return call.result(bytes);
  };
  if (!(train && c10::GradMode::is_enabled())) {
    // The CPU's layers compute in another way where autograd may see them.
    const c10::NoGradGuard no_grad;
    const Outputs outputs = run_layers(layers, operands, position);
    return finish(outputs, train ? place_alone() : at::empty({0}, input.options().dtype(at::kByte)));
  }
  std::unique_ptr<Reserve> reserve = record(layers, operands, position);
  const bool replayed = in_captured_operator() || in_launched_operator();
  Outputs outputs = reserve->outputs;
  for (at::Tensor& tensor : outputs) {
    if (tensor.defined()) {
      // The graph keeps its own outputs: the program may write to what it gets.
      tensor = replayed ? tensor.detach() : tensor.detach().clone();
    }
  }
  if (replayed) {
    return finish(outputs, place_alone());  // a replay cannot hand an autograd graph on, only bytes
  }
  return finish(outputs, reserve_tensor(std::move(reserve), call.device()));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>> cudnn_rnn_backward(
    const at::Tensor& input, at::TensorList weight, int64_t weight_stride, const at::Tensor& /*weight_buf*/,
    const at::Tensor& hx, const std::optional<at::Tensor>& cx, const at::Tensor& /*output*/,
    const std::optional<at::Tensor>& grad_output, const std::optional<at::Tensor>& grad_hy,
    const std::optional<at::Tensor>& grad_cy, int64_t mode, c10::SymInt /*hidden_size*/, c10::SymInt proj_size,
    int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
    c10::SymIntArrayRef batch_sizes, const std::optional<at::Tensor>& /*dropout_state*/, const at::Tensor& reserve,
    std::array<bool, 4> output_mask) {
  TORCH_CHECK(train, "cudnn RNN backward can only be called in training mode");
  DeviceCall call(input);
  std::unique_ptr<Reserve> again;
  Reserve* graph = graph_of(reserve);
  if (graph == nullptr) {
    TORCH_CHECK(reserve.nbytes() == sizeof(PhiloxPosition),
                "_cudnn_rnn_backward: `reserve` is not what _cudnn_rnn returned with gradients enabled");
    PhiloxPosition position;
    const at::Tensor bytes = call(reserve).contiguous();
    std::memcpy(&position, bytes.const_data_ptr(), sizeof(position));
    again = record(
        describe(mode, weight_stride, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes),
        computable(call, input, weight, hx, cx), position);
    graph = again.get();
  }

  torch::autograd::variable_list outputs, grads, inputs;
  auto add = [&](const at::Tensor& value, const std::optional<at::Tensor>& grad) {
    if (value.defined() && grad && grad->defined()) {
      outputs.push_back(value);
      grads.push_back(call(*grad).to(value.scalar_type()));
    }
  };
  add(graph->outputs[0], grad_output);
  add(graph->outputs[1], grad_hy);
  add(graph->outputs[2], grad_cy);
  inputs.push_back(graph->leaves.input);
  inputs.push_back(graph->leaves.hx);
  if (graph->leaves.cx.defined()) {
    inputs.push_back(graph->leaves.cx);
  }
  const size_t first_weight = inputs.size();
  inputs.insert(inputs.end(), graph->leaves.weights.begin(), graph->leaves.weights.end());
  torch::autograd::variable_list found(inputs.size());
  if (!outputs.empty()) {
    AutogradScope autograd;
    found = torch::autograd::grad(outputs, inputs, grads, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  auto result = [&](size_t i) {
    const at::Tensor gradient = found[i].defined() ? found[i].detach() : at::zeros_like(inputs[i].detach());
    return call.result(gradient.to(input.scalar_type()));
  };
  std::vector<at::Tensor> weights;
  if (output_mask[3]) {
    for (size_t i = first_weight; i < inputs.size(); ++i) {
      weights.push_back(result(i));
    }
  }
  const bool has_cx = first_weight == 3;
  return {output_mask[0] ? result(0) : at::Tensor(), output_mask[1] ? result(1) : at::Tensor(),
          output_mask[2] && has_cx ? result(2) : at::Tensor(), weights};
}

/// Under autocast: halves, whatever dtype autocast has for other operators, but for doubles, which stay. Upstream's
/// form of this asks cuDNN for the layout of the weights.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> autocast_rnn(
    const at::Tensor& input, at::TensorList weight, int64_t weight_stride, const std::optional<at::Tensor>& weight_buf,
    const at::Tensor& hx, const std::optional<at::Tensor>& cx, int64_t mode, c10::SymInt hidden_size,
    c10::SymInt proj_size, int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
    c10::SymIntArrayRef batch_sizes, const std::optional<at::Tensor>& dropout_state) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  const auto half = [](const at::Tensor& tensor) { return at::autocast::cached_cast(at::kHalf, tensor, kDevice); };
  std::vector<at::Tensor> weights;
  for (const at::Tensor& w : weight) {
    TORCH_CHECK(w.scalar_type() == weight[0].scalar_type(), "Weight scalar types do not match.");
    weights.push_back(half(w));
  }
  const bool cast = !weights.empty() && weights[0].scalar_type() != weight[0].scalar_type();
  return at::_cudnn_rnn_symint(half(input), weights, weight_stride, cast ? std::nullopt : weight_buf, half(hx),
                               cx && cx->defined() ? std::make_optional(half(*cx)) : cx, mode, std::move(hidden_size),
                               std::move(proj_size), num_layers, batch_first, dropout, train, bidirectional,
                               batch_sizes, dropout_state);
}

/// One buffer for all weights of a layer stack; the weights become views of it, in their order.
at::Tensor cudnn_rnn_flatten_weight(at::TensorList weights, int64_t, c10::SymInt, int64_t, c10::SymInt, c10::SymInt,
                                    int64_t, bool, bool) {
  TORCH_CHECK(!weights.empty(), "_cudnn_rnn_flatten_weight_: cannot flatten empty weight list");
  int64_t total = 0;
  for (const at::Tensor& weight : weights) {
    total += weight.numel();
  }
  const at::Tensor buffer = at::empty({total}, weights[0].options());
  int64_t offset = 0;
  for (const at::Tensor& weight : weights) {
    const at::Tensor view = buffer.narrow(0, offset, weight.numel()).view(weight.sizes());
    view.copy_(weight);
    weight.set_(view);
    offset += weight.numel();
  }
  return buffer;
}

/// cuDNN keeps the state of its dropout here; ours is the generator's, so that there is nothing to keep.
at::Tensor cudnn_init_dropout_state(double, bool, int64_t, std::optional<at::ScalarType> dtype,
                                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                                    std::optional<bool> pin_memory) {
  return at::empty({0}, at::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory));
}

// nn.LSTM and friends reach _cudnn_rnn through these function tables, past the dispatcher.

/// Whether the weights lie one behind the other from the start of a storage, as flatten_parameters() lays them.
bool are_flat(at::TensorList weights) {
  int64_t offset = 0;
  for (const at::Tensor& weight : weights) {
    if (!weight.is_contiguous() || !weight.is_alias_of(weights[0]) || weight.storage_offset() != offset) {
      return false;
    }
    offset += weight.numel();
  }
  return true;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> run_module(Mode mode, const at::Tensor& input,
                                                          const at::Tensor& batch_sizes, const at::Tensor& hx,
                                                          const at::Tensor& cx, at::TensorList params, bool has_biases,
                                                          int64_t num_layers, double dropout, bool train,
                                                          bool bidirectional, bool batch_first = false) {
  at::native::check_attributes(input, params, cx.defined() ? at::TensorList({hx, cx}) : at::TensorList(hx));
  if (C10_UNLIKELY(!are_flat(params))) {
    TORCH_WARN(
        "RNN module weights are not part of single contiguous chunk of memory. This means they need to be "
        "compacted at every call, possibly greatly increasing memory usage. To compact weights again call "
        "flatten_parameters().");
  }
  const int64_t directions = bidirectional ? 2 : 1;
  const int64_t per_direction = static_cast<int64_t>(params.size()) / (num_layers * directions);
  const int64_t hidden = cx.defined() ? cx.size(2) : hx.size(2);
  const int64_t projection = per_direction == (has_biases ? 5 : 3) ? hx.size(2) : 0;
  std::vector<int64_t> sizes;
  if (batch_sizes.defined()) {
    TORCH_CHECK(batch_sizes.is_cpu(), "batch_sizes tensor should be on CPU, but got ", batch_sizes.device());
    sizes.assign(batch_sizes.const_data_ptr<int64_t>(), batch_sizes.const_data_ptr<int64_t>() + batch_sizes.numel());
  }
  auto [output, hy, cy, reserve, buffer] =
      at::_cudnn_rnn(input, params, per_direction, at::Tensor(), hx, cx, static_cast<int64_t>(mode), hidden, projection,
                     num_layers, batch_first, dropout, train, bidirectional, sizes, at::Tensor());
  return {output, hy, cy};
}

void lstm(at::Tensor& output, at::Tensor& hy, at::Tensor& cy, const at::Tensor& input, at::TensorList hx,
          at::TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
          bool batch_first) {
  std::tie(output, hy, cy) = run_module(Mode::Lstm, input, {}, hx[0], hx[1], params, has_biases, num_layers, dropout,
                                        train, bidirectional, batch_first);
}

void lstm_packed(at::Tensor& output, at::Tensor& hy, at::Tensor& cy, const at::Tensor& data,
                 const at::Tensor& batch_sizes, at::TensorList hx, at::TensorList params, bool has_biases,
                 int64_t num_layers, double dropout, bool train, bool bidirectional) {
  std::tie(output, hy, cy) = run_module(Mode::Lstm, data, batch_sizes, hx[0], hx[1], params, has_biases, num_layers,
                                        dropout, train, bidirectional);
}

template <Mode mode>
void rnn(at::Tensor& output, at::Tensor& hy, const at::Tensor& input, const at::Tensor& hx, at::TensorList params,
         bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  std::tie(output, hy, std::ignore) =
      run_module(mode, input, {}, hx, {}, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

template <Mode mode>
void rnn_packed(at::Tensor& output, at::Tensor& hy, const at::Tensor& data, const at::Tensor& batch_sizes,
                const at::Tensor& hx, at::TensorList params, bool has_biases, int64_t num_layers, double dropout,
                bool train, bool bidirectional) {
  std::tie(output, hy, std::ignore) =
      run_module(mode, data, batch_sizes, hx, {}, params, has_biases, num_layers, dropout, train, bidirectional);
}

// One step of a cell, as nn.LSTMCell and nn.GRUCell call it. Gates of an LSTM: input, forget, cell, output; of a GRU:
// reset, update, new. The workspace keeps them for the backward.

at::Tensor plus(const at::Tensor& gates, const std::optional<at::Tensor>& bias) { return bias ? gates + *bias : gates; }

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias) {
  DeviceCall call(input_gates);
  at::Tensor gates = plus(call(input_gates), call(input_bias)).add(plus(call(hidden_gates), call(hidden_bias)));
  std::vector<at::Tensor> part = gates.chunk(4, 1);
  part[0].sigmoid_();
  part[1].sigmoid_();
  part[2].tanh_();
  part[3].sigmoid_();
  at::Tensor cy = (part[1] * call(cx)).addcmul_(part[0], part[2]);
  at::Tensor hy = part[3] * cy.tanh();
  return call.results(hy, cy, gates);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& grad_hy,
                                                                  const std::optional<at::Tensor>& grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& workspace, bool has_bias) {
  DeviceCall call(cx);
  const std::vector<at::Tensor> gate = call(workspace).chunk(4, 1);
  const at::Tensor tanh_cy = call(cy).tanh();
  const at::Tensor gh = grad_hy && grad_hy->defined() ? call(*grad_hy) : at::zeros_like(tanh_cy);
  at::Tensor dc = at::tanh_backward(gh * gate[3], tanh_cy);
  if (grad_cy && grad_cy->defined()) {
    dc = dc + call(*grad_cy);
  }
  at::Tensor grad_gates =
      at::cat({at::sigmoid_backward(dc * gate[2], gate[0]), at::sigmoid_backward(dc * call(cx), gate[1]),
               at::tanh_backward(dc * gate[0], gate[2]), at::sigmoid_backward(gh * tanh_cy, gate[3])},
              1);
  at::Tensor grad_bias = has_bias ? grad_gates.sum(0) : at::Tensor();
  return call.results(grad_gates, dc * gate[1], grad_bias);
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& hidden_bias) {
  DeviceCall call(input_gates);
  const std::vector<at::Tensor> in = plus(call(input_gates), call(input_bias)).chunk(3, 1);
  const std::vector<at::Tensor> hidden = plus(call(hidden_gates), call(hidden_bias)).chunk(3, 1);
  const at::Tensor reset = (in[0] + hidden[0]).sigmoid_();
  const at::Tensor update = (in[1] + hidden[1]).sigmoid_();
  const at::Tensor fresh = in[2].addcmul(reset, hidden[2]).tanh_();
  const at::Tensor h = call(hx);
  at::Tensor hy = fresh.addcmul(update, h - fresh);
  return call.results(hy, at::cat({reset, update, fresh, h, hidden[2]}, 1));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  DeviceCall call(grad_hy);
  const std::vector<at::Tensor> kept = call(workspace).chunk(5, 1);
  const at::Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &h = kept[3], &hidden = kept[4];
  const at::Tensor grad = call(grad_hy);
  const at::Tensor d_update = at::sigmoid_backward(grad * (h - fresh), update);
  const at::Tensor d_fresh = at::tanh_backward(grad * (1 - update), fresh);
  const at::Tensor d_reset = at::sigmoid_backward(d_fresh * hidden, reset);
  at::Tensor grad_input = at::cat({d_reset, d_update, d_fresh}, 1);
  at::Tensor grad_hidden = at::cat({d_reset, d_update, d_fresh * reset}, 1);
  at::Tensor input_bias = has_bias ? grad_input.sum(0) : at::Tensor();
  at::Tensor hidden_bias = has_bias ? grad_hidden.sum(0) : at::Tensor();
  return call.results(grad_input, grad_hidden, grad * update, input_bias, hidden_bias);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Recurrent.h"
