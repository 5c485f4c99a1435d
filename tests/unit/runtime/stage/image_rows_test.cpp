// Goal: rows of image spans get their embeddings and flags, whatever rows they lie among, and
// nobody generates one. Method: tiny-vision, whose image token is 504; embeddings that are told
// apart.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/cpu/cpu_backend.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/model_source.hpp"
#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/weight_loader.hpp"

using namespace cedar;
using kernels::bf16;
using kernels::matrix_buffer;

namespace {

constexpr token_id image_token = 504;

std::unique_ptr<stage::model_source> opened(const char* name) {
  return stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/" + name).value();
}

flow::step_table step_of(std::vector<token_id> tokens) {
  flow::step_table table;
  table.step = step_id{7};
  table.spans = {{request_id{1}, 0, static_cast<std::uint32_t>(tokens.size()), 0}};
  table.tokens = std::move(tokens);
  return table;
}

/// Row i has the value i everywhere.
matrix_buffer<bf16> numbered(std::size_t rows, std::size_t width) {
  matrix_buffer<bf16> out(rows, width);
  for (std::size_t i = 0; i < rows; ++i)
    std::ranges::fill(out.view().row(i), kernels::to_bf16(static_cast<float>(i)));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_rows)

BOOST_AUTO_TEST_CASE(take_their_embeddings_in_order) {
  const auto source = opened("tiny-vision");
  const auto& config = source->config();
  const auto embedding = source->make_embedding().value();
  const auto tokens = stage::load_embedding(source->checkpoint(), config).value();
  const auto table = step_of({5, image_token, image_token, 6, image_token});
  const auto images = numbered(3, config.width);
  const auto block = embedding.run(table, images.view());
  BOOST_REQUIRE(block);
  const auto planes = stage::view_planes(*block, config).value();
  const std::vector<std::uint8_t> flags{0, 1, 1, 0, 1};
  BOOST_TEST((std::ranges::equal(planes.image_rows, flags)));
  const std::vector<std::span<const bf16>> expected{tokens.row(5), images.view().row(0),
                                                    images.view().row(1), tokens.row(6),
                                                    images.view().row(2)};
  for (std::size_t row = 0; row < expected.size(); ++row)
    BOOST_TEST((std::ranges::equal(planes.streams.row(row), expected[row])), "row " << row);
}

BOOST_AUTO_TEST_CASE(need_exactly_one_embedding_each) {
  const auto source = opened("tiny-vision");
  const auto embedding = source->make_embedding().value();
  const std::size_t width = source->config().width;
  const auto images = numbered(3, width);
  const auto refused = [&](std::vector<token_id> tokens, kernels::matrix_view<const bf16> given) {
    const auto block = embedding.run(step_of(std::move(tokens)), given);
    BOOST_REQUIRE(!block);
    BOOST_TEST((block.error().code == errc::mismatch));
    BOOST_TEST(block.error().message.find("step 7") != std::string::npos);
  };
  refused({5, image_token}, {});
  refused({5, image_token}, images.view().rows_from(0, 2));
  refused({5, 6}, images.view().rows_from(0, 1));
  refused({5, image_token}, images.view().rows_from(0, 1).cols_from(0, width - 1));
}

BOOST_AUTO_TEST_CASE(do_not_exist_in_a_model_without_a_tower) {
  const auto source = opened("tiny-12");
  BOOST_REQUIRE_EQUAL(source->config().image_token, image_token);
  BOOST_TEST(model::image_token_of(source->config()) == -1);
  const auto block = source->make_embedding().value().run(step_of({5, image_token}));
  BOOST_REQUIRE(block);
  const auto planes = stage::view_planes(*block, source->config()).value();
  BOOST_TEST(std::ranges::count(planes.image_rows, 0) == 2);
}

// Rows that point at the image token's row of the head: its logit is the largest.
BOOST_AUTO_TEST_CASE(are_never_proposed) {
  for (const char* name : {"tiny-vision", "tiny-12"}) {
    const auto source = opened(name);
    const auto& config = source->config();
    const auto backend = kernels::make_cpu_backend();
    const auto head = source->make_head(*backend).value();
    const auto weights = stage::load_head(source->checkpoint(), config).value();
    auto table = step_of({5});
    table.want_logits = true;
    kernels::buffer memory(stage::row_bytes(flow::row_kind::head_input, config));
    auto* row = reinterpret_cast<bf16*>(memory.data());
    for (std::size_t i = 0; i < config.width; ++i)
      row[i] = kernels::to_bf16(kernels::to_float(weights.head.row(image_token)[i]) /
                                kernels::to_float(weights.norm[i]));
    const auto proposal = head->run(
        table, stage::make_block(flow::row_kind::head_input, table, config, std::move(memory)), {});
    BOOST_REQUIRE(proposal);
    const auto* logits = reinterpret_cast<const float*>(flow::bytes_of(proposal->logits).data());
    BOOST_TEST(std::max_element(logits, logits + config.vocabulary) - logits == image_token);
    const token_id chosen = proposal->tokens.front().token;
    BOOST_TEST((chosen == image_token) == (config.vision.layers == 0), name);
    BOOST_TEST(std::isfinite(proposal->tokens.front().log_probability));
  }
}

BOOST_AUTO_TEST_SUITE_END()
