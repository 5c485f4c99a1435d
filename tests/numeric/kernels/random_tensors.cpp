#include "tests/numeric/kernels/random_tensors.hpp"

#include <cmath>

#include "kernels/reference/formats.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace cedar::test {

using namespace kernels;

namespace {

constexpr int e8m0_bias = 127;

bf16 product(double code, double scale) {
  return to_bf16(static_cast<float>(code * scale));
}

}  // namespace

float random_tensors::normal() {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine_()) / 4294967296.0;
  return static_cast<float>(sum - 6);
}

std::uint8_t random_tensors::e4m3() {
  const auto code = static_cast<std::uint8_t>(below(256));
  return (code & 0x7fU) == 0x7fU ? static_cast<std::uint8_t>(code & 0x80U) : code;
}

std::uint8_t random_tensors::scale_near(int exponent) {
  return static_cast<std::uint8_t>(e8m0_bias + exponent - 2 + static_cast<int>(below(5)));
}

matrix_buffer<bf16> random_tensors::half(std::size_t rows, std::size_t cols, float scale) {
  matrix_buffer<bf16> out(rows, cols);
  for (bf16& value : out.span()) value = to_bf16(normal() * scale);
  return out;
}

matrix_buffer<float> random_tensors::full(std::size_t rows, std::size_t cols, float scale) {
  matrix_buffer<float> out(rows, cols);
  for (float& value : out.span()) value = normal() * scale;
  return out;
}

fp8_weight random_tensors::weight_fp8(std::size_t outputs, std::size_t inputs) {
  fp8_weight out{{outputs, inputs}, {(outputs + 31) / 32, inputs / 32}};
  for (std::uint8_t& code : out.codes.span()) code = e4m3();
  for (std::uint8_t& scale : out.scales.span()) scale = scale_near(-6);
  return out;
}

fp4_weight random_tensors::weight_fp4(std::size_t outputs, std::size_t inputs) {
  fp4_weight out{{outputs, inputs / 2}, {outputs, inputs / 32}};
  for (std::uint8_t& code : out.codes.span()) code = static_cast<std::uint8_t>(below(256));
  for (std::uint8_t& scale : out.scales.span()) scale = scale_near(-2);
  return out;
}

fp8_rows random_tensors::rows_fp8(std::size_t rows, std::size_t inputs) {
  fp8_rows out{{rows, inputs}, {rows, inputs / 32}};
  for (std::uint8_t& code : out.codes.span()) code = e4m3();
  for (std::uint8_t& scale : out.scales.span()) scale = scale_near(-6);
  return out;
}

matrix_buffer<std::byte> random_tensors::entries(entry_format format, std::size_t count,
                                                 std::size_t width) {
  matrix_buffer<bf16> values = half(count, width);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t first = 0; first < width; first += 16) {
      const int exponent = static_cast<int>(below(3)) - 1;
      for (bf16& value : values.view().row(row).subspan(first, 16))
        value = to_bf16(std::ldexp(to_float(value), exponent));
    }
  matrix_buffer<std::byte> out(count, entry_bytes(format, width));
  make_reference_backend()->pack_entries({values.view(), out.view(), format});
  return out;
}

matrix_buffer<bf16> absolute(matrix_view<const bf16> x) {
  matrix_buffer<bf16> out(x.rows, x.cols);
  for (std::size_t row = 0; row < x.rows; ++row)
    for (std::size_t i = 0; i < x.cols; ++i)
      out.view().row(row)[i] = bf16{static_cast<std::uint16_t>(x.row(row)[i].bits & 0x7fffU)};
  return out;
}

matrix_buffer<float> absolute(matrix_view<const float> x) {
  matrix_buffer<float> out(x.rows, x.cols);
  for (std::size_t row = 0; row < x.rows; ++row)
    for (std::size_t i = 0; i < x.cols; ++i) out.view().row(row)[i] = std::fabs(x.row(row)[i]);
  return out;
}

matrix_buffer<bf16> dequantised(const fp8_rows_view& rows) {
  matrix_buffer<bf16> out(rows.codes.rows, rows.codes.cols);
  for (std::size_t row = 0; row < out.rows(); ++row)
    for (std::size_t i = 0; i < out.cols(); ++i)
      out.view().row(row)[i] = product(reference::decode_e4m3(rows.codes.row(row)[i]),
                                       reference::decode_e8m0(rows.scales.row(row)[i / 32]));
  return out;
}

matrix_buffer<bf16> dequantised(const fp8_weight_view& weight) {
  matrix_buffer<bf16> out(weight.codes.rows, weight.codes.cols);
  for (std::size_t row = 0; row < out.rows(); ++row)
    for (std::size_t i = 0; i < out.cols(); ++i)
      out.view().row(row)[i] = product(reference::decode_e4m3(weight.codes.row(row)[i]),
                                       reference::decode_e8m0(weight.scales.row(row / 32)[i / 32]));
  return out;
}

matrix_buffer<bf16> dequantised(const fp4_weight_view& weight) {
  matrix_buffer<bf16> out(weight.codes.rows, weight.codes.cols * 2);
  for (std::size_t row = 0; row < out.rows(); ++row)
    for (std::size_t i = 0; i < out.cols(); ++i)
      out.view().row(row)[i] = product(reference::decode_packed_e2m1(weight.codes.row(row), i),
                                       reference::decode_e8m0(weight.scales.row(row)[i / 32]));
  return out;
}

std::vector<const std::byte*> row_pointers(matrix_view<const std::byte> entries) {
  std::vector<const std::byte*> out;
  for (std::size_t row = 0; row < entries.rows; ++row) out.push_back(entries.row_data(row));
  return out;
}

}  // namespace cedar::test
