// Goal: the grid of a linear layer covers it, and weights are read as seldom as tiles allow.
// Method: all small shapes and released ones.
#include "kernels/plan/linear_tiles.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace cedar::kernels::plan;

void check_cover(std::size_t rows, std::size_t outputs) {
  const linear_grid grid = choose_linear(rows, outputs);
  const std::size_t tile_rows = grid.few ? few_rows : many_rows;
  const std::size_t tile_outputs = grid.few ? few_outputs : many_outputs;
  BOOST_TEST(grid.row_blocks * tile_rows >= rows);
  BOOST_TEST((grid.row_blocks - 1) * tile_rows < rows);
  BOOST_TEST(grid.output_blocks * tile_outputs >= outputs);
  BOOST_TEST((grid.output_blocks - 1) * tile_outputs < outputs);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_linear_tiles)

BOOST_AUTO_TEST_CASE(the_grid_covers_the_layer_without_idle_blocks) {
  for (std::size_t rows = 1; rows < 150; ++rows)
    for (const std::size_t outputs : {1U, 16U, 17U, 63U, 64U, 65U, 2304U, 5120U, 129280U})
      check_cover(rows, outputs);
}

BOOST_AUTO_TEST_CASE(few_rows_read_weights_once) {
  for (std::size_t rows = 1; rows <= few_rows; ++rows)
    BOOST_TEST(choose_linear(rows, 5120).row_blocks == 1U);
  BOOST_TEST(choose_linear(few_rows, 5120).few);
  BOOST_TEST(!choose_linear(few_rows + 1, 5120).few);
  BOOST_TEST(choose_linear(many_rows, 5120).row_blocks == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_covers_its_largest_layers) {
  linear_group group;
  group.add(3, 2048);
  group.add(0, 64);
  group.add(8, 512);
  const linear_grid grid = group.grid();
  BOOST_TEST(grid.few);
  BOOST_TEST(grid.products == 3U);
  BOOST_TEST(grid.row_blocks == 1U);
  BOOST_TEST(grid.output_blocks == 2048U / few_outputs);
}

BOOST_AUTO_TEST_CASE(one_expert_in_four_may_have_rows_for_two_blocks) {
  for (const std::size_t others : {3U, 2U}) {
    linear_group group;
    for (std::size_t i = 0; i < others; ++i) group.add(1, 2048);
    group.add(few_rows + 1, 2048);
    BOOST_TEST(group.grid().few == (others == 3));
    BOOST_TEST(group.grid().row_blocks == (others == 3 ? 2U : 1U));
  }
}

/// A decode step of the released width keeps all multiprocessors of an H200 (132) busy.
BOOST_AUTO_TEST_CASE(a_row_of_released_width_fills_a_device) {
  BOOST_TEST(choose_linear(1, 5120).output_blocks >= 132U);
  BOOST_TEST(5120 / slice_columns == few_warps);
}

BOOST_AUTO_TEST_SUITE_END()
