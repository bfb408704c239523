#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "arguments/Arguments.h"
#include "ops/attention/Attention.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// Note [Attention over sequences]
// The forms below scaled_dot_product_attention, which libraries call by name: heads come after positions, and sequences of
// different lengths may lie behind one another. Shapes: (B, L, H, E); or, where cumulative lengths say how a batch is
// packed, (T, H, E) for flash and (1, T, H, E) for the memory-efficient form. Each sequence is one problem of
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
  const at::Tensor values = call.anywhere(tensor).to(at::kLong).contiguous();
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

/// Heads-first view (1, H, length, E) of one sequence in a tensor of any layout of Note [Attention over sequences].
at::Tensor sequence(const at::Tensor& tensor, int64_t batch, int64_t from, int64_t length, bool packed) {
  const at::Tensor rows = tensor.dim() == 3 ? tensor : tensor.select(0, packed ? 0 : batch);
  return rows.narrow(0, from, length).unsqueeze(0).transpose(1, 2);
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

/// ALiBi (Press, Smith, Lewis 2022): scores fall with the distance; slopes (H) or (B, H). Causal kernels leave out what is
/// the same for a whole row.
at::Tensor alibi(const at::Tensor& slopes, const Piece& piece, bool causal) {
  const at::Tensor of_heads = (slopes.dim() == 2 ? slopes.select(0, piece.batch) : slopes).view({1, -1, 1, 1});
  const at::Tensor keys = at::arange(piece.key_length).to(at::kFloat);
  if (causal) {
    return of_heads * keys;
  }
  const at::Tensor place = at::arange(piece.query_length).add_(piece.key_length - piece.query_length).unsqueeze(1);
  return of_heads * (keys - place).abs_().neg_();
}

AttentionProblem problem_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& bias, double dropout, const Window& window, std::optional<double> scale) {
  const bool square = query.size(2) == key.size(2) || !window.aligned_at_end;
  const bool causal = !window.left && window.right && *window.right == 0 && square;
  AttentionProblem problem = attention_problem(query, key, value, bias, dropout, causal, scale);
  if (!causal) {
    problem.banned = forbidden(query.size(2), key.size(2), window);
  }
  return problem;
}

/// Keys or values of one sequence in a paged cache (pages, page size, H, E), by the page numbers of its row.
at::Tensor paged(const at::Tensor& cache, const at::Tensor& pages, const Piece& piece) {
  const at::Tensor row = pages.select(0, piece.batch).to(at::kLong);
  const int64_t size = cache.size(1);
  const at::Tensor used = row.narrow(0, 0, (piece.key_length + size - 1) / size);
  return cache.index_select(0, used).flatten(0, 1).narrow(0, 0, piece.key_length).unsqueeze(0).transpose(1, 2);
}

// ---- Flash ----------------------------------------------------------------------------------------------------------

struct FlashCall {
  DeviceCall call;
  at::Tensor query, key, value, slopes, pages;
  bool packed, causal;
  double dropout;
  std::optional<double> scale;
  Window window;
  std::vector<Piece> pieces;

