// Goal: images are fetched from the hosts that a server's owner named, within bounds, and from
// nobody else; whatever comes back is an image or the client's error. Method: a server of files
// that misbehaves and one that nobody vouches for, in this process; answers against those to data
// URLs.
#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "tests/integration/runtime/http/image_world.hpp"

using namespace cedar;
using namespace cedar::test;
using json = nlohmann::ordered_json;

namespace {

/// Serves files of other servers, good and bad, until it is destroyed.
class file_server {
 public:
  file_server() : thread_([this] { serve(); }) {}
  ~file_server() {
    stopping_ = true;
    tcp::socket(context_).connect(acceptor_.local_endpoint());  // wakes it
    thread_.join();
  }

  std::string host() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  std::string url(const std::string& path) const { return "http://" + host() + path; }
  int asked() const { return asked_; }
  /// Whoever asked for /patience has gone.
  bool is_left() const { return left_; }

 private:
  using tcp = boost::asio::ip::tcp;

  static std::string reply(const std::string& status, const std::string& body) {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  std::string answer(const std::string& path) const {
    if (path == "/rgb.png") return reply("200 OK", image_bytes("rgb.png"));
    if (path == "/text") return reply("200 OK", "hello");
    if (path == "/large") return reply("200 OK", std::string(200'000, 'x'));
    if (path == "/endless")
      return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + std::string(200'000, 'x');
    if (path == "/chunked")
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n" +
             std::string(60'000, 'x') + "\r\nea60\r\n" + std::string(60'000, 'x') + "\r\n0\r\n\r\n";
    if (path == "/empty") return reply("200 OK", "");
    if (path == "/moved")
      return "HTTP/1.1 302 Found\r\nLocation: " + url("/rgb.png") + "\r\nContent-Length: 0\r\n\r\n";
    if (path == "/torn") return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc";
    if (path == "/noise") return "what?\r\n\r\n";
    return reply("404 Not Found", "nothing");
  }
  void serve() {
    while (!stopping_) {
      tcp::socket socket(context_);
      acceptor_.accept(socket);
      std::string request;
      boost::system::error_code failed;
      boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "\r\n\r\n", failed);
      if (failed) continue;
      ++asked_;
      const std::string path = request.substr(4, request.find(' ', 4) - 4);
      char byte = 0;
      if (path == "/silent") {
        silent_.push_back(std::move(socket));
      } else if (path == "/patience") {
        boost::asio::read(socket, boost::asio::buffer(&byte, 1), failed);
        left_ = true;
      } else {
        boost::asio::write(socket, boost::asio::buffer(answer(path)), failed);
      }
    }
  }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::atomic<bool> stopping_ = false;
  std::atomic<int> asked_ = 0;
  std::atomic<bool> left_ = false;
  std::vector<tcp::socket> silent_;
  std::thread thread_;
};

/// Speaks TLS with a certificate that nobody vouches for, once.
class stranger {
 public:
  stranger() : thread_([this] { serve(); }) {}
  ~stranger() { thread_.join(); }

  std::string host() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  using tcp = boost::asio::ip::tcp;

  static void certify(boost::asio::ssl::context& to) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(to.native_handle(), certificate);
    SSL_CTX_use_PrivateKey(to.native_handle(), key);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  void serve() {
    boost::asio::ssl::context own(boost::asio::ssl::context::tls_server);
    certify(own);
    boost::asio::ssl::stream<tcp::socket> stream(context_, own);
    acceptor_.accept(stream.next_layer());
    boost::system::error_code refused;
    stream.handshake(boost::asio::ssl::stream_base::server, refused);
  }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_downloads)

BOOST_AUTO_TEST_CASE(are_fetched_from_hosts_that_are_named_and_from_no_other) {
  file_server files;
  const image_world one(image_world::fetching(files.host()));
  const json sent = chat({message_with_images({data_url(image_bytes("rgb.png"))}, "What is it?")});
  const json named = chat({message_with_images({files.url("/rgb.png")}, "What is it?")});
  const auto content = [](const http_reply& reply) {
    BOOST_REQUIRE_MESSAGE(reply.status == 200, reply.body);
    const json answer = json::parse(reply.body);
    return answer["choices"][0]["message"]["content"].get<std::string>() +
           std::to_string(answer["usage"]["prompt_tokens"].get<int>());
  };
  BOOST_TEST(content(one.ask(named)) == content(one.ask(sent)));
  const json both = chat({message_with_images(
      {files.url("/rgb.png"), data_url(image_bytes("rgb.png")), files.url("/rgb.png")}, "a")});
  BOOST_TEST(one.ask(both).status == 200);
  BOOST_TEST(files.asked() == 3);
  const std::string other = "http://localhost" + files.host().substr(files.host().find(':'));
  for (const auto& [url, text] : {
           std::pair(files.url("/none"), "status 404"),
           {files.url("/text"), "is not a PNG, JPEG or WebP file"},
           {files.url("/large"), "100000 bytes together"},
           {files.url("/endless"), "100000 bytes together"},
           {files.url("/chunked"), "100000 bytes together"},
           {files.url("/empty"), "the file is empty"},
           {files.url("/moved"), "redirect"},
           {files.url("/torn"), "broke off"},
           {files.url("/noise"), "broke off"},
           {files.url("/silent"), "within 500 ms"},
           {other + "/rgb.png", "does not fetch images from there"},
           {std::string("http://a b/"), "a character that no URL has"},
       }) {
    const http_reply reply = one.ask(chat({message_with_images({url}, "a")}));
    BOOST_TEST(reply.status == 400, url);
    const json error = json::parse(reply.body)["error"];
    BOOST_TEST(error["param"] == "messages[0].content[0].image_url.url");
    BOOST_TEST(contains(error["message"].get<std::string>(), text), url << ": " << reply.body);
  }
  BOOST_TEST(metric(one.port, "cedar_answers_open") == 0);
  // Without named hosts nobody is asked.
  const int asked = files.asked();
  const image_world careful;
  BOOST_TEST(careful.ask(named).status == 400);
  BOOST_TEST(files.asked() == asked);
}

BOOST_AUTO_TEST_CASE(take_of_the_requests_own_time) {
  file_server files;
  const image_world one(image_world::fetching(files.host(), std::chrono::minutes(10)));
  json body = chat({message_with_images({files.url("/silent")}, "a")});
  body["timeout"] = 0.1;
  const http_reply reply = one.ask(body);
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(json::parse(reply.body)["error"]["code"] == "deadline_exceeded");
}

BOOST_AUTO_TEST_CASE(end_with_the_client_that_leaves) {
  file_server files;
  const image_world one(image_world::fetching(files.host(), std::chrono::minutes(10)));
  {
    http_client client(one.port);
    client.send("POST", "/v1/chat/completions",
                chat({message_with_images({files.url("/patience")}, "a")}).dump());
    BOOST_REQUIRE(eventually([&] { return files.asked() == 1; }));
  }
  BOOST_TEST(eventually([&] { return files.is_left(); }));
}

BOOST_AUTO_TEST_CASE(wait_for_their_turn) {
  file_server files;
  http::server_options options = image_world::fetching(files.host(), std::chrono::minutes(10));
  options.downloads_max = 1;
  const image_world one(options);
  const auto waiting = [&] { return metric(one.port, "cedar_image_downloads_waiting"); };
  const auto asking_for = [&](const std::string& path) {
    auto client = std::make_unique<http_client>(one.port);
    client->send("POST", "/v1/chat/completions",
                 chat({message_with_images({files.url(path)}, "a")}).dump());
    return client;
  };
  auto first = asking_for("/silent");
  BOOST_REQUIRE(eventually([&] { return files.asked() == 1; }));
  BOOST_TEST(metric(one.port, "cedar_image_downloads_running") == 1);
  // Who waits may leave, and has no more than the time of its answer.
  auto leaving = asking_for("/rgb.png");
  BOOST_TEST(eventually([&] { return waiting() == 1; }));
  leaving.reset();
  BOOST_TEST(eventually([&] { return waiting() == 0; }));
  json body = chat({message_with_images({files.url("/rgb.png")}, "a")});
  body["timeout"] = 0.05;
  const http_reply late = one.ask(body);
  BOOST_TEST(late.status == 503);
  BOOST_TEST(json::parse(late.body)["error"]["code"] == "deadline_exceeded");
  BOOST_TEST(waiting() == 0);
  auto second = asking_for("/rgb.png");
  BOOST_TEST(eventually([&] { return waiting() == 1; }));
  BOOST_TEST(files.asked() == 1);
  first.reset();
  BOOST_TEST(second->receive().status == 200);
  BOOST_TEST(files.asked() == 2);
  BOOST_TEST(metric(one.port, "cedar_image_downloads_running") == 0);
}

BOOST_AUTO_TEST_CASE(are_not_fetched_from_whom_nobody_vouches_for) {
  const stranger other;
  const image_world one(image_world::fetching(other.host()));
  const http_reply reply =
      one.ask(chat({message_with_images({"https://" + other.host() + "/rgb.png"}, "a")}));
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(contains(reply.body, "TLS: "), reply.body);
  BOOST_TEST(contains(reply.body, "verify failed"), reply.body);
}

BOOST_AUTO_TEST_SUITE_END()
