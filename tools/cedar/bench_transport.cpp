// `cedar bench transport`: a message and its answer between two processes, by the transport alone.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_rounds.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

struct options {
  round_options rounds{.there_bytes = 0, .back_bytes = 0, .rounds = 300, .ucx = {}};
  bool shared_memory = false;
  bool json = false;
  /// The other process, which this command starts itself.
  std::string answer;
  std::string secret_file;
  pid_t parent = 0;
};

result<void> answer(const options& chosen) {
  if (chosen.parent != 0) {
    // Killed by the kernel when the parent dies, whatever it dies of.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != chosen.parent) return {};
  }
  return answer_rounds(chosen.answer, chosen.secret_file, chosen.rounds.ucx);
}

result<void> run(options& chosen) {
  if (chosen.shared_memory) chosen.rounds.ucx.carry = transport::ucx::reach::shared_host;
  if (!chosen.answer.empty()) return answer(chosen);
  const auto times = measure_rounds(chosen.rounds);
  if (!times) return fail(times.error());
  const double awake = median(times->awake_us);
  const double worked = median(times->worked_us);
  if (chosen.json) {
    const nlohmann::ordered_json line{{"transport", times->transport},
                                      {"there_bytes", chosen.rounds.there_bytes},
                                      {"back_bytes", chosen.rounds.back_bytes},
                                      {"rounds", chosen.rounds.rounds},
                                      {"round_awake_us", awake},
                                      {"round_after_work_us", worked}};
    fmt::print("{}\n", line.dump());
    return {};
  }
  fmt::print(
      "{} bytes there, {} back, over {}, median of {} rounds\n"
      "one after the other      {:>9.1f} us\n"
      "after work of the sender {:>9.1f} us\n",
      chosen.rounds.there_bytes, chosen.rounds.back_bytes, times->transport, chosen.rounds.rounds,
      awake, worked);
  return {};
}

}  // namespace

void add_bench_transport(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "transport", "Measure a message and its answer between two processes of this host");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("--there", chosen->rounds.there_bytes, "Bytes of the message (default: 0)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 27));
  command->add_option("--back", chosen->rounds.back_bytes, "Bytes of the answer (default: 0)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 27));
  command->add_option("--rounds", chosen->rounds.rounds, "Rounds of either kind (default: 300)")
      ->check(CLI::Range(1U, 1'000'000U));
  command->add_option("--address", chosen->rounds.ucx.bind_address,
                      "Address to bind (default: 127.0.0.1)");
  command
      ->add_option("--devices", chosen->rounds.ucx.devices,
                   "Network devices that UCX may use, separated by commas")
      ->delimiter(',');
  command->add_flag("--shared-memory", chosen->shared_memory, "Use shared memory where possible");
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->add_option("--answer", chosen->answer)->group("");
  command->add_option("--secret-file", chosen->secret_file)->group("");
  command->add_option("--parent", chosen->parent)->group("");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
