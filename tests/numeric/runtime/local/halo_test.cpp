// Goal: mode `halo` gives the bits of `exact`, of prompt and answer, with fewer rows in the
// decoder, whatever the chunks and drafts. Method: prompts beyond the halo over tiny-12.
#include <boost/test/unit_test.hpp>

#include "runtime/session/halo.hpp"
#include "tests/numeric/runtime/local/mixed_requests.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

std::uint32_t halo_of(const model::model_config& config) {
  const model::schedule schedule(config);
  return static_cast<std::uint32_t>(session::halo_rows(config.window, schedule.decoder_layers()));
}

std::vector<session::generation_request> prompts(std::uint32_t longest) {
  auto requests = mixed_requests(3);
  requests.resize(4);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto& ids = requests[i].prompt;
    while (ids.size() < longest - 5 * i)
      ids.push_back(static_cast<token_id>(3 + ids.size() * 7 % 500));
    requests[i].mode = session::prefill_mode::exact;
  }
  return requests;
}

std::vector<session::generation_request> in_halo(std::vector<session::generation_request> asks) {
  for (session::generation_request& ask : asks) ask.mode = session::prefill_mode::halo;
  return asks;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(halo)

BOOST_AUTO_TEST_CASE(gives_the_bits_of_exact) {
  const small_model model;
  const std::uint32_t halo = halo_of(model.config());
  const auto exact = prompts(halo + 40);
  local::engine_options options{.rows_per_step = 48, .requests_max = 4, .context_max = context};
  const auto expected = model.run(exact, options);
  const auto made = model.run(in_halo(exact), options);
  check_same(made, expected);
  for (std::size_t i = 0; i < made.size(); ++i) {
    BOOST_TEST(made[i].used.encoder_rows == expected[i].used.encoder_rows);
    const std::size_t skipped = exact[i].prompt.size() - (halo + exact[i].prompt_logits - 1);
    BOOST_TEST(made[i].used.decoder_rows + skipped == expected[i].used.decoder_rows);
  }
  options.draft_tokens = 3;
  check_same(model.run(in_halo(exact), options), expected);
}

BOOST_AUTO_TEST_SUITE_END()
