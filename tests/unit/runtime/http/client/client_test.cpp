// Goal: a client gets what a server says, or is told how it failed. Method: servers on the loopback
// interface that say prepared bytes, whatever they are asked, and close.
#include "runtime/http/client/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

using namespace cedar;
using namespace cedar::http;

namespace {

/// Listens on a free port of the loopback interface.
server_url listen_on(int socket) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  BOOST_REQUIRE_EQUAL(::bind(socket, reinterpret_cast<sockaddr*>(&at), size), 0);
  BOOST_REQUIRE_EQUAL(::listen(socket, 16), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  return {"127.0.0.1", std::to_string(ntohs(at.sin_port))};
}

/// Listens; answers `clients` connections, one after the other, once a request's header is there.
class scripted_server {
 public:
  scripted_server(std::string says, int clients)
      : says_(std::move(says)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    url_ = listen_on(socket_);
    thread_ = std::thread([this, clients] {
      for (int i = 0; i < clients; ++i) answer(::accept(socket_, nullptr, nullptr));
    });
  }
  ~scripted_server() {
    thread_.join();
    ::close(socket_);
  }

  const server_url& url() const { return url_; }

 private:
  void answer(int client) const {
    std::string asked;
    std::array<char, 4096> bytes{};
    while (asked.find("\r\n\r\n") == std::string::npos) {
      const ssize_t some = ::recv(client, bytes.data(), bytes.size(), 0);
      if (some <= 0) break;
      asked.append(bytes.data(), static_cast<std::size_t>(some));
    }
    static_cast<void>(!::send(client, says_.data(), says_.size(), MSG_NOSIGNAL));
    ::shutdown(client, SHUT_WR);
    // Until the client closes: a time limit of its own is the client's business.
    while (::recv(client, bytes.data(), bytes.size(), 0) > 0) {
    }
    ::close(client);
  }

  std::string says_;
  int socket_;
  server_url url_;
  std::thread thread_;
};

/// Says nothing at all, and does not close.
class silent_server {
 public:
  silent_server() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) { url_ = listen_on(socket_); }
  ~silent_server() { ::close(socket_); }

  const server_url& url() const { return url_; }

 private:
  int socket_;
  server_url url_;
};

const std::string whole = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nhello";
const std::string chunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

std::string_view failure_of(const std::string& says) {
  const scripted_server server(says, 1);
  const auto reply = ask(server.url(), {"/x", "", std::chrono::seconds(60)});
  BOOST_REQUIRE(!reply.has_value());
  return to_string(reply.error().code);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(http_client)

BOOST_AUTO_TEST_CASE(takes_bodies_of_either_framing) {
  for (const auto& [says, status] : {std::pair(whole, 503U), std::pair(chunked, 200U)}) {
    const scripted_server server(says, 2);
    for (const char* body : {"", "{}"}) {
      const auto reply = ask(server.url(), {"/x", body, std::chrono::seconds(60)});
      BOOST_REQUIRE_MESSAGE(reply.has_value(), reply.error().message);
      BOOST_TEST(reply->status == status);
      BOOST_TEST(reply->body == "hello");
    }
  }
}

BOOST_AUTO_TEST_CASE(says_how_an_answer_failed) {
  BOOST_TEST(failure_of("") == "peer lost");
  for (std::size_t cut : {20U, 58U}) BOOST_TEST(failure_of(whole.substr(0, cut)) == "peer lost");
  for (std::size_t cut = 50; cut < chunked.size(); cut += 7)
    BOOST_TEST(failure_of(chunked.substr(0, cut)) == "peer lost", cut);
  BOOST_TEST(failure_of("SSH-2.0-OpenSSH_9.2\r\n") == "malformed");
}

BOOST_AUTO_TEST_CASE(gives_what_came_before_the_cut) {
  const scripted_server server(chunked.substr(0, chunked.size() - 5), 1);
  client one(server.url());
  std::string order;
  client_events events;
  events.on_status = [&](unsigned status) { order += std::to_string(status) + " "; };
  events.on_bytes = [&](std::string_view bytes) { order += bytes; };
  events.on_end = [&](const result<void>& how) { order += how ? " whole" : " cut"; };
  one.send({"/x", "{}", std::chrono::seconds(60)}, events);
  one.run();
  BOOST_TEST(order == "200 hello cut");
}

BOOST_AUTO_TEST_CASE(keeps_its_limit) {
  const silent_server server;
  const auto reply = ask(server.url(), {"/x", "", std::chrono::milliseconds(30)});
  BOOST_REQUIRE(!reply.has_value());
  BOOST_TEST(to_string(reply.error().code) == "timeout");
}

BOOST_AUTO_TEST_CASE(says_that_nothing_listens) {
  server_url gone;
  {
    const silent_server server;
    gone = server.url();
  }
  const auto reply = ask(gone, {"/x", "", std::chrono::seconds(60)});
  BOOST_REQUIRE(!reply.has_value());
  BOOST_TEST(to_string(reply.error().code) == "not found");
  BOOST_TEST(reply.error().message.find(gone.text()) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(asks_again_from_within_events_and_timers) {
  const scripted_server server(whole, 3);
  client one(server.url());
  int ended = 0;
  client_events events;
  events.on_status = [](unsigned) {};
  events.on_bytes = [](std::string_view) {};
  events.on_end = [&](const result<void>& how) {
    BOOST_TEST(how.has_value());
    if (++ended == 1) one.send({"/again", "", std::chrono::seconds(60)}, events);
  };
  one.at(std::chrono::steady_clock::now(), [&] {
    one.send({"/timer", "", std::chrono::seconds(60)}, events);
  });
  one.send({"/x", "", std::chrono::seconds(60)}, events);
  one.run();
  BOOST_TEST(ended == 3);
}

BOOST_AUTO_TEST_CASE(can_be_stopped) {
  const silent_server server;
  client one(server.url());
  client_events events;
  events.on_end = [](const result<void>&) { BOOST_ERROR("an event after the stop"); };
  one.send({"/x", "", std::chrono::seconds(600)}, events);
  std::thread other([&] { one.stop(); });
  one.run();
  other.join();
}

BOOST_AUTO_TEST_SUITE_END()
