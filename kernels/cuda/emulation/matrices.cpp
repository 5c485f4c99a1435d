#include "kernels/cuda/emulation/matrices.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cuda/emulation/internal/runner.hpp"

namespace cedar::kernels::cuda::emulation {

namespace {

constexpr unsigned outputs = 16;  // rows of a
constexpr unsigned columns = 8;  // of b

template <unsigned Depth>
struct operands {
  double a[outputs][Depth];
  double b[Depth][columns];
};

/// E4M3: bias 7, three mantissa bits, no infinities, 0x7f and 0xff are NaN.
double value_of_e4m3(std::uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -size : size;
}

std::array<double, 256> make_e4m3_values() {
  std::array<double, 256> values{};
  for (unsigned code = 0; code < 256; ++code)
    values[code] = value_of_e4m3(static_cast<std::uint8_t>(code));
  return values;
}

/// Element `index` of the four bytes or two halves of a register.
double bf16_of(std::uint32_t word, unsigned index) {
  return std::bit_cast<float>(index == 0 ? word << 16 : word & 0xffff0000U);
}
double e4m3_of(std::uint32_t word, unsigned index) {
  static const std::array<double, 256> values = make_e4m3_values();
  return values[word >> (8 * index) & 0xffU];
}

/// Register r of a holds row lane / 4 + 8 * (r % 2), of b column lane / 4. Either holds neighbours
/// in k: from Packed * (lane % 4) on, the later registers Depth / 2 further.
template <unsigned Depth, class Decode>
void gather(operands<Depth>& all, const fragments& part, unsigned lane, Decode decode) {
  constexpr unsigned packed = Depth / 8;
  const unsigned group = lane / 4;
  for (unsigned i = 0; i < packed; ++i) {
    const unsigned k = packed * (lane % 4) + i;
    for (unsigned r = 0; r < 4; ++r)
      all.a[group + 8 * (r % 2)][k + Depth / 2 * (r / 2)] = decode(part.a[r], i);
    for (unsigned r = 0; r < 2; ++r) all.b[k + Depth / 2 * r][group] = decode(part.b[r], i);
  }
}

template <unsigned Depth, class Decode>
void multiply(lane_operands lanes, Decode decode) {
  operands<Depth> all;
  for (unsigned lane = 0; lane < warp_threads; ++lane)
    gather(all, *static_cast<const fragments*>(lanes[lane]), lane, decode);
  double sums[outputs][columns] = {};
  for (unsigned k = 0; k < Depth; ++k)
    for (unsigned row = 0; row < outputs; ++row)
      for (unsigned column = 0; column < columns; ++column)
        sums[row][column] += all.a[row][k] * all.b[k][column];
  for (unsigned lane = 0; lane < warp_threads; ++lane) {
    float(&c)[4] = static_cast<const fragments*>(lanes[lane])->c;
    for (unsigned r = 0; r < 4; ++r) {
      const double sum = sums[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
      c[r] = static_cast<float>(static_cast<double>(c[r]) + sum);
    }
  }
}

}  // namespace

void run_multiply_bf16(lane_operands lanes) {
  multiply<16>(lanes, bf16_of);
}

void run_multiply_e4m3(lane_operands lanes) {
  multiply<32>(lanes, e4m3_of);
}

void read_matrix_row(const shared_place& array, std::size_t first, unsigned lane,
                     std::uint32_t (&row)[4]) {
  const unsigned warp = runner().thread_number() / warp_threads;
  read_shared(array, first, sizeof(row), row, warp * warp_threads + lane);
}

}  // namespace cedar::kernels::cuda::emulation
