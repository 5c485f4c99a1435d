#include "tools/cedar/bench_report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tools/cedar/load_statistics.hpp"

namespace cedar::tools {

using nlohmann::ordered_json;

spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.size(), percentile(values, 50), percentile(values, 10), percentile(values, 90)};
}

ordered_json to_json(const bench_report& report) {
  ordered_json root{{"bench", report.kind}, {"settings", report.settings}};
  root["rows"] = ordered_json::array();
  for (const bench_row& row : report.rows)
    root["rows"].push_back({{"name", row.name},
                            {"time_us",
                             {{"median", row.time_us.median},
                              {"low", row.time_us.low},
                              {"high", row.time_us.high},
                              {"count", row.time_us.count}}},
                            {"numbers", row.numbers},
                            {"words", row.words}});
  return root;
}

result<bench_report> parse_report(std::string_view text, const std::string& name) {
  try {
    const auto root = nlohmann::json::parse(text);
    bench_report out;
    out.kind = root.at("bench").get<std::string>();
    out.settings = root.at("settings").get<std::map<std::string, std::string>>();
    for (const auto& row : root.at("rows")) {
      const auto& time = row.at("time_us");
      out.rows.push_back({row.at("name").get<std::string>(),
                          {time.at("count").get<std::uint64_t>(), time.at("median").get<double>(),
                           time.at("low").get<double>(), time.at("high").get<double>()},
                          row.at("numbers").get<std::map<std::string, double>>(),
                          row.at("words").get<std::map<std::string, std::string>>()});
    }
    return out;
  } catch (const nlohmann::json::exception& problem) {
    return fail(errc::malformed,
                name + " is not what cedar bench --json prints: " + problem.what());
  }
}

namespace {

const bench_row* find(const std::vector<bench_row>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &bench_row::name);
  return found == rows.end() ? nullptr : &*found;
}

std::string setting_of(const bench_report& report, const std::string& name) {
  const auto found = report.settings.find(name);
  return found == report.settings.end() ? "not given" : found->second;
}

}  // namespace

result<comparison> compare_reports(const bench_report& before, const bench_report& after) {
  if (before.kind != after.kind)
    return fail(errc::mismatch,
                fmt::format("bench {} cannot be compared with bench {}", before.kind, after.kind));
  comparison out;
  for (const bench_row& row : before.rows) {
    const bench_row* other = find(after.rows, row.name);
    if (other == nullptr) {
      out.only_before.push_back(row.name);
      continue;
    }
    const bool overlap =
        row.time_us.low <= other->time_us.high && other->time_us.low <= row.time_us.high;
    out.rows.push_back({row.name, row.time_us.median, other->time_us.median,
                        row.time_us.median == 0 ? 0 : other->time_us.median / row.time_us.median,
                        overlap});
  }
  for (const bench_row& row : after.rows)
    if (find(before.rows, row.name) == nullptr) out.only_after.push_back(row.name);
  std::map<std::string, std::string> names = before.settings;
  names.insert(after.settings.begin(), after.settings.end());
  for (const auto& [name, unused] : names)
    if (setting_of(before, name) != setting_of(after, name))
      out.differing.push_back(
          fmt::format("{}: {}, {}", name, setting_of(before, name), setting_of(after, name)));
  return out;
}

std::map<std::string, std::string> machine_settings() {
  std::string processor = "unknown";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      processor = line.substr(line.find(": ") + 2);
      break;
    }
  const std::int64_t targets = hwy::SupportedTargets();
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return {{"processor", processor},
          {"processors", std::to_string(std::thread::hardware_concurrency())},
          {"instruction_set", hwy::TargetName(targets & -targets)},  // the lowest bit is the best
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))}};
}

void keep_to_avx2() {
  // Disabling others would come to nothing: making a backend asks for the supported ones anew.
  hwy::SetSupportedTargetsForTest(HWY_AVX2);
}

}  // namespace cedar::tools
