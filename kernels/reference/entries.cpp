#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/buffer.hpp"
#include "kernels/reference/formats.hpp"
#include "kernels/reference/internal/entry_rules.hpp"
#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

/// Scale code of a group and the scale itself.
struct group_scale {
  std::uint8_t code = 0;
  double value = 0;
};

/// The rules of entry_format.hpp. They are stated in fp32, products and quotient included.
group_scale scale_of(entry_format format, std::span<const bf16> group) {
  float largest = 0;
  for (const bf16 value : group) largest = std::max(largest, std::fabs(to_float(value)));
  switch (format) {
    case entry_format::fp8_e8m0_32: {
      const std::uint8_t code = encode_e8m0_ceiling(std::max(largest, 1e-4F) * (1.0F / 448.0F));
      return {code, decode_e8m0(code)};
    }
    case entry_format::fp4_e8m0_32: {
      const std::uint8_t code =
          encode_e8m0_ceiling(std::max(largest, std::ldexp(6.0F, -126)) * (1.0F / 6.0F));
      return {code, decode_e8m0(code)};
    }
    case entry_format::fp4_e4m3_16: {
      const std::uint8_t code = encode_e4m3(std::max(largest, std::ldexp(6.0F, -9)) / 6.0F);
      return {code, decode_e4m3(code)};
    }
    case entry_format::bf16:
      break;
  }
  return {};
}

bool is_fp4(entry_format format) {
  return format == entry_format::fp4_e4m3_16 || format == entry_format::fp4_e8m0_32;
}

double decode_scale(entry_format format, std::uint8_t code) {
  return format == entry_format::fp4_e4m3_16 ? decode_e4m3(code) : decode_e8m0(code);
}

/// Quantises x group by group: visit_code(element, code), visit_scale(group, code).
template <class VisitCode, class VisitScale>
void quantize(entry_format format, std::span<const bf16> x, const VisitCode& visit_code,
              const VisitScale& visit_scale) {
  const std::size_t size = group_size(format);
  for (std::size_t group = 0; group < x.size() / size; ++group) {
    const group_scale scale = scale_of(format, x.subspan(group * size, size));
    visit_scale(group, scale.code);
    for (std::size_t i = group * size; i < (group + 1) * size; ++i) {
      const double scaled = widen(x[i]) / scale.value;
      visit_code(i, is_fp4(format) ? encode_e2m1(scaled) : encode_e4m3(scaled));
    }
  }
}

}  // namespace

std::vector<double> decode_entry(entry_format format, const std::byte* entry, std::size_t width) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(entry);
  const std::span<const std::uint8_t> codes(bytes, code_bytes(format, width));
  const std::uint8_t* scales = bytes + codes.size();
  std::vector<double> values(width);
  for (std::size_t i = 0; i < width; ++i) {
    if (format == entry_format::bf16) {
      const auto bits = static_cast<std::uint16_t>(codes[2 * i] | codes[2 * i + 1] << 8);
      values[i] = widen(bf16{bits});
    } else {
      const double code = is_fp4(format) ? decode_packed_e2m1(codes, i) : decode_e4m3(codes[i]);
      values[i] = code * decode_scale(format, scales[i / group_size(format)]);
    }
  }
  return values;
}

void encode_entry(entry_format format, std::span<const bf16> x, std::byte* entry) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(entry);
  if (format == entry_format::bf16) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      bytes[2 * i] = static_cast<std::uint8_t>(x[i].bits & 0xffU);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(x[i].bits >> 8);
    }
    return;
  }
  std::uint8_t* scales = bytes + code_bytes(format, x.size());
  const auto visit_code = [&](std::size_t i, std::uint8_t code) {
    if (!is_fp4(format))
      bytes[i] = code;
    else if (i % 2 == 0)
      bytes[i / 2] = code;
    else
      bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] | code << 4);
  };
  quantize(format, x, visit_code,
           [&](std::size_t group, std::uint8_t code) { scales[group] = code; });
}

void reference_backend::do_quantize_fp8(const quantize_fp8_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.x.rows; ++row)
    quantize(
        entry_format::fp8_e8m0_32, arguments.x.row(row),
        [&](std::size_t i, std::uint8_t code) { arguments.codes.row(row)[i] = code; },
        [&](std::size_t group, std::uint8_t code) { arguments.scales.row(row)[group] = code; });
}

void reference_backend::do_pack_entries(const pack_entries_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.x.rows; ++row)
    encode_entry(arguments.format, arguments.x.row(row), arguments.entries.row_data(row));
}

void reference_backend::do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const {
  do_rms_norm(arguments.norm);
  do_rope(arguments.rope_part());
  do_pack_entries(arguments.pack_part());
}

void reference_backend::do_requantize_entries(const requantize_entries_arguments& arguments) const {
  matrix_buffer<bf16> x(arguments.codes.rows, arguments.codes.cols);
  do_unpack_entries({arguments.entries, x.view(), entry_format::fp8_e8m0_32});
  do_quantize_fp8({std::as_const(x).view(), arguments.codes, arguments.scales});
}

void reference_backend::do_unpack_entries(const unpack_entries_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.x.rows; ++row) {
    const std::vector<double> values =
        decode_entry(arguments.format, arguments.entries.row_data(row), arguments.x.cols);
    for (std::size_t i = 0; i < values.size(); ++i) arguments.x.row(row)[i] = round_bf16(values[i]);
  }
}

}  // namespace cedar::kernels::reference
