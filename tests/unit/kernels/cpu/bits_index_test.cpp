// Goal: index scores give the bits of plain scalar code on every instruction set, whichever way
// they are computed. Method: as bits_test.cpp; entries packed by the backend, and entries of any
// bytes around the bounds within which integers do (kernels/cpu/internal/index_query.hpp).
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_backend.hpp"
#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

tensor<std::byte> pack(const backend& cpu, const tensor<bf16>& x) {
  const auto view = x.view();
  tensor<std::byte> entries(view.rows, entry_bytes(entry_format::fp4_e8m0_32, view.cols));
  cpu.pack_entries({view, entries.view(), entry_format::fp4_e8m0_32});
  return entries;
}

struct index_case {
  tensor<bf16> q;
  tensor<bf16> k;
  std::vector<bf16> weights;
  std::size_t run = 1;
};

/// NaN scores need not have the same bits: which of two NaN passes is the processor's choice.
bool same_scores(std::span<const bf16> a, std::span<const bf16> b) {
  return std::ranges::equal(a, b, [](bf16 x, bf16 y) {
    return x == y || (std::isnan(to_float(x)) && std::isnan(to_float(y)));
  });
}

/// Packed heads and keys, side by side, on every target.
void check_packed_scores(matrix_view<const std::byte> query, matrix_view<const std::byte> keys,
                         const std::vector<bf16>& weights, std::size_t run = 1) {
  const std::size_t head_dim = keys.cols / 17 * 32;
  std::vector<std::byte> entries;
  for (std::size_t key = 0; key < keys.rows; ++key)
    entries.insert(entries.end(), keys.row(key).begin(), keys.row(key).end());
  std::vector<const std::byte*> runs;
  for (std::size_t first = 0; first < keys.rows; first += run)
    runs.push_back(entries.data() + first * keys.cols);
  std::vector<bf16> expected(keys.rows);
  plain::index_scores({expected, query, weights, runs, head_dim, run});
  on_every_target([&](const backend& cpu) {
    std::vector<bf16> actual(keys.rows);
    cpu.index_scores({actual, query, weights, runs, head_dim, run});
    BOOST_TEST(same_scores(actual, expected));
  });
}

void check_index_scores(const index_case& c) {
  const auto cpu = make_cpu_backend();
  const auto query = pack(*cpu, c.q);
  const auto keys = pack(*cpu, c.k);
  check_packed_scores(query.view(), keys.view(), c.weights, c.run);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits)

BOOST_AUTO_TEST_CASE(index_scores_match) {
  struct shape {
    std::size_t heads, head_dim, keys;
  };
  for (const auto& [heads, head_dim, keys] : {shape{1, 32, 5}, shape{4, 64, 1}, shape{5, 32, 300},
                                              shape{3, 160, 67}, shape{32, 128, 600}}) {
    random_tensors source(15);
    const auto q = source.bf16_matrix(heads, head_dim, 1);
    const auto k = source.bf16_matrix(keys, head_dim, 1);
    const auto weights = source.bf16_vector(heads, 0.1F);
    check_index_scores({q, k, weights});
  }
}

/// Scales of blocks from 2^-apart to 2^apart: some keys are within the bounds of integer products,
/// some are not. Keys of zeros, NaN and infinities too.
BOOST_AUTO_TEST_CASE(index_scores_match_where_integers_do_not_do) {
  random_tensors source(18);
  const auto stretch = [&](tensor<bf16>& x, int apart) {
    for (std::size_t row = 0; row < x.view().rows; ++row)
      for (std::size_t block = 0; block < x.view().cols / 32; ++block) {
        const int exponent = static_cast<int>(source.below(2U * apart + 1)) - apart;
        for (bf16& value : x.view().row(row).subspan(32 * block, 32))
          value = to_bf16(std::ldexp(to_float(value), exponent));
      }
  };
  for (const int apart : {1, 2, 3, 4, 5, 8, 40})
    for (const int weights_exponent : {-120, -60, -3, 100}) {
      auto q = source.bf16_matrix(9, 128, 1);
      auto k = source.bf16_matrix(333, 128, 1);
      stretch(q, apart / 2);
      stretch(k, apart);
      std::ranges::fill(k.view().row(7), bf16{});
      std::ranges::fill(k.view().row(200).subspan(32, 32), bf16{});
      std::ranges::fill(q.view().row(3).subspan(64, 32), bf16{});
      k.view().row(100)[70] = to_bf16(std::numeric_limits<float>::quiet_NaN());
      k.view().row(101)[1] = to_bf16(-std::numeric_limits<float>::infinity());
      auto weights = source.bf16_vector(9, std::ldexp(1.0F, weights_exponent));
      weights[5] = bf16{};
      check_index_scores({q, k, weights});
      q.view().row(8)[5] = to_bf16(std::numeric_limits<float>::infinity());
      check_index_scores({q, k, weights});
      weights[0] = to_bf16(-std::numeric_limits<float>::infinity());
      check_index_scores({source.bf16_matrix(9, 128, 1), k, weights});
    }
}

