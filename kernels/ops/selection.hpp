// Choosing: top-k positions, candidate blocks, experts, arg max. Integer decisions with one tie
// rule, shared by every backend that runs on the host, so that they exist once.
//
// Ties: lower position first, for entries and for blocks; lower expert id; lower token id. -0
// equals +0. A NaN in any score is a defect (throws cedar::defect), never a silent choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"

namespace cedar::kernels {

/// A set of blocks of consecutive positions: the candidate pool of one row. Sorted ascending.
struct candidate_pool {
  std::uint32_t block_size = 0;
  std::vector<std::uint32_t> blocks;
};

/// Positions of the min(k, scores.size()) highest scores, ascending by position.
/// `scores` [G] holds the entries visible to the row, entry j at position j.
void select_top_k(std::span<const bf16> scores, std::size_t k, std::vector<std::uint32_t>& out);

/// How many of the first `positions` positions are in the pool.
std::size_t pool_size(const candidate_pool& pool, std::size_t positions);

/// The same, restricted to the first `positions` positions inside the pool: `scores`
/// [pool_size(pool, positions)] holds theirs alone, ascending.
void select_top_k_in_pool(std::span<const bf16> scores, const candidate_pool& pool,
                          std::size_t positions, std::size_t k, std::vector<std::uint32_t>& out);

/// The `blocks_count` best blocks of `block_size` positions: a block's score is the maximum of its
/// visible scores; the block of the newest visible position counts as +infinity. Blocks ascending.
void select_candidates(std::span<const bf16> scores, std::uint32_t block_size,
                       std::size_t blocks_count, candidate_pool& out);

/// Experts of each row: the k highest of scores + bias, best first.
/// scores [n, E]; bias [E]; image_bias [E] used for rows with image_rows[i] != 0; experts [n, k].
void select_experts(matrix_view<const float> scores, std::span<const float> bias,
                    std::span<const float> image_bias, std::span<const std::uint8_t> image_rows,
                    matrix_view<std::int32_t> experts);

/// Route weights of given experts, from the unbiased scores: w_e = s_e / (sum of the selected s,
/// ascending expert id, + 1e-20) * scale; the division is left out for k = 1 or !normalize.
/// weights [n, k] in the order of `experts`.
void route_weights(matrix_view<const float> scores, matrix_view<const std::int32_t> experts,
                   bool normalize, float scale, matrix_view<float> weights);

/// Index of the largest value, lowest index on ties. `values` is not empty.
std::int32_t arg_max(std::span<const float> values);

}  // namespace cedar::kernels
