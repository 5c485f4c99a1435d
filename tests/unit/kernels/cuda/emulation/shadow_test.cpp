// Goal: accesses are faults exactly if nothing orders them. Method: random accesses of a few
// threads to a few bytes with random barriers, judged a second time from the full history of every
// byte.
#include <boost/test/unit_test.hpp>
#include <random>

#include "kernels/cuda/emulation/shadow.hpp"

namespace {

using namespace cedar::kernels::cuda::emulation;

struct event {
  unsigned thread;
  unsigned block_barriers, warp_barriers;
  bool write;
};

/// The rules of shadow.hpp word by word, over everything that happened to one byte.
class history {
 public:
  bool race(const event& next) const {
    for (const event& past : past_) {
      if (past.thread == next.thread || (!past.write && !next.write)) continue;
      if (past.block_barriers < next.block_barriers) continue;
      if (past.thread / 32 == next.thread / 32 && past.warp_barriers < next.warp_barriers) continue;
      return true;
    }
    return false;
  }
  bool written() const {
    return std::ranges::any_of(past_, [](const event& past) { return past.write; });
  }
  void add(const event& next) { past_.push_back(next); }

 private:
  std::vector<event> past_;
};

constexpr unsigned actors[] = {0, 1, 2, 32, 33, 64};

/// One block of random events up to its first fault. Returns whether there was one.
bool play(shared_shadow& shadow, std::mt19937& random) {
  constexpr std::size_t bytes = 3;
  shadow.begin_block(bytes);
  history histories[bytes];
  unsigned block_barriers = 0;
  unsigned warp_barriers[3] = {};
  for (int step = 0; step < 60; ++step) {
    const unsigned choice = random() % 16;
    if (choice == 0) {
      shadow.pass_block_barrier();
      ++block_barriers;
    } else if (choice < 5) {
      ++warp_barriers[random() % 3];
    } else {
      const unsigned thread = actors[random() % std::size(actors)];
      const std::size_t byte = random() % bytes;
      const event next{thread, block_barriers, warp_barriers[thread / 32], choice < 8};
      const shared_shadow::actor by{thread, next.warp_barriers};
      const auto found =
          next.write ? shadow.write(byte, 1, by).problem : shadow.read(byte, 1, by).problem;
      const bool unwritten = !next.write && !histories[byte].written();
      const bool expected = unwritten || histories[byte].race(next);
      BOOST_REQUIRE_EQUAL(found != access_problem::none, expected);
      BOOST_REQUIRE_EQUAL(found == access_problem::uninitialised, unwritten);
      if (expected) return true;
      histories[byte].add(next);
    }
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_emulation_shadow)

BOOST_AUTO_TEST_CASE(faults_are_what_the_full_history_says) {
  std::mt19937 random(1);
  shared_shadow shadow;
  std::size_t faults = 0, quiet = 0;
  for (int block = 0; block < 20000; ++block) {
    if (play(shadow, random))
      ++faults;
    else
      ++quiet;
  }
  BOOST_TEST(faults > 1000U);
  BOOST_TEST_MESSAGE(quiet << " blocks without a fault");
}

BOOST_AUTO_TEST_CASE(a_copy_is_a_write_when_it_starts_and_when_it_has_been_waited_for) {
  shared_shadow shadow;
  shadow.begin_block(16);
  const shared_shadow::actor zero{0, 0}, one{1, 0};
  const auto problem = [](const access_verdict& verdict) { return verdict.problem; };
  BOOST_CHECK(problem(shadow.start_copy(0, 16, zero)) == access_problem::none);
  BOOST_CHECK(problem(shadow.read(4, 4, zero)) == access_problem::copy_in_flight);
  BOOST_CHECK(problem(shadow.write(15, 1, one)) == access_problem::copy_in_flight);
  shadow.pass_block_barrier();  // does not wait for copies
  BOOST_CHECK(problem(shadow.read(4, 4, one)) == access_problem::copy_in_flight);
  shadow.finish_copy(0, 16, zero);
  BOOST_CHECK(problem(shadow.read(4, 4, zero)) == access_problem::none);
  BOOST_CHECK(problem(shadow.read(4, 4, one)) == access_problem::read_after_write);
  shadow.pass_block_barrier();
  BOOST_CHECK(problem(shadow.read(4, 4, one)) == access_problem::none);
  BOOST_CHECK(problem(shadow.start_copy(0, 16, zero)) == access_problem::write_after_read);
}

BOOST_AUTO_TEST_SUITE_END()
