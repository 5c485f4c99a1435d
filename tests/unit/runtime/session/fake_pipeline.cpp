#include "tests/unit/runtime/session/fake_pipeline.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "runtime/session/halo.hpp"

namespace cedar::test {

token_id choice_after(std::span<const token_id> ids, std::uint32_t vocabulary) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const token_id id : ids) hash = (hash ^ static_cast<std::uint64_t>(id + 1)) * 0x100000001b3U;
  return static_cast<token_id>((hash >> 20) % vocabulary);
}

expected_run run_alone(const session::generation_request& request,
                       const session::scheduler_limits& limits) {
  expected_run out;
  std::vector<token_id> ids = request.prompt;
  const auto prompt = static_cast<std::uint32_t>(ids.size());
  out.used.prompt_tokens = prompt;
  const auto choose = [&](std::uint32_t position) {
    return choice_after(std::span(ids).first(position + 1), limits.vocabulary);
  };
  std::uint64_t rows = prompt;
  if (request.mode == session::prefill_mode::bounded) rows = limits.window;
  if (request.mode == session::prefill_mode::halo)
    rows = session::halo_rows(limits.window, limits.decoder_layers) +
           std::max(request.prompt_logits, 1U) - 1;
  const auto window = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, prompt));
  const std::uint32_t wanted = std::clamp(request.prompt_logits, 1U, window);
  out.used.mode = request.mode;
  for (std::uint32_t p = prompt - wanted; p + 1 < prompt; ++p)
    out.events.push_back({p, true, choose(p), session::finish_reason::none});
  for (std::uint32_t made = 0;; ++made) {
    const auto position = static_cast<std::uint32_t>(ids.size()) - 1;
    const token_id token = choose(position);
    auto finish = session::finish_reason::none;
    token_id next = token;
    if (!request.forced.empty()) {
      if (made == request.forced.size())
        finish = session::finish_reason::length;
      else
        next = request.forced[made];
    } else if (request.new_tokens_max == 0) {
      finish = session::finish_reason::length;
    } else {
      out.used.completion_tokens = made + 1;
      if (!request.ignore_eos && std::ranges::count(limits.eos_tokens, token) > 0)
        finish = session::finish_reason::stop;
      else if (made + 1 == request.new_tokens_max || ids.size() == limits.context_max)
        finish = session::finish_reason::length;
    }
    out.events.push_back({position, false, token, finish});
    if (finish != session::finish_reason::none) break;
    ids.push_back(next);
  }
  if (!request.forced.empty())
    out.used.completion_tokens = static_cast<std::uint32_t>(request.forced.size());
  out.used.encoder_rows = static_cast<std::uint32_t>(ids.size());
  out.used.decoder_rows = out.used.encoder_rows - (prompt - window);
  return out;
}

/// A request with the ids and the granules of a prefix.
void fake_pipeline::begin(const flow::step_table& table, const flow::row_span& span) {
  if (span.stored == 0) return;
  const auto use = std::ranges::find(table.prefixes, span.request, &flow::prefix_use::request);
  BOOST_REQUIRE(use != table.prefixes.end());
  const auto found = prefixes_.find(use->prefix);
  BOOST_REQUIRE(found != prefixes_.end());
  const auto& [ids, held] = found->second;
  BOOST_REQUIRE_LE(span.stored, ids.size());
  BOOST_REQUIRE_EQUAL(span.stored % limits_.prefix_step, 0U);
  BOOST_REQUIRE_LT(span.begin, span.stored);
  ids_[span.request].assign(ids.begin(), ids.begin() + span.begin);
  replayed_[span.request].assign(ids.begin(), ids.begin() + span.stored);
  held_[span.request].assign(held.begin(), held.begin() + span.stored / limits_.kv_granule);
}

