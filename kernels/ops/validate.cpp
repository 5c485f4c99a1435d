// The public functions of `backend`: every shape, stride and size is checked here, once for all
// implementations, and then the call is forwarded. A violation is a defect of the caller and throws
// cedar::defect with the operation, the argument and both numbers.
//
// 1. Work is proportional to the number of arguments (and of entry pointers), never to elements.
// 2. A call without rows returns before the implementation: implementations see n >= 1.
// 3. Overlap of outputs with inputs is not checked (views may interleave columns of one buffer).
#include <optional>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

namespace {

constexpr std::size_t scale_block = 32;  // columns (and rows) that share a scale, released format

/// Checks on behalf of one operation; the name goes in front of every message.
class checker {
 public:
  explicit checker(const char* operation) : operation_(operation) {}
  /// On behalf of one of several products.
  checker(const char* operation, std::size_t product) : operation_(operation), product_(product) {}

  void equal(const char* what, std::size_t actual, std::size_t expected) const {
    CEDAR_REQUIRE(actual == expected, text(what, actual, " instead of ", expected));
  }

  void at_least(const char* what, std::size_t actual, std::size_t minimum) const {
    CEDAR_REQUIRE(actual >= minimum, text(what, actual, ", less than ", minimum));
  }

  void at_most(const char* what, std::size_t actual, std::size_t maximum) const {
    CEDAR_REQUIRE(actual <= maximum, text(what, actual, ", more than ", maximum));
  }

  void multiple(const char* what, std::size_t actual, std::size_t factor) const {
    CEDAR_REQUIRE(factor != 0 && actual % factor == 0,
                  text(what, actual, ", not a multiple of ", factor));
  }

  /// `view` has this shape, rows that do not overlap, and memory behind it.
  template <class T>
  void matrix(const char* what, const matrix_view<T>& view, std::size_t rows,
              std::size_t cols) const {
    CEDAR_REQUIRE(view.rows == rows, text(what, view.rows, " rows instead of ", rows));
    CEDAR_REQUIRE(view.cols == cols, text(what, view.cols, " columns instead of ", cols));
    CEDAR_REQUIRE(view.rows <= 1 || view.stride >= view.cols,
                  text(what, view.stride, " elements of stride for columns ", view.cols));
    CEDAR_REQUIRE(view.data != nullptr || rows == 0 || cols == 0,
                  text(what, 0, " is the address of elements ", rows * cols));
  }

  template <class T>
  void vector(const char* what, std::span<T> values, std::size_t size) const {
    CEDAR_REQUIRE(values.size() == size, text(what, values.size(), " elements instead of ", size));
  }

  template <class T>
  void pointers(const char* what, std::span<const T* const> pointers) const {
    for (std::size_t i = 0; i < pointers.size(); ++i)
      CEDAR_REQUIRE(pointers[i] != nullptr, text(what, i, " is null, of ", pointers.size()));
  }

  void fp8_rows(const fp8_rows_view& x, std::size_t rows) const {
    multiple("x.codes.cols", x.codes.cols, scale_block);
    matrix("x.codes", x.codes, rows, x.codes.cols);
    matrix("x.scales", x.scales, rows, x.codes.cols / scale_block);
  }

  /// Codes and scales of a matrix of whole groups.
  template <class T>
  void quantized(const char* what, const matrix_view<T>& x, const matrix_view<std::uint8_t>& codes,
                 const matrix_view<std::uint8_t>& scales) const {
    CEDAR_REQUIRE(x.cols % scale_block == 0,
                  std::string(operation_) + ": " + what + ".cols: " + std::to_string(x.cols) +
                      ", not a multiple of " + std::to_string(scale_block));
    matrix("codes", codes, x.rows, x.cols);
    matrix("scales", scales, x.rows, x.cols / scale_block);
  }