  explicit FlashCall(const Arguments& given)
      : call(given.tensor("query")),
        query(call(given.tensor("query"))),
        key(call(given.tensor("key"))),
        value(call(given.tensor("value"))),
        slopes(call(given.tensor("alibi_slopes"))),
        pages(call(given.tensor("block_table"))),
        causal(given.flag("is_causal")),
        dropout(*given.number("dropout_p")),
        scale(given.number("scale")) {
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

  AttentionProblem problem(const Piece& piece) const {
    const at::Tensor q = sequence(query, piece.batch, piece.query_from, piece.query_length, packed);
    const auto keys_of = [&](const at::Tensor& tensor) {
      return pages.defined() ? paged(tensor, pages, piece)
                             : sequence(tensor, piece.batch, piece.key_from, piece.key_length, packed);
    };
    return problem_of(q, keys_of(key), keys_of(value), slopes.defined() ? alibi(slopes, piece, causal) : at::Tensor(),
                      dropout, window, scale);
  }

  /// Where a sequence's logsumexp lies: (H, T) where the release packs it, else (B, H, L).
  at::Tensor logsumexp_of(const at::Tensor& logsumexp, const Piece& piece) const {
    return logsumexp.dim() == 2 ? logsumexp.narrow(1, piece.query_from, piece.query_length).unsqueeze(0)
                                : logsumexp.narrow(0, piece.batch, 1).narrow(2, 0, piece.query_length);
  }
};

/// Fills `output`, which is laid out like the query, and gives the logsumexp.
at::Tensor flash_into(FlashCall& flash, at::Tensor output, int64_t longest, bool packs_logsumexp,
                      const std::optional<at::Generator>& random) {
  const int64_t heads = flash.query.size(-2);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  at::Tensor logsumexp =
      flash.packed && packs_logsumexp
          ? at::full({heads, flash.query.size(0)}, kInfinity, options)
          : at::full({static_cast<int64_t>(flash.pieces.size()), heads, flash.packed ? longest : flash.query.size(1)},
                     kInfinity, options);
  output.zero_();
  for (const Piece& piece : flash.pieces) {
    if (piece.query_length == 0 || piece.key_length == 0) {
      continue;
    }
    auto [part, rows] = attention_forward(flash.problem(piece), random);
    sequence(output, piece.batch, piece.query_from, piece.query_length, flash.packed).copy_(part);
    flash.logsumexp_of(logsumexp, piece).copy_(with_empty_rows(rows));
  }
  return logsumexp;
}

/// (sequences, H, longest query, longest key), both lengths in blocks; zero behind a sequence's end.
at::Tensor flash_mask(const FlashCall& flash, int64_t longest_query, int64_t longest_key, const at::Tensor& logsumexp,
                      PhiloxPosition position) {
  const std::optional<at::Generator> random = attention_random(position, flash.dropout);
  at::Tensor mask = at::zeros({static_cast<int64_t>(flash.pieces.size()), flash.query.size(-2),
                               in_blocks(longest_query), in_blocks(longest_key)},
                              flash.query.options());
  for (size_t i = 0; i < flash.pieces.size(); ++i) {
    const Piece& piece = flash.pieces[i];
    if (piece.query_length != 0 && piece.key_length != 0) {
      const at::Tensor rows = flash.logsumexp_of(logsumexp, piece);
      // attention_forward's own mark of a row that sees nothing
      const at::Tensor p =
          signed_probabilities(flash.problem(piece), rows.masked_fill(rows.isposinf(), -kInfinity), random);
      mask.narrow(0, static_cast<int64_t>(i), 1)
          .narrow(2, 0, piece.query_length)
          .narrow(3, 0, piece.key_length)
          .copy_(p);
    }
  }
  return mask;
}

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
  at::Tensor output =
      flash.query.sizes() == shape ? at::empty_like(flash.query) : at::empty(shape, flash.query.options());
  const at::Tensor logsumexp =
      flash_into(flash, output, *given.integer("max_q"), newer, attention_random(position, flash.dropout));
  auto [first, second] = position_tensors(flash.call, position, newer);
  const at::Tensor mask = wants_mask
                              ? flash_mask(flash, *given.integer("max_q"), *given.integer("max_k"), logsumexp, position)
                              : at::empty({0}, flash.query.options());
  given.give(flash.call.result(output), flash.call.result(logsumexp), first, second, flash.call.result(mask));
}

void flash_forward_inplace(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  FlashCall flash(given);
  TORCH_CHECK(flash.dropout == 0, "_flash_attention_forward_no_dropout_inplace: dropout_p must be 0");
  const at::Tensor logsumexp =
      flash_into(flash, flash.call(given.tensor("out"), true), *given.integer("max_q"), true, std::nullopt);
  given.give(flash.call.result(logsumexp));
}

