// Goal: frames come out whole, once, in order, within bounds. Method: pieces in chosen and in
// seeded random orders; contradictions one at a time.
#include "runtime/transport/frame_inbox.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

using namespace cedar;
using namespace cedar::transport;

namespace {

std::vector<std::byte> header_of(std::uint64_t sequence) {
  return std::vector<std::byte>(8, static_cast<std::byte>(sequence));
}

/// The byte at `offset` of frame `sequence`'s payload.
std::byte byte_of(std::uint64_t sequence, std::size_t offset) {
  return static_cast<std::byte>((sequence * 7 + offset) & 0xff);
}

/// Places a piece, writes its bytes, and lands it.
void put(frame_inbox& inbox, std::uint64_t sequence, std::size_t total, std::size_t offset,
         std::size_t bytes) {
  const auto room = inbox.place({sequence, total, offset}, header_of(sequence), bytes);
  BOOST_REQUIRE(room.has_value());
  for (std::size_t i = 0; i < bytes; ++i) (*room)[i] = byte_of(sequence, offset + i);
  inbox.landed(sequence, bytes);
}

void check_frame(const flow::received_frame& frame, std::uint64_t sequence, std::size_t total) {
  BOOST_TEST((frame.header == header_of(sequence)));
  BOOST_REQUIRE_EQUAL(frame.payload.bytes(), total);
  for (std::size_t i = 0; i < total; ++i) {
    BOOST_REQUIRE((frame.payload.data()[i] == byte_of(sequence, i)));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frame_inboxes)

BOOST_AUTO_TEST_CASE(a_frame_waits_for_all_its_pieces_and_for_those_before_it) {
  frame_inbox inbox(8, 100);
  put(inbox, 1, 0, 0, 0);
  BOOST_TEST(!inbox.pop());
  put(inbox, 0, 10, 4, 6);
  BOOST_TEST(!inbox.pop());
  put(inbox, 0, 10, 0, 4);
  check_frame(inbox.pop().value(), 0, 10);
  check_frame(inbox.pop().value(), 1, 0);
  BOOST_TEST(!inbox.pop());
  BOOST_TEST(inbox.popped() == 2U);
}

BOOST_AUTO_TEST_CASE(a_piece_that_was_placed_but_has_not_landed_holds_its_frame) {
  frame_inbox inbox(8, 100);
  const auto room = inbox.place({0, 4, 0}, header_of(0), 4);
  BOOST_REQUIRE(room.has_value());
  put(inbox, 1, 1, 0, 1);
  BOOST_TEST(!inbox.pop());
  std::memset(room->data(), 0, 4);
  inbox.landed(0, 4);
  BOOST_TEST(inbox.pop().has_value());
  BOOST_TEST(inbox.pop().has_value());
}

BOOST_AUTO_TEST_CASE(any_order_of_pieces_gives_the_same_frames) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      struct piece {
        std::uint64_t sequence;
        std::size_t total, offset, bytes;
      };
      std::vector<piece> pieces;
      std::vector<std::size_t> totals;
      for (std::uint64_t sequence = 0; sequence < 16; ++sequence) {
        const std::size_t total = random() % 50;
        totals.push_back(total);
        if (total == 0) pieces.push_back({sequence, 0, 0, 0});
        for (std::size_t offset = 0; offset < total; offset += 8) {
          pieces.push_back({sequence, total, offset, std::min<std::size_t>(8, total - offset)});
        }
      }
      std::shuffle(pieces.begin(), pieces.end(), random);
      frame_inbox inbox(16, 50);
      std::uint64_t next = 0;
      for (const piece& p : pieces) {
        put(inbox, p.sequence, p.total, p.offset, p.bytes);
        while (auto frame = inbox.pop()) {
          check_frame(*frame, next, totals[next]);
          ++next;
        }
      }
      BOOST_TEST(next == 16U);
    }
  }
}

BOOST_AUTO_TEST_CASE(contradictions_are_refused) {
  frame_inbox inbox(4, 100);
  put(inbox, 0, 0, 0, 0);
  BOOST_REQUIRE(inbox.pop());
  BOOST_TEST((inbox.place({0, 0, 0}, {}, 0).error().code == errc::malformed));  // again
  BOOST_TEST((inbox.place({5, 0, 0}, {}, 0).error().code == errc::capacity));  // too far ahead
  BOOST_TEST((inbox.place({1, 101, 0}, {}, 1).error().code == errc::capacity));  // too large
  BOOST_REQUIRE(inbox.place({1, 10, 0}, {}, 4));
  BOOST_TEST(!inbox.place({1, 11, 4}, {}, 4));  // another size
  BOOST_TEST(!inbox.place({1, 10, 11}, {}, 1));  // begins outside
  BOOST_TEST(!inbox.place({1, 10, 8}, {}, 4));  // ends outside
  BOOST_TEST(!inbox.place({1, 10, 0}, {}, 7));  // more than is missing
  BOOST_TEST(!inbox.place({1, 10, 4}, {}, 0));  // nothing
  BOOST_TEST(!inbox.place({1, 10, ~std::uint64_t{0}}, {}, 2));
  BOOST_REQUIRE(inbox.place({2, 0, 0}, {}, 0));
  BOOST_TEST(!inbox.place({2, 0, 0}, {}, 0));  // an empty frame has one piece
}

BOOST_AUTO_TEST_SUITE_END()
