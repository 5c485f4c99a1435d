#include "tests/integration/topology/launch/serving_hosts.hpp"

#include <boost/test/unit_test.hpp>

namespace cedar::test {

std::vector<std::string> command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CEDAR_PROGRAM);
  return arguments;
}

std::vector<std::string> rejoining(program& server, const std::string& name) {
  auto arguments = joining::node_arguments(server, name);
  arguments.insert(arguments.end(), {"--rejoin", "--join-deadline", "2000"});
  return command(std::move(arguments));
}

connector connector_at(const hosts& all, program& server) {
  const auto port = static_cast<std::uint16_t>(std::stoul(port_of(server)));
  return [&all, port] { return all.at(0, [&] { return std::make_unique<http_client>(port); }); };
}

std::string answer_of(const connector& connect) {
  const auto client = connect();
  client->send(
      "POST", "/v1/completions",
      R"({"model": "cedar-tiny", "prompt": "The fox", "max_tokens": 12, "temperature": 0})");
  const http_reply reply = client->receive();
  BOOST_REQUIRE_MESSAGE(reply.status == 200, reply.body);
  return text_of(reply.body);
}

}  // namespace cedar::test
