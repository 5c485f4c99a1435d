// Goal: global KV of the released configuration is 890 bytes a token (the published figure for
// DeepSeek-V4.1-Flash, 4-bit entries and 4-bit index keys). Method: the owners' caches of one
// sequence over one pool; the number is the pool's, not a formula's.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "kernels/ops/entry_format.hpp"
#include "runtime/memory/global_cache.hpp"
#include "runtime/model/attention.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/schedule.hpp"

using namespace cedar;

BOOST_AUTO_TEST_SUITE(released_kv_size)

BOOST_AUTO_TEST_CASE(global_kv_is_890_bytes_a_token) {
  const auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/released/config.json");
  BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  const model::schedule schedule(*config);
  const memory::page_layout layout{
      memory::default_page_entries,
      kernels::entry_bytes(model::global_entry_format, config->head_dim),
      kernels::entry_bytes(model::index_entry_format, config->index_head_dim)};

  constexpr std::uint32_t tokens = 128 * 20;  // fills the pages of ratio 1 and 2 exactly
  memory::kv_page_pool pool(layout, 10000);
  std::vector<memory::global_cache> caches;
  for (std::uint32_t layer = 0; layer < config->layers; ++layer) {
    if (schedule[layer].mode != model::layer_mode::full) continue;
    caches.emplace_back(pool);
    const std::vector<std::byte> entry(layout.main_entry_bytes), key(layout.index_entry_bytes);
    for (std::uint32_t i = 0; i < tokens / schedule[layer].ratio; ++i)
      BOOST_REQUIRE(
          caches.back().append({entry.data(), 1, entry.size()}, {key.data(), 1, key.size()}));
  }
  BOOST_TEST(caches.size() == 4U);
  BOOST_TEST(pool.bytes_in_use() == std::size_t{890} * tokens);
  caches.clear();
  BOOST_TEST(pool.bytes_in_use() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
