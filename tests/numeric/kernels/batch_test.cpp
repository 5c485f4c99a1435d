// Goal: the bits of a row depend on that row alone. Method: every operation on all rows, on each
// row by itself, in other orders and with repetitions, and on views with a stride; equal bytes, and
// nothing written between the rows.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

using row_list = std::vector<std::size_t>;
using bytes = std::vector<std::byte>;

constexpr std::size_t rows_count = 7;

/// A matrix whose rows lie `padding` elements further apart than they are long; the rest is zero.
template <class T>
class padded {
 public:
  padded(std::size_t rows, std::size_t cols, std::size_t padding)
      : memory_(rows, cols + padding), cols_(cols) {}

  matrix_view<T> view() { return memory_.view().cols_from(0, cols_); }

  /// The elements' bytes, row by row. Padding that is no longer zero fails the test.
  bytes content() {
    bytes out;
    for (std::size_t row = 0; row < memory_.rows(); ++row) {
      const std::span<const std::byte> all = std::as_bytes(memory_.view().row(row));
      const std::size_t used = cols_ * sizeof(T);
      out.insert(out.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used));
      for (const std::byte byte : all.subspan(used)) BOOST_REQUIRE(byte == std::byte{});
    }
    return out;
  }

 private:
  matrix_buffer<T> memory_;
  std::size_t cols_;
};

/// One call: which rows of the data, and how far apart they lie beyond their length.
struct call {
  const backend& kernels;
  const row_list& rows;
  std::size_t padding;

  /// The call's rows of a tensor; each of them stands for `each` consecutive rows of it.
  template <class T>
  padded<T> gather(const matrix_buffer<T>& all, std::size_t each = 1) const {
    padded<T> out(rows.size() * each, all.cols(), padding);
    for (std::size_t i = 0; i < rows.size() * each; ++i)
      std::ranges::copy(all.view().row(rows[i / each] * each + i % each),
                        out.view().row(i).begin());
    return out;
  }

  template <class T>
  padded<T> output(std::size_t cols, std::size_t each = 1) const {
    return {rows.size() * each, cols, padding};
  }

  template <class T>
  std::vector<T> pick(const std::vector<T>& all) const {
    std::vector<T> out;
    for (const std::size_t row : rows) out.push_back(all[row]);
    return out;
  }
};

/// Appends the bytes of every row of `part` behind those that `out` has for the row.
bytes side_by_side(const bytes& out, const bytes& part, std::size_t rows) {
  bytes joined;
  const auto append = [&](const bytes& from, std::size_t row) {
    const std::size_t size = from.size() / rows;
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(row * size);
    joined.insert(joined.end(), first, first + static_cast<std::ptrdiff_t>(size));
  };
  for (std::size_t row = 0; row < rows; ++row) {
    append(out, row);
    append(part, row);
  }
  return joined;
}

using operation = std::function<bytes(const call&)>;

