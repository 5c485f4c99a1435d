#include "tests/integration/tools/serve/server.hpp"

#include <stdexcept>
#include <thread>

#include "tests/integration/tools/serve/fault_watch.hpp"

namespace cedar::test {

using nlohmann::json;

namespace {

std::vector<std::string> arguments_of(const temporary_folder& folder,
                                      const std::vector<std::string>& more,
                                      const std::optional<topology_options>& topology,
                                      const std::filesystem::path& model) {
  std::vector<std::string> out{"serve", "-m", model.string(), "--listen", "127.0.0.1:0"};
  if (topology) {
    out.push_back("--topology");
    out.push_back(folder.write("t.yaml", topology_text(*topology)).string());
  }
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace

server::server(const std::vector<std::string>& more,
               const std::optional<topology_options>& topology, const std::filesystem::path& model)
    : process(CEDAR_PROGRAM, arguments_of(folder, more, topology, model)) {
  const std::string begin = "listening on http://127.0.0.1:";
  if (!process.wait_output(begin) || !process.wait_output("\n"))
    throw std::runtime_error("cedar serve does not listen: " + process.errors());
  port = static_cast<std::uint16_t>(
      std::stoul(process.output().substr(process.output().find(begin) + begin.size())));
}

std::string server::completion(json body) const {
  const http_reply reply = post("/v1/completions", body);
  if (reply.status != 200) throw std::runtime_error(reply.body);
  if (body.value("stream", false)) return streamed_text(reply.body);
  return json::parse(reply.body).at("choices").at(0).at("text");
}

double server::metric(const std::string& name) const {
  return value_of(get("/metrics").body, name);
}

bool server::wait_metric(const std::string& name, double value) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (metric(name) != value) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

json greedy(const std::string& prompt, std::uint32_t max_tokens) {
  return {
      {"model", "cedar-tiny"}, {"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}};
}

std::string streamed_text(const std::string& stream) {
  const std::vector<std::string> events = events_of(stream);
  if (events.empty() || events.back() != "[DONE]")
    throw std::runtime_error("a stream without end: " + stream);
  std::string out;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const json chunk = json::parse(events[i]);
    for (const json& choice : chunk.at("choices"))
      if (choice.at("index") == 0) out += choice.at("text").get<std::string>();
  }
  return out;
}

}  // namespace cedar::test
