// Goal: every layer's role follows from the configuration, also from ones without the release's
// regularity. Method: the released schedule against the technical report's table, and irregular
// ones.
#include "runtime/model/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "runtime/model/config.hpp"

namespace {

using namespace cedar::model;

struct released {
  model_config config =
      parse_config(std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models/released").value();
  schedule plan{config};
};

/// Nine layers: ratio 3, a window-only layer in the middle, a candidate source that owns no KV.
model_config irregular() {
  model_config config;
  config.layers = 9;
  config.compress_ratios = {3, 3, 3, 0, 3, 1, 1, 1, 1, 0};
  config.kv_sources = {0, 5};
  config.index_sources = {0, 2, 5, 6, 8};
  config.candidate_source = 6;
  config.engram.layers = {3};
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_schedules)

BOOST_FIXTURE_TEST_CASE(released_modes_owners_and_sources, released) {
  BOOST_REQUIRE(plan.layers() == 40U);
  for (std::uint32_t layer = 0; layer < 40; ++layer) {
    BOOST_TEST_CONTEXT("layer " << layer) {
      const layer_schedule& l = plan[layer];
      const bool full = layer == 2 || layer == 8 || layer == 14 || layer == 20;
      const bool reindex = layer == 24 || layer == 28 || layer == 32 || layer == 36;
      const auto mode = layer < 2 ? layer_mode::window_only
                        : full    ? layer_mode::full
                        : reindex ? layer_mode::reindex
                                  : layer_mode::reuse;
      BOOST_TEST((l.mode == mode));
      BOOST_TEST(l.ratio == (layer < 2 ? 0U : layer < 20 ? 2U : 1U));
      if (layer < 2) {
        BOOST_TEST(!l.owner.has_value());
        BOOST_TEST(!l.index_source.has_value());
      } else {
        const std::uint32_t group = (layer - 2) / 6 * 6 + 2;
        BOOST_TEST(l.owner.value() == (layer < 20 ? group : 20U));
        BOOST_TEST(l.index_source.value() == (layer < 20 ? group : layer / 4 * 4));
      }
      BOOST_TEST(l.makes_candidates == (layer == 20));
      BOOST_TEST(l.uses_candidates == reindex);
      BOOST_TEST(l.engram.has_value() == (layer == 1 || layer == 14));
    }
  }
  BOOST_TEST(plan[1].engram.value() == 0U);
  BOOST_TEST(plan[14].engram.value() == 1U);
  BOOST_TEST(plan.decoder_begin() == 20U);
}

BOOST_FIXTURE_TEST_CASE(released_readers, released) {
  BOOST_TEST((plan.readers(8) == std::vector<std::uint32_t>{8, 9, 10, 11, 12, 13}));
  BOOST_TEST(plan.readers(20).size() == 20U);
  BOOST_TEST(plan.readers(3).empty());
}

BOOST_FIXTURE_TEST_CASE(released_free_cuts, released) {
  for (std::uint32_t layer = 0; layer < 40; ++layer) {
    const bool free =
        layer == 0 || layer == 1 || layer == 7 || layer == 13 || layer == 19 || layer == 39;
    BOOST_TEST_CONTEXT("after layer " << layer) {
      BOOST_TEST(plan.cut_is_free(layer) == free);
    }
  }
  BOOST_CHECK_THROW(static_cast<void>(plan.cut_is_free(40)), cedar::defect);
}

BOOST_AUTO_TEST_CASE(irregular_schedules) {
  const schedule plan(irregular());
  BOOST_TEST((plan[0].mode == layer_mode::full));
  BOOST_TEST((plan[1].mode == layer_mode::reuse));
  BOOST_TEST((plan[2].mode == layer_mode::reindex));
  BOOST_TEST((plan[3].mode == layer_mode::window_only));
  BOOST_TEST((plan[4].mode == layer_mode::reuse));
  BOOST_TEST(plan[4].owner.value() == 0U);
  BOOST_TEST(plan[4].index_source.value() == 2U);
  BOOST_TEST((plan[6].mode == layer_mode::reindex));
  BOOST_TEST(plan[6].makes_candidates);
  BOOST_TEST(!plan[6].uses_candidates);
  BOOST_TEST(!plan[2].uses_candidates);
  BOOST_TEST(!plan[7].uses_candidates);  // reuses a selection of all entries
  BOOST_TEST(plan[8].uses_candidates);
  BOOST_TEST(plan[3].engram.value() == 0U);
  BOOST_TEST(plan.decoder_begin() == 5U);
  BOOST_TEST((plan.readers(0) == std::vector<std::uint32_t>{0, 1, 2, 4}));
  for (std::uint32_t layer = 0; layer < 9; ++layer)
    BOOST_TEST(plan.cut_is_free(layer) == (layer == 4 || layer == 8));
}

BOOST_AUTO_TEST_CASE(a_model_of_windows_only_has_no_decoder) {
  model_config config;
  config.layers = 3;
  config.compress_ratios = {0, 0, 0};
  const schedule plan(config);
  BOOST_TEST(plan.decoder_begin() == 3U);
  for (std::uint32_t layer = 0; layer < 3; ++layer) BOOST_TEST(plan.cut_is_free(layer));
}

BOOST_AUTO_TEST_CASE(modes_have_names) {
  BOOST_TEST(to_string(layer_mode::window_only) == "window");
  BOOST_TEST(to_string(layer_mode::full) == "full");
  BOOST_TEST(to_string(layer_mode::reindex) == "reindex");
  BOOST_TEST(to_string(layer_mode::reuse) == "reuse");
}

BOOST_AUTO_TEST_SUITE_END()
