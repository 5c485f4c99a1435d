// A server over the engine of this process, for one test: cedar-tiny, one request at a time and KV
// for all unless told, few rows a step.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/http/server.hpp"
#include "runtime/local/local_service.hpp"
#include "tests/integration/runtime/http/watched_service.hpp"
#include "tests/integration/tools/serve/http_client.hpp"

namespace cedar::test {

const text::tokenizer& vocabulary();
/// Any free port, and the model's name: "m".
http::server_options server_options_of_tests();
std::uint16_t port_of(const http::server& server);
/// A value of /metrics; 0 if it is not there.
double metric(std::uint16_t port, const std::string& name);
/// Waits until `condition` holds; false if it does not within our patience.
bool eventually(const std::function<bool()>& condition);
/// A completion that chooses the most probable token and goes on to `max_tokens`.
nlohmann::json ask_for(const std::string& prompt, std::uint32_t max_tokens, bool stream = false);

class world {
 public:
  explicit world(http::server_options options = server_options_of_tests(),
                 std::uint32_t requests_max = 1, std::uint64_t kv_positions = 0);
  /// Lets the engine go, so that a test that fails while it is held ends.
  ~world() { service->release(); }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  http_reply post(const nlohmann::json& body) const {
    return exchange(port, "POST", "/v1/completions", body.dump());
  }
  /// Sends, on a connection that the caller may drop.
  std::unique_ptr<http_client> begin(const nlohmann::json& body) const;
  /// Waits until nothing is held anywhere, and throws if that does not come; then asks something
  /// and compares it with what the engine said when it was new.
  void check_whole();

 private:
  std::unique_ptr<local::local_engine> engine_;
  std::unique_ptr<local::local_service> local_;

 public:
  std::unique_ptr<watched_service> service;
  std::unique_ptr<http::server> server;
  std::uint16_t port = 0;

 private:
  std::string first_;
};

}  // namespace cedar::test
