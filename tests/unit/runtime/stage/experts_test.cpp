// Goal: wherever routed experts are, the bits are those of one stage; a slice reads its weights and
// no others, and its stages read none of them; each row goes to a slice once. Method: tiny-12 in
// stages and slices by hand against the whole model, over random slices; the tensors that a
// checkpoint was asked for.
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/model/manifest.hpp"
#include "runtime/stage/row_layout.hpp"
#include "tests/support/effort.hpp"
#include "tests/unit/runtime/stage/split_pipeline.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_kind;
using model::expert_slice;

namespace {

constexpr std::uint32_t layers = 12;
constexpr request_id one{1}, two{2};

/// Chunks of two requests in common steps, then decoding; one of them bounded, if that is asked.
std::vector<flow::step_table> expert_steps(bool bounded) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(1, 75)},
                                                        {two, random_tokens(2, 40)}};
  const std::uint32_t prompt = 70;
  std::vector<flow::step_table> steps;
  const auto add = [&](const std::vector<rows_of>& rows) {
    steps.push_back(step_of(steps.size() + 1, ids, rows));
    for (flow::row_span& span : steps.back().spans) {
      if (bounded && span.request == one)
        span.decoder_begin = prompt - tiny_model().config().window;
      span.logits_from = span.decoder_from();
    }
  };
  add({{one, 0, 31}});  // bounded: none of its rows walks the decoder
  add({{one, 31, 39}, {two, 0, 9}});
  for (std::uint32_t i = 0; i < 4; ++i) add({{one, 70 + i, 1}, {two, 9 + i, 1}});
  return steps;
}

std::vector<std::vector<float>> logits_of(split_pipeline& pipeline, bool bounded) {
  std::vector<std::vector<float>> logits;
  for (const flow::step_table& table : expert_steps(bounded))
    std::ranges::move(pipeline.run(table), std::back_inserter(logits));
  return logits;
}

const std::vector<std::vector<float>>& undivided(bool bounded) {
  static std::map<bool, std::vector<std::vector<float>>> known;
  auto& logits = known[bounded];
  if (logits.empty()) {
    split_pipeline whole({{0, layers - 1}}, {});
    logits = logits_of(whole, bounded);
  }
  return logits;
}

void check_bits(split_pipeline& pipeline, bool bounded) {
  const auto logits = logits_of(pipeline, bounded);
  BOOST_REQUIRE_EQUAL(logits.size(), undivided(bounded).size());
  for (std::size_t row = 0; row < logits.size(); ++row)
    BOOST_REQUIRE_MESSAGE(same(logits[row], undivided(bounded)[row]), "wanted row " << row);
}

/// Slices of a few layers each, of which no two hold the same expert of a layer.
std::vector<expert_slice> random_slices(std::mt19937& random) {
  std::vector<expert_slice> out;
  const std::uint32_t experts = tiny_model().config().routed_experts;
  for (std::uint32_t first = 0; first < layers;) {
    const auto last = std::min(first + static_cast<std::uint32_t>(random() % 6), layers - 1);
    std::map<std::uint32_t, std::vector<std::uint32_t>> ids;  // by holder; the last is the stage
    for (std::uint32_t expert = 0; expert < experts; ++expert)
      ids[static_cast<std::uint32_t>(random() % 4)].push_back(expert);
    for (const auto& [holder, held] : ids)
      if (holder < 3) out.push_back({static_cast<std::uint32_t>(out.size()), first, last, held});
    first = last + 1;
  }
  return out;
}

std::set<std::string> names_of(const std::function<bool(const model::expected_tensor&)>& wanted) {
  std::set<std::string> out;
  for (const auto& tensor : model::manifest(tiny_model().config()))
    if (wanted(tensor)) out.insert(tensor.name);
  return out;
}

