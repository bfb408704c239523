#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "arguments/Arguments.h"
#include "ops/attention/Attention.h"
#include "ops/random/Draws.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Note [Attention over sequences]
// The forms below scaled_dot_product_attention, which libraries call by name: heads come after positions, and sequences
// of different lengths may lie behind one another. Shapes: (B, L, H, E); or, where cumulative lengths say how a batch
// is packed, (T, H, E) for flash and (1, T, H, E) for the memory-efficient form. Each sequence is one problem of
// Note [Attention].

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What a query may see, counted from its own place among the keys; None: no limit.
struct Window {
  std::optional<int64_t> left, right;
  bool aligned_at_end = true;  // the last query stands at the last key; else the first at the first
};

/// Positions [query_from, query_from + query_length) of `batch`, and those of its keys.
struct Piece {
  int64_t batch, query_from, query_length, key_from, key_length;
};

std::vector<int64_t> numbers(DeviceCall& call, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return {};
  }
  const at::Tensor values = call.alias(tensor).to(at::kLong).contiguous();
  const auto* data = values.const_data_ptr<int64_t>();
  return {data, data + values.numel()};
}

/// Upstream allows a limit of -1 for none.
std::optional<int64_t> limit(const std::optional<int64_t>& value) {
  return value && *value >= 0 ? value : std::nullopt;
}

std::vector<Piece> make_pieces(const at::Tensor& query, const at::Tensor& key, const std::vector<int64_t>& query_starts,
                               const std::vector<int64_t>& key_starts, const std::vector<int64_t>& key_lengths) {
  std::vector<Piece> pieces;
  const bool packed = !query_starts.empty();
  TORCH_CHECK(packed == !key_starts.empty(), "attention: cumulative lengths of queries and keys come together");
  const int64_t batches = packed ? static_cast<int64_t>(query_starts.size()) - 1 : query.size(0);
  TORCH_CHECK(!packed || query_starts.size() == key_starts.size(),
              "attention: cumulative lengths of queries and keys must have the same number of entries, got ",
              query_starts.size(), " and ", key_starts.size());
  for (int64_t i = 0; i < batches; ++i) {
    Piece piece{i, 0, query.size(-3), 0, key.size(-3)};
    if (packed) {
      piece.query_from = query_starts[i];
      piece.query_length = query_starts[i + 1] - query_starts[i];
      piece.key_from = key_starts[i];
      piece.key_length = key_starts[i + 1] - key_starts[i];
    }
    if (!key_lengths.empty()) {
      piece.key_length = key_lengths.at(i);
    }
    TORCH_CHECK(piece.query_from >= 0 && piece.query_length >= 0 && piece.key_from >= 0 && piece.key_length >= 0 &&
                    piece.query_from + piece.query_length <= query.size(-3),
                "attention: sequence ", i, " lies outside of the tensors");
    pieces.push_back(piece);
  }
  return pieces;
}

at::Tensor forbidden(int64_t queries, int64_t keys, const Window& window) {
  if (!window.left && !window.right) {
    return {};
  }
  const at::Tensor place = at::arange(queries).add_(window.aligned_at_end ? keys - queries : 0).unsqueeze(1);
  const at::Tensor distance = at::arange(keys).unsqueeze(0) - place;
  at::Tensor mask = at::zeros({queries, keys}, at::TensorOptions().dtype(at::kBool));
  if (window.right) {
    mask.logical_or_(distance.gt(*window.right));
  }
  if (window.left) {
    mask.logical_or_(distance.lt(-*window.left));
  }
  return mask;
}

/// ALiBi (Press, Smith, Lewis 2022): scores fall with the distance; slopes (H) or (B, H). Causal kernels leave out what
/// is the same for a whole row.
at::Tensor alibi(const at::Tensor& slopes, const Piece& piece, bool causal) {
  const at::Tensor of_heads = (slopes.dim() == 2 ? slopes.select(0, piece.batch) : slopes).view({1, -1, 1, 1});
  const at::Tensor keys = at::arange(piece.key_length).to(at::kFloat);
  if (causal) {
    return of_heads * keys;
  }
  const at::Tensor place = at::arange(piece.query_length).add_(piece.key_length - piece.query_length).unsqueeze(1);
  return of_heads * (keys - place).abs_().neg_();
}

