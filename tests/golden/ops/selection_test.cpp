// Goal: selections equal the golden ones exactly, ties included.
#include "kernels/ops/selection.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

/// The scores of one row that are visible to it.
std::vector<bf16> visible_scores(const golden_file& golden, std::size_t row) {
  const auto visible = static_cast<std::size_t>(golden.vector<std::int32_t>("select.visible")[row]);
  std::vector<bf16> scores;
  for (const float score : golden.matrix<float>("select.score").row(row).first(visible)) {
    scores.push_back(to_bf16(score));
    BOOST_REQUIRE(to_float(scores.back()) == score);
  }
  return scores;
}

std::vector<std::int64_t> padded(const std::vector<std::uint32_t>& positions, std::size_t size) {
  std::vector<std::int64_t> out(positions.begin(), positions.end());
  out.resize(size, -1);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_selection)

BOOST_AUTO_TEST_CASE(selects_the_golden_positions) {
  const golden_file golden("ops/indexer.safetensors");
  for (const std::size_t k : {1U, 8U, 16U, 53U}) {
    const auto expected = golden.matrix<std::int32_t>("select.topk" + std::to_string(k));
    for (std::size_t row = 0; row < expected.rows; ++row) {
      std::vector<std::uint32_t> positions;
      select_top_k(visible_scores(golden, row), k, positions);
      check_equal("top " + std::to_string(k) + " of row " + std::to_string(row),
                  padded(positions, k),
                  std::vector<std::int64_t>(expected.row(row).begin(), expected.row(row).end()));
    }
  }
}

BOOST_AUTO_TEST_CASE(selects_the_golden_candidate_blocks) {
  const golden_file golden("ops/indexer.safetensors");
  const std::vector<std::pair<std::uint32_t, std::size_t>> cases = {
      {8, 3}, {4, 4}, {8, 100}, {1, 5}, {16, 1}};
  for (const auto& [size, count] : cases) {
    const std::string tensor =
        "select.candidates.block" + std::to_string(size) + ".top" + std::to_string(count);
    const auto expected = golden.matrix<std::uint8_t>(tensor);
    for (std::size_t row = 0; row < expected.rows; ++row) {
      const std::vector<bf16> scores = visible_scores(golden, row);
      candidate_pool pool;
      select_candidates(scores, size, count, pool);
      // The golden mask covers whole blocks, invisible positions of the newest one included.
      std::vector<std::uint8_t> mask(expected.cols);
      for (const std::uint32_t block : pool.blocks)
        for (std::size_t j = block * size;
             j < std::min<std::size_t>((block + 1) * size, mask.size()); ++j)
          mask[j] = 1;
      check_equal(tensor + " row " + std::to_string(row), mask, expected.row(row));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