/// The bytes of row `index` of a result of `rows` rows.
bytes row_of(const bytes& all, std::size_t index, std::size_t rows) {
  const std::size_t size = all.size() / rows;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

void check_rows_alone(const std::string& name, const operation& run) {
  const auto backend = backend_of(name);
  row_list order(rows_count);
  std::iota(order.begin(), order.end(), 0U);
  const bytes together = run({*backend, order, 0});
  BOOST_REQUIRE(!together.empty());
  const auto check = [&](const char* what, const row_list& rows, std::size_t padding) {
    const bytes found = run({*backend, rows, padding});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool same = row_of(found, i, rows.size()) == row_of(together, rows[i], rows_count);
      BOOST_TEST(same, what << ": row " << rows[i] << " has other bits than in the batch");
    }
  };
  for (const std::size_t row : order) check("alone", {row}, 0);
  check("reversed", {order.rbegin(), order.rend()}, 0);
  check("shuffled", {3, 0, 6, 2, 5}, 0);
  check("repeated", {1, 1, 4, 1, 4, 4, 4, 1, 1, 4, 4, 1, 1, 1, 1, 1, 4}, 0);
  row_list many;
  for (std::size_t i = 0; i < 203; ++i) many.push_back(i * i % rows_count);
  check("many", many, 0);
  check("strided", order, 5);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(batch_invariance)

BOOST_DATA_TEST_CASE(rms_norm, backends(), name) {
  random_tensors random(1);
  const auto x = random.half(rows_count, 133);
  const auto weight = random.half(1, 133);
  check_rows_alone(name, [&](const call& c) {
    auto y = c.output<bf16>(133);
    c.kernels.rms_norm({y.view(), c.gather(x).view(), weight.span(), 1e-20F});
    return y.content();
  });
}

BOOST_DATA_TEST_CASE(quantize_fp8, backends(), name) {
  random_tensors random(2);
  const auto x = random.half(rows_count, 160);
  check_rows_alone(name, [&](const call& c) {
    auto codes = c.output<std::uint8_t>(160);
    auto scales = c.output<std::uint8_t>(5);
    c.kernels.quantize_fp8({c.gather(x).view(), codes.view(), scales.view()});
    return side_by_side(codes.content(), scales.content(), c.rows.size());
  });
}

BOOST_DATA_TEST_CASE(linear_fp8, backends(), name) {
  random_tensors random(3);
  const fp8_rows x = random.rows_fp8(rows_count, 640);
  const fp8_weight weight = random.weight_fp8(45, 640);
  for (const std::size_t segments : {1U, 4U})
    check_rows_alone(name, [&](const call& c) {
      auto y = c.output<bf16>(45);
      c.kernels.linear_fp8({y.view(),
                            {c.gather(x.codes).view(), c.gather(x.scales).view()},
                            weight.view(),
                            segments});
      return y.content();
    });
}

BOOST_DATA_TEST_CASE(linear_fp4, backends(), name) {
  random_tensors random(4);
  const fp8_rows x = random.rows_fp8(rows_count, 640);
  const fp4_weight weight = random.weight_fp4(45, 640);
  for (const std::size_t segments : {1U, 4U})
    check_rows_alone(name, [&](const call& c) {
      auto y = c.output<bf16>(45);
      c.kernels.linear_fp4({y.view(),
                            {c.gather(x.codes).view(), c.gather(x.scales).view()},
                            weight.view(),
                            segments});
      return y.content();
    });
}

BOOST_DATA_TEST_CASE(linear_fp8_weight_only, backends(), name) {
  random_tensors random(5);
  const auto x = random.half(rows_count, 160);
  const fp8_weight weight = random.weight_fp8(45, 160);
  check_rows_alone(name, [&](const call& c) {
    auto y = c.output<bf16>(45);
    c.kernels.linear_fp8_weight_only({y.view(), c.gather(x).view(), weight.view()});
    return y.content();
  });
}

BOOST_DATA_TEST_CASE(linear_bf16_and_f32, backends(), name) {
  random_tensors random(6);
  const auto x = random.half(rows_count, 133);
  const auto weight = random.half(45, 133);
  check_rows_alone(name, [&](const call& c) {
    auto half = c.output<bf16>(45);
    auto full = c.output<float>(45);
    c.kernels.linear_bf16({half.view(), c.gather(x).view(), weight.view()});
    c.kernels.linear_f32({full.view(), c.gather(x).view(), weight.view()});
    return side_by_side(half.content(), full.content(), c.rows.size());
  });
}

BOOST_DATA_TEST_CASE(hc_coefficients, backends(), name) {
  random_tensors random(7);
  const auto x = random.half(rows_count, 4 * 37);
  const auto fn = random.full(24, 4 * 37, 0.1F);
  const auto base = random.full(1, 24);
  const auto scale = random.full(1, 3);
  check_rows_alone(name, [&](const call& c) {
    auto pre = c.output<float>(4);
    auto post = c.output<float>(4);
    auto combine = c.output<float>(16);
    c.kernels.hc_coefficients({c.gather(x).view(), fn.view(), base.span(), scale.span(), 20, 1e-6F,
                               1e-20F, pre.view(), post.view(), combine.view()});
    const std::size_t rows = c.rows.size();
    return side_by_side(side_by_side(pre.content(), post.content(), rows), combine.content(), rows);
  });
}

BOOST_DATA_TEST_CASE(hc_collapse_and_expand, backends(), name) {
  random_tensors random(8);
  const auto x = random.half(rows_count, 4 * 37);
  const auto y = random.half(rows_count, 37);
  const auto pre = random.full(rows_count, 4);
  const auto post = random.full(rows_count, 4);
  const auto combine = random.full(rows_count, 16);
  check_rows_alone(name, [&](const call& c) {
    auto collapsed = c.output<bf16>(37);
    c.kernels.hc_collapse({collapsed.view(), c.gather(x).view(), c.gather(pre).view()});
    auto expanded = c.gather(x);
    c.kernels.hc_expand({expanded.view(), expanded.view(), c.gather(y).view(),
                         c.gather(post).view(), c.gather(combine).view()});
    return side_by_side(collapsed.content(), expanded.content(), c.rows.size());
  });
}

BOOST_DATA_TEST_CASE(hc_transition, backends(), name) {
  random_tensors random(15);
  const auto x = random.half(rows_count, 4 * 64);
  const auto y = random.half(rows_count, 64);
  const auto pre = random.full(rows_count, 4);
  const auto post = random.full(rows_count, 4);
  const auto combine = random.full(rows_count, 16);
  const auto norm = random.half(1, 64);
  const auto fn = random.full(24, 4 * 64, 0.1F);
  const auto base = random.full(1, 24);
  const auto scale = random.full(1, 3);
  check_rows_alone(name, [&](const call& c) {
    auto streams = c.gather(x);
    auto input = c.output<bf16>(64);
    auto codes = c.output<std::uint8_t>(64);
    auto scales = c.output<std::uint8_t>(2);
    auto next_pre = c.output<float>(4);
    auto next_post = c.output<float>(4);
    auto next_combine = c.output<float>(16);
    c.kernels.hc_transition({{streams.view(), streams.view(), c.gather(y).view(),
                              c.gather(post).view(), c.gather(combine).view()},
                             c.gather(pre).view(),
                             norm.span(),
                             1e-20F,
                             input.view(),
                             codes.view(),
                             scales.view(),
                             fn.view(),
                             base.span(),
                             scale.span(),
                             20,
                             1e-6F,
                             next_pre.view(),
                             next_post.view(),
                             next_combine.view()});
    const std::size_t rows = c.rows.size();
    const auto both = [&](const auto& a, const auto& b) { return side_by_side(a, b, rows); };
    return both(
        both(both(streams.content(), input.content()), both(codes.content(), scales.content())),
        both(both(next_pre.content(), next_post.content()), next_combine.content()));
  });
}

BOOST_DATA_TEST_CASE(requantize_entries, backends(), name) {
  random_tensors random(18);
  const auto entries = random.entries(entry_format::fp8_e8m0_32, rows_count, 96);
  check_rows_alone(name, [&](const call& c) {
    auto codes = c.output<std::uint8_t>(96);
    auto scales = c.output<std::uint8_t>(3);
    c.kernels.requantize_entries({c.gather(entries).view(), codes.view(), scales.view()});
    return side_by_side(codes.content(), scales.content(), c.rows.size());
  });
}

BOOST_DATA_TEST_CASE(norm_and_activation_that_quantise, backends(), name) {
  random_tensors random(16);
  const auto x = random.half(rows_count, 96);
  const auto up = random.half(rows_count, 96);
  const auto weight = random.half(1, 96);
  const std::vector<float> route_weights = {0.1F, 0.5F, 2, 1, 0.3F, 0.7F, 0.9F};
  check_rows_alone(name, [&](const call& c) {
    auto y = c.output<bf16>(96);
    auto codes = c.output<std::uint8_t>(96);
    auto scales = c.output<std::uint8_t>(3);
    c.kernels.rms_norm_quantize(
        {{y.view(), c.gather(x).view(), weight.span(), 1e-20F}, codes.view(), scales.view()});
    auto hidden_codes = c.output<std::uint8_t>(96);
    auto hidden_scales = c.output<std::uint8_t>(3);
    c.kernels.swiglu_quantize({hidden_codes.view(), hidden_scales.view(), c.gather(x).view(),
                               c.gather(up).view(), c.pick(route_weights), 2});
    const std::size_t rows = c.rows.size();
    return side_by_side(
        y.content(),
        side_by_side(side_by_side(codes.content(), scales.content(), rows),
                     side_by_side(hidden_codes.content(), hidden_scales.content(), rows), rows),
        rows);
  });
}

BOOST_DATA_TEST_CASE(rope, backends(), name) {
  random_tensors random(9);
  const auto x = random.half(rows_count, 3 * 20);
  const std::vector<std::int32_t> positions = {0, 5, 77, 4096, 5, 1048575, 33};
  const std::vector<float> frequencies = {1, 0.3F, 0.01F, 0.0007F, 1e-6F};
  check_rows_alone(name, [&](const call& c) {
    auto rotated = c.gather(x);
    c.kernels.rope({rotated.view(), 20, c.pick(positions), frequencies, false});
    return rotated.content();
  });
}

BOOST_DATA_TEST_CASE(entries, backends(), name) {
  random_tensors random(10);
  const auto x = random.half(rows_count, 96);
  for (const entry_format format : {entry_format::bf16, entry_format::fp8_e8m0_32,
                                    entry_format::fp4_e4m3_16, entry_format::fp4_e8m0_32})
    check_rows_alone(name, [&](const call& c) {
      auto packed = c.output<std::byte>(entry_bytes(format, 96));
      c.kernels.pack_entries({c.gather(x).view(), packed.view(), format});
      auto values = c.output<bf16>(96);
      c.kernels.unpack_entries({packed.view(), values.view(), format});
      return side_by_side(packed.content(), values.content(), c.rows.size());
    });
}

BOOST_DATA_TEST_CASE(compressor_pool, backends(), name) {
  random_tensors random(11);
  const auto values = random.full(rows_count * 3, 37);
  const auto gates = random.full(rows_count * 3, 37);
  check_rows_alone(name, [&](const call& c) {
    auto z = c.output<bf16>(37);
    c.kernels.compressor_pool({z.view(), c.gather(values, 3).view(), c.gather(gates, 3).view(), 3});
    return z.content();
  });
}

BOOST_DATA_TEST_CASE(index_scores_of_a_key, backends(), name) {
  random_tensors random(12);
  const auto query = random.entries(entry_format::fp4_e8m0_32, 5, 96);
  const auto keys = random.entries(entry_format::fp4_e8m0_32, rows_count, 96);
  const auto weights = random.half(1, 5);
  check_rows_alone(name, [&](const call& c) {
    std::vector<bf16> scores(c.rows.size());
    c.kernels.index_scores(
        {scores, query.view(), weights.span(), c.pick(row_pointers(keys.view())), 96});
    const std::span<const std::byte> raw = std::as_bytes(std::span(scores));
    return bytes(raw.begin(), raw.end());
  });
}

BOOST_DATA_TEST_CASE(attention, backends(), name) {
  random_tensors random(13);
  const auto q = random.half(rows_count, 5 * 64);
  const auto sinks = random.full(1, 5);
  const auto window = random.entries(entry_format::fp8_e8m0_32, 20, 64);
  const auto selected = random.entries(entry_format::fp4_e4m3_16, 40, 64);
  const auto window_pointers = row_pointers(window.view());
  const auto selected_pointers = row_pointers(selected.view());
  std::vector<attention_entries> entries;
  for (std::size_t row = 0; row < rows_count; ++row)
    entries.push_back({std::span(window_pointers).subspan(row, 2 * row),
                       std::span(selected_pointers).subspan(row, 5 * row)});
  check_rows_alone(name, [&](const call& c) {
    auto o = c.output<bf16>(5 * 64);
    c.kernels.attention({o.view(), c.gather(q).view(), c.pick(entries), sinks.span(), 64, 0.125F,
                         entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16});
    return o.content();
  });
}

BOOST_DATA_TEST_CASE(gate_scores, backends(), name) {
  random_tensors random(14);
  const auto scores = random.full(rows_count, 37, 5);
  check_rows_alone(name, [&](const call& c) {
    auto y = c.gather(scores);
    c.kernels.gate_scores({y.view()});
    return y.content();
  });
}

BOOST_DATA_TEST_CASE(swiglu, backends(), name) {
  random_tensors random(15);
  const auto gate = random.half(rows_count, 37, 5);
  const auto up = random.half(rows_count, 37, 5);
  const std::vector<float> weights = {0.1F, 0.7F, 1, 0.3F, 0.2F, 1.5F, 0.9F};
  check_rows_alone(name, [&](const call& c) {
    auto y = c.output<bf16>(37);
    c.kernels.swiglu({y.view(), c.gather(gate).view(), c.gather(up).view(), c.pick(weights), 10});
    return y.content();
  });
}

BOOST_DATA_TEST_CASE(moe_combine, backends(), name) {
  random_tensors random(16);
  const auto outputs = random.half(rows_count * 3, 37);
  check_rows_alone(name, [&](const call& c) {
    std::vector<const bf16*> parts;
    for (const std::size_t row : c.rows)
      for (std::size_t part = 0; part < 3; ++part)
        parts.push_back(outputs.view().row_data(row * 3 + part));
    auto y = c.output<bf16>(37);
    c.kernels.moe_combine({y.view(), parts, 3});
    return y.content();
  });
}

BOOST_DATA_TEST_CASE(engram_gate, backends(), name) {
  random_tensors random(17);
  const auto x = random.half(rows_count, 4 * 37);
  const auto key_values = random.half(rows_count, 5 * 37);
  const auto q = random.half(4, 37);
  const auto k = random.half(4, 37);
  const std::vector<std::uint8_t> image_rows = {0, 0, 1, 0, 1, 0, 0};
  check_rows_alone(name, [&](const call& c) {
    auto out = c.gather(x);
    auto gates = c.output<float>(4);
    c.kernels.engram_gate({out.view(), out.view(), c.gather(key_values).view(), q.view(), k.view(),
                           c.pick(image_rows), 1e-20F, gates.view()});
    return side_by_side(out.content(), gates.content(), c.rows.size());
  });
}

BOOST_DATA_TEST_CASE(rope_2d, backends(), name) {
  random_tensors random(18);
  const auto x = random.half(rows_count, 3 * 20);
  const std::vector<std::int32_t> rows = {0, 5, 77, 92, 5, 3, 33};
  const std::vector<std::int32_t> columns = {9, 0, 1, 2, 5, 92, 7};
  const std::vector<float> frequencies = {1, 0.3F, 0.01F, 0.0007F, 1e-6F};
  check_rows_alone(name, [&](const call& c) {
    auto rotated = c.gather(x);
    c.kernels.rope_2d({rotated.view(), 20, c.pick(rows), c.pick(columns), frequencies});
    return rotated.content();
  });
}

BOOST_DATA_TEST_CASE(full_attention_of_a_query, backends(), name) {
  random_tensors random(19);
  const auto q = random.half(rows_count, 3 * 20);
  const auto k = random.half(41, 3 * 20);
  const auto v = random.half(41, 3 * 20);
  check_rows_alone(name, [&](const call& c) {
    auto o = c.output<bf16>(3 * 20);
    c.kernels.full_attention({o.view(), c.gather(q).view(), k.view(), v.view(), 20, 0.2F});
    return o.content();
  });
}

BOOST_DATA_TEST_CASE(gelu_add_and_bias, backends(), name) {
  random_tensors random(20);
  const auto x = random.half(rows_count, 37, 3);
  const auto other = random.half(rows_count, 37);
  const auto weight = random.half(37, 37);
  const auto bias = random.half(1, 37);
  check_rows_alone(name, [&](const call& c) {
    auto smooth = c.output<bf16>(37);
    auto sum = c.gather(other);
    auto product = c.output<bf16>(37);
    c.kernels.gelu({smooth.view(), c.gather(x).view()});
    c.kernels.add({sum.view(), c.gather(x).view(), sum.view()});
    c.kernels.linear_bf16({product.view(), c.gather(x).view(), weight.view(), bias.span()});
    const std::size_t rows = c.rows.size();
    return side_by_side(side_by_side(smooth.content(), sum.content(), rows), product.content(),
                        rows);
  });
}

BOOST_AUTO_TEST_SUITE_END()
