// Goal: an index source chooses the best of the entries that a row sees, at a layer with candidates
// the best of its pool, and then reads no key outside it. Method: random keys over several pages of
// a cache, those outside the pool poisoned with NaN scales, against a stable sort of scores that
// are computed key by key.
#include "runtime/stage/entry_selection.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "runtime/model/compressor.hpp"
#include "runtime/model/indexer.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using kernels::bf16;

namespace {

constexpr std::uint32_t rows_count = 3;

struct setting {
  std::uint32_t layer;
  std::uint32_t entries;  ///< written when the rows run
  std::uint64_t seed;
};

kernels::matrix_buffer<bf16> random_rows(std::mt19937_64& random, std::size_t rows,
                                         std::size_t cols) {
  std::normal_distribution<float> normal;
  kernels::matrix_buffer<bf16> out(rows, cols);
  for (bf16& value : out.span()) value = kernels::to_bf16(normal(random));
  return out;
}

/// Layer `layer` of the model with a cache of random keys and rows at its end.
class bench {
 public:
  explicit bench(const setting& with)
      : random_(with.seed),
        config_(tiny_model().config()),
        schedule_(tiny_model().schedule()),
        layer_(with.layer),
        owner_(*schedule_[layer_].owner),
        pools_{{stage::page_layout_of(config_, true, true), 64},
               {stage::page_layout_of(config_, true, false), 0},
               {stage::page_layout_of(config_, false, true), 0}},
        sequence_(config_, schedule_, owner_, layer_, {}, pools_),
        weights_(
            std::move(*stage::load_layer(tiny_model().checkpoint(), config_, schedule_, layer_))),
        x_(random_rows(random_, rows_count, config_.width)),
        compressed_(random_rows(random_, rows_count, config_.q_rank)) {
    const auto keys = random_rows(random_, with.entries, config_.index_head_dim);
    kernels::matrix_buffer<std::byte> packed(
        with.entries, kernels::entry_bytes(model::index_entry_format, config_.index_head_dim));
    cpu_backend().pack_entries({keys.view(), packed.view(), model::index_entry_format});
    const kernels::matrix_buffer<std::byte> main(
        with.entries, kernels::entry_bytes(model::global_entry_format, config_.head_dim));
    BOOST_REQUIRE(sequence_.global(owner_).append(main.view(), packed.view()));
    const std::uint32_t first = with.entries * schedule_[layer_].ratio - rows_count;
    rows_.spans = {{{request_id{1}, first, rows_count, rows_count}, 0, &sequence_}};
    for (std::uint32_t i = 0; i < rows_count; ++i)
      rows_.positions.push_back(static_cast<std::int32_t>(first + i));
  }

  std::uint32_t visible(std::size_t row) const {
    return (static_cast<std::uint32_t>(rows_.positions[row]) + 1) / schedule_[layer_].ratio;
  }

  /// A random pool for each row, the newest block in it.
  std::vector<kernels::candidate_pool> random_pools() {
    std::vector<kernels::candidate_pool> out(rows_count);
    for (std::size_t row = 0; row < rows_count; ++row) {
      out[row].block_size = config_.candidate_block_size;
      const std::uint32_t blocks = (visible(row) - 1) / config_.candidate_block_size;
      for (std::uint32_t block = 0; block < blocks; ++block)
        if (random_() % 3 == 0) out[row].blocks.push_back(block);
      out[row].blocks.push_back(blocks);
    }
    return out;
  }

  /// Makes the scales of a key NaN.
  void poison(std::uint32_t entry) {
    const std::size_t codes =
        kernels::code_bytes(model::index_entry_format, config_.index_head_dim);
    std::memset(const_cast<std::byte*>(sequence_.global(owner_).index_key(entry)) + codes, 0xff,
                config_.index_head_dim / 32);
  }

  stage::step_selections select(stage::step_selections selections) {
    stage::select_entries(context(), {config_, schedule_[layer_], layer_},
                          *weights_.attention.indexer, rows_, x_.view(), compressed_.view(),
                          selections);
    return selections;
  }

