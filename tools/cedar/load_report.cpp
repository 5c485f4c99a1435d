#include "tools/cedar/load_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cedar::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t failures_max = 8;

std::string row(const char* name, const distribution& of) {
  return fmt::format("{:<16}{:>10}{:>11.2f}{:>11.2f}{:>11.2f}{:>11.2f}{:>11.2f}\n", name, of.count,
                     of.mean, of.p50, of.p90, of.p99, of.max);
}

ordered_json json_of(const distribution& of) {
  return {{"count", of.count}, {"mean", of.mean}, {"p50", of.p50},
          {"p90", of.p90},     {"p99", of.p99},   {"max", of.max}};
}

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

ordered_json json_of(const memory_report& memory) {
  return {{"processes", memory.processes}, {"begin_bytes", memory.begin()},
          {"warm_bytes", memory.warm()},   {"end_bytes", memory.end()},
          {"max_bytes", memory.max()},     {"growth_percent", memory.growth_percent()}};
}

ordered_json json_of(const verify_report& verified) {
  return {{"prompts", verified.prompts},
          {"compared", verified.compared},
          {"differing", verified.differing}};
}

}  // namespace

double memory_report::growth_percent() const {
  if (warm() == 0) return 0;
  return 100 * (static_cast<double>(end()) / static_cast<double>(warm()) - 1);
}

void load_report::add(const load_answer& answer) {
  ++requests_;
  if (!answer.is_late) latest_ms_ = std::max(latest_ms_, answer.total_ms);
  if (!answer.failure.empty()) {
    ++(answer.is_late ? late_ : failed_);
    if (failures_.size() < failures_max || failures_.contains(answer.failure))
      ++failures_[answer.failure];
    return;
  }
  if (answer.is_expired) {
    ++expired_;
    return;
  }
  ++statuses_[answer.status];
  if (answer.status != 200) return refused_ms_.push_back(answer.total_ms);
  ++finish_reasons_[answer.finish_reason];
  prompt_tokens_ += answer.prompt_tokens;
  tokens_ += answer.tokens;
  first_ms_.push_back(answer.first_ms);
  total_ms_.push_back(answer.total_ms);
  between_ms_.insert(between_ms_.end(), answer.between_ms.begin(), answer.between_ms.end());
}

double load_report::seconds() const {
  return std::max(std::chrono::duration<double>(took).count(), 1e-9);
}

std::uint64_t load_report::of_status(unsigned status) const {
  const auto found = statuses_.find(status);
  return found == statuses_.end() ? 0 : found->second;
}

std::string load_report::latest_text() const {
  std::string out =
      fmt::format("latest end: {:.3f} s after its request was sent", latest_ms_ / 1e3);
  if (!timeout) return out + "\n";
  const double beyond = latest_ms_ - static_cast<double>(timeout->count());
  return out + fmt::format(", {:.3f} s {} its timeout of {} s\n", std::abs(beyond) / 1e3,
                           beyond > 0 ? "after" : "before",
                           static_cast<double>(timeout->count()) / 1e3);
}

std::string load_report::text() const {
  std::string out = fmt::format("{}\n{}, {:.1f} s\n\n", server, shape, seconds());
  const auto count = [&](const std::string& name, std::uint64_t number) {
    out += fmt::format("{:<16}{:>10}{:>11.2f}/s\n", name, number,
                       static_cast<double>(number) / seconds());
  };
  count("requests", requests_);
  for (const unsigned status : {200U, 429U, 503U})
    count("  " + std::to_string(status), of_status(status));
  count("  expired", expired_);
  count("  failed", failed_);
  count("  unfinished", late_);
  for (const auto& [what, times] : failures_) out += fmt::format("    {} x {}\n", times, what);
  count("prompt tokens", prompt_tokens_);
  count("tokens", tokens_);
  out += fmt::format("\n{:<16}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "ms", "count", "mean", "p50",
                     "p90", "p99", "max");
  out += row("first text", summarize(first_ms_));
  out += row("between texts", summarize(between_ms_));
  out += row("whole answer", summarize(total_ms_));
  if (!refused_ms_.empty()) out += row("until refused", summarize(refused_ms_));
  out += "\n" + latest_text();
  if (verified)
    out += fmt::format("verified: {} answers to {} prompts, {} differ from the prompt alone\n",
                       verified->compared, verified->prompts, verified->differing);
  if (memory)
    out += fmt::format(
        "memory of {} processes: {:.1f} MB at the beginning, {:.1f} after a tenth of the time, "
        "{:.1f} "
        "at the end ({:+.2f} %), at most {:.1f}\n",
        memory->processes, megabytes(memory->begin()), megabytes(memory->warm()),
        megabytes(memory->end()), memory->growth_percent(), megabytes(memory->max()));
  if (is_left_over_known && left_over.empty())
    out += "afterwards: no request, token or position is held\n";
  for (const auto& [name, value] : left_over)
    out += fmt::format("afterwards: {} is {}\n", name, value);
  return out;
}

ordered_json load_report::json() const {
  const auto rate = [&](std::uint64_t number) { return static_cast<double>(number) / seconds(); };
  ordered_json out{
      {"server", server},
      {"shape", shape},
      {"seconds", seconds()},
      {"requests", requests_},
      {"requests_per_second", rate(of_status(200))},
      {"status", {{"200", of_status(200)}, {"429", of_status(429)}, {"503", of_status(503)}}},
      {"expired", expired_},
      {"failed", failed_},
      {"unfinished", late_},
      {"failures", failures_},
      {"finish_reasons", finish_reasons_},
      {"prompt_tokens", prompt_tokens_},
      {"tokens", tokens_},
      {"tokens_per_second", rate(tokens_)},
      {"first_text_ms", json_of(summarize(first_ms_))},
      {"between_texts_ms", json_of(summarize(between_ms_))},
      {"whole_answer_ms", json_of(summarize(total_ms_))},
      {"until_refused_ms", json_of(summarize(refused_ms_))},
      {"latest_end_ms", latest_ms_}};
  if (timeout) out["timeout_ms"] = timeout->count();
  if (verified) out["verified"] = json_of(*verified);
  if (memory) out["memory"] = json_of(*memory);
  if (is_left_over_known) out["left_over"] = left_over;
  const std::string why = problem();
  out["problem"] = why.empty() ? ordered_json(nullptr) : ordered_json(why);
  return out;
}

std::string load_report::problem() const {
  if (late_ + failed_ > 0)
    return fmt::format("of {} requests {} failed and {} did not end in time", requests_, failed_,
                       late_);
  if (verified && verified->differing > 0)
    return fmt::format("{} of {} answers differ from those to the same prompts alone",
                       verified->differing, verified->compared);
  if (of_status(200) == 0) return "no request was answered";
  if (!left_over.empty())
    return "the server still holds something of requests that have ended: " +
           left_over.begin()->first;
  return {};
}

}  // namespace cedar::tools
