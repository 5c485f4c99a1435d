// Goal: shards of an index hold every entry once, as many as each other but for a block, and find
// their entries again. Method: counting entry by entry.
#include "runtime/model/index_shard.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

using namespace cedar;
using model::index_shard;

BOOST_AUTO_TEST_SUITE(index_shards)

BOOST_AUTO_TEST_CASE(hold_every_entry_once_and_share_evenly) {
  for (const std::uint32_t parts : {1U, 2U, 3U, 7U})
    for (const std::uint32_t size : {1U, 4U, 8U}) {
      std::vector<std::uint32_t> counts(parts);
      for (std::uint32_t entry = 0; entry < 300; ++entry) {
        for (std::uint32_t part = 0; part < parts; ++part) {
          const index_shard shard{part, 6, part, parts, size};
          BOOST_REQUIRE_EQUAL(shard.count(entry), counts[part]);
          BOOST_REQUIRE_EQUAL(shard.holds(entry), entry / size % parts == part);
          if (!shard.holds(entry)) continue;
          BOOST_REQUIRE_EQUAL(shard.entry(counts[part]), entry);
          BOOST_REQUIRE_EQUAL(shard.block(counts[part] / size), entry / size);
          ++counts[part];
        }
        const auto [least, most] = std::ranges::minmax(counts);
        BOOST_REQUIRE(most - least <= size);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
