// Goal: whatever comes to a slice of experts, or from one, is what it must be, or refused by name.
// Method: a true request and its answer, damaged in one place at a time.
#include "runtime/stage/expert_blocks.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "runtime/stage/row_layout.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::row_kind;

namespace {

constexpr std::uint32_t asked_layer = 4;
const model::expert_slice held{2, 3, 5, {1, 2, 6}};

/// Rows of one request in layer 4 with these choices and weights.
struct routed_rows {
  explicit routed_rows(std::vector<std::vector<std::int32_t>> of_rows) {
    const std::size_t n = of_rows.size();
    const auto k = tiny_model().config().experts_per_token;
    const auto chosen = scratch.take<std::int32_t>(n, k);
    const auto weights = scratch.take<float>(n, k);
    x = model::take_quantized(scratch, n, tiny_model().config().width);
    for (std::size_t row = 0; row < n; ++row) {
      std::ranges::copy(of_rows[row], chosen.row(row).begin());
      for (std::size_t slot = 0; slot < k; ++slot)
        weights.row(row)[slot] = static_cast<float>(of_rows[row][slot]) / 4;
      std::ranges::fill(x.codes.row(row), static_cast<std::uint8_t>(row + 1));
      std::ranges::fill(x.scales.row(row), static_cast<std::uint8_t>(127 + row));
    }
    opened.experts = chosen;
    opened.weights = weights;
    opened.groups =
        model::group_by_expert(scratch, tiny_model().config().routed_experts, chosen, weights);
    table = step_of(7, {{request_id{1}, random_tokens(1, n)}},
                    {{request_id{1}, 0, static_cast<std::uint32_t>(n)}});
  }

  std::optional<row_block> request() const {
    return stage::make_expert_rows(tiny_model().config(), table, asked_layer, 3, held, opened, x);
  }