void fake_pipeline::take(flow::step_table table) {
  for (const prefix_id dropped : table.dropped) BOOST_REQUIRE_EQUAL(prefixes_.erase(dropped), 1U);
  BOOST_REQUIRE_EQUAL(table.tokens.size(), table.rows_count());
  BOOST_REQUIRE_LE(table.rows_count(), limits_.rows_per_step);
  auto token = table.tokens.begin();
  auto before = table.lookback.begin();
  for (const flow::row_span& span : table.spans) {
    if (!ids_.contains(span.request)) begin(table, span);
    std::vector<token_id>& ids = ids_[span.request];
    BOOST_REQUIRE_GT(span.rows_count, 0U);
    BOOST_REQUIRE_EQUAL(span.first_position, ids.size());
    const std::uint32_t lookback = std::min(span.first_position, limits_.lookback);
    BOOST_REQUIRE_GE(table.lookback.end() - before, lookback);
    BOOST_REQUIRE(std::equal(ids.end() - lookback, ids.end(), before));
    before += lookback;
    ids.insert(ids.end(), token, token + span.rows_count);
    token += span.rows_count;
    const std::vector<token_id>& known = replayed_[span.request];
    BOOST_REQUIRE_EQUAL(known.size(), span.stored);
    BOOST_REQUIRE(
        std::equal(ids.begin(), ids.begin() + std::min(ids.size(), known.size()), known.begin()));
    granules& held = held_[span.request];
    while (held.size() < needed(std::max(ids.size(), known.size())))
      held.push_back(std::make_shared<int>());
  }
  BOOST_REQUIRE(before == table.lookback.end());
  BOOST_REQUIRE_LE(ids_.size(), std::min(limits_.requests_max, limits_.rows_per_step));
  check_budget();
  steps_.push_back(std::move(table));
}

void fake_pipeline::check_budget() const {
  std::set<std::shared_ptr<int>> all;
  for (const auto& [prefix, one] : prefixes_) all.insert(one.held.begin(), one.held.end());
  BOOST_REQUIRE_LE(all.size(), limits_.prefix_granules);
  for (const auto& [request, held] : held_) all.insert(held.begin(), held.end());
  BOOST_REQUIRE_LE(all.size(), limits_.kv_granules);
}

bool fake_pipeline::in_flight(request_id request) const {
  return std::ranges::any_of(steps_, [&](const flow::step_table& table) {
    return std::ranges::find(table.spans, request, &flow::row_span::request) != table.spans.end();
  });
}

void fake_pipeline::apply(const flow::verdict& verdict) {
  for (const flow::commitment& one : verdict.commitments) {
    BOOST_REQUIRE_EQUAL(ids_.count(one.request), 1U);
    if (!one.finished) {
      if (in_flight(one.request)) continue;
      ids_.at(one.request).resize(one.committed);
      held_.at(one.request)
          .resize(needed(std::max(std::size_t{one.committed}, replayed_[one.request].size())));
      continue;
    }
    if (one.kept != prefix_id{}) {
      const std::vector<token_id>& ids = ids_.at(one.request);
      BOOST_REQUIRE_LE(one.kept_positions, ids.size());
      kept& to = prefixes_[one.kept];
      to.ids.assign(ids.begin(), ids.begin() + one.kept_positions);
      to.held = held_.at(one.request);
      to.held.resize(needed(one.kept_positions));
    }
    ids_.erase(one.request);
    held_.erase(one.request);
    replayed_.erase(one.request);
  }
}

flow::proposal fake_pipeline::answer() {
  const flow::step_table table = std::move(steps_.front());
  steps_.pop_front();
  flow::proposal out;
  out.step = table.step;
  out.epoch = table.epoch;
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i) {
      const std::uint32_t position = span.first_position + i;
      const auto ids = std::span(ids_.at(span.request)).first(position + 1);
      out.tokens.push_back({span.request, position, choice_after(ids, limits_.vocabulary),
                            -static_cast<float>(position)});
    }
  if (!table.want_logits) return out;
  // Logit row of a row: its request, its position, then zeros.
  kernels::buffer memory(out.tokens.size() * limits_.vocabulary * sizeof(float));
  auto* logits = reinterpret_cast<float*>(memory.data());
  for (const flow::proposed_token& row : out.tokens) {
    logits[0] = static_cast<float>(row.request.value);
    logits[1] = static_cast<float>(row.position);
    logits += limits_.vocabulary;
  }
  out.logits = flow::freeze(std::move(memory));
  return out;
}

}  // namespace cedar::test