  void norm(const rms_norm_arguments& arguments) const {
    const auto [rows, cols] = std::pair(arguments.x.rows, arguments.x.cols);
    matrix("x", arguments.x, rows, cols);
    matrix("y", arguments.y, rows, cols);
    vector("weight", arguments.weight, cols);
  }

  void coefficients(const hc_coefficients_arguments& arguments) const {
    const auto [rows, width] = std::pair(arguments.streams.rows, arguments.streams.cols);
    const std::size_t streams = arguments.pre.cols;
    const std::size_t outputs = (2 + streams) * streams;
    at_least("pre.cols", streams, 1);
    at_least("iterations", arguments.iterations, 1);
    multiple("streams.cols", width, streams);
    matrix("streams", arguments.streams, rows, width);
    matrix("fn", arguments.fn, outputs, width);
    vector("base", arguments.base, outputs);
    vector("scale", arguments.scale, 3);
    matrix("pre", arguments.pre, rows, streams);
    matrix("post", arguments.post, rows, streams);
    matrix("combine", arguments.combine, rows, streams * streams);
  }

  void expand(const hc_expand_arguments& arguments) const {
    const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
    const std::size_t streams = arguments.post.cols;
    at_least("post.cols", streams, 1);
    matrix("y", arguments.y, rows, width);
    matrix("streams", arguments.streams, rows, streams * width);
    matrix("out", arguments.out, rows, streams * width);
    matrix("post", arguments.post, rows, streams);
    matrix("combine", arguments.combine, rows, streams * streams);
  }

  void activation(const matrix_view<const bf16>& gate, const matrix_view<const bf16>& up,
                  std::span<const float> route_weights, std::size_t rows, std::size_t width) const {
    matrix("gate", gate, rows, width);
    matrix("up", up, rows, width);
    if (!route_weights.empty()) vector("route_weights", route_weights, rows);
  }

  void fp8_weight(const fp8_weight_view& weight, std::size_t outputs, std::size_t inputs) const {
    multiple("weight.codes.cols", inputs, scale_block);
    matrix("weight.codes", weight.codes, outputs, inputs);
    matrix("weight.scales", weight.scales, (outputs + scale_block - 1) / scale_block,
           inputs / scale_block);
  }

  /// One segment, or equal segments of whole scale blocks.
  void segments(std::size_t count, std::size_t inputs) const {
    at_least("segments", count, 1);
    if (count > 1) multiple("x.codes.cols", inputs, count * scale_block);
  }

  void product(const linear_fp8_arguments& arguments) const {
    const std::size_t inputs = arguments.x.codes.cols;
    fp8_rows(arguments.x, arguments.y.rows);
    matrix("y", arguments.y, arguments.y.rows, arguments.weight.codes.rows);
    fp8_weight(arguments.weight, arguments.y.cols, inputs);
    segments(arguments.segments, inputs);
  }

  void product(const linear_fp4_arguments& arguments) const {
    const std::size_t rows = arguments.y.rows;
    const std::size_t outputs = arguments.weight.codes.rows;
    const std::size_t inputs = arguments.x.codes.cols;
    fp8_rows(arguments.x, rows);
    matrix("y", arguments.y, rows, outputs);
    matrix("weight.codes", arguments.weight.codes, outputs, inputs / 2);
    matrix("weight.scales", arguments.weight.scales, outputs, inputs / scale_block);
    segments(arguments.segments, inputs);
  }

  void product(const linear_fp8_weight_only_arguments& arguments) const {
    const auto [rows, inputs] = std::pair(arguments.x.rows, arguments.x.cols);
    matrix("x", arguments.x, rows, inputs);
    matrix("y", arguments.y, rows, arguments.weight.codes.rows);
    fp8_weight(arguments.weight, arguments.y.cols, inputs);
  }

