// Goal: fused operations of every backend have the bits of its own separate ones, whose accuracy
// the other files judge, at released widths too. Method: both, on random tensors.
#include <algorithm>
#include <functional>
#include <vector>

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

/// `product(i, y)` is the i-th of products of `rows` rows each, into y.
template <class Product, class Group, class Alone>
void compare_group(const char* what, const std::vector<std::size_t>& rows,
                   const std::vector<std::size_t>& outputs,
                   const std::function<Product(std::size_t, matrix_view<bf16>)>& product,
                   const Group& group, const Alone& alone) {
  std::vector<matrix_buffer<bf16>> together, apart;
  std::vector<Product> products;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Elements between rows that nobody may write.
    together.emplace_back(rows[i], outputs[i] + 3);
    apart.emplace_back(rows[i], outputs[i] + 3);
    products.push_back(product(i, together[i].view().cols_from(0, outputs[i])));
  }
  group(grouped_arguments<Product>{products});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    alone(product(i, apart[i].view().cols_from(0, outputs[i])));
    check_same(what, together[i], apart[i]);
  }
}

fp8_rows_view rows_between(const fp8_rows& all, std::size_t first, std::size_t count) {
  return {all.codes.view().rows_from(first, count), all.scales.view().rows_from(first, count)};
}

/// Products of one kind after another that have rows of their own, all of one matrix.
void compare_groups(const backend& backend, const std::vector<std::size_t>& rows,
                    std::size_t inputs) {
  constexpr std::size_t most = 96;
  random_tensors random(inputs + rows.size());
  std::vector<std::size_t> outputs, firsts;
  std::vector<fp8_weight> fp8;
  std::vector<fp4_weight> fp4;
  std::size_t first = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    outputs.push_back(20 + 13 * i);
    firsts.push_back(first);
    first += rows[i];
    fp8.push_back(random.weight_fp8(outputs[i], inputs));
    fp4.push_back(random.weight_fp4(outputs[i], inputs));
  }
  BOOST_REQUIRE(first <= most);
  const fp8_rows quantised = random.rows_fp8(most, inputs);
  const auto plain = random.half(most, inputs);
  const std::size_t segments = inputs % 128 == 0 ? 4 : 1;
  compare_group<linear_fp8_arguments>(
      "grouped_linear_fp8", rows, outputs,
      [&](std::size_t i, matrix_view<bf16> y) -> linear_fp8_arguments {
        return {y, rows_between(quantised, firsts[i], rows[i]), fp8[i].view(), segments};
      },
      [&](const auto& all) { backend.grouped_linear_fp8(all); },
      [&](const auto& each) { backend.linear_fp8(each); });
  compare_group<linear_fp4_arguments>(
      "grouped_linear_fp4", rows, outputs,
      [&](std::size_t i, matrix_view<bf16> y) -> linear_fp4_arguments {
        return {y, rows_between(quantised, firsts[i], rows[i]), fp4[i].view(), segments};
      },
      [&](const auto& all) { backend.grouped_linear_fp4(all); },
      [&](const auto& each) { backend.linear_fp4(each); });
  compare_group<linear_fp8_weight_only_arguments>(
      "grouped_linear_fp8_weight_only", rows, outputs,
      [&](std::size_t i, matrix_view<bf16> y) -> linear_fp8_weight_only_arguments {
        return {y, plain.view().rows_from(firsts[i], rows[i]), fp8[i].view()};
      },
      [&](const auto& all) { backend.grouped_linear_fp8_weight_only(all); },
      [&](const auto& each) { backend.linear_fp8_weight_only(each); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_fused)

/// Few rows each; a few of some; many of one; more products than one can hold in hand; nothing.
BOOST_DATA_TEST_CASE(grouped_products_are_the_products, backends(), name) {
  const auto backend = backend_of(name);
  compare_groups(*backend, {1, 0, 8, 2}, 1280);
  compare_groups(*backend, {1, 1, 9, 1, 1}, 96);
  compare_groups(*backend, {3, 65, 0, 17}, 160);
  compare_groups(*backend, std::vector<std::size_t>(20, 1), 32);
  compare_groups(*backend, std::vector<std::size_t>(17, 5), 32);
  compare_groups(*backend, {0, 0}, 32);
}

BOOST_DATA_TEST_CASE(entries_of_normalised_rows_are_norm_rotation_and_packing, backends(), name) {
  const auto backend = backend_of(name);
  const std::vector<std::int32_t> positions = {0, 7, 123456};
  const std::vector<float> frequencies = {1, 0.3F, 0.01F, 0.0007F, 1e-6F};
  for (const auto& [format, width] : {std::pair(entry_format::fp8_e8m0_32, 512U),
                                      {entry_format::fp4_e8m0_32, 128U},
                                      {entry_format::fp4_e4m3_16, 48U},
                                      {entry_format::bf16, 45U}}) {
    random_tensors random(width);
    const auto x = random.half(3, width), weight = random.half(1, width);
    matrix_buffer<bf16> y(3, width), expected(3, width);
    matrix_buffer<std::byte> fused(3, entry_bytes(format, width)),
        apart(3, entry_bytes(format, width));
    backend->rms_norm_entries({{y.view(), x.view(), weight.span(), 1e-20F},
                               positions,
                               frequencies,
                               fused.view(),
                               format});
    backend->rms_norm({expected.view(), x.view(), weight.span(), 1e-20F});
    backend->rope({expected.view(), width, positions, frequencies});
    backend->pack_entries({expected.view(), apart.view(), format});
    check_same("y", y, expected);
    check_same("entries", fused, apart);
  }
}

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
