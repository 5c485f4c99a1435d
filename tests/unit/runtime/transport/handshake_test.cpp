// Goal: only nodes that share the secret, the version and the idea of who is who get through.
// Method: both sides in memory, with one thing wrong at a time.
#include "runtime/transport/handshake.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::transport;

namespace {

shared_secret secret_of(char fill) {
  return shared_secret(32, static_cast<std::byte>(fill));
}

struct both {
  handshake initiator = handshake::initiate({node_id{1}, "a"}, secret_of('s'), node_id{2});
  handshake acceptor = handshake::accept({node_id{2}, "b"}, secret_of('s'));
};

handshake::outcome feed(handshake& to, std::span<const std::byte> bytes) {
  return to.receive(unpack(bytes).value());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(handshakes)

BOOST_AUTO_TEST_CASE(equal_secrets_establish_both_sides) {
  both pair;
  const auto challenge = feed(pair.acceptor, pair.initiator.hello());
  BOOST_TEST((challenge.now == handshake::state::going_on));
  BOOST_TEST(!pair.acceptor.peer_proven());
  const auto proof = feed(pair.initiator, challenge.reply);
  BOOST_TEST((proof.now == handshake::state::going_on));
  BOOST_TEST(pair.initiator.peer_proven());
  const auto welcome = feed(pair.acceptor, proof.reply);
  BOOST_TEST((welcome.now == handshake::state::established));
  BOOST_TEST(pair.acceptor.peer_proven());
  const auto done = feed(pair.initiator, welcome.reply);
  BOOST_TEST((done.now == handshake::state::established));
  BOOST_TEST(done.reply.empty());
  BOOST_TEST((pair.initiator.peer() == node_identity{node_id{2}, "b"}));
  BOOST_TEST((pair.acceptor.peer() == node_identity{node_id{1}, "a"}));
}

BOOST_AUTO_TEST_CASE(a_wrong_secret_is_refused_by_name_at_both_ends) {
  handshake initiator = handshake::initiate({node_id{1}, "a"}, secret_of('x'), node_id{2});
  handshake acceptor = handshake::accept({node_id{2}, "b"}, secret_of('s'));
  const auto challenge = feed(acceptor, initiator.hello());
  const auto failed = feed(initiator, challenge.reply);
  BOOST_TEST((failed.now == handshake::state::failed));
  BOOST_TEST((failed.reason.code == errc::refused));
  BOOST_TEST(failed.reason.message == "the shared secrets of node 1 ('a') and node 2 ('b') differ");
  const auto told = feed(acceptor, failed.reply);
  BOOST_TEST((told.now == handshake::state::failed));
  BOOST_TEST(contains(told.reason.message, "node 1 ('a') refuses: the shared secrets"));
  BOOST_TEST(!told.worth_a_retry);
  BOOST_TEST(!acceptor.peer_proven());
}

BOOST_AUTO_TEST_CASE(an_initiator_that_does_not_check_gets_nowhere) {
  both pair;
  const auto challenge = feed(pair.acceptor, pair.initiator.hello());
  control_message guess;
  guess.kind = control_kind::proof;
  BOOST_TEST((pair.acceptor.receive(guess).now == handshake::state::failed));
  // The acceptor's own proof, sent back, is no proof of the initiator.
  both again;
  const auto second = unpack(feed(again.acceptor, again.initiator.hello()).reply).value();
  guess.proof = second.proof;
  BOOST_TEST((again.acceptor.receive(guess).now == handshake::state::failed));
  BOOST_TEST(!again.acceptor.peer_proven());
}

BOOST_AUTO_TEST_CASE(a_recorded_proof_is_worth_nothing_the_next_time) {
  both first;
  const auto proof = feed(first.initiator, feed(first.acceptor, first.initiator.hello()).reply);
  handshake later = handshake::accept({node_id{2}, "b"}, secret_of('s'));
  BOOST_TEST((feed(later, first.initiator.hello()).now == handshake::state::going_on));
  BOOST_TEST((feed(later, proof.reply).now == handshake::state::failed));
}

BOOST_AUTO_TEST_CASE(a_changed_name_breaks_the_proof) {
  both pair;
  auto hello = unpack(pair.initiator.hello()).value();
  hello.from.name = "c";
  const auto challenge = pair.acceptor.receive(hello);
  BOOST_TEST((feed(pair.initiator, challenge.reply).now == handshake::state::failed));
}

BOOST_AUTO_TEST_CASE(the_wrong_node_is_named) {
  handshake initiator = handshake::initiate({node_id{1}, "a"}, secret_of('s'), node_id{3});
  handshake acceptor = handshake::accept({node_id{2}, "b"}, secret_of('s'));
  const auto refused = feed(acceptor, initiator.hello());
  BOOST_TEST((refused.now == handshake::state::failed));
  BOOST_TEST(refused.reason.message == "node 1 ('a') looks for node 3, but this is node 2 ('b')");
  const auto told = feed(initiator, refused.reply);
  BOOST_TEST(contains(told.reason.message, "this is node 2 ('b')"));
  // A node that meets its own id.
  handshake twin = handshake::initiate({node_id{2}, "twin"}, secret_of('s'), node_id{2});
  handshake other = handshake::accept({node_id{2}, "b"}, secret_of('s'));
  BOOST_TEST(contains(feed(other, twin.hello()).reason.message, "same id"));
}

BOOST_AUTO_TEST_CASE(another_version_is_named) {
  both pair;
  auto hello = unpack(pair.initiator.hello()).value();
  hello.version = 2;
  const auto refused = pair.acceptor.receive(hello);
  BOOST_TEST((refused.now == handshake::state::failed));
  BOOST_TEST(contains(refused.reason.message, "speaks transport protocol 2, this node 1"));
}

BOOST_AUTO_TEST_CASE(messages_out_of_turn_end_it) {
  for (const auto kind : {control_kind::proof, control_kind::welcome, control_kind::challenge,
                          control_kind::heartbeat, control_kind::goodbye}) {
    both pair;
    control_message message;
    message.kind = kind;
    BOOST_TEST((pair.acceptor.receive(message).now == handshake::state::failed));
  }
  both pair;
  control_message welcome;
  welcome.kind = control_kind::welcome;
  BOOST_TEST((pair.initiator.receive(welcome).now == handshake::state::failed));
  BOOST_TEST(!pair.initiator.peer_proven());
}

BOOST_AUTO_TEST_CASE(only_already_connected_is_worth_a_retry) {
  both pair;
  const auto busy = pair.initiator.receive(refusal(refusal_kind::already_connected, "up"));
  BOOST_TEST(busy.worth_a_retry);
  both other;
  BOOST_TEST(!other.initiator.receive(refusal(refusal_kind::identity, "x")).worth_a_retry);
}

BOOST_AUTO_TEST_CASE(a_short_secret_is_a_defect) {
  BOOST_CHECK_THROW(handshake::accept({node_id{2}, "b"}, shared_secret(15)), defect);
}

BOOST_AUTO_TEST_SUITE_END()
