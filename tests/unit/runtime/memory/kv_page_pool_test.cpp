// Goal: pages have one size, are recycled, and never exceed the bound. Method: seeded random
// allocations and releases against a set of the pages that are out.
#include "runtime/memory/kv_page_pool.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::memory;

namespace {

constexpr page_layout small_layout{4, 5, 3};

std::byte* page_of(kv_page_pool& pool) {
  const result<std::byte*> page = pool.allocate();
  BOOST_REQUIRE(page);
  return *page;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kv_page_pool_unit)

BOOST_AUTO_TEST_CASE(a_page_holds_its_entries_and_their_index_keys) {
  BOOST_TEST(small_layout.page_bytes() == 4U * (5 + 3));
  BOOST_TEST((page_layout{default_page_entries, 288, 68}).page_bytes() == 22784U);
}

BOOST_AUTO_TEST_CASE(random_use_never_exceeds_the_bound_and_recycles) {
  constexpr std::uint64_t seed = 1;
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t pages_max = 7;
  kv_page_pool pool(small_layout, pages_max);
  std::vector<std::byte*> out;
  std::set<std::byte*> ever;
  for (int step = 0; step < 2000; ++step) {
    if (random() % 2 == 0) {
      const result<std::byte*> page = pool.allocate();
      BOOST_REQUIRE_EQUAL(page.has_value(), out.size() < pages_max);
      if (page) {
        BOOST_REQUIRE(std::find(out.begin(), out.end(), *page) == out.end());
        std::memset(*page, 0xff, small_layout.page_bytes());  // sanitizers see its whole length
        out.push_back(*page);
        ever.insert(*page);
      }
    } else if (!out.empty()) {
      const std::size_t index = random() % out.size();
      pool.release(out[index]);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(index));
    }
    BOOST_REQUIRE_EQUAL(pool.pages_in_use(), out.size());
    BOOST_REQUIRE_EQUAL(pool.bytes_in_use(), out.size() * small_layout.page_bytes());
  }
  BOOST_TEST(ever.size() == pages_max);
  for (std::byte* page : out) pool.release(page);
}

BOOST_AUTO_TEST_CASE(at_the_bound_the_error_says_what_to_do) {
  kv_page_pool pool(small_layout, 1);
  std::byte* page = page_of(pool);
  const result<std::byte*> refused = pool.allocate();
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::capacity));
  BOOST_TEST(refused.error().message.find("limits.context") != std::string::npos);
  BOOST_TEST(pool.pages_in_use() == 1U);
  pool.release(page);
  BOOST_TEST(page_of(pool) == page);
  pool.release(page);
}

BOOST_AUTO_TEST_CASE(releasing_more_than_was_allocated_is_a_defect) {
  kv_page_pool pool(small_layout, 1);
  std::byte* page = page_of(pool);
  BOOST_CHECK_THROW(pool.release(nullptr), defect);
  pool.release(page);
  BOOST_CHECK_THROW(pool.release(page), defect);
}

BOOST_AUTO_TEST_SUITE_END()
