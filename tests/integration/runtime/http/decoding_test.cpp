// Goal: images that are decoded, however long that takes, keep nobody waiting who has none, and
// whoever waits for them may leave. Method: a server with one thread for all connections, and a
// decoder that stops until it is told to go on.
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>

#include "tests/integration/runtime/http/image_world.hpp"

using namespace cedar;
using namespace cedar::test;
using json = nlohmann::ordered_json;

namespace {

/// Lets nobody through until it is opened.
class held_decoder {
 public:
  http::server_options options() {
    http::server_options out = image_world::small();
    out.threads = 1;
    out.decoder = [this](http::generation_order& order, const image::image_rules& rules) {
      std::unique_lock lock(mutex_);
      ++begun_;
      opened_.wait(lock, [&] { return open_; });
      return http::decode_images(order, rules);
    };
    return out;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  int begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
  int begun_ = 0;
};

/// A server that waits for its decoder could not end after a test that failed.
struct opened_at_the_end {
  ~opened_at_the_end() { decoder.open(); }

  held_decoder& decoder;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_decoding)

BOOST_AUTO_TEST_CASE(keeps_nobody_waiting_who_has_no_images) {
  held_decoder decoder;
  const image_world one(decoder.options());
  const opened_at_the_end end{decoder};
  const auto open_answers = [&] { return metric(one.port, "cedar_answers_open"); };
  json body = chat({message_with_images({data_url(image_bytes("rgb.png"))}, "What is it?")});
  http_client first(one.port);
  first.send("POST", "/v1/chat/completions", body.dump());
  BOOST_REQUIRE(eventually([&] { return decoder.begun() == 1; }));
  BOOST_TEST(exchange(one.port, "GET", "/health").status == 200);
  BOOST_TEST(one.ask(chat({{{"role", "user"}, {"content", "Hi"}}})).status == 200);
  {
    http_client leaving(one.port);
    leaving.send("POST", "/v1/chat/completions", body.dump());
    BOOST_TEST(eventually([&] { return open_answers() == 2; }));
  }
  BOOST_TEST(eventually([&] { return open_answers() == 1; }));
  body["timeout"] = 0.05;
  const http_reply late = one.ask(body);
  BOOST_TEST(late.status == 503);
  BOOST_TEST(json::parse(late.body)["error"]["code"] == "deadline_exceeded");
  BOOST_TEST(open_answers() == 1);
  decoder.open();
  BOOST_TEST(first.receive().status == 200);
  // Who waited no longer was passed over.
  body.erase("timeout");
  BOOST_TEST(one.ask(body).status == 200);
  BOOST_TEST(decoder.begun() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
