// Goal: every part of a row has a thread, and rows do not change which. Method: counts around a
// block's threads; more than a grid holds.
#include "kernels/plan/rows.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::kernels::plan;

BOOST_AUTO_TEST_SUITE(row_plans)

BOOST_AUTO_TEST_CASE(cover_all_parts_of_all_rows) {
  for (const std::size_t parts : {1, 127, 128, 129, 5120, 20480}) {
    const parts_plan one = plan_parts(1, parts);
    BOOST_TEST(one.blocks * std::size_t{part_threads} >= parts);
    BOOST_TEST((one.blocks - 1) * std::size_t{part_threads} < parts);
    const parts_plan many = plan_parts(8192, parts);
    BOOST_TEST(many.blocks == one.blocks);
    BOOST_TEST(many.rows == 8192U);
  }
}

BOOST_AUTO_TEST_CASE(refuse_what_is_no_grid) {
  BOOST_CHECK_THROW(plan_parts(0, 1), defect);
  BOOST_CHECK_THROW(plan_parts(1, 0), defect);
  BOOST_CHECK_THROW(plan_parts(grid_x_max + 1, 1), defect);
  plan_parts(grid_x_max, grid_y_max * part_threads);
  BOOST_CHECK_THROW(plan_parts(1, grid_y_max * part_threads + 1), defect);
}

BOOST_AUTO_TEST_SUITE_END()
