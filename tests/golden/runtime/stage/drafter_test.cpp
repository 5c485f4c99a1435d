// Goal: the drafter computes what the released reference code computes from the same inputs.
// Method: recorded taps, block inputs and drafts of tiny-12, tiny-40 and, behind an image,
// tiny-vision (tests/data/golden/README.md, sections 3 B and 5). Blocks are held to the bounds of
// layers; deliberate mistakes must break them.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/golden/runtime/stage/drafter_trace.hpp"
#include "tests/support/backends.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using test::draft_mistake;
using test::drafter_trace;
using test::layer_deviation;

namespace {

/// A draft from recorded taps: three blocks and the heads let roundings pass that a layer's bounds
/// are too coarse to show. Measured: logits within 4e-3, confidences within 2e-3; the bounds are
/// ten times that.
constexpr double draft_logits_bound = 0.04;
constexpr double draft_confidence_bound = 0.02;

/// In units of the bounds.
double worst_of_draft(const drafter_trace::draft_deviation& deviation) {
  return std::max(deviation.logits_max / draft_logits_bound,
                  deviation.confidence_max / draft_confidence_bound);
}

double largest(const layer_deviation& deviation) {
  double out = deviation.wrong_choices > 0 ? 1.0 : 0.0;
  for (const auto& [name, value] : deviation.relative_rms) out = std::max(out, value);
  return out;
}

/// What a drafter is easily got wrong by, as far as configuration and weights can express it.
std::vector<draft_mistake> mistakes() {
  static const std::vector<float> no_sink(1024, -1e30F);
  static const std::vector<float> no_bias(1024, 0.0F);
  static const std::vector<kernels::bf16> zeros(1U << 16U);
  const auto nothing = [](model::model_config&) {};
  const auto each_block = [](auto change) {
    return [change](model::drafter_weights& w) {
      for (model::layer_weights& block : w.blocks) change(block);
    };
  };
  std::vector<draft_mistake> out;
  const auto in_blocks = [&](const std::string& name, const auto& config, const auto& weights) {
    out.push_back({.name = name,
                   .in_config = config,
                   .in_weights = weights,
                   .in_the_blocks = true,
                   .in_the_draft = true});
  };
  const auto in_heads = [&](const std::string& name, const auto& config, const auto& weights) {
    out.push_back({.name = name, .in_config = config, .in_weights = weights, .in_the_draft = true});
  };
  const auto as_loaded = [](model::drafter_weights&) {};
  in_blocks(
      "window minus 1", [](auto& c) { --c.window; }, as_loaded);
  in_blocks(
      "theta of compressed layers", [](auto& c) { c.rope_theta = c.compress_rope_theta; },
      as_loaded);
  in_blocks("no sink", nothing, each_block([](model::layer_weights& w) {
              w.attention.sinks = std::span(no_sink).first(w.attention.sinks.size());
            }));
  in_blocks("no select bias", nothing, each_block([](model::layer_weights& w) {
              w.moe.bias = std::span(no_bias).first(w.moe.bias.size());
            }));
  in_blocks("one expert more", nothing,
            each_block([](model::layer_weights& w) { ++w.moe.experts_per_token; }));
  in_blocks("context without main_norm's weight", nothing, [](model::drafter_weights& w) {
    static std::vector<kernels::bf16> ones;
    ones.assign(w.main_norm.size(), kernels::to_bf16(1.0F));
    w.main_norm = ones;
  });
  in_heads(
      "other noise", [](auto& c) { c.dspark.noise_token = 5; }, as_loaded);
  in_heads("norm of the backbone's context", nothing,
           [](model::drafter_weights& w) { w.norm = w.main_norm; });
  in_heads("no Markov head", nothing, [](model::drafter_weights& w) {
    w.markov_head = {zeros.data(), w.markov_head.rows, w.markov_head.cols};
  });
  in_heads("Markov head without history", nothing, [](model::drafter_weights& w) {
    w.markov_embedding = {zeros.data(), w.markov_embedding.rows, w.markov_embedding.cols};
  });
  draft_mistake late{.name = "context ends a row early", .in_the_blocks = true};
  late.rows_too_early = 1;
  out.push_back(late);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_drafter)

BOOST_DATA_TEST_CASE(makes_its_context_of_taps,
                     test::backends() * data::make(test::traced_checkpoints), name, checkpoint) {
  const auto backend = test::backend_of(name);
  const auto deviation = drafter_trace(checkpoint, *backend).run_context();
  BOOST_TEST(deviation.relative_rms.size() == 2U);
  BOOST_TEST_MESSAGE(checkpoint << " on " << name << ": largest relative RMS "
                                << largest(deviation));
  check_deviation(deviation, "context");
}

BOOST_DATA_TEST_CASE(matches_block_by_block,
                     test::backends() * data::make(test::traced_checkpoints), name, checkpoint) {
  const auto backend = test::backend_of(name);
  const drafter_trace trace(checkpoint, *backend);
  for (std::uint32_t block = 0; block < trace.blocks(); ++block) {
    const auto deviation = trace.run_block(block);
    BOOST_TEST_MESSAGE(checkpoint << " on " << name << ": block " << block
                                  << ", largest relative RMS " << largest(deviation));
    check_deviation(deviation, "block " + std::to_string(block));
  }
}

BOOST_DATA_TEST_CASE(drafts_what_was_drafted,
                     test::backends() * data::make(test::traced_checkpoints), name, checkpoint) {
  const auto backend = test::backend_of(name);
  const drafter_trace trace(checkpoint, *backend);
  const auto deviation = trace.run_drafts();
  BOOST_TEST_MESSAGE(checkpoint << " on " << name << ": logits mean RMS "
                                << deviation.logits_rms_mean << " max " << deviation.logits_max
                                << ", confidence max " << deviation.confidence_max << ", wrong "
                                << deviation.wrong_tokens);
  BOOST_TEST(deviation.tokens == trace.drafted_tokens());
  BOOST_TEST(deviation.wrong_tokens == 0U);
  BOOST_TEST(worst_of_draft(deviation) <= 1.0);
}

BOOST_AUTO_TEST_CASE(each_mistake_breaks_the_bounds) {
  for (const auto& backend_name : kernels::backend_names()) {
    const auto backend = kernels::make_backend(backend_name);
    const drafter_trace trace("tiny-12", *backend);
    for (const draft_mistake& one : mistakes()) {
      double in_blocks = 0;
      for (std::uint32_t block = 0; block < trace.blocks(); ++block)
        in_blocks =
            std::max(in_blocks, largest(trace.run_block(block, one)) / test::relative_rms_bound);
      const double in_draft = worst_of_draft(trace.run_drafts(one));
      BOOST_TEST_MESSAGE(one.name << " on " << backend_name << ": " << in_blocks
                                  << " times the bound of a block, " << in_draft << " of a draft");
      BOOST_TEST(std::max(in_blocks, in_draft) > 1.0,
                 one.name << " goes unnoticed on " << backend_name);
      if (one.in_the_blocks) BOOST_TEST(in_blocks > 1.0, one.name << " on " << backend_name);
      if (one.in_the_draft) BOOST_TEST(in_draft > 1.0, one.name << " on " << backend_name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
