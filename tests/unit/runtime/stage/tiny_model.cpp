#include "tests/unit/runtime/stage/tiny_model.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "kernels/registry/registry.hpp"

namespace cedar::test {

const stage::model_source& tiny_model() {
  static const auto opened = stage::model_source::open(CEDAR_TEST_DATA "/golden/tiny-12");
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return **opened;
}

const kernels::backend& cpu_backend() {
  static const auto backend = kernels::make_backend("cpu");
  BOOST_REQUIRE_MESSAGE(backend, "the cpu backend cannot run here");
  return *backend;
}

std::vector<token_id> random_tokens(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<token_id> out(count);
  for (token_id& id : out) id = static_cast<token_id>(3 + random() % 500);
  return out;
}

flow::step_table step_of(std::uint64_t step, const std::map<request_id, std::vector<token_id>>& ids,
                         const std::vector<rows_of>& rows) {
  flow::step_table table;
  table.step = step_id{step};
  table.want_logits = true;
  const std::uint32_t lookback_max = tiny_model().config().engram_lookback();
  for (const rows_of& span : rows) {
    const std::span<const token_id> all = ids.at(span.request);
    const std::uint32_t lookback = std::min(span.first, lookback_max);
    const auto before = all.subspan(span.first - lookback, lookback);
    const auto of_rows = all.subspan(span.first, span.count);
    table.spans.push_back({span.request, span.first, span.count, 0});
    table.tokens.insert(table.tokens.end(), of_rows.begin(), of_rows.end());
    table.lookback.insert(table.lookback.end(), before.begin(), before.end());
  }
  return table;
}

tiny_run::tiny_run(const local::engine_options& options) {
  auto opened = local::local_engine::open(tiny_model(), cpu_backend(), options);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  engine = std::move(*opened);
}

void tiny_run::step(const std::vector<rows_of>& rows) {
  last_ = step_of(++steps_, ids, rows);
  const auto proposal = engine->run(last_, {});
  BOOST_REQUIRE_MESSAGE(proposal, (proposal ? "" : proposal.error().message));
  const std::size_t width = tiny_model().config().vocabulary;
  const auto* row = reinterpret_cast<const float*>(proposal->logits->data());
  for (const rows_of& span : rows)
    for (std::uint32_t i = 0; i < span.count; ++i, row += width)
      logits[{span.request, span.first + i}].assign(row, row + width);
}

void tiny_run::settle(std::uint32_t taken_back) {
  flow::verdict verdict{last_.step, last_.epoch, {}};
  for (const flow::row_span& span : last_.spans)
    verdict.commitments.push_back(
        {span.request, span.first_position + span.rows_count - taken_back, false});
  engine->apply(verdict);
}

void tiny_run::finish(request_id request) {
  engine->apply({last_.step, last_.epoch, {{request, 0, true}}});
}

std::vector<std::vector<float>> logits_alone(const std::vector<token_id>& ids) {
  const auto count = static_cast<std::uint32_t>(ids.size());
  tiny_run run({count, 1, 256});
  run.ids[request_id{1}] = ids;
  run.step({{request_id{1}, 0, count}});
  std::vector<std::vector<float>> out;
  for (auto& [row, values] : run.logits) out.push_back(std::move(values));
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace cedar::test
