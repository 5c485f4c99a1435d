// Goal: every layer alone computes what the released reference code computes from the same inputs.
// Method: recorded inputs and intermediates of tiny-12, tiny-40 and, with an image, tiny-vision
// (tests/data/golden/README.md, section 3 B). Recommended bounds: relative RMS <= 2e-3 and 2 bf16
// steps of the largest magnitude; 1e-5 absolute for fp32 coefficients. Deliberate mistakes must
// break them.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/golden/runtime/stage/layer_trace.hpp"
#include "tests/support/backends.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using test::layer_deviation;
using test::layer_trace;
using test::mistake;

namespace {

/// The worst of what the bounds look at, in units of the bounds.
double worst(const layer_deviation& deviation) {
  double out = deviation.wrong_choices > 0 ? 2.0 : 0.0;
  for (const auto& [name, value] : deviation.relative_rms)
    out = std::max(out, value / test::relative_rms_bound);
  return out;
}

/// The mistakes of the table in section 3 B that configuration and weights can express.
std::vector<mistake> mistakes() {
  static const std::vector<float> no_sink(1024, -1e30F);
  static const std::vector<float> no_bias(1024, 0.0F);
  const auto nothing = [](model::layer_weights&) {};
  return {
      {"no sink", [](model::model_config&) {},
       [](model::layer_weights& w) {
         w.attention.sinks = std::span(no_sink).first(w.attention.sinks.size());
       }},
      {"no yarn", [](model::model_config& c) { c.yarn.original_positions = 0; }, nothing},
      {"wrong theta", [](model::model_config& c) { c.compress_rope_theta = c.rope_theta; },
       nothing},
      {"no select bias", [](model::model_config&) {},
       [](model::layer_weights& w) { w.moe.bias = std::span(no_bias).first(w.moe.bias.size()); }},
      {"route scale 1", [](model::model_config& c) { c.route_scale = 1; }, nothing},
      {"no swiglu clamp", [](model::model_config& c) { c.swiglu_limit = 0; }, nothing},
      {"sinkhorn 2", [](model::model_config& c) { c.sinkhorn_iterations = 2; }, nothing},
      {"window minus 1", [](model::model_config& c) { --c.window; }, nothing},
      {"topk minus 1", [](model::model_config& c) { --c.index_topk; }, nothing},
      {"no candidates", [](model::model_config&) {}, nothing, true},
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_layers)

BOOST_DATA_TEST_CASE(match_layer_by_layer, test::backends() * data::make(test::traced_checkpoints),
                     name, checkpoint) {
  const auto backend = test::backend_of(name);
  const layer_trace trace(checkpoint, *backend);
  double largest = 0;
  for (std::uint32_t layer = 0; layer < trace.layers(); ++layer) {
    const layer_deviation deviation = trace.run(layer);
    const std::string where = "layer " + std::to_string(layer);
    check_deviation(deviation, where);
    for (const auto& [tensor, value] : deviation.relative_rms) largest = std::max(largest, value);
    check_deviation(trace.run_engram(layer), where);
  }
  BOOST_TEST_MESSAGE(checkpoint << " on " << name << ": largest relative RMS of a layer "
                                << largest);
}

// Section 8: the traced prompts of these have the hand-over recorded.
BOOST_DATA_TEST_CASE(hand_over_as_recorded,
                     test::backends() * data::make(std::vector<std::string>{"tiny-12", "tiny-40"}),
                     name, checkpoint) {
  const auto backend = test::backend_of(name);
  const layer_deviation deviation = layer_trace(checkpoint, *backend).run_handover();
  for (const char* tensor :
       {"h20.stream", "h20.pre_mix", "h20.attn_in", "h20.global_kv", "h20.index_k"})
    BOOST_TEST(deviation.compared.contains(tensor), tensor << " is not compared");
  test::check_deviation(deviation, "hand-over");
}

BOOST_AUTO_TEST_CASE(each_mistake_breaks_the_bounds) {
  for (const auto& backend_name : kernels::backend_names()) {
    const auto backend = kernels::make_backend(backend_name);
    const layer_trace trace("tiny-12", *backend);
    for (const mistake& one : mistakes()) {
      double largest = 0;
      for (std::uint32_t layer = 0; layer < trace.layers(); ++layer)
        largest = std::max(largest, worst(trace.run(layer, one)));
      BOOST_TEST(largest > 1.0, one.name << " goes unnoticed on " << backend_name);
    }
  }
}

// Rows of an image span choose their experts by bias_vl.
BOOST_DATA_TEST_CASE(image_rows_taken_for_text_break_the_bounds, test::backends(), name) {
  const auto backend = test::backend_of(name);
  const layer_trace trace("tiny-vision", *backend);
  mistake no_images{.name = "no images"};
  no_images.no_images = true;
  std::size_t layers = 0;
  for (std::uint32_t layer = 0; layer < trace.layers(); ++layer)
    if (worst(trace.run(layer, no_images)) > 1.0) ++layers;
  BOOST_TEST(layers == trace.layers());
}

BOOST_AUTO_TEST_SUITE_END()