/// Keys or values of one sequence in a paged cache (pages, page size, H, E), by the page numbers of its row.
at::Tensor paged(const at::Tensor& cache, const at::Tensor& pages, const Piece& piece) {
  const at::Tensor row = pages.select(0, piece.batch).to(at::kLong);
  const int64_t size = cache.size(1);
  const at::Tensor used = row.narrow(0, 0, (piece.key_length + size - 1) / size);
  return cache.index_select(0, used).flatten(0, 1).narrow(0, 0, piece.key_length).unsqueeze(0).transpose(1, 2);
}

/// What the forms have in common: the tensors of a call, and the sequences in them.
struct Sequences {
  DeviceCall call;
  at::Tensor query, key, value, bias, slopes, pages;
  bool causal, packed = false;
  double dropout;
  std::optional<double> scale;
  Window window;
  std::vector<Piece> pieces;

  Sequences(const Arguments& given, const char* bias_name)
      : call(given.tensor("query")),
        query(call(given.tensor("query"))),
        key(call(given.tensor("key"))),
        value(call(given.tensor("value"))),
        bias(call(given.tensor(bias_name))),
        slopes(call(given.tensor("alibi_slopes"))),
        pages(call(given.tensor("block_table"))),
        causal(given.flag("is_causal")),
        dropout(given.number("dropout_p").value_or(0)),
        scale(given.number("scale")) {}

  /// Calls visit(piece) for each sequence that has queries and keys.
  template <class Visit>
  void for_each_piece(const Visit& visit) const {
    for (const Piece& piece : pieces) {
      if (piece.query_length != 0 && piece.key_length != 0) {
        visit(piece);
      }
    }
  }

  /// Heads-first view (1, H, length, E) of one sequence.
  at::Tensor queries(const at::Tensor& tensor, const Piece& piece) const {
    return sequence(tensor, piece.batch, piece.query_from, piece.query_length);
  }
  at::Tensor keys(const at::Tensor& tensor, const Piece& piece) const {
    return pages.defined() ? paged(tensor, pages, piece)
                           : sequence(tensor, piece.batch, piece.key_from, piece.key_length);
  }
  /// Its part of a logsumexp (1, H, length): of (H, T) or (B, H, L).
  static at::Tensor rows(const at::Tensor& logsumexp, const Piece& piece) {
    return logsumexp.dim() == 2 ? logsumexp.narrow(1, piece.query_from, piece.query_length).unsqueeze(0)
                                : logsumexp.narrow(0, piece.batch, 1).narrow(2, 0, piece.query_length);
  }
  /// Its part of a bias, or of a bias's gradient.
  static at::Tensor bias_of(const at::Tensor& whole, const Piece& piece) {
    if (!whole.defined()) {
      return {};
    }
    const at::Tensor all = whole.dim() == 4 ? whole : whole.unsqueeze(0);
    const at::Tensor own = all.narrow(0, all.size(0) == 1 ? 0 : piece.batch, 1);
    return own.narrow(2, 0, own.size(2) == 1 ? 1 : piece.query_length)
        .narrow(3, 0, own.size(3) == 1 ? 1 : piece.key_length);
  }

  AttentionProblem problem(const Piece& piece) const {
    const bool square = piece.query_length == piece.key_length || !window.aligned_at_end;
    const bool triangular = !window.left && window.right && *window.right == 0 && square;
    AttentionProblem problem = attention_problem(queries(query, piece), keys(key, piece), keys(value, piece),
                                                 slopes.defined() ? alibi(slopes, piece, causal) : bias_of(bias, piece),
                                                 dropout, triangular, scale);
    if (!triangular) {
      problem.banned = forbidden(piece.query_length, piece.key_length, window);
    }
    return problem;
  }

