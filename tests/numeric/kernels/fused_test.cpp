// Goal: fused operations of every backend have the bits of its own separate ones, whose accuracy
// the other files judge, at released widths too. Method: both, on random tensors.
#include <algorithm>

#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

template <class T>
void check_same(const char* what, const matrix_buffer<T>& fused, const matrix_buffer<T>& separate) {
  const auto bytes = [](const matrix_buffer<T>& of) { return std::as_bytes(of.span()); };
  BOOST_TEST(std::ranges::equal(bytes(fused), bytes(separate)), what << " differs");
}

struct mixed {
  matrix_buffer<bf16> streams, x;
  matrix_buffer<std::uint8_t> codes, scales;
  matrix_buffer<float> pre, post, combine;
};

void compare_transitions(const backend& backend, std::size_t rows, std::size_t s, std::size_t d) {
  random_tensors random(rows + d);
  const auto old = random.half(rows, s * d), y = random.half(rows, d), norm = random.half(1, d);
  const auto post = random.full(rows, s), combine = random.full(rows, s * s);
  const auto pre = random.full(rows, s);
  const auto fn = random.full((2 + s) * s, s * d, 0.03F), base = random.full(1, (2 + s) * s),
             scale = random.full(1, 3);
  const auto fresh = [&] {
    return mixed{{rows, s * d}, {rows, d}, {rows, d},    {rows, d / 32},
                 {rows, s},     {rows, s}, {rows, s * s}};
  };
  mixed fused = fresh();
  backend.hc_transition({{fused.streams.view(), old.view(), y.view(), post.view(), combine.view()},
                         pre.view(),
                         norm.span(),
                         1e-20F,
                         fused.x.view(),
                         fused.codes.view(),
                         fused.scales.view(),
                         fn.view(),
                         base.span(),
                         scale.span(),
                         20,
                         1e-6F,
                         fused.pre.view(),
                         fused.post.view(),
                         fused.combine.view()});
  mixed apart = fresh();
  matrix_buffer<bf16> collapsed(rows, d);
  backend.hc_expand({apart.streams.view(), old.view(), y.view(), post.view(), combine.view()});
  backend.hc_collapse({collapsed.view(), apart.streams.view(), pre.view()});
  backend.rms_norm({apart.x.view(), collapsed.view(), norm.span(), 1e-20F});
  backend.quantize_fp8({apart.x.view(), apart.codes.view(), apart.scales.view()});
  backend.hc_coefficients({apart.streams.view(), fn.view(), base.span(), scale.span(), 20, 1e-6F,
                           1e-20F, apart.pre.view(), apart.post.view(), apart.combine.view()});
  check_same("streams", fused.streams, apart.streams);
  check_same("x", fused.x, apart.x);
  check_same("codes", fused.codes, apart.codes);
  check_same("scales", fused.scales, apart.scales);
  check_same("pre", fused.pre, apart.pre);
  check_same("post", fused.post, apart.post);
  check_same("combine", fused.combine, apart.combine);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_fused)

BOOST_DATA_TEST_CASE(a_transition_between_sublayers_is_its_parts, backends(), name) {
  const auto backend = backend_of(name);
  compare_transitions(*backend, 1, 4, 5120);
  compare_transitions(*backend, 7, 4, 5120);
  compare_transitions(*backend, 3, 1, 96);
  compare_transitions(*backend, 2, 5, 32);
}

BOOST_DATA_TEST_CASE(a_norm_that_quantises_is_norm_and_quantisation, backends(), name) {
  const auto backend = backend_of(name);
  for (const auto& [rows, width] : {std::pair(1U, 5120U), {4U, 96U}}) {
    random_tensors random(width);
    const auto x = random.half(rows, width), weight = random.half(1, width);
    matrix_buffer<bf16> y(rows, width), expected(rows, width);
    fp8_rows fused{{rows, width}, {rows, width / 32}}, apart{{rows, width}, {rows, width / 32}};
    backend->rms_norm_quantize(
        {{y.view(), x.view(), weight.span(), 1e-20F}, fused.codes.view(), fused.scales.view()});
    backend->rms_norm({expected.view(), x.view(), weight.span(), 1e-20F});
    backend->quantize_fp8({expected.view(), apart.codes.view(), apart.scales.view()});
    check_same("y", y, expected);
    check_same("codes", fused.codes, apart.codes);
    check_same("scales", fused.scales, apart.scales);
  }
}

BOOST_DATA_TEST_CASE(requantised_entries_are_unpacked_and_quantised, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t width : {32U, 256U}) {
    random_tensors random(width);
    const auto entries = random.entries(entry_format::fp8_e8m0_32, 24, width);
    fp8_rows fused{{24, width}, {24, width / 32}}, apart{{24, width}, {24, width / 32}};
    matrix_buffer<bf16> x(24, width);
    backend->requantize_entries({entries.view(), fused.codes.view(), fused.scales.view()});
    backend->unpack_entries({entries.view(), x.view(), entry_format::fp8_e8m0_32});
    backend->quantize_fp8({x.view(), apart.codes.view(), apart.scales.view()});
    check_same("codes", fused.codes, apart.codes);
    check_same("scales", fused.scales, apart.scales);
  }
}

BOOST_DATA_TEST_CASE(an_activation_that_quantises_is_swiglu_and_quantisation, backends(), name) {
  const auto backend = backend_of(name);
  for (const bool weighted : {false, true}) {
    random_tensors random(17);
    const std::size_t rows = 3, width = 2048;
    const auto gate = random.half(rows, width, 6), up = random.half(rows, width, 6);
    const auto weights = random.full(1, rows);
    const std::span<const float> route = weighted ? weights.span() : std::span<const float>{};
    matrix_buffer<bf16> hidden(rows, width);
    fp8_rows fused{{rows, width}, {rows, width / 32}}, apart{{rows, width}, {rows, width / 32}};
    backend->swiglu_quantize(
        {fused.codes.view(), fused.scales.view(), gate.view(), up.view(), route, 10});
    backend->swiglu({hidden.view(), gate.view(), up.view(), route, 10});
    backend->quantize_fp8({hidden.view(), apart.codes.view(), apart.scales.view()});
    check_same("codes", fused.codes, apart.codes);
    check_same("scales", fused.scales, apart.scales);
  }
}

BOOST_AUTO_TEST_SUITE_END()
