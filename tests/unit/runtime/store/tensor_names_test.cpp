// Goal: aliases become released names, released names stay. Method: examples of each rule.
#include "runtime/store/tensor_names.hpp"

#include <boost/test/unit_test.hpp>

using cedar::store::normalized_name;

BOOST_AUTO_TEST_SUITE(tensor_names)

BOOST_AUTO_TEST_CASE(aliases_become_released_names) {
  BOOST_TEST(normalized_name("model.layers.3.self_attn.wq_a.weight_scale_inv") ==
             "layers.3.attn.wq_a.scale");
  BOOST_TEST(normalized_name("model.layers.3.mlp.gate.e_score_correction_bias") ==
             "layers.3.ffn.gate.bias");
  BOOST_TEST(normalized_name("mtp.0.mlp.experts.12.w1.weight") == "mtp.0.ffn.experts.12.w1.weight");
  BOOST_TEST(normalized_name("model.embed.weight") == "embed.weight");
}

BOOST_AUTO_TEST_CASE(released_names_stay) {
  for (const char* name :
       {"layers.3.attn.wq_a.scale", "vision.blocks.0.mlp.w1.weight", "hc_attn_fn", "norm.weight",
        "layers.0.ffn.gate.bias_vl", "layers.0.attn.attn_sink", ""})
    BOOST_TEST(normalized_name(name) == name);
}

BOOST_AUTO_TEST_CASE(parts_of_components_are_not_replaced) {
  BOOST_TEST(normalized_name("layers.0.my_mlp.x") == "layers.0.my_mlp.x");
  BOOST_TEST(normalized_name("layers.0.self_attn_norm") == "layers.0.self_attn_norm");
  BOOST_TEST(normalized_name("models.x") == "models.x");
}

BOOST_AUTO_TEST_SUITE_END()
