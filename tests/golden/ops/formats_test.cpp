// Goal: number formats and quantisation, bit by bit. Method: golden tables and codes; the
// reference's own codecs directly, every backend through packing and unpacking with a scale of 1.
#include "kernels/reference/formats.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/buffer.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr std::uint8_t scale_of_one = 127;  // E8M0

std::vector<std::uint8_t> iota_codes(std::size_t count) {
  std::vector<std::uint8_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(i);
  return codes;
}

/// Dequantised values of one entry built from codes and scales.
std::vector<float> unpacked(const backend& backend, entry_format format,
                            std::vector<std::uint8_t> bytes, std::size_t width) {
  BOOST_REQUIRE(bytes.size() == entry_bytes(format, width));
  matrix_buffer<bf16> x(1, width);
  backend.unpack_entries(
      {{reinterpret_cast<const std::byte*>(bytes.data()), 1, bytes.size()}, x.view(), format});
  return widened(x.span());
}

/// Codes that `backend` gives the bf16 values among `inputs` that stay below `largest`, which is
/// put into every group so that its scale is 1. `indices` receives which inputs those are.
std::vector<std::uint8_t> encoded(const backend& backend, entry_format format,
                                  std::span<const float> inputs, float largest,
                                  std::vector<std::size_t>& indices) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (to_float(to_bf16(inputs[i])) == inputs[i] && std::fabs(inputs[i]) <= largest)
      indices.push_back(i);
  matrix_buffer<bf16> x(indices.size(), 32);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    x.view().row(row)[0] = to_bf16(inputs[indices[row]]);
    x.view().row(row)[1] = to_bf16(largest);
  }
  matrix_buffer<std::byte> entries(x.rows(), entry_bytes(format, 32));
  backend.pack_entries({x.view(), entries.view(), format});
  std::vector<std::uint8_t> codes;
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const auto entry = entries.view().row(row);
    BOOST_REQUIRE(static_cast<std::uint8_t>(entry.back()) == scale_of_one);
    codes.push_back(static_cast<std::uint8_t>(entry.front()));
  }
  return codes;
}

