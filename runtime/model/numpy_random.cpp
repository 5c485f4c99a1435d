#include "runtime/model/numpy_random.hpp"

#include <array>
#include <bit>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::model {
namespace {

/// SeedSequence with its pool of four words, for an entropy of one integer.
std::array<std::uint64_t, 4> seed_sequence(std::uint64_t entropy) {
  std::uint32_t constant = 0x43B0D7E5;
  const auto hash = [&constant](std::uint32_t value, std::uint32_t multiplier) {
    value ^= constant;
    constant *= multiplier;
    value *= constant;
    return value ^ value >> 16;
  };
  constexpr std::uint32_t absorb = 0x931E8875;
  std::array<std::uint32_t, 4> pool{};
  pool[0] = hash(static_cast<std::uint32_t>(entropy), absorb);
  pool[1] = hash(static_cast<std::uint32_t>(entropy >> 32), absorb);
  pool[2] = hash(0, absorb);
  pool[3] = hash(0, absorb);
  for (std::size_t from = 0; from < 4; ++from)
    for (std::size_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const std::uint32_t mixed = 0xCA01F9DD * pool[to] - 0x4973F715 * hash(pool[from], absorb);
      pool[to] = mixed ^ mixed >> 16;
    }
  constant = 0x8B51F9DD;
  constexpr std::uint32_t emit = 0x58F38DED;
  std::array<std::uint64_t, 4> state{};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t low = hash(pool[2 * i % 4], emit);
    state[i] = std::uint64_t{hash(pool[(2 * i + 1) % 4], emit)} << 32 | low;
  }
  return state;
}

}  // namespace

numpy_generator::numpy_generator(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = seed_sequence(seed);
  increment_ = (uint128{words[2]} << 64 | words[3]) << 1 | 1;
  step();
  state_ += uint128{words[0]} << 64 | words[1];
  step();
}

std::uint64_t numpy_generator::below(std::uint64_t bound) {
  CEDAR_REQUIRE(bound > std::uint64_t{1} << 32, "bound " + std::to_string(bound));
  const std::uint64_t threshold = (0 - bound) % bound;  // 2^64 mod bound
  uint128 product = uint128{next()} * bound;
  while (static_cast<std::uint64_t>(product) < threshold) product = uint128{next()} * bound;
  return static_cast<std::uint64_t>(product >> 64);
}

void numpy_generator::step() {
  constexpr uint128 multiplier = uint128{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  state_ = state_ * multiplier + increment_;
}

std::uint64_t numpy_generator::next() {
  step();
  const std::uint64_t folded =
      static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

}  // namespace cedar::model
