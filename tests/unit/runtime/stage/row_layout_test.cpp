// Goal: payload sizes are those of the architecture, and planes lie where the layout says. Method:
// the released configuration against its published widths; small blocks written and read back.
#include "runtime/stage/row_layout.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

using namespace cedar;
using flow::row_kind;
using stage::row_bytes;

namespace {

model::model_config configuration(const std::string& name) {
  const auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/" + name);
  BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  return *config;
}

/// Rows of one step: 3 of one request, of which the last is wanted, 2 of another, both wanted.
flow::step_table small_table() {
  flow::step_table table;
  table.step = step_id{4};
  table.epoch = epoch_id{2};
  table.spans = {{request_id{1}, 5, 3, 2}, {request_id{2}, 0, 2, 0}};
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(row_layout)

BOOST_AUTO_TEST_CASE(rows_have_the_architectures_sizes_at_the_released_configuration) {
  const model::model_config config = configuration("released");
  BOOST_TEST(row_bytes(row_kind::activation, config) == 4 * 5120 * 2 + 4 * 4 + 1);
  BOOST_TEST(row_bytes(row_kind::activation, config) == 40977U);
  BOOST_TEST(row_bytes(row_kind::embedded, config) == 10241U);
  BOOST_TEST(row_bytes(row_kind::engram_rows, config) == 6336U);
  BOOST_TEST(row_bytes(row_kind::engram_slots, config) == 4U + 256 + 8);
  BOOST_TEST(row_bytes(row_kind::head_input, config) == 10240U);
  BOOST_TEST(row_bytes(row_kind::shared_kv, config) == 288U);
  BOOST_TEST(row_bytes(row_kind::gathered, config) == 288U);
  BOOST_TEST(row_bytes(row_kind::index_keys, config) == 68U);
  BOOST_TEST(row_bytes(row_kind::selection, config) == 2048U);
  BOOST_TEST(row_bytes(row_kind::gather_request, config) == 2048U);
  BOOST_TEST(row_bytes(row_kind::candidates, config) == 8192U);
  // FP8 with a scale for 32, and of six experts an id and a weight each.
  BOOST_TEST(row_bytes(row_kind::expert_rows, config) == 5120U + 160 + 6 * 8);
  BOOST_TEST(row_bytes(row_kind::expert_outputs, config) == 10240U);
  // 32 heads of 64 bytes of codes, 4 of scales and a weight; positions and blocks with scores.
  BOOST_TEST(row_bytes(row_kind::index_query, config) == 32U * (64 + 4) + 64);
  BOOST_TEST(row_bytes(row_kind::pool_query, config) == 32U * (64 + 4) + 64 + 8192);
  BOOST_TEST(row_bytes(row_kind::index_choice, config) == 512U * 6);
  BOOST_TEST(row_bytes(row_kind::pool_choice, config) == (512U + 2048) * 6);
}

BOOST_AUTO_TEST_CASE(planes_follow_each_other_without_padding) {
  const model::model_config config = configuration("cedar-tiny");
  const std::size_t width = std::size_t{config.streams} * config.width;
  for (const row_kind kind : {row_kind::embedded, row_kind::activation}) {
    const bool embedded = kind == row_kind::embedded;
    kernels::buffer memory(5 * row_bytes(kind, config));
    const auto out = stage::planes_of(memory, kind, 5, config);
    const auto* first = reinterpret_cast<const std::byte*>(out.streams.data);
    BOOST_TEST(first == memory.data());
    BOOST_TEST(out.streams.rows == 5U);
    BOOST_TEST(out.streams.cols == (embedded ? config.width : width));
    BOOST_TEST(out.pre.cols == (embedded ? 0 : config.streams));
    BOOST_TEST(reinterpret_cast<const std::byte*>(out.pre.data) ==
               first + 5 * out.streams.cols * sizeof(kernels::bf16));
    BOOST_TEST(out.image_rows.size() == 5U);
    BOOST_TEST(reinterpret_cast<const std::byte*>(out.image_rows.data()) + 5 ==
               memory.data() + memory.bytes());

    out.streams.row(4).back() = kernels::to_bf16(7);
    if (!embedded) out.pre.row(4).back() = 9;
    out.image_rows[4] = 1;
    const flow::row_block block = stage::make_block(kind, small_table(), config, std::move(memory));
    const auto view = stage::view_planes(block, config);
    BOOST_REQUIRE(view);
    BOOST_TEST(kernels::to_float(view->streams.row(4).back()) == 7);
    if (!embedded) BOOST_TEST(view->pre.row(4).back() == 9);
    BOOST_TEST(view->image_rows[4] == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_block_carries_its_steps_rows_and_the_head_the_wanted_ones) {
  const model::model_config config = configuration("cedar-tiny");
  const flow::step_table table = small_table();
  for (const auto& [kind, rows] : {std::pair{row_kind::activation, 5U},
                                   {row_kind::engram_rows, 5U},
                                   {row_kind::head_input, 3U}}) {
    const flow::row_block block =
        stage::make_block(kind, table, config, kernels::buffer(rows * row_bytes(kind, config)));
    BOOST_TEST((block.kind == kind && block.step == table.step && block.epoch == table.epoch));
    BOOST_TEST((block.spans == table.spans));
    BOOST_TEST(block.rows_count == rows);
    BOOST_TEST(block.row_bytes == row_bytes(kind, config));
    BOOST_TEST(flow::bytes_of(block.payload).size() == rows * block.row_bytes);
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_another_layout_are_malformed) {
  const model::model_config config = configuration("cedar-tiny");
  const flow::row_block good =
      stage::make_block(row_kind::activation, small_table(), config,
                        kernels::buffer(5 * row_bytes(row_kind::activation, config)));
  const auto refused = [&](auto damage) {
    flow::row_block bad = good;
    damage(bad);
    const auto view = stage::view_planes(bad, config);
    return !view && view.error().code == errc::malformed;
  };
  BOOST_TEST(refused([](flow::row_block& block) { block.kind = row_kind::embedded; }));
  BOOST_TEST(refused([](flow::row_block& block) { block.kind = row_kind::head_input; }));
  BOOST_TEST(refused([](flow::row_block& block) { ++block.row_bytes; }));
  BOOST_TEST(refused([](flow::row_block& block) { block.rows_count = 6; }));
  BOOST_TEST(refused([](flow::row_block& block) { block.payload = nullptr; }));
  BOOST_TEST(stage::view_planes(good, config).has_value());
  kernels::buffer small(7);
  BOOST_CHECK_THROW(stage::planes_of(small, row_kind::embedded, 1, config), defect);
}

BOOST_AUTO_TEST_SUITE_END()
