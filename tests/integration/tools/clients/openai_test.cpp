// Goal: OpenAI's own client works with this server unchanged. Method: the package from npm's
// registry, of a pinned version and content (openai/package-lock.json), under node, against a
// server of two processes; openai/client.mjs has the expectations. Without the registry nothing is
// tested, and the reason is printed.
#include <boost/test/unit_test.hpp>

#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;

namespace {

constexpr int unreachable = 77;
const std::string scripts = CEDAR_SOURCE_DIR "/tests/integration/tools/clients/openai/";
const std::string folder = CEDAR_BINARY_DIR "/openai-client";

finished node(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"node"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run("/usr/bin/env", words);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(openai_client)

BOOST_AUTO_TEST_CASE(works_unchanged) {
  const finished installed = node({scripts + "install.mjs", folder});
  if (installed.code == unreachable) {
    BOOST_WARN_MESSAGE(false, "skipped: " << installed.output);
    return;
  }
  BOOST_REQUIRE_MESSAGE(installed.code == 0, installed.output << installed.errors);
  const server one;
  const finished ran =
      node({folder + "/client.mjs", "http://127.0.0.1:" + std::to_string(one.port)});
  BOOST_TEST(ran.code == 0, ran.output << ran.errors);
  BOOST_TEST(contains(ran.output, "errors: well"), ran.output);
}

BOOST_AUTO_TEST_SUITE_END()
