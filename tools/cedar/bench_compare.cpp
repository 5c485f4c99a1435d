// `cedar bench compare A.json B.json`: what changed between two runs of a bench.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::string before;
  std::string after;
  bool json = false;
};

result<bench_report> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(errc::not_found, "cannot read " + file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return parse_report(text, file);
}

void print(const comparison& found) {
  for (const std::string& setting : found.differing) fmt::print("differs: {}\n", setting);
  fmt::print("{:<72}{:>12}{:>12}{:>9}\n", "us", "before", "after", "ratio");
  for (const compared_row& row : found.rows)
    fmt::print("{:<72}{:>12.1f}{:>12.1f}{:>9.3f}{}\n", row.name, row.before_us, row.after_us,
               row.ratio, row.noise ? "  spreads overlap" : "");
  for (const std::string& name : found.only_before) fmt::print("only before: {}\n", name);
  for (const std::string& name : found.only_after) fmt::print("only after: {}\n", name);
}

void print_json(const comparison& found) {
  nlohmann::ordered_json root{{"differing", found.differing},
                              {"rows", nlohmann::ordered_json::array()},
                              {"only_before", found.only_before},
                              {"only_after", found.only_after}};
  for (const compared_row& row : found.rows)
    root["rows"].push_back({{"name", row.name},
                            {"before_us", row.before_us},
                            {"after_us", row.after_us},
                            {"ratio", row.ratio},
                            {"noise", row.noise}});
  fmt::print("{}\n", root.dump(2));
}

result<void> run(const options& chosen) {
  const auto before = read(chosen.before);
  if (!before) return fail(before.error());
  const auto after = read(chosen.after);
  if (!after) return fail(after.error());
  const auto found = compare_reports(*before, *after);
  if (!found) return fail(found.error().with(chosen.before + " and " + chosen.after));
  if (chosen.json)
    print_json(*found);
  else
    print(*found);
  return {};
}

}  // namespace

void add_bench_compare(CLI::App& bench, int& exit_code) {
  CLI::App* command =
      bench.add_subcommand("compare", "What changed between two runs of a bench with --json");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("before", chosen->before, "File with the object of the earlier run")
      ->required();
  command->add_option("after", chosen->after, "Of the later one")->required();
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