void flash_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kFlashAttention>();
  Arguments given(op, stack);
  FlashCall flash(given);
  const at::Tensor grad = flash.call(given.tensor("grad_out"));
  const at::Tensor output = flash.call(given.tensor("out"));
  const at::Tensor logsumexp = flash.call(given.tensor("logsumexp"));
  const bool state = !given["rng_state"].isNone();
  const at::Tensor first = given.tensor(state ? "rng_state" : "philox_seed");
  const at::Tensor second = given.tensor(state ? "unused" : "philox_offset");
  const std::optional<at::Generator> random =
      attention_random(position_of(flash.call, first, second, flash.dropout), flash.dropout);
  const at::Tensor dq = at::zeros_like(flash.query);
  const at::Tensor dk = at::zeros_like(flash.key);
  const at::Tensor dv = at::zeros_like(flash.value);
  for (const Piece& piece : flash.pieces) {
    if (piece.query_length == 0 || piece.key_length == 0) {
      continue;
    }
    const auto of_queries = [&](const at::Tensor& tensor) {
      return sequence(tensor, piece.batch, piece.query_from, piece.query_length, flash.packed);
    };
    const auto of_keys = [&](const at::Tensor& tensor) {
      return sequence(tensor, piece.batch, piece.key_from, piece.key_length, flash.packed);
    };
    const AttentionGradients part =
        attention_backward(flash.problem(piece), in_float(of_queries(grad)), in_float(of_queries(output)),
                           flash.logsumexp_of(logsumexp, piece), random, false);
    of_queries(dq).copy_(part.query);
    of_keys(dk).copy_(part.key);
    of_keys(dv).copy_(part.value);
  }
  given.give(flash.call.result(dq), flash.call.result(dk), flash.call.result(dv));
}

// ---- Memory-efficient -----------------------------------------------------------------------------------------------

constexpr int64_t kCausalFromTopLeft = 1;
constexpr int64_t kCausalFromBottomRight = 2;

struct EfficientCall {
  DeviceCall call;
  at::Tensor query, key, value, bias;
  bool packed;
  double dropout;
  std::optional<double> scale;
  Window window;
  std::vector<Piece> pieces;

  explicit EfficientCall(const Arguments& given)
      : call(given.tensor("query")),
        query(call(given.tensor("query"))),
        key(call(given.tensor("key"))),
        value(call(given.tensor("value"))),
        bias(call(given.tensor("bias"))),
        dropout(*given.number("dropout_p")),
        scale(given.number("scale")) {
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

  /// The part of a bias (or of its gradient) that belongs to a sequence.
  at::Tensor bias_of(const at::Tensor& whole, const Piece& piece) const {
    if (!whole.defined()) {
      return {};
    }
    const at::Tensor all = whole.dim() == 4 ? whole : whole.unsqueeze(0);
    const at::Tensor own = all.narrow(0, all.size(0) == 1 ? 0 : piece.batch, 1);
    return own.narrow(2, 0, own.size(2) == 1 ? 1 : piece.query_length)
        .narrow(3, 0, own.size(3) == 1 ? 1 : piece.key_length);
  }
  at::Tensor queries(const at::Tensor& tensor, const Piece& piece) const {
    return sequence(tensor, piece.batch, piece.query_from, piece.query_length, packed);
  }
  at::Tensor keys(const at::Tensor& tensor, const Piece& piece) const {
    return sequence(tensor, piece.batch, piece.key_from, piece.key_length, packed);
  }
  AttentionProblem problem(const Piece& piece) const {
    return problem_of(queries(query, piece), keys(key, piece), keys(value, piece), bias_of(bias, piece), dropout,
                      window, scale);
  }
};

void efficient_forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  EfficientCall efficient(given);
  const int64_t longest_query = efficient.packed ? *given.integer("max_seqlen_q") : efficient.query.size(1);
  const int64_t longest_key = given.integer("max_seqlen_k").value_or(efficient.key.size(1));
  const PhiloxPosition position = attention_position(efficient.call, efficient.dropout);
  const std::optional<at::Generator> random = attention_random(position, efficient.dropout);
  const at::Tensor output =
      at::zeros({efficient.query.size(0), efficient.query.size(1), efficient.query.size(2), efficient.value.size(3)},
                efficient.query.options());
  // Upstream's kernel rounds the last dimension of its logsumexp up to 32, and has none where no gradient is wanted.
  const bool keeps = given.flag("compute_log_sumexp");
  const at::Tensor logsumexp = at::full({static_cast<int64_t>(efficient.pieces.size()), efficient.query.size(2),
                                         keeps ? (longest_query + 31) / 32 * 32 : 0},
                                        kInfinity, at::TensorOptions().dtype(at::kFloat));
  for (const Piece& piece : efficient.pieces) {
    if (piece.query_length == 0 || piece.key_length == 0) {
      continue;
    }
    auto [part, rows] = attention_forward(efficient.problem(piece), random);
    efficient.queries(output, piece).copy_(part);
    if (keeps) {
      logsumexp.narrow(0, piece.batch, 1).narrow(2, 0, piece.query_length).copy_(with_empty_rows(rows));
    }
  }
  auto [seed, offset] = position_tensors(efficient.call, position, false);
  given.give(efficient.call.result(output), efficient.call.result(logsumexp), seed, offset, longest_query, longest_key);
}

