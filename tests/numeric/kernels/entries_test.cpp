// Goal: quantisation is the same bits in every backend. Method: random values of all magnitudes,
// with zeros, subnormals and midpoints, and arbitrary bytes on the way back.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr entry_format formats[] = {entry_format::bf16, entry_format::fp8_e8m0_32,
                                    entry_format::fp4_e4m3_16, entry_format::fp4_e8m0_32};

std::size_t step_of(entry_format format) {
  return std::max<std::size_t>(group_size(format), 1);
}

bf16 awkward_value(random_tensors& random, int exponent) {
  switch (random.below(8)) {
    case 0:
      return to_bf16(0.0F);
    case 1:
      return to_bf16(-0.0F);
    case 2:
      return to_bf16(std::ldexp(static_cast<float>(random.below(16)) / 4, exponent));
    default:
      return to_bf16(std::ldexp(random.normal(), exponent));
  }
}

/// Rows whose groups have very different magnitudes, from 2^-130 to 2^80.
matrix_buffer<bf16> awkward_values(random_tensors& random, std::size_t rows, std::size_t width) {
  matrix_buffer<bf16> x(rows, width);
  for (std::size_t i = 0; i < x.span().size(); ++i)
    x.span()[i] = awkward_value(random, static_cast<int>(i / 16 % 15) * 15 - 130);
  return x;
}

std::span<const std::uint8_t> bytes_of(std::span<const std::byte> entries) {
  return {reinterpret_cast<const std::uint8_t*>(entries.data()), entries.size()};
}

matrix_buffer<bf16> unpacked(const backend& backend, const matrix_buffer<std::byte>& entries,
                             entry_format format, std::size_t width) {
  matrix_buffer<bf16> out(entries.rows(), width);
  backend.unpack_entries({entries.view(), out.view(), format});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_entries)

BOOST_DATA_TEST_CASE(packs_and_unpacks_to_the_same_bits, backends(), name) {
  const auto backend = backend_of(name);
  const auto judge = make_reference_backend();
  for (const entry_format format : formats) {
    for (const std::size_t groups : {1U, 3U, 5U, 16U}) {
      random_tensors random(groups);
      const matrix_buffer<bf16> x = awkward_values(random, 37, groups * step_of(format));
      matrix_buffer<std::byte> actual(x.rows(), entry_bytes(format, x.cols()));
      matrix_buffer<std::byte> expected(x.rows(), actual.cols());
      backend->pack_entries({x.view(), actual.view(), format});
      judge->pack_entries({x.view(), expected.view(), format});
      check_equal("packed", bytes_of(actual.span()), bytes_of(expected.span()));
      check_equal("unpacked", unpacked(*backend, expected, format, x.cols()).span(),
                  unpacked(*judge, expected, format, x.cols()).span());
    }
  }
}

BOOST_DATA_TEST_CASE(unpacks_any_bytes_to_the_same_values, backends(), name) {
  const auto backend = backend_of(name);
  for (const entry_format format : formats) {
    random_tensors random(99);
    const std::size_t width = 3 * step_of(format);
    matrix_buffer<std::byte> entries(200, entry_bytes(format, width));
    for (std::byte& byte : entries.span()) byte = static_cast<std::byte>(random.below(256));
    check_equal("unpacked", unpacked(*backend, entries, format, width).span(),
                unpacked(*make_reference_backend(), entries, format, width).span());
  }
}

BOOST_DATA_TEST_CASE(quantises_activations_as_window_entries, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t width : {32U, 96U, 1280U, 5120U}) {
    random_tensors random(width);
    const matrix_buffer<bf16> x = awkward_values(random, 7, width);
    matrix_buffer<std::uint8_t> codes(7, width);
    matrix_buffer<std::uint8_t> scales(7, width / 32);
    backend->quantize_fp8({x.view(), codes.view(), scales.view()});
    matrix_buffer<std::byte> entries(7, entry_bytes(entry_format::fp8_e8m0_32, width));
    make_reference_backend()->pack_entries({x.view(), entries.view(), entry_format::fp8_e8m0_32});
    for (std::size_t row = 0; row < 7; ++row) {
      const std::span<const std::uint8_t> bytes = bytes_of(entries.view().row(row));
      check_equal("codes", codes.view().row(row), bytes.first(width));
      check_equal("scales", scales.view().row(row), bytes.subspan(width));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
