#include "tools/cedar/load_options.hpp"

#include <CLI/CLI.hpp>

#include "tools/cedar/number_check.hpp"

namespace cedar::tools {

namespace {

void add_server_options(CLI::App& command, load_options& chosen) {
  CLI::Option* url =
      command.add_option("--url", chosen.url, "A server that runs: http://HOST:PORT");
  CLI::Option* topology = command.add_option(
      "--topology", chosen.topology,
      "Instead of --url: start `cedar serve --topology FILE` for the time of the measurement, and "
      "watch its memory");
  topology->excludes(url);
  command.add_option("-m,--model", chosen.model, "Checkpoint folder; overrides the topology's")
      ->needs(topology);
}

void add_loop_options(CLI::App& command, load_options& chosen) {
  CLI::Option* concurrency = command.add_option("--concurrency", chosen.concurrency,
                                                "Closed loop: requests at any time (default: 8)");
  concurrency->check(CLI::Range(1U, 1000U));
  command
      .add_option("--rate", chosen.rate,
                  "Open loop: requests a second on average, at random times (Poisson)")
      ->check(number_between(1e-3, 1e5))
      ->excludes(concurrency);
  command.add_option("--requests", chosen.requests, "Requests in all (default: 100)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  command
      .add_option("--seconds", chosen.seconds,
                  "Begin requests for so long; those that run then are waited for")
      ->check(number_between(1e-3, 1e7));
  command
      .add_option("--timeout-s", chosen.timeout_s,
                  "Tell the server to end each answer after so many seconds: 'timeout' of every "
                  "request (default: the server's own)")
      ->check(number_between(1e-3, 1e6));
  command
      .add_option("--deadline-s", chosen.deadline_s,
                  "Each request must have ended after so many seconds, whatever the server does "
                  "(default: 60)")
      ->check(number_between(1e-3, 1e6));
}

void add_request_options(CLI::App& command, load_options& chosen) {
  command
      .add_option("--prompts", chosen.prompts,
                  "Different prompts, asked in turn (default: 64), each with a seed of its own")
      ->check(CLI::Range(1U, 1U << 20));
  command
      .add_option("--prompt-tokens", chosen.prompt_tokens,
                  "Tokens of a prompt, drawn by the seed (default: 32)")
      ->check(CLI::Range(1U, 1U << 20));
  command
      .add_option("--token-ids", chosen.token_ids,
                  "Prompts are made of ids below this (default: 1024)")
      ->check(CLI::Range(33U, 1U << 24));
  command.add_option("--max-tokens", chosen.max_tokens, "Tokens of an answer (default: 64)")
      ->check(CLI::Range(1U, 1U << 20));
  command.add_option("--temperature", chosen.temperature, "Default: 1")
      ->check(number_between(0, 100));
  command.add_option("--seed", chosen.seed, "Of prompts, answers and arrivals (default: 1)")
      ->check(whole_number());
  command.add_flag("--ignore-eos", chosen.ignore_eos, "Answers have all of --max-tokens");
}

}  // namespace

void add_load_options(CLI::App& command, load_options& options) {
  add_server_options(command, options);
  add_loop_options(command, options);
  add_request_options(command, options);
  command.add_flag("--verify", options.verify,
                   "Ask every prompt alone first; fail if an answer under load differs");
  command.add_option("--json", options.json, "Write the report to this file, too");
}

void settle(load_options& options) {
  if (options.url.empty() && options.topology.empty())
    throw CLI::RequiredError("--url URL or --topology FILE");
  if (options.timeout_s && *options.timeout_s >= options.deadline_s)
    throw CLI::ValidationError(
        "--timeout-s",
        "must be less than --deadline-s: the server ends an answer, and then "
        "it has to come here");
  if (options.requests == 0 && options.seconds == 0) options.requests = 100;
}

}  // namespace cedar::tools