  void rotation(const matrix_view<bf16>& x, std::size_t head_dim,
                std::span<const std::int32_t> positions, std::span<const float> frequencies) const {
    at_least("head_dim", head_dim, 1);
    multiple("x.cols", x.cols, head_dim);
    matrix("x", x, x.rows, x.cols);
    vector("positions", positions, x.rows);
    at_most("2 * frequencies.size()", 2 * frequencies.size(), head_dim);
  }

  void packing(const matrix_view<const bf16>& x, const matrix_view<std::byte>& entries,
               entry_format format) const {
    const std::size_t group = group_size(format);
    if (group != 0) multiple("x.cols", x.cols, group);
    matrix("x", x, x.rows, x.cols);
    matrix("entries", entries, x.rows, entry_bytes(format, x.cols));
  }

 private:
  std::string text(const char* what, std::size_t first, const char* relation,
                   std::size_t second) const {
    const std::string of =
        product_ ? "products[" + std::to_string(*product_) + "]." : std::string();
    return std::string(operation_) + ": " + of + what + ": " + std::to_string(first) + relation +
           std::to_string(second);
  }

  const char* operation_;
  std::optional<std::size_t> product_;
};

/// Whether any of the products is anything to do.
template <class Product>
bool check_products(const char* operation, const grouped_arguments<Product>& arguments) {
  bool any = false;
  for (std::size_t i = 0; i < arguments.products.size(); ++i) {
    const Product& product = arguments.products[i];
    checker(operation, i).product(product);
    any = any || (product.y.rows != 0 && product.y.cols != 0);
  }
  return any;
}

}  // namespace

// ---- norms and linear layers

void backend::rms_norm(const rms_norm_arguments& arguments) const {
  const checker check("rms_norm");
  check.norm(arguments);
  if (arguments.x.rows != 0 && arguments.x.cols != 0) do_rms_norm(arguments);
}

void backend::quantize_fp8(const quantize_fp8_arguments& arguments) const {
  const checker check("quantize_fp8");
  const auto [rows, cols] = std::pair(arguments.x.rows, arguments.x.cols);
  check.matrix("x", arguments.x, rows, cols);
  check.quantized("x", arguments.x, arguments.codes, arguments.scales);
  if (rows != 0 && cols != 0) do_quantize_fp8(arguments);
}

void backend::rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const {
  const checker check("rms_norm_quantize");
  check.norm(arguments.norm);
  check.quantized("y", arguments.norm.y, arguments.codes, arguments.scales);
  if (arguments.norm.x.rows != 0 && arguments.norm.x.cols != 0) do_rms_norm_quantize(arguments);
}

void backend::linear_fp8(const linear_fp8_arguments& arguments) const {
  checker("linear_fp8").product(arguments);
  if (arguments.y.rows != 0 && arguments.y.cols != 0) do_linear_fp8(arguments);
}

void backend::linear_fp4(const linear_fp4_arguments& arguments) const {
  checker("linear_fp4").product(arguments);
  if (arguments.y.rows != 0 && arguments.y.cols != 0) do_linear_fp4(arguments);
}

void backend::linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const {
  checker("linear_fp8_weight_only").product(arguments);
  if (arguments.y.rows != 0 && arguments.y.cols != 0) do_linear_fp8_weight_only(arguments);
}

void backend::grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const {
  if (check_products("grouped_linear_fp8", arguments)) do_grouped_linear_fp8(arguments);
}

void backend::grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const {
  if (check_products("grouped_linear_fp4", arguments)) do_grouped_linear_fp4(arguments);
}

void backend::grouped_linear_fp8_weight_only(
    const grouped_linear_fp8_weight_only_arguments& arguments) const {
  if (check_products("grouped_linear_fp8_weight_only", arguments))
    do_grouped_linear_fp8_weight_only(arguments);
}