  /// Fills the parts of `output` and, if it is defined, of `logsumexp`.
  void forward(const at::Tensor& output, const at::Tensor& logsumexp,
               const std::optional<at::Generator>& random) const {
    for_each_piece([&](const Piece& piece) {
      auto [part, own] = attention_forward(problem(piece), random);
      queries(output, piece).copy_(part);
      if (logsumexp.defined()) {
        rows(logsumexp, piece).copy_(with_empty_rows(own));
      }
    });
  }

  /// Fills the parts of `into`, which are zero before; a bias has a gradient if `into` does.
  void backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& logsumexp,
                const std::optional<at::Generator>& random, const AttentionGradients& into) const {
    for_each_piece([&](const Piece& piece) {
      const AttentionGradients part =
          attention_backward(problem(piece), widen(queries(grad, piece)), widen(queries(output, piece)),
                             rows(logsumexp, piece), random, into.bias.defined());
      queries(into.query, piece).copy_(part.query);
      keys(into.key, piece).copy_(part.key);
      keys(into.value, piece).copy_(part.value);
      if (into.bias.defined()) {
        bias_of(into.bias, piece).add_(part.bias);
      }
    });
  }

  AttentionGradients zero_gradients() const {
    return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value), {}};
  }

  /// What dropout drew from in the forward pass.
  std::optional<at::Generator> random_of(const at::Tensor& first, const at::Tensor& second) {
    return attention_random(position_of(call, first, second, dropout), dropout);
  }

 private:
  at::Tensor sequence(const at::Tensor& tensor, int64_t batch, int64_t from, int64_t length) const {
    const at::Tensor positions = tensor.dim() == 3 ? tensor : tensor.select(0, packed ? 0 : batch);
    return positions.narrow(0, from, length).unsqueeze(0).transpose(1, 2);
  }
};

at::Tensor infinite(at::IntArrayRef shape) { return at::full(shape, kInfinity, at::TensorOptions().dtype(at::kFloat)); }

// ---- Flash ----------------------------------------------------------------------------------------------------------

struct FlashCall : Sequences {
  explicit FlashCall(const Arguments& given) : Sequences(given, "") {
    check_flash_dtypes(query, key, value);
    const std::vector<int64_t> starts = numbers(call, given.tensor("cum_seq_q"));
    packed = !starts.empty();
    TORCH_CHECK(query.dim() == (packed ? 3 : 4), "flash attention: expected a query of ", packed ? 3 : 4,
                " dimensions, got ", query.dim());
    window.left = limit(given.integer("window_size_left"));
    window.right = causal ? std::make_optional<int64_t>(0) : limit(given.integer("window_size_right"));
    pieces = make_pieces(query, key, starts, numbers(call, given.tensor("cum_seq_k")),
                         numbers(call, given.tensor("seqused_k")));
  }

  /// Fills `output`, which is laid out like the query, and gives the logsumexp: (H, T) where the release packs it, else
  /// (B, H, L).
  at::Tensor forward_to(at::Tensor output, int64_t longest, bool packs_logsumexp,
                        const std::optional<at::Generator>& random) const {
    const int64_t heads = query.size(-2), batches = static_cast<int64_t>(pieces.size());
    const at::Tensor logsumexp = packed && packs_logsumexp
                                     ? infinite({heads, query.size(0)})
                                     : infinite({batches, heads, packed ? longest : query.size(1)});
    forward(output.zero_(), logsumexp, random);
    return logsumexp;
  }

  /// (sequences, H, longest query, longest key), both lengths in blocks; zero behind a sequence's end.
  at::Tensor debug_mask(int64_t longest_query, int64_t longest_key, const at::Tensor& logsumexp,
                        const std::optional<at::Generator>& random) const {
    at::Tensor mask = at::zeros(
        {static_cast<int64_t>(pieces.size()), query.size(-2), in_blocks(longest_query), in_blocks(longest_key)},
        query.options());
    for_each_piece([&](const Piece& piece) {
      const at::Tensor own = rows(logsumexp, piece);
      // attention_forward's own mark of a row that sees nothing
      const at::Tensor p = signed_probabilities(problem(piece), own.masked_fill(own.isposinf(), -kInfinity), random);
      mask.narrow(0, piece.batch, 1).narrow(2, 0, piece.query_length).narrow(3, 0, piece.key_length).copy_(p);
    });
    return mask;
  }
};

