// Goal: who may connect, and what is said to whoever may not. Method: one thing wrong at a time.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "runtime/transport/ucx/address.hpp"
#include "tests/integration/runtime/transport/peer_process.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A TCP socket that listens, and nothing else.
class mute_listener {
 public:
  mute_listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address_;
    BOOST_REQUIRE_EQUAL(::bind(socket_, reinterpret_cast<sockaddr*>(&address_), bytes), 0);
    BOOST_REQUIRE_EQUAL(::listen(socket_, 8), 0);
    BOOST_REQUIRE_EQUAL(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &bytes), 0);
  }
  ~mute_listener() { ::close(socket_); }
  mute_listener(const mute_listener&) = delete;
  mute_listener& operator=(const mute_listener&) = delete;

  std::string address() const { return ucx::to_text(address_); }
  std::uint16_t port() const { return ntohs(address_.sin_port); }

 private:
  int socket_;
  sockaddr_in address_{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(greetings)

BOOST_AUTO_TEST_CASE(a_wrong_secret_is_refused_by_name_at_both_ends) {
  peer_process peer({.secret = "other"});
  this_node node;
  node.open();
  node.door->connect(there, peer.address(), patience);
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST((node.events.reason().code == errc::refused));
  BOOST_TEST(node.events.reason().message ==
             "the shared secrets of node 1 ('here') and node 2 ('peer') differ");
  // The other way round: this node is the one that is knocked at.
  peer.tell("connect 1 " + node.door->address() + " 5000");
  const std::string told = peer.expect("lost 1");
  BOOST_TEST(contains(told, "refused: the shared secrets of node 2 ('peer') and node 1 ('here')"),
             told);
  // The refusal is still on its way when the other side already reports it.
  BOOST_TEST(eventually([&] { return node.door->statistics().connections_refused == 1; }));
  const auto seen = node.door->statistics();
  BOOST_TEST(contains(seen.last_refusal, "the shared secrets"), seen.last_refusal);
  BOOST_TEST(node.events.ups() == 0U);
}

BOOST_AUTO_TEST_CASE(the_wrong_node_is_refused_by_name) {
  peer_process peer({.node = 3, .name = "third"});
  this_node node;
  node.open();
  node.door->connect(there, peer.address(), patience);
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST(contains(node.events.reason().message,
                      "node 1 ('here') looks for node 2, but this is node 3 ('third')"),
             node.events.reason().message);
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_named) {
  mute_listener taken;
  this_node node;
  node.network.bind_port = taken.port();
  const auto opened = ucx::open_port(node.options, node.network, node.events);
  BOOST_REQUIRE(!opened.has_value());
  BOOST_TEST((opened.error().code == errc::io));
  BOOST_TEST(opened.error().message ==
             "cannot listen on " + taken.address() + ": the port is in use");
}

BOOST_AUTO_TEST_CASE(options_that_cannot_work_are_named) {
  const auto message_after = [](auto change) {
    this_node node;
    change(node);
    const auto opened = ucx::open_port(node.options, node.network, node.events);
    return opened ? std::string("opened") : opened.error().message;
  };
  BOOST_TEST(contains(message_after([](this_node& n) { n.options.secret.resize(15); }),
                      "shared secret has 15 bytes"));
  BOOST_TEST(contains(message_after([](this_node& n) { n.options.name.assign(65, 'x'); }),
                      "1 to 64 bytes"));
  BOOST_TEST(contains(message_after([](this_node& n) { n.network.bind_address = "localhost"; }),
                      "'localhost' is not a numeric IPv4 address"));
  // An address for documentation: no host has it.
  BOOST_TEST(contains(message_after([](this_node& n) { n.network.bind_address = "198.51.100.7"; }),
                      "no network device of this host"));
}

BOOST_AUTO_TEST_CASE(a_peer_that_never_comes_is_named_at_the_deadline) {
  this_node node;
  node.open();
  std::string nobody;
  {
    mute_listener gone;
    nobody = gone.address();
  }
  const auto start = std::chrono::steady_clock::now();
  node.door->connect(there, nobody, 600ms);
  BOOST_REQUIRE(node.events.wait_lost());
  const auto took = std::chrono::steady_clock::now() - start;
  BOOST_TEST((took >= 600ms && took < patience / 2));
  BOOST_TEST((node.events.reason().code == errc::timeout));
  BOOST_TEST(contains(node.events.reason().message,
                      "node 2 at " + nobody + " did not answer within 0.6 s"),
             node.events.reason().message);
  BOOST_TEST_MESSAGE(node.events.reason().message);
}

BOOST_AUTO_TEST_CASE(a_peer_that_listens_but_is_mute_is_named_at_the_deadline) {
  this_node node;
  node.open();
  mute_listener mute;
  node.door->connect(there, mute.address(), 600ms);
  BOOST_REQUIRE(node.events.wait_lost(1, 2s));
  BOOST_TEST((node.events.reason().code == errc::timeout));
  BOOST_TEST_MESSAGE(node.events.reason().message);
}

BOOST_AUTO_TEST_CASE(a_stopped_peer_does_not_hold_a_connect) {
  peer_process peer({});
  peer.signal(SIGSTOP);
  this_node node;
  node.open();
  node.door->connect(there, peer.address(), 700ms);
  BOOST_REQUIRE(node.events.wait_lost(1, 2s));
  BOOST_TEST((node.events.reason().code == errc::timeout));
}

BOOST_AUTO_TEST_CASE(an_address_that_is_none_is_named) {
  this_node node;
  node.open();
  node.door->connect(there, "somewhere", 1s);
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST((node.events.reason().code == errc::invalid_argument));
  BOOST_TEST(node.events.reason().message == "'somewhere' is not HOST:PORT");
}

BOOST_AUTO_TEST_CASE(a_peer_that_comes_late_is_found) {
  this_node node;
  node.open();
  std::uint16_t port = 0;
  {
    mute_listener gone;
    port = gone.port();
  }
  node.door->connect(there, "127.0.0.1:" + std::to_string(port), patience);
  BOOST_TEST(!node.events.wait_up(1, 300ms));
  this_node late;
  late.options.self = there;
  late.options.name = "late";
  late.network.bind_port = port;
  late.open();
  BOOST_TEST(node.events.wait_up());
  BOOST_TEST(late.events.wait_up());
  BOOST_TEST(node.events.losses() == 0U);
}

BOOST_AUTO_TEST_CASE(two_nodes_that_look_for_each_other_meet_once) {
  for (int round = 0; round < 5; ++round) {
    peer_process peer({});
    this_node node;
    node.open();
    peer.tell("connect 1 " + node.door->address() + " 20000");
    node.door->connect(there, peer.address(), patience);
    BOOST_REQUIRE(node.events.wait_up());
    BOOST_REQUIRE(!peer.expect("up 1").empty());
    BOOST_TEST(!node.events.wait_lost(1, 300ms));
    BOOST_TEST(node.events.ups() == 1U);
    BOOST_TEST(peer.expect("", 10ms).empty());
    peer.echo();
    node.door->send(there, whole_frame(100, 1));
    BOOST_TEST(node.events.wait_frames(1));
  }
}

BOOST_AUTO_TEST_CASE(a_second_node_of_the_same_id_is_turned_away) {
  peer_process first({}), second({.name = "twin"});
  this_node node;
  node.open();
  node.connect(first);
  second.tell("connect 1 " + node.door->address() + " 700");
  const std::string told = second.expect("lost 1");
  BOOST_TEST(contains(told, "is connected to node 1 ('here') already"), told);
  first.echo();
  node.door->send(there, whole_frame(100, 1));
  BOOST_TEST(node.events.wait_frames(1));
  BOOST_TEST(node.events.losses() == 0U);
}

BOOST_AUTO_TEST_CASE(whoever_speaks_nonsense_disturbs_nobody) {
  peer_process peer({});
  this_node node;
  node.open();
  const auto address = ucx::parse_address(node.door->address());
  for (int i = 0; i < 20; ++i) {
    const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BOOST_REQUIRE_EQUAL(
        ::connect(stranger, reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
    const std::string nonsense = "GET / HTTP/1.1\r\n\r\n" + std::string(5000, static_cast<char>(i));
    [[maybe_unused]] const auto sent =
        ::send(stranger, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    ::close(stranger);
  }
  node.connect(peer);
  BOOST_TEST(node.events.ups() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
