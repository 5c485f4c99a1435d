// Goal: the two rules of position_ring.hpp. Method: seeded random writes, with positions taken back
// and written again, against a map from position to the row last written there.
#include "runtime/memory/position_ring.hpp"

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <vector>

using namespace cedar;
using namespace cedar::memory;

namespace {

class ring_model {
 public:
  ring_model(std::uint64_t seed, std::uint32_t capacity, std::size_t row_bytes)
      : ring_(capacity, row_bytes), random_(seed) {}

  void write(std::uint32_t count) {
    std::vector<std::byte> bytes(count * ring_.row_bytes());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    const kernels::matrix_view<const std::byte> rows(bytes.data(), count, ring_.row_bytes());
    ring_.write(end_, rows);
    for (std::uint32_t i = 0; i < count; ++i)
      expected_[end_ + i].assign(rows.row(i).begin(), rows.row(i).end());
    readable_from_ =
        std::max(readable_from_, end_ + count - std::min(end_ + count, ring_.capacity()));
    end_ += count;
  }

  /// Rows from `position` on never happened. What they overwrote stays lost: rule 2.
  void truncate(std::uint32_t position) { end_ = position; }

  void check() const {
    for (std::uint32_t p = readable_from_; p < end_; ++p)
      BOOST_REQUIRE(
          std::ranges::equal(expected_.at(p), std::span(ring_.row(p), ring_.row_bytes())));
  }

  std::uint32_t end() const { return end_; }
  std::uint32_t readable_from() const { return readable_from_; }
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

 private:
  position_ring ring_;
  std::mt19937_64 random_;
  std::map<std::uint32_t, std::vector<std::byte>> expected_;
  std::uint32_t end_ = 0;
  std::uint32_t readable_from_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(position_ring_unit)

BOOST_DATA_TEST_CASE(rows_are_readable_until_capacity_later_rows_were_written,
                     boost::unit_test::data::make({1, 2, 3, 4, 5, 6}), seed) {
  const auto capacity = static_cast<std::uint32_t>(3 + 4 * seed);
  ring_model model(static_cast<std::uint64_t>(seed), capacity, 6);
  for (int step = 0; step < 400; ++step) {
    model.write(static_cast<std::uint32_t>(model.pick(2 * capacity)));
    model.check();
    const std::uint32_t kept = model.end() - model.readable_from();
    model.truncate(model.end() - static_cast<std::uint32_t>(model.pick(kept + 1)));
    model.check();
  }
}

BOOST_AUTO_TEST_CASE(slack_keeps_a_whole_window_through_a_rollback) {
  constexpr std::uint32_t window = 16, slack = 6;
  for (std::uint32_t taken_back = 0; taken_back <= slack; ++taken_back) {
    ring_model model(taken_back, window + slack, 4);
    model.write(40);
    model.write(taken_back);
    model.truncate(40);
    BOOST_TEST(model.readable_from() <= 40 - window);
    model.check();
  }
  ring_model beyond(0, window + slack, 4);
  beyond.write(40);
  beyond.write(slack + 1);
  BOOST_TEST(beyond.readable_from() == 40 - window + 1);
}

BOOST_AUTO_TEST_CASE(its_size_is_capacity_times_row) {
  const position_ring ring(5, 12);
  BOOST_TEST(ring.capacity() == 5U);
  BOOST_TEST(ring.row_bytes() == 12U);
  BOOST_TEST(ring.bytes() == 60U);
}

BOOST_AUTO_TEST_SUITE_END()
