// Goal: conversations with tools, their results and kept reasoning become the release's prompts,
// whatever client sent them. Method: recorded conversations as bodies of chats, against the
// recorded prompts.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/http/chat_request.hpp"
#include "runtime/http/order.hpp"

using namespace cedar;
using namespace cedar::http;
using json = nlohmann::ordered_json;

namespace {

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return *loaded;
}

/// Those with tools, as far as the interface can say them.
std::vector<json> recorded() {
  const json all =
      json::parse(std::ifstream(CEDAR_TEST_DATA "/released/prompt_encoding_vectors.json"));
  std::vector<json> out;
  for (const json& one : all.at("encode"))
    if (one.at("messages").dump().find("\"tool") != std::string::npos &&
        one.at("drop_thinking") == true)
      out.push_back(one);
  return out;
}

std::string prompt_of(const json& body) {
  static const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{100000, 2048};
  const auto ask = parse_chat(body.dump());
  BOOST_REQUIRE_MESSAGE(ask, (ask ? "" : ask.error().message));
  const auto order = order_maker(model, vocabulary(), limits).make(*ask);
  BOOST_REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  return vocabulary().decode(order->requests.at(0).prompt).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tools_of_chats)

BOOST_AUTO_TEST_CASE(become_the_recorded_prompts) {
  const std::vector<json> cases = recorded();
  BOOST_TEST(cases.size() >= 14U);
  for (const json& one : cases) {
    json body{{"model", "m"}, {"messages", one.at("messages")}};
    if (one.at("thinking_mode") == "thinking") body["thinking"] = {{"type", "enabled"}};
    BOOST_TEST(prompt_of(body) == one.at("prompt").get<std::string>(), one.at("name"));
  }
}

// OpenAI's clients send them beside the messages.
BOOST_AUTO_TEST_CASE(may_stand_beside_the_messages) {
  const json tools = json::parse(R"([{"type": "function", "function": {"name": "look",
      "description": "Looks.", "parameters": {"type": "object", "properties": {"at": {"type":
      "string"}}}}}])");
  const json user{{"role", "user"}, {"content", "Hi"}};
  const json beside{{"model", "m"}, {"messages", {user}}, {"tools", tools}};
  const json inside{{"model", "m"},
                    {"messages", {{{"role", "system"}, {"content", ""}, {"tools", tools}}, user}}};
  BOOST_TEST(prompt_of(beside) == prompt_of(inside));
  BOOST_TEST(prompt_of(beside).find("\"name\": \"look\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
