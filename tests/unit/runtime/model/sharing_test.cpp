// Goal: what crosses a cut follows from the schedule alone. Method: the released schedule, cut
// where the architecture's table names the price, and a rule that must hold for every cut.
#include "runtime/model/sharing.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/ops/selection.hpp"
#include "runtime/model/config.hpp"

namespace {

using namespace cedar::model;
using layers = std::vector<std::uint32_t>;

struct released {
  model_config config =
      parse_config(std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models/released").value();
  schedule plan{config};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_state_of_cuts)

BOOST_FIXTURE_TEST_CASE(a_free_cut_needs_nothing, released) {
  BOOST_TEST(shared_needs(plan, config, 20, 39, {}).empty());
  BOOST_TEST(split_owners(plan, 19).empty());
}

BOOST_FIXTURE_TEST_CASE(a_cut_through_an_encoder_group_sends_entries_and_the_selection, released) {
  const shared_state needs = shared_needs(plan, config, 5, 19, {});
  BOOST_TEST(needs.entries == layers{2}, boost::test_tools::per_element());
  BOOST_TEST(needs.selections == layers{2}, boost::test_tools::per_element());
  BOOST_TEST(needs.index_keys.empty());
  BOOST_TEST(needs.candidates.empty());
  BOOST_TEST(split_owners(plan, 4) == layers{2}, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_reindex_layer_after_the_cut_needs_keys_and_candidates, released) {
  const shared_state needs = shared_needs(plan, config, 26, 31, {});
  BOOST_TEST(needs.entries == layers{20}, boost::test_tools::per_element());
  BOOST_TEST(needs.index_keys == layers{20}, boost::test_tools::per_element());
  BOOST_TEST(needs.selections == layers{24}, boost::test_tools::per_element());
  BOOST_TEST(needs.candidates == layers{20}, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_stage_of_reuse_layers_needs_no_keys, released) {
  const shared_state needs = shared_needs(plan, config, 33, 35, {});
  BOOST_TEST(needs.selections == layers{32}, boost::test_tools::per_element());
  BOOST_TEST(needs.index_keys.empty());
  BOOST_TEST(needs.candidates.empty());
}

BOOST_FIXTURE_TEST_CASE(gather_leaves_the_entries_with_their_owner, released) {
  BOOST_TEST(shared_needs(plan, config, 24, 39, {20}, {20}).index_keys.empty());
  const shared_state needs = shared_needs(plan, config, 24, 39, {20});
  BOOST_TEST(needs.entries.empty());
  BOOST_TEST(needs.gathered == layers{20}, boost::test_tools::per_element());
  BOOST_TEST(needs.index_keys == layers{20}, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(every_cut_is_split_where_it_is_not_free, released) {
  for (std::uint32_t cut = 0; cut + 1 < plan.layers(); ++cut) BOOST_TEST_CONTEXT("after " << cut) {
      const shared_state needs = shared_needs(plan, config, cut + 1, 39, {});
      BOOST_TEST(plan.cut_is_free(cut) == needs.empty());
      BOOST_TEST(needs.entries == split_owners(plan, cut), boost::test_tools::per_element());
      const shared_state made =
          merged(made_by(needs, 0, cut / 2), made_by(needs, cut / 2 + 1, cut));
      BOOST_TEST((made == needs));
    }
}

/// Against the selection kernels themselves, over all lengths of a small context.
BOOST_AUTO_TEST_CASE(as_many_positions_are_chosen_as_counted) {
  model_config config;
  config.index_topk = 7;
  config.candidate_block_size = 4;
  config.candidate_blocks = 3;
  for (const std::uint32_t ratio : {1U, 2U, 3U})
    for (std::uint32_t position = 0; position < 90; ++position) {
      layer_schedule layer;
      layer.ratio = ratio;
      std::vector<cedar::kernels::bf16> scores;
      for (std::uint32_t i = 0; i < (position + 1) / ratio; ++i)
        scores.push_back(cedar::kernels::to_bf16(static_cast<float>(i * 37 % 11)));
      std::vector<std::uint32_t> chosen;
      cedar::kernels::select_top_k(scores, config.index_topk, chosen);
      BOOST_TEST(selected_count(config, layer, position) == chosen.size());
      layer.uses_candidates = true;
      cedar::kernels::candidate_pool pool;
      cedar::kernels::select_candidates(scores, config.candidate_block_size,
                                        config.candidate_blocks, pool);
      std::vector<cedar::kernels::bf16> inside;
      for (const std::uint32_t block : pool.blocks)
        for (std::size_t i = 0; i < pool.block_size; ++i)
          if (block * pool.block_size + i < scores.size())
            inside.push_back(scores[block * pool.block_size + i]);
      cedar::kernels::select_top_k_in_pool(inside, pool, scores.size(), config.index_topk, chosen);
      BOOST_TEST(selected_count(config, layer, position) == chosen.size());
    }
}

BOOST_AUTO_TEST_SUITE_END()
