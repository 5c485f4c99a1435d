// Goal: what kernels are written in does what CUDA's manual says. Method: operations of a block, a
// warp and its fragments against plain loops.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/cuda/device/platform.cuh"
#include "kernels/reference/formats.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::kernels::cuda;

CEDAR_KERNEL(96) void count_places(unsigned* counts) {
  const grid_extent at = block_index(), size = grid_size();
  const unsigned block = (at.z * size.y + at.y) * size.x + at.x;
  const unsigned thread = warp_index() * warp_threads + lane_index();
  atomic_add(counts + block * block_threads() + thread, 1U);
}

/// out: sums of groups of eight lanes, the lane to the right, who votes, what the largest is.
CEDAR_KERNEL(64) void exchange(float* sums, unsigned* right, std::uint32_t* votes, int* largest) {
  const unsigned thread = thread_index();
  auto sum = static_cast<float>(thread);
  for (unsigned mask = 1; mask < 8; mask *= 2) sum += shuffle_xor(sum, mask);
  sums[thread] = sum;
  right[thread] = shuffle(thread, lane_index() + 1);
  votes[thread] = ballot(thread % 3 == 0);
  if (vote_any(thread == 63) && !vote_all(thread == 63))
    atomic_max(largest, static_cast<int>(thread));
}

/// A tree in shared memory whose later levels only one warp walks.
CEDAR_KERNEL(128) void sum_tree(const float* in, float* out) {
  dynamic_shared shared;
  const auto cells = shared.take<float>(128, "cells");
  const unsigned thread = thread_index();
  cells.store(thread, in[block_index().x * 128 + thread]);
  for (unsigned half = 64; half >= 32; half /= 2) {
    sync_block();
    if (thread < half) cells.store(thread, cells.load(thread) + cells.load(thread + half));
  }
  if (warp_index() > 0) return;
  for (unsigned half = 16; half > 0; half /= 2) {
    sync_warp();
    if (thread < half) cells.store(thread, cells.load(thread) + cells.load(thread + half));
  }
  if (thread == 0) out[block_index().x] = cells.load(0);
}

/// a [16, 32 bytes], b [8, 32 bytes], both row by row, through shared memory; c [16, 8].
template <bool Half>
CEDAR_KERNEL(32)
void multiply(const std::uint8_t* a, const std::uint8_t* b, float* c) {
  dynamic_shared shared;
  const auto left = shared.take<std::uint8_t>(16 * 32, "left");
  const auto right = shared.take<std::uint8_t>(8 * 32, "right");
  const unsigned lane = lane_index();
  copy_async<16>(left, lane * 16, a + lane * 16);
  commit_copies();
  if (lane < 16) copy_async<16>(right, lane * 16, b + lane * 16);
  commit_copies();
  wait_copies<0>();
  sync_warp();
  std::uint32_t fragment_a[4], fragment_b[2];
  load_matrices<4>(fragment_a, left, lane % 16 * 32 + lane / 16 * 16);
  load_matrices<2>(fragment_b, right, lane % 8 * 32 + lane / 8 * 16);
  float sums[4];
  for (unsigned i = 0; i < 4; ++i) sums[i] = c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
  if constexpr (Half)
    multiply_bf16(sums, fragment_a, fragment_b);
  else
    multiply_e4m3(sums, fragment_a, fragment_b);
  for (unsigned i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

/// Two matrices of 8 by 8, one below the other.
CEDAR_KERNEL(32) void load_transposed(const std::uint16_t* from, std::uint32_t* to) {
  dynamic_shared shared;
  const auto cells = shared.take<std::uint16_t>(16 * 8, "cells");
  const unsigned lane = lane_index();
  for (unsigned i = 0; i < 4; ++i) cells.store(lane * 4 + i, from[lane * 4 + i]);
  sync_warp();
  std::uint32_t registers[2];
  load_matrices_transposed(registers, cells, lane % 16 * 8);
  for (unsigned i = 0; i < 2; ++i) to[lane * 2 + i] = registers[i];
}

CEDAR_KERNEL(32) void copy_some(const std::uint8_t* from, unsigned valid, std::uint8_t* to) {
  dynamic_shared shared;
  const auto cells = shared.take<std::uint8_t>(16 * 32, "cells");
  copy_async<16>(cells, lane_index() * 16, from + lane_index() * 16, valid);
  commit_copies();
  wait_copies<0>();
  for (unsigned i = 0; i < 16; ++i) to[lane_index() * 16 + i] = cells.load(lane_index() * 16 + i);
}

std::vector<std::uint8_t> random_bytes(std::size_t count, std::mt19937& random) {
  std::vector<std::uint8_t> out(count);
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
  return out;
}

/// Element k of a row of 32 bytes.
double element(const std::uint8_t* row, unsigned k, bool half) {
  if (!half) return reference::decode_e4m3(row[k]);
  const auto bits = static_cast<std::uint32_t>(row[2 * k] | row[2 * k + 1] << 8);
  return std::bit_cast<float>(bits << 16);
}

/// NaN codes and the exponents near the ends of bf16 become something plain.
void make_plain(std::vector<std::uint8_t>& bytes, bool half) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (half && i % 2 == 1) bytes[i] = static_cast<std::uint8_t>((bytes[i] & 0x83U) | 0x3cU);
    if (!half && (bytes[i] & 0x7fU) == 0x7fU) bytes[i] = 0x38;
  }
}