void flash_forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  FlashCall flash(given);
  const bool wants_mask = given.flag("return_debug_mask");
  TORCH_CHECK(!wants_mask || flash.dropout > 0, "return_softmax is only supported when p_dropout > 0.0");
  const bool newer = given.has_result("rng_state");  // torch 2.7 packs both the random place and the logsumexp
  const PhiloxPosition position = attention_position(flash.call, flash.dropout);
  std::vector<int64_t> shape = flash.query.sizes().vec();
  shape.back() = flash.value.size(-1);
  // In the query's order of memory.
  const at::Tensor output =
      flash.query.sizes() == shape ? at::empty_like(flash.query) : at::empty(shape, flash.query.options());
  const int64_t longest_query = *given.integer("max_q");
  const at::Tensor logsumexp =
      flash.forward_to(output, longest_query, newer, attention_random(position, flash.dropout));
  auto [first, second] = position_tensors(flash.call, position, newer);
  const at::Tensor mask = wants_mask ? flash.debug_mask(longest_query, *given.integer("max_k"), logsumexp,
                                                        attention_random(position, flash.dropout))
                                     : at::empty({0}, flash.query.options());
  given.give(flash.call.result(output), flash.call.result(logsumexp), first, second, flash.call.result(mask));
}

void flash_forward_inplace(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  FlashCall flash(given);
  TORCH_CHECK(flash.dropout == 0, "_flash_attention_forward_no_dropout_inplace: dropout_p must be 0");
  const at::Tensor output = flash.call(given.tensor("out"), true);
  given.give(flash.call.result(flash.forward_to(output, *given.integer("max_q"), true, std::nullopt)));
}

void flash_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kFlashAttention>();
  Arguments given(op, stack);
  FlashCall flash(given);
  const bool state = !given["rng_state"].isNone();
  const AttentionGradients grads = flash.zero_gradients();
  flash.backward(flash.call(given.tensor("grad_out")), flash.call(given.tensor("out")),
                 flash.call(given.tensor("logsumexp")),
                 flash.random_of(given.tensor(state ? "rng_state" : "philox_seed"),
                                 given.tensor(state ? "unused" : "philox_offset")),
                 grads);
  given.give(flash.call.result(grads.query), flash.call.result(grads.key), flash.call.result(grads.value));
}

// ---- Memory-efficient -----------------------------------------------------------------------------------------------

constexpr int64_t kCausalFromTopLeft = 1;
constexpr int64_t kCausalFromBottomRight = 2;

struct EfficientCall : Sequences {
  explicit EfficientCall(const Arguments& given) : Sequences(given, "bias") {
    TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
                "memory-efficient attention takes query, key and value of 4 dimensions, got ", query.dim(), ", ",
                key.dim(), " and ", value.dim());
    check_efficient_dtypes(query, key, value);
    const int64_t mask = *given.integer("custom_mask_type");
    TORCH_CHECK(mask >= 0 && mask <= kCausalFromBottomRight, "invalid value for `custom_mask_type`: ", mask);
    window.aligned_at_end = mask == kCausalFromBottomRight;
    if (mask != 0) {
      window.right = 0;
    }
    const std::optional<int64_t> size = given.integer("window_size");
    if (size && *size > 0) {
      TORCH_CHECK(mask != 0, "window_size needs a causal custom_mask_type");
      window.left = *size - 1;
    }
    const std::vector<int64_t> starts = numbers(call, given.tensor("cu_seqlens_q"));
    packed = !starts.empty();
    TORCH_CHECK(!packed || query.size(0) == 1, "cu_seqlens_q only supports batch_size=1");
    pieces = make_pieces(query, key, starts, numbers(call, given.tensor("cu_seqlens_k")),
                         numbers(call, given.tensor("seqlen_k")));
  }

  /// Zero gradients that are views of one tensor.
  AttentionGradients zero_gradients_in_one() const {
    TORCH_CHECK(query.size(1) == key.size(1), "seqlen must match for `shared_storage_dqdkdv");
    TORCH_CHECK(query.size(3) == key.size(3), "embedding dim must match for `shared_storage_dqdkdv");
    std::vector<int64_t> shape = query.sizes().vec();
    shape.insert(shape.end() - 2, 3);
    const at::Tensor chunk = at::zeros(shape, query.options());
    return {chunk.select(-3, 0), chunk.select(-3, 1), chunk.select(-3, 2), {}};
  }
};

