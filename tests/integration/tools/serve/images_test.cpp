// Goal: a server whose topology places vision answers chats with images as one process does, comes
// back when vision's process is lost, and without vision refuses images by name. Method: servers of
// tiny-vision, of one process and of two and three.
#include <signal.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/tools/serve/faults.hpp"
#include "tests/support/image_urls.hpp"

using namespace cedar::test;
using json = nlohmann::ordered_json;

namespace {

const std::filesystem::path& model() {
  static const std::filesystem::path folder = checkpoint_of("tiny-vision");
  return folder;
}

topology_options with_vision(const std::string& node) {
  topology_options out;
  out.vision = node;
  out.more = "limits: {rows_per_step: 5, requests: 2, context: 256}";
  return out;
}

json question(double temperature, bool stream = false) {
  const std::string png = data_url(image_bytes("rgb.png"));
  const std::string jpeg = data_url(image_bytes("baseline.jpg"), "image/jpeg");
  return {{"model", "tiny-vision"},
          {"messages", {message_with_images({png, jpeg}, "What is it?")}},
          {"max_tokens", 12},
          {"temperature", temperature},
          {"seed", 5},
          {"stream", stream},
          {"ignore_eos", true}};
}

http_reply ask(const server& one, const json& body) {
  return exchange(one.port, "POST", "/v1/chat/completions", body.dump());
}

json answer(const server& one, const json& body) {
  const http_reply reply = ask(one, body);
  BOOST_REQUIRE_MESSAGE(reply.status == 200, reply.body);
  return json::parse(reply.body);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_images)

BOOST_AUTO_TEST_CASE(says_what_one_process_says_and_comes_back_without_its_vision) {
  const server plain({}, std::nullopt, model());
  server one({}, with_vision("eye"), model());
  for (const double temperature : {0.0, 0.8}) {
    const json expected = answer(plain, question(temperature));
    const json got = answer(one, question(temperature));
    BOOST_TEST(got.at("choices") == expected.at("choices"));
    BOOST_TEST(got.at("usage") == expected.at("usage"));
  }
  BOOST_TEST(one.metric("cedar_edge_messages_total{edge=\"scheduler -> vision image\"}") >= 0);
  ::kill(pid_of(one, "eye"), SIGKILL);
  BOOST_TEST(one.wait_metric("cedar_node_losses_total{node=\"eye\"}", 1));
  wait_ready(one);
  BOOST_TEST(answer(one, question(0)).at("choices") == answer(plain, question(0)).at("choices"));
  BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 0));
  stop(one);
}

BOOST_AUTO_TEST_CASE(refuses_images_where_no_vision_is_placed) {
  const server one({}, topology_options{}, model());
  const http_reply reply = ask(one, question(0));
  BOOST_TEST(reply.status == 400);
  const json error = json::parse(reply.body).at("error");
  BOOST_TEST(error.at("param") == "messages[0].content[0].image_url.url");
  BOOST_TEST(contains(error.at("message").get<std::string>(),
                      "add vision: {device: DEVICE} to its units"));
}

BOOST_AUTO_TEST_SUITE_END()
