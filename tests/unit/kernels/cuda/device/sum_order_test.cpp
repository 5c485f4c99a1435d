// Goal: the order of sums takes every column once, and that of a segment does not depend on what is
// around it. Method: widths from one column to released ones, walked.
#include "kernels/cuda/device/sum_order.cuh"

#include <boost/test/unit_test.hpp>
#include <vector>

namespace {

using namespace cedar::kernels;
using namespace cedar::kernels::cuda;

const std::vector<unsigned> widths = {1, 31, 32, 96, 640, 641, 1280, 1312, 2304, 5120, 8192, 20480};

std::vector<slice> slices_of(const sum_order& order) {
  std::vector<slice> out;
  for (unsigned i = 0; i < order.slices(); ++i) out.push_back(order.at(i));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_sum_order)

BOOST_AUTO_TEST_CASE(slices_take_every_column_once) {
  for (const unsigned width : widths)
    for (const unsigned segments : {1U, 4U}) {
      if (segments > 1 && width % (segments * 32) != 0) continue;
      unsigned next = 0, ended = 0;
      for (const slice& one : slices_of({width, segments})) {
        BOOST_TEST(one.first == next);
        BOOST_TEST(one.end > one.first);
        BOOST_TEST(one.end - one.first <= plan::slice_columns);
        next = one.end;
        BOOST_TEST(one.ends_segment == (next % (width / segments) == 0));
        if (one.ends_segment) ++ended;
      }
      BOOST_TEST(next == width);
      BOOST_TEST(ended == segments);
    }
}

/// So a device that holds one segment computes exactly the partial sum that a whole one adds.
BOOST_AUTO_TEST_CASE(a_segment_alone_is_cut_as_within_the_whole) {
  for (const unsigned width : {128U, 2560U, 2688U, 9216U}) {
    const auto alone = slices_of({width / 4, 1}), whole = slices_of({width, 4});
    BOOST_REQUIRE_EQUAL(whole.size(), 4 * alone.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto begin = static_cast<unsigned>(i / alone.size()) * (width / 4);
      const slice& expected = alone[i % alone.size()];
      BOOST_TEST(whole[i].first == begin + expected.first);
      BOOST_TEST(whole[i].end == begin + expected.end);
      BOOST_TEST(whole[i].ends_segment == expected.ends_segment);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_walk_goes_through_the_slices_in_chunks) {
  for (const unsigned width : widths) {
    const sum_order order{width};
    unsigned next = 0, slices = 0;
    for (chunk_walk walk(order); !walk.done(); walk.advance()) {
      BOOST_TEST(walk.first() == next);
      BOOST_TEST(walk.slice_index() == slices);
      BOOST_TEST(walk.within().end == order.at(slices).end);
      BOOST_TEST(walk.begins_slice() == (next == order.at(slices).first));
      next = walk.ends_slice() ? walk.within().end : next + plan::chunk_columns;
      BOOST_TEST(next <= walk.within().end);
      if (walk.ends_slice()) ++slices;
    }
    BOOST_TEST(next == width);
    BOOST_TEST(slices == order.slices());
  }
}

BOOST_AUTO_TEST_CASE(sums_are_added_in_order_within_segments_first) {
  ordered_sum sum;
  sum.add(0x1p24F, false);
  sum.add(1, true);  // lost in its segment
  sum.add(1, false);
  sum.add(1, true);
  BOOST_TEST(sum.total == 0x1p24F + 2);
}

BOOST_AUTO_TEST_SUITE_END()
