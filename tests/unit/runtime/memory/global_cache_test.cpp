// Goal: entries stay what was appended, and pages are conserved, whatever is appended, truncated
// and destroyed. Method: seeded random use of several caches over one bounded pool against plain
// vectors.
#include "runtime/memory/global_cache.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <vector>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::memory;

namespace {

constexpr page_layout small_layout{4, 5, 3};
constexpr std::size_t entry_bytes = 5 + 3;

using entry = std::vector<std::byte>;

/// One cache, and what should be in it.
struct modelled_cache {
  std::unique_ptr<global_cache> cache;
  std::vector<entry> expected;

  std::size_t pages() const { return (expected.size() + 3) / 4; }
};

class cache_model {
 public:
  cache_model(std::uint64_t seed, std::size_t pages_max)
      : pool_(small_layout, pages_max), random_(seed), caches_(3) {
    for (modelled_cache& one : caches_) one.cache = std::make_unique<global_cache>(pool_);
  }

  void step() {
    modelled_cache& one = caches_[random_() % caches_.size()];
    switch (random_() % 8) {
      case 0:
        one = {std::make_unique<global_cache>(pool_), {}};
        break;
      case 1:
        one.cache = std::make_unique<global_cache>(std::move(*one.cache));
        break;
      case 2:
      case 3: {
        const std::size_t kept = random_() % (one.expected.size() + 3);
        one.cache->truncate(static_cast<std::uint32_t>(kept));
        if (kept < one.expected.size()) one.expected.resize(kept);
        break;
      }
      default:
        append(one, random_() % 11);
    }
  }

  void check() const {
    std::size_t pages = 0;
    for (const modelled_cache& one : caches_) {
      pages += one.pages();
      BOOST_REQUIRE_EQUAL(one.cache->written(), one.expected.size());
      for (std::uint32_t i = 0; i < one.expected.size(); ++i) {
        const auto from = one.expected[i].begin();
        BOOST_REQUIRE(std::equal(from, from + 5, one.cache->main_entry(i)));
        BOOST_REQUIRE(std::equal(from + 5, from + 8, one.cache->index_key(i)));
      }
    }
    BOOST_REQUIRE_EQUAL(pool_.pages_in_use(), pages);
  }

  std::size_t refused() const { return refused_; }

