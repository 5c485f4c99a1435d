#include "tests/sim/actors/oracle.hpp"

#include <cstring>
#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"

namespace cedar::test {

namespace {

std::unique_ptr<stage::model_source> opened(const std::string& name) {
  auto model = stage::model_source::open(CEDAR_TEST_DATA "/golden/" + name);
  BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
  return std::move(*model);
}

}  // namespace

const stage::model_source& tiny_model() {
  static const auto model = opened("tiny-12");
  return *model;
}

const stage::model_source& vision_model() {
  static const auto model = opened("tiny-vision");
  return *model;
}

const kernels::backend& cpu_backend() {
  static const auto backend = kernels::make_backend("cpu");
  BOOST_REQUIRE_MESSAGE(backend, "the cpu backend cannot run here");
  return *backend;
}

answered_row::answered_row(const session::row_event& event)
    : position(event.position),
      in_prompt(event.in_prompt),
      token(event.token),
      log_probability(event.log_probability),
      finish(event.finish),
      logits(event.logits.begin(), event.logits.end()) {}

bool operator==(const answered_row& a, const answered_row& b) {
  return a.position == b.position && a.in_prompt == b.in_prompt && a.token == b.token &&
         std::memcmp(&a.log_probability, &b.log_probability, sizeof(float)) == 0 &&
         a.finish == b.finish && a.logits.size() == b.logits.size() &&
         (a.logits.empty() ||
          std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)) == 0);
}

expected_answers local_answers(const std::vector<request_wave>& waves,
                               const session::scheduler_limits& limits,
                               const stage::model_source& model) {
  const auto engine =
      local::local_engine::open(model, cpu_backend(),
                                {.rows_per_step = limits.rows_per_step,
                                 .requests_max = limits.requests_max,
                                 .context_max = limits.context_max,
                                 .prefix_positions = limits.prefix_granules * limits.kv_granule});
  BOOST_REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
  session::scheduler_limits one_step = limits;
  one_step.steps_in_flight = 1;
  one_step.draft_tokens_max = 0;
  session::step_scheduler scheduler(one_step);
  expected_answers out;
  for (const request_wave& requests : waves) {
    const auto ids = scheduler.submit(requests);
    BOOST_REQUIRE_MESSAGE(ids, (ids ? "" : ids.error().message));
    std::map<request_id, std::size_t> index_of;
    for (const request_id id : *ids) index_of.emplace(id, out.rows.size() + index_of.size());
    out.rows.resize(out.rows.size() + requests.size());
    out.used.resize(out.rows.size());
    while (const auto table = scheduler.next_step()) {
      BOOST_REQUIRE((*engine)->add_images(scheduler.beginning_images()));
      const auto proposal =
          (*engine)->run(*table, [&](flow::tap tap) { out.taps.push_back(std::move(tap)); });
      BOOST_REQUIRE_MESSAGE(proposal, (proposal ? "" : proposal.error().message));
      const auto outcome = scheduler.accept(*proposal);
      BOOST_REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().message));
      (*engine)->apply(outcome->verdict);
      out.verdicts.push_back(outcome->verdict);
      for (const session::row_event& event : outcome->events) {
        const std::size_t index = index_of.at(event.request);
        out.rows[index].emplace_back(event);
        if (event.finish != session::finish_reason::none)
          out.used[index] = *scheduler.usage_of(event.request);
      }
    }
  }
  return out;
}

std::vector<session::generation_request> longer_requests(std::uint64_t seed, std::size_t count) {
  std::vector<session::generation_request> out = random_requests(seed, count);
  std::mt19937_64 random(seed);
  for (session::generation_request& one : out) {
    one.new_tokens_max = 6 + static_cast<std::uint32_t>(random() % 10);
    one.ignore_eos = true;
  }
  return out;
}

flow::sampling_options random_sampling(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  flow::sampling_options out;
  out.temperature = 0.5F + static_cast<float>(random() % 10) / 8;
  out.top_k = static_cast<std::uint32_t>(random() % 3 * 20);
  out.top_p = random() % 2 == 0 ? 1.0F : 0.875F;
  out.repetition_penalty = random() % 2 == 0 ? 1.0F : 1.25F;
  out.frequency_penalty = random() % 2 == 0 ? 0.0F : 0.5F;
  out.seed = random();
  if (random() % 3 == 0) out.bias = {{7, 2.0F}, {11, -3.0F}};
  return out;
}

std::vector<session::generation_request> random_requests(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<session::generation_request> out(count);
  const auto tokens = [&](std::size_t length) {
    std::vector<token_id> ids(length);
    for (token_id& id : ids) id = static_cast<token_id>(3 + random() % 500);
    return ids;
  };
  for (session::generation_request& one : out) {
    one.prompt = tokens(1 + random() % (random() % 3 == 0 ? 24 : 6));
    one.new_tokens_max = 1 + static_cast<std::uint32_t>(random() % 5);
    one.prompt_logits = static_cast<std::uint32_t>(random() % 5);
    one.want_logits = random() % 3 == 0;
    if (random() % 4 == 0) one.forced = tokens(1 + random() % 4);
    if (random() % 2 == 0) one.mode = session::prefill_mode::bounded;
    if (random() % 2 == 0) one.sampling = random_sampling(random());
  }
  return out;
}

}  // namespace cedar::test
