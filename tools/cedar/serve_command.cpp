// `cedar serve`: answers HTTP until it is told to stop.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <future>
#include <regex>

#include "kernels/registry/registry.hpp"
#include "runtime/http/server.hpp"
#include "runtime/local/local_service.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/draft_option.hpp"
#include "tools/cedar/pipeline.hpp"
#include "topology/launch/cluster_service.hpp"

namespace cedar::tools {

namespace {

/// Requests that wait for the engine of this process. (A topology's scheduler has its own bound.)
constexpr std::uint32_t local_queue_max = 1024;

struct options {
  pipeline_options pipeline;
  std::string listen = "127.0.0.1:8080";
  std::string model_name;
  std::uint32_t drain_s = 30;
  std::uint32_t request_s = 600;
  std::uint32_t body_mib = 4;
  http::server_options server;
};

/// "ADDRESS:PORT", "[ADDRESS]:PORT".
result<void> read_listen(const std::string& text, http::server_options& to) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const char* const digits = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto read = std::from_chars(digits, end, port);
  if (digits == end || read.ec != std::errc{} || read.ptr != end)
    return fail(errc::invalid_argument,
                "--listen " + text + ": write ADDRESS:PORT, e.g. 127.0.0.1:8080");
  to.address = text.substr(0, colon);
  if (to.address.starts_with('[') && to.address.ends_with(']'))
    to.address = to.address.substr(1, to.address.size() - 2);
  to.port = port;
  return {};
}

result<http::served_model> served(const pipeline& engine, const std::string& name) {
  const stage::model_source& model = engine.model();
  const auto fingerprint = model.fingerprint();
  if (!fingerprint) return fail(fingerprint.error());
  http::served_model out;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(model.folder()));
  out.name = name.empty() ? folder.filename().string() : name;
  out.fingerprint = fmt::format("{:016x}", *fingerprint);
  out.created_s = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  out.mode = engine.mode();
  return out;
}

/// Until the first signal; then drains. A second one ends what is running.
result<void> serve(const options& chosen, pipeline& engine, session::generation_service& service) {
  const auto tokenizer = text::tokenizer::load(engine.model().folder() / "tokenizer.json");
  if (!tokenizer) return fail(tokenizer.error());
  http::server_options used = chosen.server;
  if (const auto read = read_listen(chosen.listen, used); !read) return read;
  auto model = served(engine, chosen.model_name);
  if (!model) return fail(model.error());
  used.model = std::move(*model);
  used.request_limit = std::chrono::seconds(chosen.request_s);
  used.body_bytes_max = std::uint64_t{chosen.body_mib} << 20U;
  const auto server = http::server::open(service, *tokenizer, used);
  if (!server) return fail(server.error());

  std::promise<void> told;
  std::uint32_t signals = 0;  // counted in the reactions' thread
  engine.react_to_signals([&] {
    if (signals++ == 0)
      told.set_value();
    else
      engine.interrupt();
  });
  fmt::print("listening on http://{}\n", (*server)->address());
  std::fflush(stdout);
  told.get_future().wait();
  // A pipeline that is down finishes nothing: those who wait for it hear so at once.
  if (!service.status().problem.empty()) engine.interrupt();
  const bool drained = (*server)->drain(std::chrono::seconds(chosen.drain_s));
  engine.react_to_signals(nullptr);
  if (!drained)
    return fail(errc::timeout, fmt::format("some answers were not finished within the {} s of "
                                           "--drain-seconds, and were given up",
                                           chosen.drain_s));
  return {};
}

result<void> run(const options& chosen) {
  const auto engine = pipeline::open(chosen.pipeline);
  if (!engine) return fail(engine.error());
  auto service = (*engine)->service(local_queue_max);
  const result<void> served = serve(chosen, **engine, *service);
  service.reset();
  const result<void> finished = (*engine)->finish({});
  return served ? finished : served;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Answer HTTP as OpenAI's interface has it");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  chosen->pipeline.serves = true;
  add_pipeline_options(*command, chosen->pipeline);
  add_draft_option(*command, chosen->pipeline.draft);
  command->add_option("--listen", chosen->listen,
                      "ADDRESS:PORT; port 0: any that is free, printed when ready");
  command->add_option("--model-name", chosen->model_name,
                      "What requests call the model; default: its folder's name");
  command
      ->add_option("--queue-requests", chosen->server.admitted.requests_max,
                   "Answers that wait or run at once; more are refused with 429")
      ->check(CLI::Range(1U, 65536U));
  command
      ->add_option("--queue-tokens", chosen->server.admitted.tokens_max,
                   "Their tokens, prompts and the most they may generate")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--body-mib", chosen->body_mib,
                   "Largest body of a request, in MiB (4 unless told); images are part of it, a "
                   "third longer than their files")
      ->check(CLI::Range(1U, 1024U));
  command
      ->add_option(
          "--image-hosts", chosen->server.image_hosts,
          "HOST or HOST:PORT: fetch images that chats name by http(s) URLs from there, and "
          "from nowhere else (unless told, only data URLs are taken); again for more")
      ->transform([](const std::string& host) {
        static const std::regex form(R"((\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:([1-9][0-9]{0,4}))?)");
        const std::string lower = CLI::detail::to_lower(host);
        std::smatch parts;
        if (!std::regex_match(lower, parts, form) ||
            (parts[3].matched && std::stoi(parts[3]) > 65535))
          throw CLI::ValidationError("--image-hosts", "'" + host + "' is no HOST or HOST:PORT");
        return lower;
      })
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--image-downloads", chosen->server.downloads_max,
                   "Requests whose images are fetched at once (8 unless told); others wait, within "
                   "their time")
      ->check(CLI::Range(1U, 1024U));
  command->add_option("--request-seconds", chosen->request_s,
                      "Longest time for one answer, from its request on; 0: none. A request may "
                      "ask for less (timeout)");
  command->add_option(
      "--drain-seconds", chosen->drain_s,
      "After SIGTERM (or Ctrl-C, or SIGHUP), longest wait for answers that have begun");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
