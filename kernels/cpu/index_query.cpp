#include "kernels/cpu/internal/index_query.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/internal/formats.hpp"

namespace cedar::kernels::cpu {

namespace {

/// Exponents of something, as long as there is any.
struct exponent_range {
  int least = 1000;
  int most = -1000;

  void add(int exponent) {
    least = least < exponent ? least : exponent;
    most = most > exponent ? most : exponent;
  }
  bool any() const { return least <= most; }
};

/// Codes of a block of the query in the order of a key's bytes: of each 8, the even ones, then the
/// odd ones. Returns whether any is not zero.
bool spread_codes(const std::uint8_t* packed, std::int32_t* words, std::int32_t& sum) {
  std::int8_t bytes[index_block];
  sum = 0;
  bool any = false;
  for (std::size_t i = 0; i < index_block; ++i) {
    const std::size_t element = i / 8 * 8 + i % 4 * 2 + i / 4 % 2;
    const int nibble = packed[element / 2] >> (element % 2 * 4) & 15;
    const int code = offset_codes[nibble] - code_offset;
    bytes[i] = static_cast<std::int8_t>(code);
    sum += code;
    any = any || code != 0;
  }
  std::memcpy(words, bytes, sizeof(bytes));
  return any;
}

/// The bounds on a key's scales. `scales`: exponents of all blocks of the query, `apart`: how far
/// those of one head are apart at most; `weights`: exponents of the weights that are not zero.
void set_bounds(index_query& query, exponent_range scales, int apart, exponent_range weights) {
  if (!scales.any()) scales.add(0);
  if (!weights.any()) weights.add(0);
  // blocks * 32 * 12 * 12 * 2^(apart + spread) <= 2^24
  const std::size_t most_units = (std::size_t{1} << 24) / (query.blocks * index_block * 144);
  query.spread = static_cast<int>(std::bit_width(most_units)) - 1 - apart;
  // The smallest product that is not zero is normal, and so is it times a weight.
  const int least = scales.least - 2 + std::min(0, weights.least);
  query.lowest = std::max(1, 127 - 126 - least);
  // The largest, times a weight, leaves room for the 2^16 of round_normal.
  const auto bits = static_cast<int>(std::bit_width(query.blocks * index_block * 36));
  const int fitting = 127 + 110 - bits - scales.most - std::max(0, weights.most + 1);
  // 6 times the scale is finite.
  query.highest = scales.most <= 125 ? std::min(127 + 125, fitting) : -1;
}

}  // namespace

index_query prepare_index_query(scratch& frame, const matrix_view<const std::byte>& packed,
                                std::span<const bf16> weights, std::size_t blocks) {
  index_query out;
  out.heads = weights.size();
  out.blocks = blocks;
  out.codes = frame.take<std::int32_t>(blocks * out.heads * block_words);
  out.offsets = frame.take<std::int32_t>(blocks * out.heads);
  out.scales = frame.take<float>(blocks * out.heads);
  out.weights = frame.take<float>(out.heads);
  exponent_range scales;
  exponent_range weight_exponents;
  int apart = 0;
  bool finite = true;
  for (std::size_t head = 0; head < out.heads; ++head) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(packed.row_data(head));
    exponent_range own;
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t at = block * out.heads + head;
      const std::uint8_t scale = codes[blocks * block_bytes + block];
      std::int32_t sum = 0;
      const bool any = spread_codes(codes + block * block_bytes, out.codes + at * block_words, sum);
      out.offsets[at] = -code_offset * sum;
      out.scales[at] = any ? 0.25F * e8m0_values[scale] : 0.0F;
      if (any) own.add(scale - 127);
      finite = finite && scale != 255;
    }
    if (own.any()) {
      scales.add(own.least);
      scales.add(own.most);
      apart = std::max(apart, own.most - own.least);
    }
    out.weights[head] = to_float(weights[head]);
    const int exponent = weights[head].bits >> 7 & 255;
    if ((weights[head].bits & 0x7fffU) != 0)
      weight_exponents.add(exponent == 0 ? -133 : exponent - 127);
    finite = finite && exponent != 255;
  }
  set_bounds(out, scales, apart, weight_exponents);
  if (!finite) out.highest = -1;
  return out;
}

}  // namespace cedar::kernels::cpu