 private:
  void append(modelled_cache& one, std::size_t count) {
    std::vector<std::byte> bytes(count * entry_bytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    // Main entries and index keys as columns of one matrix, so that strides are not the widths.
    const kernels::matrix_view<const std::byte> rows(bytes.data(), count, entry_bytes);
    const result<void> appended = one.cache->append(rows.cols_from(0, 5), rows.cols_from(5, 3));
    std::size_t pages = (one.expected.size() + count + 3) / 4 - one.pages();
    for (const modelled_cache& other : caches_) pages += other.pages();
    BOOST_REQUIRE_EQUAL(appended.has_value(), pages <= pool_.pages_max());
    if (!appended) {
      BOOST_REQUIRE((appended.error().code == errc::capacity));
      ++refused_;
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      one.expected.emplace_back(rows.row(i).begin(), rows.row(i).end());
  }

  kv_page_pool pool_;
  std::mt19937_64 random_;
  std::vector<modelled_cache> caches_;
  std::size_t refused_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(global_cache_unit)

BOOST_DATA_TEST_CASE(random_use_conserves_pages_and_entries,
                     boost::unit_test::data::make({1, 2, 3, 4}), seed) {
  cache_model model(static_cast<std::uint64_t>(seed), 12);
  for (int step = 0; step < 1500; ++step) {
    model.step();
    model.check();
  }
  BOOST_TEST(model.refused() > 10U);
}

BOOST_AUTO_TEST_CASE(an_append_beyond_the_bound_changes_nothing) {
  kv_page_pool pool(small_layout, 2);
  global_cache cache(pool);
  const std::vector<std::byte> bytes(9 * entry_bytes, std::byte{7});
  const kernels::matrix_view<const std::byte> rows(bytes.data(), 9, entry_bytes);
  const auto append = [&](std::size_t first, std::size_t count) {
    const auto part = rows.rows_from(first, count);
    return cache.append(part.cols_from(0, 5), part.cols_from(5, 3));
  };
  BOOST_REQUIRE(append(0, 3));
  const result<void> refused = append(0, 6);  // needs three pages
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::capacity));
  BOOST_TEST(cache.written() == 3U);
  BOOST_TEST(pool.pages_in_use() == 1U);
  BOOST_TEST(append(3, 5).has_value());
  BOOST_TEST(pool.pages_in_use() == 2U);
}

BOOST_AUTO_TEST_CASE(entries_of_another_layout_are_a_defect) {
  kv_page_pool pool(small_layout, 2);
  global_cache cache(pool);
  const std::vector<std::byte> bytes(2 * entry_bytes);
  const kernels::matrix_view<const std::byte> rows(bytes.data(), 2, entry_bytes);
  const auto main = rows.cols_from(0, 5), keys = rows.cols_from(5, 3);
  BOOST_CHECK_THROW(static_cast<void>(cache.append(rows.cols_from(0, 4), keys)), defect);
  BOOST_CHECK_THROW(static_cast<void>(cache.append(main, rows.cols_from(5, 2))), defect);
  BOOST_CHECK_THROW(static_cast<void>(cache.append(main, keys.rows_from(0, 1))), defect);
  BOOST_TEST(cache.written() == 0U);
}

namespace {

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(seed + 3 * i);
  return out;
}

void append(global_cache& to, std::uint32_t entries, int seed) {
  const auto main = pattern(entries * 5, seed), keys = pattern(entries * 3, seed + 1);
  BOOST_REQUIRE(to.append({main.data(), entries, 5}, {keys.data(), entries, 3}));
}

void check_same(const global_cache& a, const global_cache& b, std::uint32_t entries) {
  for (std::uint32_t i = 0; i < entries; ++i) {
    BOOST_REQUIRE(std::equal(a.main_entry(i), a.main_entry(i) + 5, b.main_entry(i)));
    BOOST_REQUIRE(std::equal(a.index_key(i), a.index_key(i) + 3, b.index_key(i)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(shared_pages_count_once_and_stay_until_nobody_holds_them) {
  kv_page_pool pool(small_layout, 8);
  auto first = std::make_unique<global_cache>(pool);
  append(*first, 11, 1);  // three pages
  global_cache second(pool);
  BOOST_REQUIRE(second.share(*first, 8, 10));  // two pages, and two entries in one of its own
  BOOST_TEST(pool.pages_in_use() == 4U);
  BOOST_TEST(second.written() == 10U);
  check_same(second, *first, 10);
  BOOST_TEST(second.main_entry(7) == first->main_entry(7));
  BOOST_TEST(second.main_entry(8) != first->main_entry(8));

  append(second, 3, 100);
  global_cache whole(pool);
  append(whole, 11, 1);
  check_same(*first, whole, 11);  // what the second one wrote is its own
  second.truncate(10);
  first.reset();
  BOOST_TEST(pool.pages_in_use() == 3U + 3U);
  check_same(second, whole, 10);
  second.truncate(0);
  BOOST_TEST(pool.pages_in_use() == 3U);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_copied_for_want_of_a_page_changes_nothing) {
  kv_page_pool pool(small_layout, 3);
  global_cache first(pool);
  append(first, 11, 1);
  global_cache second(pool);
  const auto refused = second.share(first, 8, 10);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::capacity));
  BOOST_TEST(second.written() == 0U);
  BOOST_TEST(pool.pages_in_use() == 3U);
  BOOST_TEST(second.share(first, 8, 8).has_value());
  BOOST_TEST(pool.pages_in_use() == 3U);
}

BOOST_AUTO_TEST_CASE(a_page_that_others_read_is_never_written) {
  kv_page_pool pool(small_layout, 3);
  global_cache first(pool);
  append(first, 8, 1);
  global_cache second(pool);
  BOOST_REQUIRE(second.share(first, 8, 8));
  second.truncate(6);
  const auto bytes = pattern(5, 1);
  BOOST_CHECK_THROW((void)second.append({bytes.data(), 1, 5}, {bytes.data(), 1, 3}), cedar::defect);
  global_cache third(pool);
  BOOST_CHECK_THROW((void)third.share(first, 6, 8), cedar::defect);  // no whole page
  BOOST_CHECK_THROW((void)third.share(first, 8, 9), cedar::defect);  // more than there is
}

BOOST_AUTO_TEST_SUITE_END()
