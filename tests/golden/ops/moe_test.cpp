// Goal: gate, routing and the gated activation against golden vectors.
#include "kernels/base/buffer.hpp"
#include "kernels/ops/selection.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr float route_scale = 1.5F;

matrix_buffer<float> gate_scores(const backend& backend, const golden_file& golden) {
  const auto x = golden.matrix<bf16>("x");
  const auto weight = golden.matrix<bf16>("weight");
  matrix_buffer<float> scores(x.rows, weight.rows);
  backend.linear_f32({scores.view(), x, weight});
  backend.gate_scores({scores.view()});
  return scores;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_moe)

BOOST_DATA_TEST_CASE(scores_experts, backends(), name) {
  const golden_file golden("ops/gate.safetensors");
  const auto scores = gate_scores(*backend_of(name), golden);
  check_absolute("scores", scores.span(), golden.vector<float>("scores"), 1e-5);
}

BOOST_DATA_TEST_CASE(routes_text_and_image_rows, backends(), name) {
  const golden_file golden("ops/gate.safetensors");
  const auto scores = gate_scores(*backend_of(name), golden);
  for (const std::size_t k : {1U, 2U, 6U}) {
    for (const bool mixed : {false, true}) {
      const std::string prefix = "top" + std::to_string(k) + (mixed ? ".mixed." : ".text.");
      const auto image_rows =
          mixed ? golden.vector<std::uint8_t>("image_mask") : std::span<const std::uint8_t>();
      matrix_buffer<std::int32_t> experts(scores.rows(), k);
      select_experts(scores.view(), golden.vector<float>("bias"), golden.vector<float>("bias_vl"),
                     image_rows, experts.view());
      matrix_buffer<float> weights(scores.rows(), k);
      route_weights(scores.view(), experts.view(), true, route_scale, weights.view());
      check_equal(prefix + "indices",
                  std::vector<std::int64_t>(experts.span().begin(), experts.span().end()),
                  golden.integers(prefix + "indices"));
      check_absolute(prefix + "weights", weights.span(), golden.vector<float>(prefix + "weights"),
                     1e-5);
    }
  }
}

BOOST_DATA_TEST_CASE(applies_swiglu_with_and_without_route_weights, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/swiglu.safetensors");
  const auto gate = golden.matrix<bf16>("gate");
  for (const auto& [limit, text] : {std::pair(0.0F, "0"), {2.5F, "2.5"}, {10.0F, "10"}}) {
    const std::string prefix = std::string("limit") + text;
    matrix_buffer<bf16> y(gate.rows, gate.cols);
    backend->swiglu(
        {y.view(), gate, golden.matrix<bf16>("up"), golden.vector<float>("route_weight"), limit});
    check_ulps(prefix + ".hidden", y.span(), golden.vector<bf16>(prefix + ".hidden"), 1);
    backend->swiglu({y.view(), gate, golden.matrix<bf16>("up"), {}, limit});
    check_ulps(prefix + ".hidden_unweighted", y.span(),
               golden.vector<bf16>(prefix + ".hidden_unweighted"), 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
