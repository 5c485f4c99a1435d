// Goal: no operation swallows a NaN, so that the selection or arg max at the end of the path names
// it instead of choosing from garbage. Method: one NaN among ordinary inputs, in turn in each
// argument.
#include <cmath>
#include <limits>

#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

const bf16 not_a_number = to_bf16(std::numeric_limits<float>::quiet_NaN());
constexpr std::size_t width = 96;
constexpr std::size_t spot = 41;  // of the NaN, in the middle of everything

bool is_nan(bf16 value) {
  return std::isnan(to_float(value));
}
bool is_nan(float value) {
  return std::isnan(value);
}

template <class T>
void check_nan(const char* what, std::span<T> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(is_nan(values[i]), what << "[" << i << "] is a number");
}

struct inputs {
  random_tensors random{1};
  matrix_buffer<bf16> good = random.half(1, width);
  matrix_buffer<bf16> bad = random.half(1, width);

  inputs() { bad.data()[spot] = not_a_number; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nan_passes_on)

BOOST_DATA_TEST_CASE(through_norms_and_rotations, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  matrix_buffer<bf16> y(1, width);
  backend->rms_norm({y.view(), in.bad.view(), in.good.span(), 1e-20F});
  check_nan("rms_norm", y.span());
  const std::vector<std::int32_t> positions = {3};
  const std::vector<float> frequencies(width / 2, 0.3F);
  backend->rope({in.bad.view(), width, positions, frequencies, false});
  check_nan("rope", in.bad.span().subspan(spot / 2 * 2, 2));
}

BOOST_DATA_TEST_CASE(through_linear_layers, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  const matrix_buffer<bf16> weight = in.random.half(5, width);
  const fp8_weight weight_fp8 = in.random.weight_fp8(5, width);
  const fp4_weight weight_fp4 = in.random.weight_fp4(5, width);
  matrix_buffer<bf16> y(1, 5);
  matrix_buffer<float> wide(1, 5);
  backend->linear_bf16({y.view(), in.bad.view(), weight.view()});
  check_nan("linear_bf16", y.span());
  backend->linear_f32({wide.view(), in.bad.view(), weight.view()});
  check_nan("linear_f32", wide.span());
  backend->linear_fp8_weight_only({y.view(), in.bad.view(), weight_fp8.view()});
  check_nan("linear_fp8_weight_only", y.span());
  fp8_rows x{{1, width}, {1, width / 32}};
  backend->quantize_fp8({in.bad.view(), x.codes.view(), x.scales.view()});
  backend->linear_fp8({y.view(), x.view(), weight_fp8.view(), 1});
  check_nan("linear_fp8", y.span());
  backend->linear_fp4({y.view(), x.view(), weight_fp4.view(), 1});
  check_nan("linear_fp4", y.span());
}

BOOST_DATA_TEST_CASE(through_window_entries, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  matrix_buffer<std::byte> entry(1, entry_bytes(entry_format::fp8_e8m0_32, width));
  backend->pack_entries({in.bad.view(), entry.view(), entry_format::fp8_e8m0_32});
  backend->unpack_entries({entry.view(), in.good.view(), entry_format::fp8_e8m0_32});
  check_nan("entry", in.good.span().subspan(spot, 1));
}

BOOST_DATA_TEST_CASE(through_residual_streams, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  constexpr std::size_t streams = 4;
  const matrix_buffer<float> fn = in.random.full(24, width);
  const matrix_buffer<float> base = in.random.full(1, 24);
  const matrix_buffer<float> scale = in.random.full(1, 3);
  matrix_buffer<float> pre(1, streams), post(1, streams), combine(1, streams * streams);
  backend->hc_coefficients({in.bad.view(), fn.view(), base.span(), scale.span(), 20, 1e-6F, 1e-20F,
                            pre.view(), post.view(), combine.view()});
  check_nan("pre", pre.span());
  check_nan("post", post.span());
  check_nan("combine", combine.span());
  const matrix_buffer<bf16> output = in.random.half(1, width / streams);
  matrix_buffer<bf16> y(1, width / streams), out(1, width);
  backend->hc_collapse({y.view(), in.good.view(), pre.view()});
  check_nan("collapse", y.span());
  backend->hc_expand({out.view(), in.good.view(), output.view(), post.view(), combine.view()});
  check_nan("expand", out.span());
}

BOOST_DATA_TEST_CASE(through_the_transition_between_sublayers, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  constexpr std::size_t streams = 4, size = 32, length = streams * size;
  matrix_buffer<bf16> bad = in.random.half(1, length);
  bad.span()[spot] = in.bad.span()[spot];
  const matrix_buffer<float> fn = in.random.full(24, length);
  const matrix_buffer<float> base = in.random.full(1, 24);
  const matrix_buffer<float> scale = in.random.full(1, 3);
  const matrix_buffer<bf16> y = in.random.half(1, size), norm = in.random.half(1, size);
  const matrix_buffer<float> pre = in.random.full(1, streams), post = in.random.full(1, streams),
                             combine = in.random.full(1, streams * streams);
  matrix_buffer<bf16> out(1, length), x(1, size);
  matrix_buffer<std::uint8_t> codes(1, size), scales(1, size / 32);
  matrix_buffer<float> next_pre(1, streams), next_post(1, streams), next(1, streams * streams);
  backend->hc_transition({{out.view(), bad.view(), y.view(), post.view(), combine.view()},
                          pre.view(),
                          norm.span(),
                          1e-20F,
                          x.view(),
                          codes.view(),
                          scales.view(),
                          fn.view(),
                          base.span(),
                          scale.span(),
                          20,
                          1e-6F,
                          next_pre.view(),
                          next_post.view(),
                          next.view()});
  for (std::size_t k = 0; k < streams; ++k)
    check_nan("stream", out.span().subspan(k * size + spot % size, 1));
  check_nan("x", x.span());
  for (const std::uint8_t code : codes.span())
    BOOST_TEST(((code & 0x7fU) == 0x7fU || scales.span()[0] == 0xffU));
  check_nan("pre", next_pre.span());
  check_nan("post", next_post.span());
  check_nan("combine", next.span());
}

BOOST_DATA_TEST_CASE(through_attention, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  const auto cache = in.random.entries(entry_format::fp8_e8m0_32, 5, width);
  const auto pointers = row_pointers(cache.view());
  const std::vector<attention_entries> entries = {{pointers, {}}};
  const std::vector<float> sinks = {0.5F};
  matrix_buffer<bf16> o(1, width);
  backend->attention({o.view(), in.bad.view(), entries, sinks, width, 0.1F,
                      entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16});
  check_nan("query", o.span());
  matrix_buffer<std::byte> bad(1, cache.cols());
  backend->pack_entries({in.bad.view(), bad.view(), entry_format::fp8_e8m0_32});
  std::vector<const std::byte*> with_bad = pointers;
  with_bad[2] = bad.data();
  const std::vector<attention_entries> bad_entries = {{with_bad, {}}};
  backend->attention({o.view(), in.good.view(), bad_entries, sinks, width, 0.1F,
                      entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16});
  check_nan("entry", o.span());
}

BOOST_DATA_TEST_CASE(through_the_indexer_and_the_compressor, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  const auto query = in.random.entries(entry_format::fp4_e8m0_32, 3, width);
  const auto keys = in.random.entries(entry_format::fp4_e8m0_32, 2, width);
  const std::vector<bf16> weights = {to_bf16(0.5F), not_a_number, to_bf16(0.5F)};
  std::vector<bf16> scores(2);
  backend->index_scores({scores, query.view(), weights, row_pointers(keys.view()), width});
  check_nan("index_scores", std::span(scores));
  matrix_buffer<float> values = in.random.full(2, width);
  matrix_buffer<float> gates = in.random.full(2, width);
  values.view().row(0)[3] = std::numeric_limits<float>::quiet_NaN();
  gates.view().row(1)[spot] = std::numeric_limits<float>::quiet_NaN();
  matrix_buffer<bf16> z(1, width);
  backend->compressor_pool({z.view(), values.view(), gates.view(), 2});
  check_nan("value", z.span().subspan(3, 1));
  check_nan("gate", z.span().subspan(spot, 1));
}

BOOST_DATA_TEST_CASE(through_experts, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  matrix_buffer<float> scores = in.random.full(1, width);
  scores.data()[spot] = std::numeric_limits<float>::quiet_NaN();
  backend->gate_scores({scores.view()});
  check_nan("gate_scores", scores.span().subspan(spot, 1));
  matrix_buffer<bf16> y(1, width);
  for (const float limit : {0.0F, 2.5F}) {
    backend->swiglu({y.view(), in.bad.view(), in.good.view(), {}, limit});
    check_nan("swiglu gate", y.span().subspan(spot, 1));
    backend->swiglu({y.view(), in.good.view(), in.bad.view(), {}, limit});
    check_nan("swiglu up", y.span().subspan(spot, 1));
  }
  const std::vector<const bf16*> parts = {in.good.data(), in.bad.data()};
  backend->moe_combine({y.view(), parts, 2});
  check_nan("moe_combine", y.span().subspan(spot, 1));
}

BOOST_DATA_TEST_CASE(through_the_engram_gate, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  matrix_buffer<bf16> key_values = in.random.half(1, 2 * width);
  const std::vector<std::uint8_t> text = {0};
  matrix_buffer<bf16> out(1, width);
  matrix_buffer<float> gate(1, 1);
  backend->engram_gate({out.view(), in.bad.view(), key_values.view(), in.good.view(),
                        in.good.view(), text, 1e-20F, gate.view()});
  check_nan("stream", out.span());
  key_values.data()[spot] = not_a_number;
  backend->engram_gate({out.view(), in.good.view(), key_values.view(), in.good.view(),
                        in.good.view(), text, 1e-20F, gate.view()});
  check_nan("key", out.span());
}

BOOST_DATA_TEST_CASE(through_the_vision_tower, backends(), name) {
  const auto backend = backend_of(name);
  inputs in;
  matrix_buffer<bf16> y(1, width);
  backend->gelu({y.view(), in.bad.view()});
  check_nan("gelu", y.span().subspan(spot, 1));
  backend->add({y.view(), in.bad.view(), in.good.view()});
  check_nan("add", y.span().subspan(spot, 1));
  backend->swiglu({y.view(), in.bad.view(), in.good.view(), {}, 0, true});
  check_nan("rounded silu", y.span().subspan(spot, 1));
  const matrix_buffer<bf16> weight = in.random.half(width, width);
  backend->linear_bf16({y.view(), in.good.view(), weight.view(), in.bad.span()});
  check_nan("bias", y.span().subspan(spot, 1));
  matrix_buffer<bf16> many = in.random.half(5, width);
  matrix_buffer<bf16> holed = in.random.half(5, width);
  holed.view().row(3)[spot] = not_a_number;
  backend->full_attention({y.view(), in.bad.view(), many.view(), many.view(), width, 0.1F});
  check_nan("query", y.span());
  backend->full_attention({y.view(), in.good.view(), holed.view(), many.view(), width, 0.1F});
  check_nan("key", y.span());
  backend->full_attention({y.view(), in.good.view(), many.view(), holed.view(), width, 0.1F});
  check_nan("value", y.span().subspan(spot, 1));
  const std::vector<std::int32_t> position = {3};
  const std::vector<float> frequencies(width / 4, 0.3F);
  backend->rope_2d({in.bad.view(), width, position, position, frequencies});
  check_nan("rope_2d", in.bad.span().subspan(spot, 1));
  check_nan("rope_2d", in.bad.span().subspan((spot + width / 2) % width, 1));
}

BOOST_AUTO_TEST_SUITE_END()