void backend::linear_bf16(const linear_bf16_arguments& arguments) const {
  const checker check("linear_bf16");
  const auto [rows, inputs] = std::pair(arguments.x.rows, arguments.x.cols);
  check.matrix("x", arguments.x, rows, inputs);
  check.matrix("y", arguments.y, rows, arguments.weight.rows);
  check.matrix("weight", arguments.weight, arguments.y.cols, inputs);
  if (!arguments.bias.empty()) check.vector("bias", arguments.bias, arguments.y.cols);
  if (rows != 0 && arguments.y.cols != 0) do_linear_bf16(arguments);
}

void backend::linear_f32(const linear_f32_arguments& arguments) const {
  const checker check("linear_f32");
  const auto [rows, inputs] = std::pair(arguments.x.rows, arguments.x.cols);
  check.matrix("x", arguments.x, rows, inputs);
  check.matrix("y", arguments.y, rows, arguments.weight.rows);
  check.matrix("weight", arguments.weight, arguments.y.cols, inputs);
  if (rows != 0 && arguments.y.cols != 0) do_linear_f32(arguments);
}

// ---- residual streams

void backend::hc_coefficients(const hc_coefficients_arguments& arguments) const {
  const checker check("hc_coefficients");
  check.coefficients(arguments);
  const auto [rows, width] = std::pair(arguments.streams.rows, arguments.streams.cols);
  if (rows != 0 && width != 0) do_hc_coefficients(arguments);
}

void backend::hc_collapse(const hc_collapse_arguments& arguments) const {
  const checker check("hc_collapse");
  const std::size_t rows = arguments.y.rows;
  const std::size_t streams = arguments.pre.cols;
  check.at_least("pre.cols", streams, 1);
  check.matrix("y", arguments.y, rows, arguments.y.cols);
  check.matrix("streams", arguments.streams, rows, streams * arguments.y.cols);
  check.matrix("pre", arguments.pre, rows, streams);
  if (rows != 0 && arguments.y.cols != 0) do_hc_collapse(arguments);
}

void backend::hc_expand(const hc_expand_arguments& arguments) const {
  const checker check("hc_expand");
  check.expand(arguments);
  const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
  if (rows != 0 && width != 0) do_hc_expand(arguments);
}

void backend::hc_transition(const hc_transition_arguments& arguments) const {
  const checker check("hc_transition");
  check.expand(arguments.expand);
  const auto [rows, width] = std::pair(arguments.expand.y.rows, arguments.expand.y.cols);
  const std::size_t streams = arguments.expand.post.cols;
  check.matrix("pre", arguments.pre, rows, streams);
  check.matrix("x", arguments.x, rows, width);
  check.vector("norm", arguments.norm, width);
  check.quantized("x", arguments.x, arguments.codes, arguments.scales);
  check.equal("next_pre.cols", arguments.next_pre.cols, streams);
  check.coefficients(arguments.coefficients_part());
  if (rows != 0 && width != 0) do_hc_transition(arguments);
}

// ---- rotary positions and cache entries

void backend::rope(const rope_arguments& arguments) const {
  checker("rope").rotation(arguments.x, arguments.head_dim, arguments.positions,
                           arguments.frequencies);
  if (arguments.x.rows != 0 && arguments.x.cols != 0) do_rope(arguments);
}

void backend::pack_entries(const pack_entries_arguments& arguments) const {
  checker("pack_entries").packing(arguments.x, arguments.entries, arguments.format);
  if (arguments.x.rows != 0 && arguments.x.cols != 0) do_pack_entries(arguments);
}

void backend::rms_norm_entries(const rms_norm_entries_arguments& arguments) const {
  const checker check("rms_norm_entries");
  const auto [rows, width] = std::pair(arguments.norm.y.rows, arguments.norm.y.cols);
  check.norm(arguments.norm);
  if (rows == 0 || width == 0) return;
  check.rotation(arguments.norm.y, width, arguments.positions, arguments.frequencies);
  check.packing(arguments.norm.y, arguments.entries, arguments.format);
  do_rms_norm_entries(arguments);
}