void efficient_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kEfficientAttention>();
  Arguments given(op, stack);
  EfficientCall efficient(given);
  const at::Tensor grad = efficient.call(given.tensor("grad_out_"));
  const at::Tensor output = efficient.call(given.tensor("out"));
  const at::Tensor logsumexp = efficient.call(given.tensor("logsumexp"));
  const std::optional<at::Generator> random = attention_random(
      position_of(efficient.call, given.tensor("philox_seed"), given.tensor("philox_offset"), efficient.dropout),
      efficient.dropout);
  at::Tensor dq, dk, dv;
  if (given.flag("shared_storage_dqdkdv")) {
    TORCH_CHECK(efficient.query.size(1) == efficient.key.size(1), "seqlen must match for `shared_storage_dqdkdv");
    TORCH_CHECK(efficient.query.size(3) == efficient.key.size(3),
                "embedding dim must match for `shared_storage_dqdkdv");
    std::vector<int64_t> shape = efficient.query.sizes().vec();
    shape.insert(shape.end() - 2, 3);
    const at::Tensor chunk = at::zeros(shape, efficient.query.options());
    dq = chunk.select(-3, 0);
    dk = chunk.select(-3, 1);
    dv = chunk.select(-3, 2);
  } else {
    dq = at::zeros_like(efficient.query);
    dk = at::zeros_like(efficient.key);
    dv = at::zeros_like(efficient.value);
  }
  const bool wants_bias = given.flag("bias_requires_grad") && efficient.bias.defined();
  at::Tensor dbias;
  if (wants_bias) {
    dbias = at::zeros(efficient.bias.sizes(), efficient.query.options().dtype(in_float(efficient.query).scalar_type()));
  }
  for (const Piece& piece : efficient.pieces) {
    if (piece.query_length == 0 || piece.key_length == 0) {
      continue;
    }
    const AttentionGradients part = attention_backward(
        efficient.problem(piece), in_float(efficient.queries(grad, piece)), in_float(efficient.queries(output, piece)),
        logsumexp.narrow(0, piece.batch, 1).narrow(2, 0, piece.query_length), random, wants_bias);
    efficient.queries(dq, piece).copy_(part.query);
    efficient.keys(dk, piece).copy_(part.key);
    efficient.keys(dv, piece).copy_(part.value);
    if (wants_bias) {
      efficient.bias_of(dbias, piece).add_(part.bias);
    }
  }
  given.give(efficient.call.result(dq), efficient.call.result(dk), efficient.call.result(dv),
             wants_bias ? efficient.call.result(with_aligned_rows(dbias, efficient.bias.scalar_type())) : at::Tensor());
}

// ---- cuDNN (torch 2.9 and later) -------------------------------------------------------------------------------------

// Its tensors are heads-first (B, H, L, E) where they are dense, and packed ones as flash's; logsumexp has a last dimension
// of one.

