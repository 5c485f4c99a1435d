// `cedar plan`: what a topology means and costs, without running it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <memory>

#include "runtime/model/config.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/number_check.hpp"
#include "tools/cedar/pipeline.hpp"
#include "topology/document/document.hpp"
#include "topology/plan/plan.hpp"
#include "topology/plan/render.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::filesystem::path topology;
  std::filesystem::path model;
  std::string load;
  double rate = 0;
  std::string json;
  std::string svg;
};

/// "16x2048": requests and positions of each.
result<topology::memory_load> parse_load(const std::string& text) {
  topology::memory_load load;
  const std::size_t times = text.find('x');
  const auto number = [](std::string_view digits, std::uint32_t& out) {
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, out);
    return read.ec == std::errc{} && read.ptr == end && out > 0;
  };
  if (times == std::string::npos || !number(text.substr(0, times), load.requests) ||
      !number(text.substr(times + 1), load.positions))
    return fail(errc::invalid_argument,
                "--load is '" + text + "'; write REQUESTSxPOSITIONS, for example 16x2048");
  return load;
}

result<topology::cost_basis> basis_of(const options& chosen, const topology::plan& planned) {
  topology::cost_basis basis = topology::largest_basis(planned);
  basis.steps_per_second = chosen.rate;
  if (chosen.load.empty()) return basis;
  const auto load = parse_load(chosen.load);
  if (!load) return fail(load.error());
  const topology::limits_plan& limits = planned.limits();
  if (load->requests > limits.requests || load->positions > limits.context)
    return fail(errc::invalid_argument,
                fmt::format("--load is {}, but the topology's limits are {} requests of {} "
                            "positions; lower it, or raise limits.requests and limits.context",
                            chosen.load, limits.requests, limits.context));
  basis.load = *load;
  return basis;
}

/// "-" is standard output.
result<void> write(const std::string& file, const std::string& text) {
  if (file == "-") {
    fmt::print("{}", text);
    return {};
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.flush();
  if (!out) return fail(errc::io, "cannot write '" + file + "'");
  return {};
}

int run(const options& chosen) {
  if (chosen.json == "-" && chosen.svg == "-")
    return report_error({errc::invalid_argument,
                         "--json - and --svg - would mix on standard output; name a file for one"});
  auto file = topology::read_file(chosen.topology);
  if (chosen.model.empty())
    file.check_model(file.value.client.value);
  else
    topology::override_model(file.value, chosen.model);
  const auto config = model::parse_config(file.value.model_of(file.value.client.value));
  // What the model would say about a file that names none, or a wrong one, is not known.
  if (!config && file.mistakes.empty()) return report_error(config.error());
  const auto planned = config ? topology::make_plan(file, *config) : tl::unexpected(file.mistakes);
  if (!planned) {
    fmt::print(stderr, "{}\n", topology::to_string(planned.error()));
    return 1;
  }
  const auto basis = basis_of(chosen, *planned);
  if (!basis) return report_error(basis.error());
  if (!chosen.json.empty()) {
    const auto written = write(chosen.json, topology::render_json(*planned, *basis));
    if (!written) return report_error(written.error());
  }
  if (!chosen.svg.empty()) {
    const auto written = write(chosen.svg, topology::render_svg(*planned, *basis));
    if (!written) return report_error(written.error());
  }
  // What goes to standard output is alone there.
  if (chosen.json != "-" && chosen.svg != "-")
    fmt::print("{}", topology::render_plan(*planned, *basis));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "plan", "Check a topology and print its placement, memory and bytes; needs no weights");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("topology", chosen->topology, "Topology file")->required();
  command->add_option("-m,--model", chosen->model,
                      "Folder with config.json; overrides the topology's");
  command->add_option("--load", chosen->load,
                      "REQUESTSxPOSITIONS that costs are for; default: the topology's limits");
  command->add_option("--rate", chosen->rate, "Decode steps a second, for bytes a second")
      ->check(number_between(0, 1e9));
  command->add_option("--json", chosen->json, "Write the plan as JSON to a file, or -");
  command->add_option("--svg", chosen->svg, "Write a drawing of the plan to a file, or -");
  command->callback([chosen, &exit_code] { exit_code = run(*chosen); });
}

}  // namespace cedar::tools