void check_multiply(bool half) {
  std::mt19937 random(half ? 1 : 2);
  auto a = random_bytes(16 * 32, random), b = random_bytes(8 * 32, random);
  make_plain(a, half);
  make_plain(b, half);
  std::vector<float> c(16 * 8);
  for (float& value : c) value = static_cast<float>(random() % 1000) - 500;
  const std::vector<float> before = c;
  launch({"multiply", {}, 32, shared_bytes_of<std::uint8_t>(24 * 32)}, {},
         half ? multiply<true> : multiply<false>, a.data(), b.data(), c.data());
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      double sum = before[row * 8 + column];
      for (unsigned k = 0; k < (half ? 16U : 32U); ++k)
        sum += element(&a[row * 32], k, half) * element(&b[column * 32], k, half);
      BOOST_TEST(c[row * 8 + column] == static_cast<float>(sum));
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_emulation_operations)

BOOST_AUTO_TEST_CASE(every_thread_of_every_block_runs_once) {
  std::vector<unsigned> counts(2 * 3 * 4 * 96);
  launch({"count_places", {2, 3, 4}, 96, 0}, {}, count_places, counts.data());
  BOOST_TEST(std::ranges::all_of(counts, [](unsigned count) { return count == 1; }));
}

BOOST_AUTO_TEST_CASE(lanes_exchange_and_vote) {
  std::vector<float> sums(64);
  std::vector<unsigned> right(64);
  std::vector<std::uint32_t> votes(64);
  int largest = -1;
  launch({"exchange", {}, 64, 0}, {}, exchange, sums.data(), right.data(), votes.data(), &largest);
  for (unsigned i = 0; i < 64; ++i) {
    BOOST_TEST(sums[i] == static_cast<float>(i / 8 * 64 + 28));
    BOOST_TEST(right[i] == i / 32 * 32 + (i + 1) % 32);
    for (unsigned lane = 0; lane < 32; ++lane)
      BOOST_TEST((votes[i] >> lane & 1U) == ((i / 32 * 32 + lane) % 3 == 0 ? 1U : 0U));
  }
  BOOST_TEST(largest == 63);
}

BOOST_AUTO_TEST_CASE(blocks_and_warps_share_memory) {
  std::vector<float> in(5 * 128), out(5);
  std::iota(in.begin(), in.end(), 0.0F);
  launch({"sum_tree", {5, 1, 1}, 128, shared_bytes_of<float>(128)}, {}, sum_tree, in.data(),
         out.data());
  for (std::size_t block = 0; block < 5; ++block)
    BOOST_TEST(out[block] == static_cast<float>(block * 128 * 128 + 127 * 64));
}

BOOST_AUTO_TEST_CASE(bf16_fragments_multiply) {
  check_multiply(true);
}

BOOST_AUTO_TEST_CASE(e4m3_fragments_multiply) {
  check_multiply(false);
}

// The manual: of the transposed matrix a lane has row i / 4, columns 2 * (i % 4) and the next.
BOOST_AUTO_TEST_CASE(matrices_are_transposed) {
  std::vector<std::uint16_t> from(16 * 8);
  std::iota(from.begin(), from.end(), std::uint16_t{1000});
  std::vector<std::uint32_t> to(32 * 2);
  launch({"load_transposed", {}, 32, shared_bytes_of<std::uint16_t>(16 * 8)}, {}, load_transposed,
         from.data(), to.data());
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned matrix = 0; matrix < 2; ++matrix)
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = matrix * 8 + lane % 4 * 2 + i, column = lane / 4;
        BOOST_TEST((to[lane * 2 + matrix] >> (16 * i) & 0xffffU) == from[row * 8 + column]);
      }
}

BOOST_AUTO_TEST_CASE(copies_are_filled_up_with_zeros) {
  std::mt19937 random(3);
  const auto from = random_bytes(16 * 32, random);
  for (const unsigned valid : {0U, 1U, 7U, 16U}) {
    std::vector<std::uint8_t> to(16 * 32, 0xff);
    launch({"copy_some", {}, 32, 16 * 32}, {}, copy_some, from.data(), valid, to.data());
    for (std::size_t i = 0; i < to.size(); ++i) BOOST_TEST(to[i] == (i % 16 < valid ? from[i] : 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()