/// Entries of any bytes: sparse and dense codes, scales around every bound of integer products, at
/// both ends of binary32 and apart from each other.
BOOST_AUTO_TEST_CASE(index_scores_match_around_the_bounds_of_integers) {
  constexpr std::size_t heads = 3;
  constexpr std::size_t keys = 41;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    random_tensors source(1000 + seed);
    const auto between = [&](int low, int high) {
      return low + static_cast<int>(source.below(static_cast<std::size_t>(high - low + 1)));
    };
    const std::size_t blocks = 1 + source.below(4);
    // The exponent of a product of scales and a weight, near its bounds; how scales share it.
    const int weight = between(-1, 1) * between(0, 40);
    const int ends[] = {-124, 111 - 13, 0};
    const bool subnormal_weights = seed % 7 == 0;
    const int product =
        subnormal_weights ? between(-10, 2) : ends[source.below(3)] + between(-8, 8) - weight;
    const int shares[] = {0, product / 2, product, product + 127, product - 127};
    const int of_query = std::clamp(shares[source.below(5)], -127, 127);
    const int apart = between(0, 1) * between(0, 11);
    const std::size_t density = source.below(4);
    const auto random_codes = [&]() -> std::size_t {
      if (density == 0) return source.below(16) == 0 ? source.below(256) : 0;
      if (density == 1) return source.below(256);
      if (density == 2) return 0x77;
      return source.below(4) == 0 ? (source.below(2) == 0 ? 0x01 : 0x20) : 0;
    };
    const auto entries = [&](std::size_t count, int exponent) {
      tensor<std::byte> out(count, blocks * 17);
      for (std::size_t row = 0; row < count; ++row) {
        const auto bytes = out.view().row(row);
        for (std::byte& codes : bytes.first(blocks * 16))
          codes = static_cast<std::byte>(random_codes());
        for (std::byte& scale : bytes.subspan(blocks * 16))
          scale = static_cast<std::byte>(
              std::clamp(127 + exponent + between(0, 1) * between(-apart, apart), 0, 254));
      }
      return out;
    };
    const auto query = entries(heads, of_query);
    const auto all = entries(keys, product - of_query);
    auto weights = source.bf16_vector(heads, std::ldexp(1.0F, weight));
    if (subnormal_weights)
      for (bf16& one : weights) one.bits = static_cast<std::uint16_t>(source.below(0x80));
    BOOST_TEST_CONTEXT("seed " << seed) {
      check_packed_scores(query.view(), all.view(), weights);
    }
  }
}

/// A sum that lies between two bf16 numbers, and so little beside it that a lane with the large
/// part never sees it: integers would.
BOOST_AUTO_TEST_CASE(small_parts_of_an_index_score_are_lost_lane_by_lane) {
  for (const auto& [query_apart, key_apart] :
       {std::pair(0, 8), {0, 9}, {0, 17}, {0, 20}, {20, 0}, {11, 9}, {9, 11}, {12, 8}}) {
    const auto entry = [](int apart) {
      tensor<std::byte> out(1, 68);
      const auto bytes = out.view().row(0);
      bytes[0] = bytes[8] = std::byte{0x07};  // elements 0 and 16: 2 * 144 of a quarter unit
      bytes[32] = std::byte{0x01};  // element 64, of lane 0 too: one more
      for (std::size_t i = 16; i < 32; ++i)
        if (i % 8 != 0) bytes[i] = std::byte{0x11};
      std::ranges::fill(bytes.subspan(64), std::byte{127});
      bytes[65] = static_cast<std::byte>(127 - apart);
      return out;
    };
    const auto query = entry(query_apart);
    const auto key = entry(key_apart);
    check_packed_scores(query.view(), key.view(), {to_bf16(1)});
  }
}

BOOST_AUTO_TEST_CASE(index_keys_may_lie_in_runs) {
  random_tensors source(20);
  const auto q = source.bf16_matrix(4, 64, 1);
  const auto k = source.bf16_matrix(203, 64, 1);
  const auto weights = source.bf16_vector(4, 0.1F);
  for (const std::size_t run : {2U, 8U, 64U, 203U, 500U}) check_index_scores({q, k, weights, run});
}

BOOST_AUTO_TEST_SUITE_END()
