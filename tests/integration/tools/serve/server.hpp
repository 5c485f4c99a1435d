// `cedar serve` on a free port, for one test.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "tests/integration/tools/serve/http_client.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cedar::test {

struct server {
  /// Two processes, unless `topology` is nothing.
  explicit server(const std::vector<std::string>& more = {},
                  const std::optional<topology_options>& topology = topology_options{},
                  const std::filesystem::path& model = checkpoint_of("cedar-tiny"));

  http_reply post(const std::string& path, const nlohmann::json& body) const {
    return exchange(port, "POST", path, body.dump());
  }
  http_reply get(const std::string& path) const { return exchange(port, "GET", path); }
  /// The text of the first choice of a completion, whole or streamed.
  std::string completion(nlohmann::json body) const;
  /// A value of /metrics; 0 if it is not there.
  double metric(const std::string& name) const;
  /// Waits until /metrics says so; false if it does not within our patience.
  bool wait_metric(const std::string& name, double value) const;

  temporary_folder folder;
  program process;
  std::uint16_t port = 0;
};

/// A completion by the small model that chooses the most probable token.
nlohmann::json greedy(const std::string& prompt, std::uint32_t max_tokens);
/// The text of choice 0 in the chunks of a stream, which must end as streams do.
std::string streamed_text(const std::string& stream);

}  // namespace cedar::test
