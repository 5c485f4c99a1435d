// Goal: global KV of the released configuration is the published 890 bytes a token, and pages add
// at most 1 % from 64 k tokens on; what is reported is what the allocators hand out. Method: the
// state of one sequence of the released widths, at lengths that fill pages and that just do not.
#include "runtime/stage/cache_size.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/stage/layer_stage.hpp"

using namespace cedar;

namespace {

const model::model_config& released() {
  static const auto config =
      model::parse_config(CEDAR_SOURCE_DIR "/configs/models/released/config.json");
  BOOST_REQUIRE(config);
  return *config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cache_size)

BOOST_AUTO_TEST_CASE(pages_add_at_most_one_percent_to_890_bytes_a_token) {
  const model::schedule schedule(released());
  for (const std::uint32_t tokens :
       {65536U, 65537U, 65600U, 65663U, 100001U, 262143U, 262145U, 1048575U, 1048576U}) {
    const auto size = stage::cache_of_sequence(released(), schedule, tokens);
    // A last group that is not complete has no entry yet.
    BOOST_TEST(size.global_bytes() + 890 >= std::uint64_t{890} * tokens);
    BOOST_TEST(size.global_bytes() <= 8.9 * 101 * tokens);
  }
  BOOST_TEST(stage::cache_of_sequence(released(), schedule, 65536).global_bytes() ==
             std::uint64_t{890} * 65536);
}

BOOST_AUTO_TEST_CASE(a_real_sequence_takes_what_is_reported) {
  const model::schedule schedule(released());
  constexpr std::uint32_t tokens = 65537;
  const auto size = stage::cache_of_sequence(released(), schedule, tokens);
  const memory::page_layout layout = stage::page_layout_of(released(), true, true);
  stage::kv_pools pools{{layout, size.pages}, {{}, 0}, {{}, 0}};
  stage::sequence_state state(released(), schedule, 0, released().layers - 1, {}, pools);
  BOOST_REQUIRE(state.reserve(tokens));
  BOOST_TEST(pools.bytes_in_use() == size.global_bytes());
  BOOST_TEST(!state.reserve(tokens + 2 * memory::default_page_entries));
}

// 128 rows of 528 bytes a layer and draft block, and slack for a block of 5 and one row more.
BOOST_AUTO_TEST_CASE(rings_hold_a_window_and_the_slack_for_drafts) {
  const auto size = stage::cache_of_sequence(released(), model::schedule(released()), 1);
  BOOST_TEST(size.window_bytes == std::uint64_t{40} * (128 + 6) * 528);
  BOOST_TEST(size.draft_bytes == std::uint64_t{3} * (128 + 6) * 528);
  // Of three target layers, 5120 bf16 a row, at the drafter and at their stage.
  BOOST_TEST(size.tap_bytes == std::uint64_t{2} * 3 * (128 + 6) * 5120 * 2);
  // k and g of one token in fp32, at the three owners of ratio 2.
  BOOST_TEST(size.pending_bytes == std::uint64_t{3} * (1 + 6) * 2 * 512 * 4);
}

BOOST_AUTO_TEST_SUITE_END()