  /// The best of `eligible`, by scores that are computed one by one.
  std::vector<std::uint32_t> best(std::size_t row, std::vector<std::uint32_t> eligible) {
    const auto c = context();
    const auto query = model::make_index_query(c, layer_, *weights_.attention.indexer, x_.view(),
                                               compressed_.view());
    std::vector<float> scores(sequence_.global(owner_).written());
    for (const std::uint32_t entry : eligible) {
      const std::byte* key = sequence_.global(owner_).index_key(entry);
      bf16 score;
      model::score_row(c, query, row, {{&key, 1}, 1}, {&score, 1});
      scores[entry] = to_float(score);
    }
    std::ranges::stable_sort(eligible, std::greater<>(), [&](auto entry) { return scores[entry]; });
    eligible.resize(std::min<std::size_t>(eligible.size(), config_.index_topk));
    std::ranges::sort(eligible);
    return eligible;
  }

 private:
  model::context context() {
    return {cpu_backend(), config_, rotary_, scratch_, probes_, rows_.positions, rows_.image_rows};
  }

  std::mt19937_64 random_;
  const model::model_config& config_;
  const model::schedule& schedule_;
  std::uint32_t layer_;
  std::uint32_t owner_;
  stage::kv_pools pools_;
  stage::sequence_state sequence_;
  model::layer_weights weights_;
  kernels::matrix_buffer<bf16> x_;
  kernels::matrix_buffer<bf16> compressed_;
  stage::step_rows rows_;
  model::rotary_frequencies rotary_ = model::make_rotary(tiny_model().config());
  kernels::arena scratch_;
  model::taps probes_;
};

template <class Has>
std::uint32_t layer_that(const Has& has) {
  const model::schedule& schedule = tiny_model().schedule();
  for (std::uint32_t layer = 0; layer < schedule.layers(); ++layer)
    if (schedule[layer].index_source == layer && has(schedule[layer])) return layer;
  BOOST_FAIL("tiny-12 has no such layer");
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(entry_selection)

BOOST_AUTO_TEST_CASE(a_full_layer_chooses_among_all_visible_entries) {
  const std::uint32_t layer = layer_that([](const auto& s) { return s.ratio > 1; });
  for (const std::uint32_t entries : {3U, 64U, 65U, 300U}) {
    BOOST_TEST_MESSAGE("seed " << entries);
    bench with({layer, entries, entries});
    const auto chosen = with.select({}).by_source.at(layer);
    for (std::size_t row = 0; row < rows_count; ++row) {
      std::vector<std::uint32_t> eligible;
      for (std::uint32_t entry = 0; entry < with.visible(row); ++entry) eligible.push_back(entry);
      BOOST_TEST((chosen[row] == with.best(row, eligible)), "row " << row);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_layer_with_candidates_reads_no_key_outside_its_pool) {
  const std::uint32_t layer = layer_that([](const auto& s) { return s.uses_candidates; });
  for (const std::uint32_t entries : {5U, 64U, 131U, 400U}) {
    BOOST_TEST_MESSAGE("seed " << entries);
    bench with({layer, entries, entries});
    stage::step_selections before;
    before.candidates = with.random_pools();
    std::vector<bool> inside(entries);
    std::vector<std::vector<std::uint32_t>> eligible(rows_count);
    for (std::size_t row = 0; row < rows_count; ++row) {
      const auto& pool = before.candidates[row];
      for (const std::uint32_t block : pool.blocks)
        for (std::uint32_t j = block * pool.block_size;
             j < std::min((block + 1) * pool.block_size, with.visible(row)); ++j) {
          eligible[row].push_back(j);
          inside[j] = true;
        }
    }
    for (std::uint32_t entry = 0; entry < entries; ++entry)
      if (!inside[entry]) with.poison(entry);
    const auto chosen = with.select(before).by_source.at(layer);
    for (std::size_t row = 0; row < rows_count; ++row)
      BOOST_TEST((chosen[row] == with.best(row, eligible[row])), "row " << row);
  }
}

BOOST_AUTO_TEST_CASE(a_nan_score_is_a_defect) {
  const std::uint32_t layer = layer_that([](const auto& s) { return s.ratio > 1; });
  bench with({layer, 100, 1});
  with.poison(77);
  BOOST_CHECK_THROW(with.select({}), defect);
}

BOOST_AUTO_TEST_SUITE_END()
