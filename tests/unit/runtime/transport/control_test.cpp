// Goal: control messages survive, and nothing else is taken for one. Method: round trips, every
// truncation, foreign bytes.
#include "runtime/transport/control.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

using namespace cedar;
using namespace cedar::transport;

namespace {

control_message sample(control_kind kind) {
  control_message message;
  message.kind = kind;
  message.from = {node_id{7}, "decode"};
  message.wanted = node_id{9};
  message.nonce.fill(std::byte{3});
  message.proof.fill(std::byte{4});
  message.reason = refusal_kind::secret;
  message.text = "because";
  message.frames = 1234567890123;
  return message;
}

constexpr std::uint8_t first_kind = 1, last_kind = 8;

}  // namespace

BOOST_AUTO_TEST_SUITE(control)

BOOST_AUTO_TEST_CASE(every_kind_survives_and_no_truncation_does) {
  for (std::uint8_t kind = first_kind; kind <= last_kind; ++kind) {
    BOOST_TEST_CONTEXT("kind " << int(kind)) {
      const auto sent = sample(static_cast<control_kind>(kind));
      const auto bytes = pack(sent);
      BOOST_TEST(bytes.size() <= control_bytes_max);
      const auto got = unpack(bytes);
      BOOST_REQUIRE(got.has_value());
      BOOST_TEST((got->kind == sent.kind));
      BOOST_TEST((pack(*got) == bytes));
      for (std::size_t n = 0; n < bytes.size(); ++n) {
        BOOST_TEST(!unpack(std::span(bytes).first(n)).has_value());
      }
      auto longer = bytes;
      longer.push_back({});
      BOOST_TEST(!unpack(longer).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(fields_arrive_in_their_places) {
  const auto hello = unpack(pack(sample(control_kind::hello))).value();
  BOOST_TEST((hello.from == node_identity{node_id{7}, "decode"}));
  BOOST_TEST((hello.wanted == node_id{9}));
  BOOST_TEST((hello.nonce == sample(control_kind::hello).nonce));
  BOOST_TEST(
      (unpack(pack(sample(control_kind::proof)))->proof == sample(control_kind::proof).proof));
  BOOST_TEST(unpack(pack(sample(control_kind::goodbye)))->frames == 1234567890123U);
  const auto no = unpack(pack(refusal(refusal_kind::identity, "not me"))).value();
  BOOST_TEST((no.reason == refusal_kind::identity));
  BOOST_TEST(no.text == "not me");
}

BOOST_AUTO_TEST_CASE(a_long_text_is_cut) {
  const auto got = unpack(pack(refusal(refusal_kind::secret, std::string(10000, 'x'))));
  BOOST_TEST(got.value().text.size() == refusal_text_bytes_max);
}

BOOST_AUTO_TEST_CASE(another_version_is_read_as_far_as_it_is_fixed) {
  control_message message = sample(control_kind::hello);
  message.version = 9;
  auto bytes = pack(message);
  bytes.push_back({});  // a field that this version does not know
  const auto got = unpack(bytes);
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(got->version == 9U);
  message = refusal(refusal_kind::version, "too old");
  message.version = 9;
  BOOST_TEST(unpack(pack(message)).value().text == "too old");
}

BOOST_AUTO_TEST_CASE(foreign_bytes_are_refused) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::byte> bytes(random() % 100);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    BOOST_REQUIRE(!unpack(bytes).has_value());
  }
}

BOOST_AUTO_TEST_SUITE_END()