/// Packs the golden `x` and compares codes, scales and dequantised values with the golden ones.
void check_quantisation(const backend& backend, const std::string& file, entry_format format,
                        const std::string& codes_name) {
  const golden_file golden("ops/" + file);
  const auto x = golden.matrix<bf16>("x");
  const auto codes = golden.matrix<std::uint8_t>(codes_name);
  const auto scales = golden.matrix<std::uint8_t>("scale");
  matrix_buffer<std::byte> entries(x.rows, entry_bytes(format, x.cols));
  backend.pack_entries({x, entries.view(), format});
  matrix_buffer<bf16> values(x.rows, x.cols);
  backend.unpack_entries({entries.view(), values.view(), format});
  const auto dequantised = golden.matrix<bf16>("dequant");
  for (std::size_t row = 0; row < x.rows; ++row) {
    const std::string where = file + " row " + std::to_string(row);
    const std::span<const std::uint8_t> bytes(
        reinterpret_cast<const std::uint8_t*>(entries.view().row_data(row)), entries.cols());
    check_equal(where + " codes", bytes.first(codes.cols), codes.row(row));
    check_equal(where + " scales", bytes.subspan(codes.cols), scales.row(row));
    check_equal(where + " dequantised", std::span<const bf16>(values.view().row(row)),
                dequantised.row(row));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_formats)

BOOST_AUTO_TEST_CASE(reference_decodes_every_code) {
  const golden_file golden("ops/formats.safetensors");
  std::vector<float> e4m3, e8m0, e2m1;
  for (const std::uint8_t code : iota_codes(256)) {
    e4m3.push_back(static_cast<float>(reference::decode_e4m3(code)));
    e8m0.push_back(static_cast<float>(reference::decode_e8m0(code)));
    if (code < 16) e2m1.push_back(static_cast<float>(reference::decode_e2m1(code)));
  }
  check_equal("e4m3", e4m3, golden.vector<float>("e4m3.table"));
  check_equal("e8m0", e8m0, golden.vector<float>("e8m0.table"));
  check_equal("e2m1", e2m1, golden.vector<float>("e2m1.table"));
}

BOOST_AUTO_TEST_CASE(reference_encodes_midpoints_neighbours_and_overflow) {
  const golden_file golden("ops/formats.safetensors");
  std::vector<std::uint8_t> e4m3, e2m1;
  for (const float value : golden.vector<float>("e4m3.encode.input"))
    e4m3.push_back(reference::encode_e4m3(static_cast<double>(value)));
  for (const float value : golden.vector<float>("e2m1.encode.input"))
    e2m1.push_back(reference::encode_e2m1(static_cast<double>(value)));
  check_equal("e4m3 codes", e4m3, golden.vector<std::uint8_t>("e4m3.encode.code"));
  check_equal("e2m1 codes", e2m1, golden.vector<std::uint8_t>("e2m1.encode.code"));
}

BOOST_DATA_TEST_CASE(decodes_every_code_of_an_entry, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/formats.safetensors");
  std::vector<std::uint8_t> bytes = iota_codes(256);
  bytes.resize(entry_bytes(entry_format::fp8_e8m0_32, 256), scale_of_one);
  check_equal("e4m3", unpacked(*backend, entry_format::fp8_e8m0_32, bytes, 256),
              golden.vector<float>("e4m3.table"));

  const std::span<const std::uint8_t> packed = golden.vector<std::uint8_t>("pack.bytes");
  bytes.assign(packed.begin(), packed.end());
  bytes.resize(16, 0);
  bytes.push_back(scale_of_one);
  const std::vector<float> values = unpacked(*backend, entry_format::fp4_e8m0_32, bytes, 32);
  const std::span<const float> table = golden.vector<float>("e2m1.table");
  std::vector<float> expected;
  for (const std::uint8_t code : golden.vector<std::uint8_t>("pack.codes"))
    expected.push_back(table[code]);
  check_equal("e2m1", std::span(values).first(16), expected);
}

BOOST_DATA_TEST_CASE(decodes_every_scale_of_an_entry, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/formats.safetensors");
  constexpr std::uint8_t one_in_e4m3 = 0x38;
  constexpr std::uint8_t two_ones_in_e2m1 = 0x22;
  std::vector<float> e8m0, e8m0_of_fp4, e4m3;
  for (const std::uint8_t code : iota_codes(256)) {
    std::vector<std::uint8_t> fp8(32, one_in_e4m3);
    fp8.push_back(code);
    e8m0.push_back(unpacked(*backend, entry_format::fp8_e8m0_32, fp8, 32)[17]);
    std::vector<std::uint8_t> fp4(16, two_ones_in_e2m1);
    fp4.push_back(code);
    e8m0_of_fp4.push_back(unpacked(*backend, entry_format::fp4_e8m0_32, fp4, 32)[17]);
    std::vector<std::uint8_t> main(8, two_ones_in_e2m1);
    main.push_back(code);
    e4m3.push_back(unpacked(*backend, entry_format::fp4_e4m3_16, main, 16)[9]);
  }
  check_equal("e8m0 scales of fp8", e8m0, golden.vector<float>("e8m0.table"));
  check_equal("e8m0 scales of fp4", e8m0_of_fp4, golden.vector<float>("e8m0.table"));
  check_equal("e4m3 scales of fp4", e4m3, golden.vector<float>("e4m3.table"));
}

BOOST_DATA_TEST_CASE(encodes_the_bf16_inputs_under_a_scale_of_one, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/formats.safetensors");
  std::vector<std::size_t> indices;
  const std::vector<std::uint8_t> e4m3 = encoded(
      *backend, entry_format::fp8_e8m0_32, golden.vector<float>("e4m3.encode.input"), 448, indices);
  BOOST_TEST(indices.size() > 500U);
  std::vector<std::uint8_t> expected;
  for (const std::size_t i : indices)
    expected.push_back(golden.vector<std::uint8_t>("e4m3.encode.code")[i]);
  check_equal("e4m3 codes", e4m3, expected);

  indices.clear();
  std::vector<std::uint8_t> e2m1 = encoded(*backend, entry_format::fp4_e8m0_32,
                                           golden.vector<float>("e2m1.encode.input"), 4, indices);
  BOOST_TEST(indices.size() > 15U);
  expected.clear();
  for (const std::size_t i : indices)
    expected.push_back(golden.vector<std::uint8_t>("e2m1.encode.code")[i]);
  for (std::uint8_t& code : e2m1) code &= 0x0fU;  // the high nibble is the second element
  check_equal("e2m1 codes", e2m1, expected);
}

BOOST_DATA_TEST_CASE(quantises_window_entries, backends(), name) {
  check_quantisation(*backend_of(name), "act_quant_fp8.safetensors", entry_format::fp8_e8m0_32,
                     "code");
}

BOOST_DATA_TEST_CASE(quantises_main_entries, backends(), name) {
  check_quantisation(*backend_of(name), "act_quant_fp4_e4m3_block16.safetensors",
                     entry_format::fp4_e4m3_16, "packed");
}

BOOST_DATA_TEST_CASE(quantises_index_entries, backends(), name) {
  check_quantisation(*backend_of(name), "act_quant_fp4_e8m0_block32.safetensors",
                     entry_format::fp4_e8m0_32, "packed");
}

BOOST_DATA_TEST_CASE(quantises_activations, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/act_quant_fp8.safetensors");
  const auto x = golden.matrix<bf16>("x");
  matrix_buffer<std::uint8_t> codes(x.rows, x.cols);
  matrix_buffer<std::uint8_t> scales(x.rows, x.cols / 32);
  backend->quantize_fp8({x, codes.view(), scales.view()});
  check_equal("codes", codes.span(), golden.vector<std::uint8_t>("code"));
  check_equal("scales", scales.span(), golden.vector<std::uint8_t>("scale"));
}

BOOST_AUTO_TEST_SUITE_END()
