// Goal: a backend's implementation sees only calls that satisfy the shape contract, and a broken
// contract names operation, argument and both numbers. Method: a backend that counts calls.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/base/check.hpp"
#include "kernels/ops/backend.hpp"

namespace {

using namespace cedar::kernels;

class counting_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "counting"; }
  mutable int calls = 0;

 private:
  void do_rms_norm(const rms_norm_arguments&) const override { ++calls; }
  void do_rms_norm_quantize(const rms_norm_quantize_arguments&) const override { ++calls; }
  void do_quantize_fp8(const quantize_fp8_arguments&) const override { ++calls; }
  void do_linear_fp8(const linear_fp8_arguments&) const override { ++calls; }
  void do_linear_fp4(const linear_fp4_arguments&) const override { ++calls; }
  void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments&) const override {
    ++calls;
  }
  void do_linear_bf16(const linear_bf16_arguments&) const override { ++calls; }
  void do_linear_f32(const linear_f32_arguments&) const override { ++calls; }
  void do_grouped_linear_fp8(const grouped_linear_fp8_arguments&) const override { ++calls; }
  void do_grouped_linear_fp4(const grouped_linear_fp4_arguments&) const override { ++calls; }
  void do_grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments&) const override {
    ++calls;
  }
  void do_hc_coefficients(const hc_coefficients_arguments&) const override { ++calls; }
  void do_hc_collapse(const hc_collapse_arguments&) const override { ++calls; }
  void do_hc_expand(const hc_expand_arguments&) const override { ++calls; }
  void do_hc_transition(const hc_transition_arguments&) const override { ++calls; }
  void do_rope(const rope_arguments&) const override { ++calls; }
  void do_pack_entries(const pack_entries_arguments&) const override { ++calls; }
  void do_rms_norm_entries(const rms_norm_entries_arguments&) const override { ++calls; }
  void do_unpack_entries(const unpack_entries_arguments&) const override { ++calls; }
  void do_requantize_entries(const requantize_entries_arguments&) const override { ++calls; }
  void do_compressor_pool(const compressor_pool_arguments&) const override { ++calls; }
  void do_index_scores(const index_scores_arguments&) const override { ++calls; }
  void do_attention(const attention_arguments&) const override { ++calls; }
  void do_gate_scores(const gate_scores_arguments&) const override { ++calls; }
  void do_swiglu(const swiglu_arguments&) const override { ++calls; }
  void do_swiglu_quantize(const swiglu_quantize_arguments&) const override { ++calls; }
  void do_moe_combine(const moe_combine_arguments&) const override { ++calls; }
  void do_engram_gate(const engram_gate_arguments&) const override { ++calls; }
  void do_rope_2d(const rope_2d_arguments&) const override { ++calls; }
  void do_full_attention(const full_attention_arguments&) const override { ++calls; }
  void do_gelu(const gelu_arguments&) const override { ++calls; }
  void do_add(const add_arguments&) const override { ++calls; }
};

/// Memory that every view below points into; large enough for all of them, never read.
struct arena {
  matrix_buffer<bf16> half{64, 1024};
  matrix_buffer<float> full{64, 1024};
  matrix_buffer<std::uint8_t> bytes{64, 1024};
  matrix_buffer<std::int32_t> integers{1, 1024};
  std::vector<const std::byte*> entries = std::vector<const std::byte*>(16, raw());
  std::vector<const bf16*> parts = std::vector<const bf16*>(16, half.data());
  std::vector<attention_entries> rows = std::vector<attention_entries>(16);

  const std::byte* raw() { return reinterpret_cast<const std::byte*>(bytes.data()); }
  std::byte* raw_out() { return reinterpret_cast<std::byte*>(bytes.data()); }
  matrix_view<bf16> h(std::size_t r, std::size_t c) { return {half.data(), r, c}; }
  matrix_view<float> f(std::size_t r, std::size_t c) { return {full.data(), r, c}; }
  matrix_view<std::uint8_t> b(std::size_t r, std::size_t c) { return {bytes.data(), r, c}; }
  std::span<const bf16> hs(std::size_t n) { return {half.data(), n}; }
  std::span<const float> fs(std::size_t n) { return {full.data(), n}; }
};