std::set<std::string> read_by(const std::function<void(const stage::model_source&)>& load) {
  const auto source = stage::model_source::open(tiny_model().folder());
  BOOST_REQUIRE(source);
  load(**source);
  const auto names = (*source)->checkpoint().touched();
  return {names.begin(), names.end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experts_elsewhere)

BOOST_AUTO_TEST_CASE(give_the_bits_of_one_stage) {
  for (const bool bounded : {false, true}) {
    split_pipeline all({{0, layers - 1}}, {}, {{0, 0, layers - 1, {0, 1, 2, 3, 4, 5, 6, 7}}});
    check_bits(all, bounded);
    split_pipeline some({{0, 4}, {5, layers - 1}}, {4},
                        {{0, 3, 6, {1, 2, 5}}, {1, 0, 11, {0}}, {2, 6, 6, {7}}});
    check_bits(some, bounded);
  }
}

BOOST_AUTO_TEST_CASE(give_the_bits_of_one_stage_in_random_slices) {
  std::mt19937 random(20261201);
  for (int round = 0; round < seeds_count(16); ++round) {
    const auto cut = static_cast<std::uint32_t>(random() % (layers - 1));
    const std::set<std::uint32_t> gather =
        random() % 2 == 0 ? std::set<std::uint32_t>{2, 4, 6} : std::set<std::uint32_t>{};
    split_pipeline pipeline({{0, cut}, {cut + 1, layers - 1}}, gather, random_slices(random));
    BOOST_TEST_CONTEXT("round " << round) check_bits(pipeline, random() % 2 == 0);
  }
}

BOOST_AUTO_TEST_CASE(get_each_row_once_and_answer_each_choice) {
  const auto& config = tiny_model().config();
  split_pipeline pipeline({{0, layers - 1}}, {}, {{0, 0, layers - 1, {0, 1, 2, 3, 4, 5, 6, 7}}});
  std::uint64_t rows = 0;
  for (const auto& table : expert_steps(true)) {
    pipeline.run(table);
    const auto encoder = tiny_model().schedule().decoder_begin();
    rows += std::uint64_t{encoder} * table.rows_count() +
            std::uint64_t{layers - encoder} * table.decoder_count();
  }
  const auto bytes = [&](row_kind kind) { return std::uint64_t{stage::row_bytes(kind, config)}; };
  BOOST_TEST(pipeline.traffic[row_kind::expert_rows].second == rows * bytes(row_kind::expert_rows));
  BOOST_TEST(pipeline.traffic[row_kind::expert_outputs].second ==
             rows * config.experts_per_token * bytes(row_kind::expert_outputs));
  // Its first step has no row in the decoder.
  const std::size_t steps = expert_steps(true).size();
  BOOST_TEST(pipeline.traffic[row_kind::expert_rows].first ==
             steps * layers - (layers - tiny_model().schedule().decoder_begin()));
}

BOOST_AUTO_TEST_CASE(are_the_only_weights_of_a_slice_and_none_of_its_stages) {
  const expert_slice slice{3, 4, 6, {1, 5}};
  const auto of_slice = names_of([&](const model::expected_tensor& tensor) {
    return tensor.part == model::component::experts && slice.holds(*tensor.layer, *tensor.expert);
  });
  BOOST_TEST(of_slice.size() == 3U * 2 * 6);
  BOOST_TEST(read_by([&](const stage::model_source& source) {
               BOOST_TEST(source.make_experts(cpu_backend(), slice).has_value());
             }) == of_slice,
             boost::test_tools::per_element());
  const auto of_layers = names_of([&](const model::expected_tensor& tensor) {
    return model::in_text_model(tensor) && tensor.layer &&
           tensor.part != model::component::engram_table && *tensor.layer <= 5 &&
           !of_slice.contains(tensor.name);
  });
  stage::layer_stage_options options{0, 5, 1, 64};
  options.experts_elsewhere = {slice};
  BOOST_TEST(read_by([&](const stage::model_source& source) {
               BOOST_TEST(source.make_layers(cpu_backend(), options).has_value());
             }) == of_layers,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(are_run_while_other_experts_are_asked) {
  const auto engram = tiny_model().make_engram()->run(expert_steps(false).front());
  const flow::step_table table = expert_steps(false).front();
  stage::layer_stage_options options{0, 11, 1, 64};
  options.experts_elsewhere = {{0, 0, 11, {0, 1}}, {1, 0, 11, {2, 3}}};
  auto stage = tiny_model().make_layers(cpu_backend(), options).value();
  stage::joined_step step{table, tiny_model().make_embedding()->run(table).value(), {}, {}, {}};
  step.engram = *engram;
  const auto asked = stage->begin(std::move(step), {});
  BOOST_REQUIRE(asked);
  BOOST_TEST(asked->size() == 2U);
  BOOST_TEST(stage->suspended());
  BOOST_TEST(stage->can_go_on());
  BOOST_TEST(stage->go_on({})->empty());
  BOOST_TEST(!stage->can_go_on());
  BOOST_CHECK_THROW(stage->go_on({}), defect);
}

BOOST_AUTO_TEST_SUITE_END()