void backend::unpack_entries(const unpack_entries_arguments& arguments) const {
  const checker check("unpack_entries");
  const auto [rows, width] = std::pair(arguments.x.rows, arguments.x.cols);
  const std::size_t group = group_size(arguments.format);
  if (group != 0) check.multiple("x.cols", width, group);
  check.matrix("x", arguments.x, rows, width);
  check.matrix("entries", arguments.entries, rows, entry_bytes(arguments.format, width));
  if (rows != 0 && width != 0) do_unpack_entries(arguments);
}

void backend::requantize_entries(const requantize_entries_arguments& arguments) const {
  const checker check("requantize_entries");
  const auto [rows, width] = std::pair(arguments.codes.rows, arguments.codes.cols);
  check.quantized("codes", arguments.codes, arguments.codes, arguments.scales);
  check.matrix("entries", arguments.entries, rows, entry_bytes(entry_format::fp8_e8m0_32, width));
  if (rows != 0 && width != 0) do_requantize_entries(arguments);
}

void backend::compressor_pool(const compressor_pool_arguments& arguments) const {
  const checker check("compressor_pool");
  const auto [groups, width] = std::pair(arguments.z.rows, arguments.z.cols);
  check.at_least("ratio", arguments.ratio, 2);
  check.matrix("z", arguments.z, groups, width);
  check.matrix("values", arguments.values, groups * arguments.ratio, width);
  check.matrix("gates", arguments.gates, groups * arguments.ratio, width);
  if (groups != 0 && width != 0) do_compressor_pool(arguments);
}

// ---- indexer and attention

void backend::index_scores(const index_scores_arguments& arguments) const {
  const checker check("index_scores");
  const std::size_t heads = arguments.weights.size();
  const std::size_t bytes = entry_bytes(entry_format::fp4_e8m0_32, arguments.head_dim);
  check.at_least("weights.size()", heads, 1);
  check.at_least("head_dim", arguments.head_dim, 1);
  check.multiple("head_dim", arguments.head_dim, group_size(entry_format::fp4_e8m0_32));
  check.matrix("query", arguments.query, heads, bytes);
  check.at_least("keys_run", arguments.keys_run, 1);
  const std::size_t runs =
      (arguments.scores.size() + arguments.keys_run - 1) / arguments.keys_run;
  check.vector("keys", arguments.keys, runs);
  check.pointers("keys", arguments.keys);
  if (!arguments.keys.empty()) do_index_scores(arguments);
}

void backend::attention(const attention_arguments& arguments) const {
  const checker check("attention");
  const auto [rows, heads] = std::pair(arguments.q.rows, arguments.sinks.size());
  check.at_least("head_dim", arguments.head_dim, 1);
  check.matrix("q", arguments.q, rows, heads * arguments.head_dim);
  check.matrix("o", arguments.o, rows, heads * arguments.head_dim);
  check.vector("entries", arguments.entries, rows);
  for (const entry_format format : {arguments.window_format, arguments.selected_format})
    if (group_size(format) != 0) check.multiple("head_dim", arguments.head_dim, group_size(format));
  for (const attention_entries& entries : arguments.entries) {
    check.pointers("entries.window", entries.window);
    check.pointers("entries.selected", entries.selected);
  }
  if (rows != 0 && heads != 0) do_attention(arguments);
}

// ---- mixture of experts and Engram

void backend::gate_scores(const gate_scores_arguments& arguments) const {
  const checker check("gate_scores");
  const auto [rows, experts] = std::pair(arguments.scores.rows, arguments.scores.cols);
  check.matrix("scores", arguments.scores, rows, experts);
  if (rows != 0 && experts != 0) do_gate_scores(arguments);
}

void backend::swiglu(const swiglu_arguments& arguments) const {
  const checker check("swiglu");
  const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
  check.matrix("y", arguments.y, rows, width);
  check.activation(arguments.gate, arguments.up, arguments.route_weights, rows, width);
  if (rows != 0 && width != 0) do_swiglu(arguments);
}