  kernels::arena scratch;
  model::quantized_rows x;
  model::opened_moe opened;
  flow::step_table table;
};

/// `block` with its own bytes, changed.
row_block with_bytes(const row_block& block, const std::function<void(std::byte*)>& change) {
  kernels::buffer memory(block.payload->bytes());
  std::memcpy(memory.data(), block.payload->data(), memory.bytes());
  change(memory.data());
  row_block out = block;
  out.payload = flow::freeze(std::move(memory));
  return out;
}

template <class T>
std::function<void(std::byte*)> put(std::size_t index, T value) {
  return [=](std::byte* bytes) { std::memcpy(bytes + index * sizeof value, &value, sizeof value); };
}

void check_refused(const row_block& block, const std::string& text) {
  const auto rows = stage::expert_rows_of(block, tiny_model().config(), held);
  BOOST_REQUIRE(!rows);
  BOOST_TEST((rows.error().code == errc::malformed));
  BOOST_TEST(rows.error().message.find(text) != std::string::npos, rows.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(expert_blocks)

BOOST_AUTO_TEST_CASE(rows_carry_what_they_chose_of_the_slice) {
  // tiny-12 has two experts a row, best first.
  const routed_rows rows({{6, 1}, {0, 3}, {7, 2}, {2, 6}});
  const auto request = rows.request();
  BOOST_REQUIRE(request);
  BOOST_TEST(request->rows_count == 3U);
  BOOST_TEST(request->slice == 2U);
  BOOST_TEST(request->reader == 3U);
  BOOST_TEST(request->layer == asked_layer);
  const auto planes = stage::expert_rows_of(*request, tiny_model().config(), held);
  BOOST_REQUIRE(planes);
  const std::vector<std::vector<std::int32_t>> wanted{{1, 6}, {2, -1}, {2, 6}};
  const std::vector<std::uint8_t> from{1, 3, 4};
  for (std::size_t row = 0; row < 3; ++row) {
    BOOST_TEST(std::vector(planes->experts.row(row).begin(), planes->experts.row(row).end()) ==
                   wanted[row],
               boost::test_tools::per_element());
    BOOST_TEST(planes->weights.row(row)[0] == static_cast<float>(wanted[row][0]) / 4);
    BOOST_TEST(unsigned{planes->codes.row(row).back()} == from[row]);
    BOOST_TEST(unsigned{planes->scales.row(row).front()} == 126U + from[row]);
  }
  BOOST_TEST(planes->weights.row(1)[1] == 0);
}

BOOST_AUTO_TEST_CASE(nothing_is_asked_for_rows_that_chose_others) {
  BOOST_TEST(!routed_rows({{0, 3}, {7, 4}}).request());
}

BOOST_AUTO_TEST_CASE(requests_that_are_not_the_slices_are_refused) {
  const row_block good = *routed_rows({{6, 1}, {7, 2}}).request();
  const auto changed = [&](auto change) {
    row_block bad = good;
    change(bad);
    return bad;
  };
  check_refused(changed([](row_block& b) { b.layer = 6; }), "does not hold them");
  check_refused(changed([](row_block& b) { b.layer = 2; }), "does not hold them");
  check_refused(changed([](row_block& b) { b.slice = 1; }), "does not hold them");
  check_refused(changed([](row_block& b) { b.kind = row_kind::expert_outputs; }),
                "does not hold them");
  check_refused(changed([](row_block& b) { ++b.row_bytes; }), "not the layout of this model");
  check_refused(changed([](row_block& b) { ++b.rows_count; }), "not the layout of this model");
  check_refused(changed([](row_block& b) { b.payload = nullptr; }), "not the layout of this model");
}

BOOST_AUTO_TEST_CASE(rows_whose_choices_make_no_sense_are_refused) {
  const row_block good = *routed_rows({{6, 1}, {7, 2}}).request();  // {1, 6}, {2, -1}
  const std::string text = "does not choose experts of this slice";
  for (const std::int32_t id : {3, 8, -2, 6, std::numeric_limits<std::int32_t>::max()})
    check_refused(with_bytes(good, put(0, id)), "row 0 " + text);
  check_refused(with_bytes(good, put(1, std::int32_t{1})), "row 0 " + text);  // twice
  check_refused(with_bytes(good, put(0, std::int32_t{-1})), "row 0 " + text);  // after padding
  check_refused(with_bytes(good, put(2, std::int32_t{-1})), "row 1 " + text);  // none
  for (const float weight :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    check_refused(with_bytes(good, put(4 + 1, weight)), "row 0 " + text);
  // Of a slot without expert it does not matter.
  BOOST_TEST(
      stage::expert_rows_of(with_bytes(good, put(4 + 3, std::numeric_limits<float>::quiet_NaN())),
                            tiny_model().config(), held)
          .has_value());
}

BOOST_AUTO_TEST_CASE(answers_that_nobody_asked_for_are_refused) {
  const routed_rows rows({{6, 1}, {7, 2}, {0, 4}});
  const std::vector<model::expert_slice> slices{held, {9, 0, 11, {0}}};
  std::vector<row_block> asked;
  stage::awaited_experts awaited(tiny_model().config(), slices, 3);
  awaited.ask(rows.table, asked_layer, rows.opened, rows.x, asked);
  BOOST_REQUIRE_EQUAL(asked.size(), 2U);
  row_block good = asked[0];
  good.kind = row_kind::expert_outputs;
  good.rows_count = 3;
  good.row_bytes = stage::row_bytes(good.kind, tiny_model().config());
  good.payload = flow::freeze(kernels::buffer(std::size_t{3} * good.row_bytes));
  const auto refused = [&](auto change) {
    row_block bad = good;
    change(bad);
    const auto taken = awaited.take(bad, rows.opened);
    return !taken && taken.error().code == errc::malformed &&
           taken.error().message.find("are not those asked for") != std::string::npos;
  };
  BOOST_TEST(refused([](row_block& b) { b.slice = 1; }));
  BOOST_TEST(refused([](row_block& b) { b.slice = 9; }));
  BOOST_TEST(refused([](row_block& b) { b.kind = row_kind::expert_rows; }));
  BOOST_TEST(refused([](row_block& b) { ++b.step.value; }));
  BOOST_TEST(refused([](row_block& b) { ++b.layer; }));
  BOOST_TEST(refused([](row_block& b) { ++b.reader; }));
  BOOST_TEST(refused([](row_block& b) { b.spans.clear(); }));
  BOOST_TEST(refused([](row_block& b) { --b.rows_count; }));
  BOOST_TEST(refused([](row_block& b) { ++b.row_bytes; }));
  BOOST_TEST(refused([](row_block& b) { b.payload = nullptr; }));
  BOOST_TEST(awaited.any());
}

BOOST_AUTO_TEST_SUITE_END()
