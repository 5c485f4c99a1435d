#include "tests/integration/topology/launch/joining.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <iterator>
#include <sstream>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/topology_text.hpp"

namespace cedar::test {

namespace {
const std::string prompt = "Once upon a time";
}  // namespace

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

joining::joining(std::size_t nodes, const std::string& more) {
  topology_options options;
  options.model = checkpoint_of("cedar-tiny").string();
  if (nodes == 3) options.cuts = {3, 5};
  options.more = "security: {secret_file: secret-s}\n" + more;
  std::string text = topology_text(options);
  for (std::size_t node = 1; node < nodes; ++node) {
    const std::string name = "node" + std::to_string(node);
    text = replaced(text, name + ": {address: 127.0.0.1}",
                    name + ": {address: 127.0.0.1, start: join}");
  }
  write_topology(text);
  secret();
}

void joining::write_topology(const std::string& text) {
  text_ = text;
  folder_.write("t.yaml", text);
}

std::filesystem::path joining::secret(char letter) const {
  const auto file = folder_.write(std::string("secret-") + letter, std::string(40, letter));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  return file;
}

std::vector<std::string> joining::serve_arguments() const {
  return {"serve", "--topology", (folder() / "t.yaml").string(), "--listen", "127.0.0.1:0"};
}

std::vector<std::string> joining::run_arguments(std::uint32_t new_tokens) const {
  return {"run",          "--topology",   (folder() / "t.yaml").string(), "-p", prompt,
          "--ignore-eos", "--max-tokens", std::to_string(new_tokens)};
}

std::vector<std::string> joining::node_arguments(program& client, const std::string& name) {
  const std::string start = "cedar: waiting for node '" + name + "': cedar ";
  BOOST_REQUIRE_MESSAGE(client.wait_errors(start), client.errors());
  BOOST_REQUIRE(client.wait_errors("\n"));
  const std::string text = client.errors().substr(client.errors().find(start) + start.size());
  std::istringstream words(text.substr(0, text.find('\n')));
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

std::string joining::answer(std::uint32_t new_tokens) {
  const finished ran =
      run(CEDAR_PROGRAM, {"run", "-m", checkpoint_of("cedar-tiny").string(), "-p", prompt,
                          "--ignore-eos", "--max-tokens", std::to_string(new_tokens)});
  BOOST_REQUIRE_EQUAL(ran.code, 0);
  return ran.output;
}

std::string port_of(program& server) {
  const std::string begin = "listening on http://127.0.0.1:";
  BOOST_REQUIRE_MESSAGE(server.wait_output(begin), server.errors());
  BOOST_REQUIRE(server.wait_output("\n"));
  const std::size_t at = server.output().find(begin) + begin.size();
  return server.output().substr(at, server.output().find('\n', at) - at);
}

std::string text_of(const std::string& answer) {
  const std::string begin = R"("text":")";
  const std::size_t at = answer.find(begin);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, answer);
  return answer.substr(at + begin.size(), answer.find("\",\"", at) - at - begin.size());
}

std::vector<std::string> with_option(std::vector<std::string> arguments, const std::string& option,
                                     const std::string& value) {
  const auto at = std::ranges::find(arguments, option);
  BOOST_REQUIRE(at != arguments.end() && at + 1 != arguments.end());
  *(at + 1) = value;
  return arguments;
}

}  // namespace cedar::test
