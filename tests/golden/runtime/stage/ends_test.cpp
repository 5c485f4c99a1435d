// Goal: the embedding and the head alone compute what the released reference code computes from the
// same inputs. Method: recorded rows of tiny-12, tiny-40 and, with an image, tiny-vision
// (tests/data/golden/README.md, sections 3 B and 5); bounds as for layers.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/golden/runtime/stage/ends_trace.hpp"
#include "tests/support/backends.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using test::ends_trace;

BOOST_AUTO_TEST_SUITE(golden_ends)

BOOST_DATA_TEST_CASE(embed_as_recorded, test::backends() * data::make(test::traced_checkpoints),
                     name, checkpoint) {
  const auto backend = test::backend_of(name);
  BOOST_TEST(!ends_trace(checkpoint, *backend).check_embedding().empty());
}

BOOST_DATA_TEST_CASE(begin_with_the_recorded_streams,
                     test::backends() * data::make(test::traced_checkpoints), name, checkpoint) {
  const auto backend = test::backend_of(name);
  BOOST_TEST(!ends_trace(checkpoint, *backend).check_first_streams().empty());
}

BOOST_DATA_TEST_CASE(give_the_recorded_logits,
                     test::backends() * data::make(test::traced_checkpoints), name, checkpoint) {
  const auto backend = test::backend_of(name);
  const auto deviation = ends_trace(checkpoint, *backend).run_head();
  for (const auto& [tensor, value] : deviation.relative_rms)
    BOOST_TEST_MESSAGE(checkpoint << " on " << name << ": " << tensor << " relative RMS " << value);
  BOOST_TEST(deviation.relative_rms.size() == 3U);
  test::check_deviation(deviation, "head");
}

BOOST_AUTO_TEST_SUITE_END()