void cudnn_forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  TORCH_CHECK(!given.flag("return_debug_mask"),
              "return_debug_mask: the simulated device does not keep the attention matrix");
  DeviceCall call(given.tensor("query"));
  const at::Tensor query = call(given.tensor("query"));
  const at::Tensor key = call(given.tensor("key"));
  const at::Tensor value = call(given.tensor("value"));
  const at::Tensor bias = call(given.tensor("attn_bias"));
  const double dropout = *given.number("dropout_p");
  const bool causal = given.flag("is_causal");
  const PhiloxPosition position = attention_position(call, dropout);
  const std::optional<at::Generator> random = attention_random(position, dropout);
  const std::vector<int64_t> starts = numbers(call, given.tensor("cum_seq_q"));
  at::Tensor output, logsumexp;
  if (starts.empty()) {
    std::tie(output, logsumexp) =
        attention_forward(attention_problem(query, key, value, bias, dropout, causal, given.number("scale")), random);
  } else {
    TORCH_CHECK(!bias.defined(), "cuDNN attention of packed sequences takes no bias");
    Window window;
    window.aligned_at_end = false;
    window.right = causal ? std::make_optional<int64_t>(0) : std::nullopt;
    output = at::zeros({query.size(0), query.size(1), value.size(2)}, query.options());
    logsumexp = at::full({query.size(0), query.size(1)}, kInfinity, at::TensorOptions().dtype(at::kFloat));
    for (const Piece& piece : make_pieces(query, key, starts, numbers(call, given.tensor("cum_seq_k")), {})) {
      if (piece.query_length == 0 || piece.key_length == 0) {
        continue;
      }
      auto [part, rows] = attention_forward(problem_of(sequence(query, 0, piece.query_from, piece.query_length, true),
                                                       sequence(key, 0, piece.key_from, piece.key_length, true),
                                                       sequence(value, 0, piece.key_from, piece.key_length, true), {},
                                                       dropout, window, given.number("scale")),
                                            random);
      sequence(output, 0, piece.query_from, piece.query_length, true).copy_(part);
      logsumexp.narrow(0, piece.query_from, piece.query_length).copy_(with_empty_rows(rows).squeeze(0).t());
    }
  }
  auto [seed, offset] = position_tensors(call, position, false);
  given.give(call.result(output.to(query.scalar_type())),
             given.flag("compute_log_sumexp") ? call.result(logsumexp.contiguous().unsqueeze(-1)) : at::Tensor(),
             given.tensor("cum_seq_q"), given.tensor("cum_seq_k"), *given.integer("max_q"), *given.integer("max_k"),
             seed, offset, at::Tensor());
}

void cudnn_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  warn_of_order<kCudnnAttention>();
  Arguments given(op, stack);
  DeviceCall call(given.tensor("query"));
  const at::Tensor query = call(given.tensor("query"));
  const at::Tensor key = call(given.tensor("key"));
  const at::Tensor value = call(given.tensor("value"));
  const at::Tensor grad = call(given.tensor("grad_out"));
  const at::Tensor output = call(given.tensor("out"));
  const at::Tensor logsumexp = call(given.tensor("logsumexp")).squeeze(-1);
  const double dropout = *given.number("dropout_p");
  const bool causal = given.flag("is_causal");
  const std::optional<at::Generator> random =
      attention_random(position_of(call, given.tensor("philox_seed"), given.tensor("philox_offset"), dropout), dropout);
  const std::vector<int64_t> starts = numbers(call, given.tensor("cum_seq_q"));
  AttentionGradients grads;
  if (starts.empty()) {
    grads = attention_backward(
        attention_problem(query, key, value, call(given.tensor("attn_bias")), dropout, causal, given.number("scale")),
        in_float(grad), in_float(output), logsumexp, random, false);
  } else {
    Window window;
    window.aligned_at_end = false;
    window.right = causal ? std::make_optional<int64_t>(0) : std::nullopt;
    grads = {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value), {}};
    for (const Piece& piece : make_pieces(query, key, starts, numbers(call, given.tensor("cum_seq_k")), {})) {
      if (piece.query_length == 0 || piece.key_length == 0) {
        continue;
      }
      const auto queries = [&](const at::Tensor& tensor) {
        return sequence(tensor, 0, piece.query_from, piece.query_length, true);
      };
      const auto keys = [&](const at::Tensor& tensor) {
        return sequence(tensor, 0, piece.key_from, piece.key_length, true);
      };
      const AttentionGradients part = attention_backward(
          problem_of(queries(query), keys(key), keys(value), {}, dropout, window, given.number("scale")),
          in_float(queries(grad)), in_float(queries(output)),
          logsumexp.narrow(0, piece.query_from, piece.query_length).t().unsqueeze(0), random, false);
      queries(grads.query).copy_(part.query);
      keys(grads.key).copy_(part.key);
      keys(grads.value).copy_(part.value);
    }
  }
  given.give(call.result(grads.query.to(query.scalar_type())), call.result(grads.key.to(key.scalar_type())),
             call.result(grads.value.to(value.scalar_type())));
}

/// The uniform numbers that the memory-efficient form's dropout compares with its probability: above it, a score is kept.
void fill_dropout_mask(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  at::Tensor self = given.tensor("self");
  {
    DeviceCall call(self);
    const PhiloxPosition position{static_cast<uint64_t>(*given.integer("seed")),
                                  static_cast<uint64_t>(*given.integer("offset"))};
    call(self, true).uniform_(0, 1, generator_at(position));
  }
  given.give(self);
}

}  // namespace
}  // namespace macatorch

#include "registered/attention/SequenceAttention.h"