arena& memory() {
  static arena instance;
  return instance;
}

/// Runs `call` and returns the text of the defect; empty if there was none.
std::string defect_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const cedar::defect& broken) {
    return broken.what();
  }
  return {};
}

void check_text(const std::string& text, const std::string& expected) {
  BOOST_TEST(text.find(expected) != std::string::npos,
             "expected \"" << expected << "\" in \"" << text << "\"");
}

/// A correct call of an operation, and mistakes with the text that they must produce.
template <class Arguments>
struct contract {
  void (backend::*operation)(const Arguments&) const;
  Arguments good;
  std::vector<std::pair<std::function<void(Arguments&)>, std::string>> mistakes;

  void check() const {
    const counting_backend counting;
    BOOST_TEST(defect_of([&] { (counting.*operation)(good); }) == "");
    BOOST_TEST(counting.calls == 1);
    for (const auto& [spoil, text] : mistakes) {
      Arguments bad = good;
      spoil(bad);
      check_text(defect_of([&] { (counting.*operation)(bad); }), text);
    }
    BOOST_TEST(counting.calls == 1);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(backend_validation)

BOOST_AUTO_TEST_CASE(checks_rms_norm) {
  arena& m = memory();
  contract<rms_norm_arguments>{
      &backend::rms_norm,
      {m.h(3, 40), m.h(3, 40), m.hs(40), 1e-20F},
      {{[&](auto& a) { a.y = m.h(2, 40); }, "rms_norm: y: 2 rows instead of 3"},
       {[&](auto& a) { a.y = m.h(3, 41); }, "rms_norm: y: 41 columns instead of 40"},
       {[&](auto& a) { a.weight = m.hs(39); }, "rms_norm: weight: 39 elements instead of 40"},
       {[&](auto& a) { a.x.stride = 39; }, "rms_norm: x: 39 elements of stride for columns 40"},
       {[&](auto& a) { a.x.data = nullptr; }, "rms_norm: x: 0 is the address of elements 120"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_quantize_fp8) {
  arena& m = memory();
  contract<quantize_fp8_arguments>{
      &backend::quantize_fp8,
      {m.h(3, 64), m.b(3, 64), m.b(3, 2)},
      {{[&](auto& a) { a.x = m.h(3, 65); }, "quantize_fp8: x.cols: 65, not a multiple of 32"},
       {[&](auto& a) { a.codes = m.b(4, 64); }, "quantize_fp8: codes: 4 rows instead of 3"},
       {[&](auto& a) { a.scales = m.b(3, 3); }, "quantize_fp8: scales: 3 columns instead of 2"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_linear_fp8) {
  arena& m = memory();
  contract<linear_fp8_arguments>{
      &backend::linear_fp8,
      {m.h(3, 33), {m.b(3, 256), m.b(3, 8)}, {m.b(33, 256), m.b(2, 8)}, 4},
      {{[&](auto& a) { a.y = m.h(2, 33); }, "linear_fp8: x.codes: 3 rows instead of 2"},
       {[&](auto& a) { a.y = m.h(3, 34); }, "linear_fp8: y: 34 columns instead of 33"},
       {[&](auto& a) { a.x.scales = m.b(3, 7); }, "linear_fp8: x.scales: 7 columns instead of 8"},
       {[&](auto& a) { a.weight.codes = m.b(33, 255); },
        "linear_fp8: weight.codes: 255 columns instead of 256"},
       {[&](auto& a) { a.weight.scales = m.b(1, 8); },
        "linear_fp8: weight.scales: 1 rows instead of 2"},
       {[&](auto& a) { a.segments = 0; }, "linear_fp8: segments: 0, less than 1"},
       {[&](auto& a) { a.segments = 3; }, "linear_fp8: x.codes.cols: 256, not a multiple of 96"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_linear_fp4) {
  arena& m = memory();
  contract<linear_fp4_arguments>{
      &backend::linear_fp4,
      {m.h(3, 33), {m.b(3, 64), m.b(3, 2)}, {m.b(33, 32), m.b(33, 2)}, 1},
      {{[&](auto& a) { a.y = m.h(3, 32); }, "linear_fp4: y: 32 columns instead of 33"},
       {[&](auto& a) { a.weight.codes = m.b(33, 64); },
        "linear_fp4: weight.codes: 64 columns instead of 32"},
       {[&](auto& a) { a.weight.scales = m.b(2, 2); },
        "linear_fp4: weight.scales: 2 rows instead of 33"},
       {[&](auto& a) { a.segments = 4; }, "linear_fp4: x.codes.cols: 64, not a multiple of 128"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_every_product_of_a_group) {
  arena& m = memory();
  const linear_fp8_arguments fp8{m.h(3, 33), {m.b(3, 64), m.b(3, 2)}, {m.b(33, 64), m.b(2, 2)}, 1};
  const linear_fp4_arguments fp4{m.h(3, 33), {m.b(3, 64), m.b(3, 2)}, {m.b(33, 32), m.b(33, 2)}, 1};
  const linear_fp8_weight_only_arguments plain{m.h(3, 33), m.h(3, 64), {m.b(33, 64), m.b(2, 2)}};
  std::vector fp8s(3, fp8), bad_fp8s = fp8s;
  std::vector fp4s(2, fp4), bad_fp4s = fp4s;
  std::vector plains(2, plain), bad_plains = plains;
  bad_fp8s[2].y = m.h(3, 32);
  bad_fp4s[1].segments = 4;
  bad_plains[0].weight.scales = m.b(1, 2);
  contract<grouped_linear_fp8_arguments>{
      &backend::grouped_linear_fp8,
      {fp8s},
      {{[&](auto& a) { a.products = bad_fp8s; },
        "grouped_linear_fp8: products[2].y: 32 columns instead of 33"}}}
      .check();
  contract<grouped_linear_fp4_arguments>{
      &backend::grouped_linear_fp4,
      {fp4s},
      {{[&](auto& a) { a.products = bad_fp4s; },
        "grouped_linear_fp4: products[1].x.codes.cols: 64, not a multiple of 128"}}}
      .check();
  contract<grouped_linear_fp8_weight_only_arguments>{
      &backend::grouped_linear_fp8_weight_only,
      {plains},
      {{[&](auto& a) { a.products = bad_plains; },
        "grouped_linear_fp8_weight_only: products[0].weight.scales: 1 rows instead of 2"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(a_group_without_rows_is_no_call) {
  arena& m = memory();
  const counting_backend counting;
  const std::vector<linear_fp4_arguments> none(
      2, {m.h(0, 33), {m.b(0, 64), m.b(0, 2)}, {m.b(33, 32), m.b(33, 2)}, 1});
  counting.grouped_linear_fp4({none});
  counting.grouped_linear_fp4({});
  BOOST_TEST(counting.calls == 0);
}

BOOST_AUTO_TEST_CASE(checks_the_linears_with_unquantised_activations) {
  arena& m = memory();
  contract<linear_fp8_weight_only_arguments>{
      &backend::linear_fp8_weight_only,
      {m.h(3, 32), m.h(3, 64), {m.b(32, 64), m.b(1, 2)}},
      {{[&](auto& a) { a.x = m.h(3, 63); },
        "linear_fp8_weight_only: weight.codes.cols: 63, not a multiple of 32"},
       {[&](auto& a) { a.y = m.h(3, 31); }, "linear_fp8_weight_only: y: 31 columns instead of 32"}}}
      .check();
  contract<linear_bf16_arguments>{
      &backend::linear_bf16,
      {m.h(3, 5), m.h(3, 17), m.h(5, 17)},
      {{[&](auto& a) { a.x = m.h(3, 16); }, "linear_bf16: weight: 17 columns instead of 16"},
       {[&](auto& a) { a.y = m.h(4, 5); }, "linear_bf16: y: 4 rows instead of 3"},
       {[&](auto& a) { a.bias = m.hs(3); }, "linear_bf16: bias: 3 elements instead of 5"}}}
      .check();
  contract<linear_f32_arguments>{
      &backend::linear_f32,
      {m.f(3, 5), m.h(3, 17), m.h(5, 17)},
      {{[&](auto& a) { a.x = m.h(3, 16); }, "linear_f32: weight: 17 columns instead of 16"},
       {[&](auto& a) { a.y = m.f(3, 6); }, "linear_f32: y: 6 columns instead of 5"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_the_residual_streams) {
  arena& m = memory();
  contract<hc_coefficients_arguments>{
      &backend::hc_coefficients,
      {m.h(3, 80), m.f(24, 80), m.fs(24), m.fs(3), 20, 1e-6F, 1e-20F, m.f(3, 4), m.f(3, 4),
       m.f(3, 16)},
      {{[&](auto& a) { a.fn = m.f(23, 80); }, "hc_coefficients: fn: 23 rows instead of 24"},
       {[&](auto& a) { a.streams = m.h(3, 81); },
        "hc_coefficients: streams.cols: 81, not a multiple of 4"},
       {[&](auto& a) { a.base = m.fs(4); }, "hc_coefficients: base: 4 elements instead of 24"},
       {[&](auto& a) { a.scale = m.fs(4); }, "hc_coefficients: scale: 4 elements instead of 3"},
       {[&](auto& a) { a.iterations = 0; }, "hc_coefficients: iterations: 0, less than 1"},
       {[&](auto& a) { a.combine = m.f(3, 4); },
        "hc_coefficients: combine: 4 columns instead of 16"}}}
      .check();
  contract<hc_collapse_arguments>{
      &backend::hc_collapse,
      {m.h(3, 20), m.h(3, 80), m.f(3, 4)},
      {{[&](auto& a) { a.streams = m.h(3, 60); }, "hc_collapse: streams: 60 columns instead of 80"},
       {[&](auto& a) { a.pre = m.f(2, 4); }, "hc_collapse: pre: 2 rows instead of 3"}}}
      .check();
  contract<hc_expand_arguments>{
      &backend::hc_expand,
      {m.h(3, 80), m.h(3, 80), m.h(3, 20), m.f(3, 4), m.f(3, 16)},
      {{[&](auto& a) { a.out = m.h(3, 60); }, "hc_expand: out: 60 columns instead of 80"},
       {[&](auto& a) { a.combine = m.f(3, 9); }, "hc_expand: combine: 9 columns instead of 16"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_the_transition_between_sublayers) {
  arena& m = memory();
  contract<hc_transition_arguments>{
      &backend::hc_transition,
      {{m.h(3, 128), m.h(3, 128), m.h(3, 32), m.f(3, 4), m.f(3, 16)},
       m.f(3, 4),
       m.hs(32),
       1e-20F,
       m.h(3, 32),
       m.b(3, 32),
       m.b(3, 1),
       m.f(24, 128),
       m.fs(24),
       m.fs(3),
       20,
       1e-6F,
       m.f(3, 4),
       m.f(3, 4),
       m.f(3, 16)},
      {{[&](auto& a) { a.expand.out = m.h(3, 96); },
        "hc_transition: out: 96 columns instead of 128"},
       {[&](auto& a) { a.pre = m.f(3, 3); }, "hc_transition: pre: 3 columns instead of 4"},
       {[&](auto& a) { a.norm = m.hs(31); }, "hc_transition: norm: 31 elements instead of 32"},
       {[&](auto& a) { a.x = m.h(2, 32); }, "hc_transition: x: 2 rows instead of 3"},
       {[&](auto& a) { a.codes = m.b(3, 31); }, "hc_transition: codes: 31 columns instead of 32"},
       {[&](auto& a) { a.scales = m.b(3, 2); }, "hc_transition: scales: 2 columns instead of 1"},
       {[&](auto& a) {
          a.expand = {m.h(3, 80), m.h(3, 80), m.h(3, 20), m.f(3, 4), m.f(3, 16)};
          a.x = m.h(3, 20);
          a.norm = m.hs(20);
        },
        "hc_transition: x.cols: 20, not a multiple of 32"},
       {[&](auto& a) { a.next_pre = m.f(3, 2); }, "hc_transition: next_pre.cols: 2 instead of 4"},
       {[&](auto& a) { a.fn = m.f(23, 128); }, "hc_transition: fn: 23 rows instead of 24"},
       {[&](auto& a) { a.next_combine = m.f(3, 4); },
        "hc_transition: combine: 4 columns instead of 16"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_operations_that_quantise_their_result) {
  arena& m = memory();
  contract<requantize_entries_arguments>{
      &backend::requantize_entries,
      {{m.raw(), 3, 66}, m.b(3, 64), m.b(3, 2)},
      {{[&](auto& a) {
          a.entries = {m.raw(), 3, 64};
        },
        "requantize_entries: entries: 64 columns instead of 66"},
       {[&](auto& a) { a.codes = m.b(3, 40); },
        "requantize_entries: codes.cols: 40, not a multiple of 32"},
       {[&](auto& a) { a.scales = m.b(2, 2); }, "requantize_entries: scales: 2 rows instead of 3"}}}
      .check();
  contract<rms_norm_quantize_arguments>{
      &backend::rms_norm_quantize,
      {{m.h(3, 64), m.h(3, 64), m.hs(64), 1e-20F}, m.b(3, 64), m.b(3, 2)},
      {{[&](auto& a) { a.norm.y = m.h(2, 64); }, "rms_norm_quantize: y: 2 rows instead of 3"},
       {[&](auto& a) {
          a.norm = {m.h(3, 40), m.h(3, 40), m.hs(40), 1e-20F};
        },
        "rms_norm_quantize: y.cols: 40, not a multiple of 32"},
       {[&](auto& a) { a.codes = m.b(3, 32); },
        "rms_norm_quantize: codes: 32 columns instead of 64"},
       {[&](auto& a) { a.scales = m.b(2, 2); }, "rms_norm_quantize: scales: 2 rows instead of 3"}}}
      .check();
  contract<swiglu_quantize_arguments>{
      &backend::swiglu_quantize,
      {m.b(3, 64), m.b(3, 2), m.h(3, 64), m.h(3, 64), m.fs(3), 10},
      {{[&](auto& a) { a.up = m.h(3, 32); }, "swiglu_quantize: up: 32 columns instead of 64"},
       {[&](auto& a) { a.route_weights = m.fs(2); },
        "swiglu_quantize: route_weights: 2 elements instead of 3"},
       {[&](auto& a) {
          a.gate = m.h(3, 40);
          a.up = m.h(3, 40);
        },
        "swiglu_quantize: gate.cols: 40, not a multiple of 32"},
       {[&](auto& a) { a.codes = m.b(3, 65); }, "swiglu_quantize: codes: 65 columns instead of 64"},
       {[&](auto& a) { a.scales = m.b(3, 3); }, "swiglu_quantize: scales: 3 columns instead of 2"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_rope) {
  arena& m = memory();
  contract<rope_arguments>{
      &backend::rope,
      {m.h(3, 32), 16, {m.integers.data(), 3}, m.fs(8), false},
      {{[&](auto& a) { a.head_dim = 15; }, "rope: x.cols: 32, not a multiple of 15"},
       {[&](auto& a) { a.head_dim = 0; }, "rope: head_dim: 0, less than 1"},
       {[&](auto& a) {
          a.positions = {m.integers.data(), 4};
        },
        "rope: positions: 4 elements instead of 3"},
       {[&](auto& a) { a.frequencies = m.fs(9); },
        "rope: 2 * frequencies.size(): 18, more than 16"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_entries) {
  arena& m = memory();
  const std::vector<std::int32_t> positions(3);
  contract<rms_norm_entries_arguments>{
      &backend::rms_norm_entries,
      {{m.h(3, 64), m.h(3, 64), m.hs(64), 1e-20F},
       positions,
       m.fs(8),
       {m.raw_out(), 3, 66},
       entry_format::fp8_e8m0_32},
      {{[&](auto& a) { a.norm.weight = m.hs(63); },
        "rms_norm_entries: weight: 63 elements instead of 64"},
       {[&](auto& a) { a.positions = a.positions.first(2); },
        "rms_norm_entries: positions: 2 elements instead of 3"},
       {[&](auto& a) { a.frequencies = m.fs(33); },
        "rms_norm_entries: 2 * frequencies.size(): 66, more than 64"},
       {[&](auto& a) { a.entries.cols = 67; },
        "rms_norm_entries: entries: 67 columns instead of 66"}}}
      .check();
  contract<pack_entries_arguments>{
      &backend::pack_entries,
      {m.h(3, 48), {m.raw_out(), 3, 27}, entry_format::fp4_e4m3_16},
      {{[&](auto& a) { a.entries.cols = 28; }, "pack_entries: entries: 28 columns instead of 27"},
       {[&](auto& a) { a.format = entry_format::fp4_e8m0_32; },
        "pack_entries: x.cols: 48, not a multiple of 32"}}}
      .check();
  contract<unpack_entries_arguments>{
      &backend::unpack_entries,
      {{m.raw(), 3, 66}, m.h(3, 64), entry_format::fp8_e8m0_32},
      {{[&](auto& a) { a.format = entry_format::bf16; },
        "unpack_entries: entries: 66 columns instead of 128"},
       {[&](auto& a) { a.x = m.h(2, 64); }, "unpack_entries: entries: 3 rows instead of 2"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_the_compressor) {
  arena& m = memory();
  contract<compressor_pool_arguments>{
      &backend::compressor_pool,
      {m.h(2, 5), m.f(6, 5), m.f(6, 5), 3},
      {{[&](auto& a) { a.ratio = 1; }, "compressor_pool: ratio: 1, less than 2"},
       {[&](auto& a) { a.gates = m.f(5, 5); }, "compressor_pool: gates: 5 rows instead of 6"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_index_scores) {
  arena& m = memory();
  std::vector<const std::byte*> holed(7, m.raw());
  holed[5] = nullptr;
  contract<index_scores_arguments>{
      &backend::index_scores,
      {{m.half.data(), 7}, {m.raw(), 4, 34}, m.hs(4), {m.entries.data(), 7}, 64},
      {{[&](auto& a) {
          a.scores = {m.half.data(), 6};
        },
        "index_scores: keys: 7 elements instead of 6"},
       {[&](auto& a) { a.keys_run = 0; }, "index_scores: keys_run: 0, less than 1"},
       {[&](auto& a) { a.keys_run = 3; }, "index_scores: keys: 7 elements instead of 3"},
       {[&](auto& a) { a.head_dim = 48; }, "index_scores: head_dim: 48, not a multiple of 32"},
       {[&](auto& a) { a.weights = m.hs(3); }, "index_scores: query: 4 rows instead of 3"},
       {[&](auto& a) { a.keys = holed; }, "index_scores: keys: 5 is null, of 7"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_attention) {
  arena& m = memory();
  const std::vector<const std::byte*> holed(1, nullptr);
  std::vector<attention_entries> broken(3);
  broken[2].selected = holed;
  contract<attention_arguments>{
      &backend::attention,
      {m.h(3, 128),
       m.h(3, 128),
       {m.rows.data(), 3},
       m.fs(2),
       64,
       0.125F,
       entry_format::fp8_e8m0_32,
       entry_format::fp4_e4m3_16},
      {{[&](auto& a) { a.o = m.h(3, 64); }, "attention: o: 64 columns instead of 128"},
       {[&](auto& a) { a.sinks = m.fs(3); }, "attention: q: 128 columns instead of 192"},
       {[&](auto& a) {
          a.entries = {m.rows.data(), 2};
        },
        "attention: entries: 2 elements instead of 3"},
       {[&](auto& a) { a.entries = broken; }, "attention: entries.selected: 0 is null, of 1"},
       {[&](auto& a) {
          a.head_dim = 16;
          a.q = a.o = m.h(3, 32);
        },
        "attention: head_dim: 16, not a multiple of 32"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_the_mixture_of_experts) {
  arena& m = memory();
  contract<gate_scores_arguments>{&backend::gate_scores,
                                  {m.f(3, 5)},
                                  {{[&](auto& a) { a.scores.stride = 4; },
                                    "gate_scores: scores: 4 elements of stride for columns 5"}}}
      .check();
  contract<swiglu_arguments>{
      &backend::swiglu,
      {m.h(3, 5), m.h(3, 5), m.h(3, 5), m.fs(3), 10},
      {{[&](auto& a) { a.up = m.h(3, 6); }, "swiglu: up: 6 columns instead of 5"},
       {[&](auto& a) { a.route_weights = m.fs(2); },
        "swiglu: route_weights: 2 elements instead of 3"}}}
      .check();
  contract<moe_combine_arguments>{
      &backend::moe_combine,
      {m.h(3, 5), {m.parts.data(), 6}, 2},
      {{[&](auto& a) { a.parts_per_row = 3; }, "moe_combine: parts: 6 elements instead of 9"},
       {[&](auto& a) { a.parts_per_row = 0; }, "moe_combine: parts_per_row: 0, less than 1"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_engram_gate) {
  arena& m = memory();
  contract<engram_gate_arguments>{
      &backend::engram_gate,
      {m.h(3, 80),
       m.h(3, 80),
       m.h(3, 100),
       m.h(4, 20),
       m.h(4, 20),
       {m.bytes.data(), 3},
       1e-20F,
       m.f(3, 4)},
      {{[&](auto& a) { a.key_values = m.h(3, 80); },
        "engram_gate: key_values: 80 columns instead of 100"},
       {[&](auto& a) {
          a.image_rows = {m.bytes.data(), 2};
        },
        "engram_gate: image_rows: 2 elements instead of 3"},
       {[&](auto& a) { a.k_weight = m.h(3, 20); }, "engram_gate: k_weight: 3 rows instead of 4"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(checks_the_vision_tower) {
  arena& m = memory();
  const std::span<const std::int32_t> three(m.integers.data(), 3);
  contract<rope_2d_arguments>{
      &backend::rope_2d,
      {m.h(3, 32), 16, three, three, m.fs(4)},
      {{[](auto& a) { a.head_dim = 6; }, "rope_2d: head_dim: 6, not a multiple of 4"},
       {[&](auto& a) { a.x = m.h(3, 24); }, "rope_2d: x.cols: 24, not a multiple of 16"},
       {[&](auto& a) { a.rows = three.first(2); }, "rope_2d: rows: 2 elements instead of 3"},
       {[&](auto& a) { a.columns = three.first(1); }, "rope_2d: columns: 1 elements instead of 3"},
       {[&](auto& a) { a.frequencies = m.fs(8); },
        "rope_2d: frequencies: 8 elements instead of 4"}}}
      .check();
  contract<full_attention_arguments>{
      &backend::full_attention,
      {m.h(3, 32), m.h(3, 32), m.h(5, 32), m.h(5, 32), 16, 0.25F},
      {{[](auto& a) { a.head_dim = 12; }, "full_attention: q.cols: 32, not a multiple of 12"},
       {[&](auto& a) { a.k = m.h(0, 32); }, "full_attention: k.rows: 0, less than 1"},
       {[&](auto& a) { a.k = m.h(5, 16); }, "full_attention: k: 16 columns instead of 32"},
       {[&](auto& a) { a.v = m.h(4, 32); }, "full_attention: v: 4 rows instead of 5"},
       {[&](auto& a) { a.o = m.h(4, 32); }, "full_attention: o: 4 rows instead of 3"}}}
      .check();
  contract<gelu_arguments>{&backend::gelu,
                           {m.h(3, 5), m.h(3, 5)},
                           {{[&](auto& a) { a.x = m.h(3, 6); }, "gelu: x: 6 columns instead of 5"}}}
      .check();
  contract<add_arguments>{&backend::add,
                          {m.h(3, 5), m.h(3, 5), m.h(3, 5)},
                          {{[&](auto& a) { a.a = m.h(2, 5); }, "add: a: 2 rows instead of 3"},
                           {[&](auto& a) { a.b = m.h(3, 6); }, "add: b: 6 columns instead of 5"}}}
      .check();
}

BOOST_AUTO_TEST_CASE(accepts_strided_views_and_does_not_forward_empty_calls) {
  arena& m = memory();
  const counting_backend counting;
  rms_norm_arguments arguments{m.h(3, 40), m.h(3, 80).cols_from(40, 40), m.hs(40), 0};
  counting.rms_norm(arguments);
  BOOST_TEST(counting.calls == 1);
  arguments.x = arguments.x.rows_from(0, 0);
  arguments.y = arguments.y.rows_from(0, 0);
  counting.rms_norm(arguments);
  counting.index_scores({{}, {m.raw(), 4, 34}, m.hs(4), {}, 64});
  BOOST_TEST(counting.calls == 1);
}

BOOST_AUTO_TEST_SUITE_END()