void efficient_forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  EfficientCall efficient(given);
  const at::Tensor& query = efficient.query;
  const int64_t longest_query = efficient.packed ? *given.integer("max_seqlen_q") : query.size(1);
  const int64_t longest_key = given.integer("max_seqlen_k").value_or(efficient.key.size(1));
  const PhiloxPosition position = attention_position(efficient.call, efficient.dropout);
  const at::Tensor output =
      at::zeros({query.size(0), query.size(1), query.size(2), efficient.value.size(3)}, query.options());
  // Upstream's kernel rounds the last dimension of its logsumexp up to 32, and has none where no gradient is wanted.
  const bool keeps = given.flag("compute_log_sumexp");
  const at::Tensor logsumexp = infinite(
      {static_cast<int64_t>(efficient.pieces.size()), query.size(2), keeps ? (longest_query + 31) / 32 * 32 : 0});
  efficient.forward(output, keeps ? logsumexp : at::Tensor(), attention_random(position, efficient.dropout));
  auto [seed, offset] = position_tensors(efficient.call, position, false);
  given.give(efficient.call.result(output), efficient.call.result(logsumexp), seed, offset, longest_query, longest_key);
}

void efficient_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kEfficientAttention>();
  Arguments given(op, stack);
  EfficientCall efficient(given);
  DeviceCall& call = efficient.call;
  AttentionGradients grads =
      given.flag("shared_storage_dqdkdv") ? efficient.zero_gradients_in_one() : efficient.zero_gradients();
  if (given.flag("bias_requires_grad") && efficient.bias.defined()) {
    grads.bias = at::zeros(efficient.bias.sizes(),
                           efficient.query.options().dtype(accumulate_dtype(efficient.query.scalar_type())));
  }
  efficient.backward(call(given.tensor("grad_out_")), call(given.tensor("out")), call(given.tensor("logsumexp")),
                     efficient.random_of(given.tensor("philox_seed"), given.tensor("philox_offset")), grads);
  given.give(
      call.result(grads.query), call.result(grads.key), call.result(grads.value),
      grads.bias.defined() ? call.result(with_aligned_rows(grads.bias, efficient.bias.scalar_type())) : at::Tensor());
}

// ---- cuDNN (torch 2.9 and later) -----------------------------------------------------------------------------------

/// Its tensors are heads-first (B, H, L, E) where they are dense, and packed ones as flash's; logsumexp has a last
/// dimension of one.
struct CudnnCall : Sequences {
  explicit CudnnCall(const Arguments& given) : Sequences(given, "attn_bias") {
    const std::vector<int64_t> starts = numbers(call, given.tensor("cum_seq_q"));
    const std::vector<int64_t> used = numbers(call, given.tensor("seqused_k"));
    packed = !starts.empty();
    TORCH_CHECK(packed || (used.empty() && !pages.defined()), "seqused_k and block_table need packed sequences");
    TORCH_CHECK(!pages.defined() || !used.empty(), "block_table requires seqused_k");
    if (packed) {
      TORCH_CHECK(!bias.defined(), "cuDNN attention of packed sequences takes no bias");
      // Of a cache the last query stands at the last key that is used.
      window.aligned_at_end = !used.empty();
      window.right = causal ? std::make_optional<int64_t>(0) : std::nullopt;
      std::vector<int64_t> key_starts = numbers(call, given.tensor("cum_seq_k"));
      if (pages.defined() && key_starts.empty()) {
        key_starts.assign(starts.size(), 0);  // keys are found by their pages
      }
      pieces = make_pieces(query, key, starts, key_starts, used);
    }
  }