void backend::swiglu_quantize(const swiglu_quantize_arguments& arguments) const {
  const checker check("swiglu_quantize");
  const auto [rows, width] = std::pair(arguments.gate.rows, arguments.gate.cols);
  check.activation(arguments.gate, arguments.up, arguments.route_weights, rows, width);
  check.quantized("gate", arguments.gate, arguments.codes, arguments.scales);
  if (rows != 0 && width != 0) do_swiglu_quantize(arguments);
}

void backend::moe_combine(const moe_combine_arguments& arguments) const {
  const checker check("moe_combine");
  const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
  check.at_least("parts_per_row", arguments.parts_per_row, 1);
  check.matrix("y", arguments.y, rows, width);
  check.vector("parts", arguments.parts, rows * arguments.parts_per_row);
  check.pointers("parts", arguments.parts);
  if (rows != 0 && width != 0) do_moe_combine(arguments);
}

void backend::engram_gate(const engram_gate_arguments& arguments) const {
  const checker check("engram_gate");
  const auto [rows, streams] = std::pair(arguments.gates.rows, arguments.gates.cols);
  const std::size_t width = arguments.q_weight.cols;
  check.at_least("gates.cols", streams, 1);
  check.matrix("gates", arguments.gates, rows, streams);
  check.matrix("streams", arguments.streams, rows, streams * width);
  check.matrix("out", arguments.out, rows, streams * width);
  check.matrix("key_values", arguments.key_values, rows, (streams + 1) * width);
  check.matrix("q_weight", arguments.q_weight, streams, width);
  check.matrix("k_weight", arguments.k_weight, streams, width);
  check.vector("image_rows", arguments.image_rows, rows);
  if (rows != 0 && width != 0) do_engram_gate(arguments);
}

// ---- vision tower

void backend::rope_2d(const rope_2d_arguments& arguments) const {
  const checker check("rope_2d");
  const auto [rows, width] = std::pair(arguments.x.rows, arguments.x.cols);
  check.at_least("head_dim", arguments.head_dim, 4);
  check.multiple("head_dim", arguments.head_dim, 4);
  check.multiple("x.cols", width, arguments.head_dim);
  check.matrix("x", arguments.x, rows, width);
  check.vector("rows", arguments.rows, rows);
  check.vector("columns", arguments.columns, rows);
  check.vector("frequencies", arguments.frequencies, arguments.head_dim / 4);
  if (rows != 0 && width != 0) do_rope_2d(arguments);
}

void backend::full_attention(const full_attention_arguments& arguments) const {
  const checker check("full_attention");
  const auto [rows, width] = std::pair(arguments.q.rows, arguments.q.cols);
  check.at_least("head_dim", arguments.head_dim, 1);
  check.multiple("q.cols", width, arguments.head_dim);
  check.at_least("k.rows", arguments.k.rows, 1);
  check.matrix("q", arguments.q, rows, width);
  check.matrix("o", arguments.o, rows, width);
  check.matrix("k", arguments.k, arguments.k.rows, width);
  check.matrix("v", arguments.v, arguments.k.rows, width);
  if (rows != 0 && width != 0) do_full_attention(arguments);
}

void backend::gelu(const gelu_arguments& arguments) const {
  const checker check("gelu");
  const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
  check.matrix("y", arguments.y, rows, width);
  check.matrix("x", arguments.x, rows, width);
  if (rows != 0 && width != 0) do_gelu(arguments);
}

void backend::add(const add_arguments& arguments) const {
  const checker check("add");
  const auto [rows, width] = std::pair(arguments.y.rows, arguments.y.cols);
  check.matrix("y", arguments.y, rows, width);
  check.matrix("a", arguments.a, rows, width);
  check.matrix("b", arguments.b, rows, width);
  if (rows != 0 && width != 0) do_add(arguments);
}

}  // namespace cedar::kernels