  /// All dense sequences at once.
  AttentionProblem dense() const { return attention_problem(query, key, value, bias, dropout, causal, scale); }
};

void cudnn_forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  TORCH_CHECK(!given.flag("return_debug_mask"),
              "return_debug_mask: the simulated device does not keep the attention matrix");
  CudnnCall cudnn(given);
  const at::Tensor& query = cudnn.query;
  const PhiloxPosition position = attention_position(cudnn.call, cudnn.dropout);
  const std::optional<at::Generator> random = attention_random(position, cudnn.dropout);
  at::Tensor output, logsumexp;
  if (cudnn.packed) {
    output = at::zeros({query.size(0), query.size(1), cudnn.value.size(-1)}, query.options());
    logsumexp = infinite({query.size(0), query.size(1)});
    cudnn.forward(output, logsumexp.t(), random);
  } else {
    std::tie(output, logsumexp) = attention_forward(cudnn.dense(), random);
  }
  auto [seed, offset] = position_tensors(cudnn.call, position, false);
  given.give(cudnn.call.result(output.to(query.scalar_type())),
             given.flag("compute_log_sumexp") ? cudnn.call.result(logsumexp.contiguous().unsqueeze(-1)) : at::Tensor(),
             given.tensor("cum_seq_q"), given.tensor("cum_seq_k"), *given.integer("max_q"), *given.integer("max_k"),
             seed, offset, at::Tensor());
}

void cudnn_forward_inplace(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  CudnnCall cudnn(given);
  TORCH_CHECK(cudnn.packed, "_cudnn_attention_forward_no_dropout_inplace: sequences must be packed");
  const at::Tensor output = cudnn.call(given.tensor("out"), true);
  const at::Tensor logsumexp = infinite({cudnn.query.size(0), cudnn.query.size(1)});
  cudnn.forward(output.zero_(), logsumexp.t(), std::nullopt);
  given.give(cudnn.call.result(logsumexp.unsqueeze(-1)));
}

void cudnn_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kCudnnAttention>();
  Arguments given(op, stack);
  CudnnCall cudnn(given);
  DeviceCall& call = cudnn.call;
  const at::Tensor grad = call(given.tensor("grad_out")), output = call(given.tensor("out"));
  const at::Tensor logsumexp = call(given.tensor("logsumexp")).squeeze(-1);
  const std::optional<at::Generator> random =
      cudnn.random_of(given.tensor("philox_seed"), given.tensor("philox_offset"));
  AttentionGradients grads;
  if (cudnn.packed) {
    grads = cudnn.zero_gradients();
    cudnn.backward(grad, output, logsumexp.t(), random, grads);
  } else {
    grads = attention_backward(cudnn.dense(), widen(grad), widen(output), logsumexp, random, false);
  }
  given.give(call.result(grads.query.to(cudnn.query.scalar_type())), call.result(grads.key.to(cudnn.key.scalar_type())),
             call.result(grads.value.to(cudnn.value.scalar_type())));
}

/// The uniform numbers that the memory-efficient form's dropout compares with its probability: above it, a score is
/// kept.
void fill_dropout_mask(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  at::Tensor self = given.tensor("self");
  {
    DeviceCall call(self);
    const PhiloxPosition position{static_cast<uint64_t>(*given.integer("seed")),
                                  static_cast<uint64_t>(*given.integer("offset"))};
    const DrawsInside draws;
    call(self, true).uniform_(0, 1, generator_at(position));
  }
  given.give(self);
}

}  // namespace
}  // namespace macatorch

#include "registered/attention/SequenceAttention.h"
