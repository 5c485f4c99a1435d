// Goal: in whatever order images, tables and verdicts reach vision and the embedding, what leaves
// is what one process computes; what is lost, doubled or not theirs is refused. Method: the
// recorded images of tiny-vision in chunks of every size, in all orders that the edges allow,
// against the stages themselves.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <random>

#include "kernels/cpu/cpu_backend.hpp"
#include "runtime/stage/model_source.hpp"
#include "runtime/stage/unit.hpp"
#include "tests/support/golden_images.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1}, two{2};

const stage::model_source& source() {
  static const auto opened =
      stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/tiny-vision").value();
  return *opened;
}

const kernels::backend& backend() {
  static const auto made = kernels::make_cpu_backend();
  return *made;
}

const image_prompt& prompt() {
  static const image_prompt read = image_prompt_of(
      golden_file("tiny-vision/golden/vl-two-images.safetensors"), source().config());
  return read;
}

std::uint32_t prompt_rows() {
  return static_cast<std::uint32_t>(prompt().ids.size());
}

std::unique_ptr<stage::unit> vision_unit(std::size_t steps_max = 4) {
  return stage::make_vision_unit(source().make_vision(backend()).value(), steps_max);
}

std::unique_ptr<stage::unit> embedding_unit(std::size_t steps_max = 4) {
  return stage::make_image_embedding_unit(source().make_embedding().value(), steps_max);
}

flow::step_table table_of(std::uint64_t step, const std::vector<flow::row_span>& spans) {
  flow::step_table table;
  table.step = step_id{step};
  table.spans = spans;
  for (const flow::row_span& span : spans)
    for (std::uint32_t i = 0; i < span.rows_count; ++i)
      table.tokens.push_back(span.first_position + i < prompt_rows()
                                 ? prompt().ids[span.first_position + i]
                                 : token_id{7});
  return table;
}

/// The images whose first rows are in the table.
std::vector<flow::step_image> images_of(const flow::step_table& table) {
  std::vector<flow::step_image> out;
  for (const flow::row_span& span : table.spans)
    for (const flow::prompt_image& image : prompt().images)
      if (image.position >= span.first_position &&
          image.position < span.first_position + span.rows_count)
        out.push_back({table.step, table.epoch, {span.request, image}});
  return out;
}

flow::verdict verdict_of(const flow::step_table& table, bool finished = false) {
  flow::verdict out{table.step, table.epoch, {}};
  for (const flow::row_span& span : table.spans)
    out.commitments.push_back({span.request, span.first_position + span.rows_count, finished});
  return out;
}

stage::unit_output give(stage::unit& unit, flow::message message) {
  auto out = unit.take(std::move(message));
  BOOST_REQUIRE_MESSAGE(out, (out ? "" : out.error().message));
  return std::move(*out);
}

error refusal(stage::unit& unit, flow::message message) {
  const auto taken = unit.take(std::move(message));
  BOOST_REQUIRE(!taken);
  return taken.error();
}

void check_refusal(stage::unit& unit, flow::message message, const std::string& text) {
  const error refused = refusal(unit, std::move(message));
  BOOST_TEST(refused.message.find(text) != std::string::npos, refused.message);
}

std::vector<std::byte> bytes_of(const flow::row_block& block) {
  const auto bytes = flow::bytes_of(block.payload);
  return {bytes.begin(), bytes.end()};
}

/// What one process embeds for the tables.
std::vector<std::vector<std::byte>> expected(const std::vector<flow::step_table>& tables) {
  const auto vision = source().make_vision(backend()).value();
  const auto embedding = source().make_embedding().value();
  std::vector<std::vector<std::byte>> out;
  for (const flow::step_table& table : tables) {
    for (const flow::step_image& image : images_of(table)) BOOST_REQUIRE(vision->add(image.image));
    const auto rows = vision->run(table).value();
    out.push_back(bytes_of(embedding.run(table, rows.view()).value()));
    vision->apply(verdict_of(table));
  }
  return out;
}

/// Two prompts in chunks of `chunk` rows, then a row of text of each.
std::vector<flow::step_table> chunks_of(std::uint32_t chunk) {
  std::vector<flow::step_table> out;
  for (std::uint32_t first = 0; first < prompt_rows(); first += chunk) {
    const std::uint32_t rows = std::min(chunk, prompt_rows() - first);
    out.push_back(table_of(out.size() + 1, {{one, first, rows}, {two, first, rows}}));
  }
  out.push_back(table_of(out.size() + 1, {{one, prompt_rows(), 1}, {two, prompt_rows(), 1}}));
  return out;
}

/// Vision and embedding with a queue for each edge; at most `ahead` steps without their verdict.
struct pair_of_units {
  std::unique_ptr<stage::unit> vision = vision_unit();
  std::unique_ptr<stage::unit> embedding = embedding_unit();
  std::deque<flow::message> images, tables, verdicts, rows, other_tables;
  std::vector<flow::row_block> embedded;
  std::vector<step_id> done;  ///< at vision, in this order

  /// One message of a random edge; false: there is none.
  bool deliver(std::mt19937_64& random) {
    std::vector<std::deque<flow::message>*> ready;
    for (auto* queue : {&images, &tables, &verdicts, &rows, &other_tables})
      if (!queue->empty()) ready.push_back(queue);
    if (ready.empty()) return false;
    auto& queue = *ready[random() % ready.size()];
    flow::message next = std::move(queue.front());
    queue.pop_front();
    if (&queue == &rows || &queue == &other_tables) {
      for (flow::message& made : give(*embedding, std::move(next)).messages)
        embedded.push_back(std::get<flow::row_block>(std::move(made)));
      return true;
    }
    stage::unit_output out = give(*vision, std::move(next));
    for (flow::message& made : out.messages) rows.push_back(std::move(made));
    for (const stage::unit_work& work : out.work)
      if (work.done) done.push_back(work.step);
    return true;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(image_units)

BOOST_AUTO_TEST_CASE(embed_what_one_process_does_in_any_order_of_arrival) {
  for (std::uint32_t chunk = 1; chunk <= prompt_rows(); chunk += 3) {
    const std::vector<flow::step_table> tables = chunks_of(chunk);
    const auto wanted = expected(tables);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      std::mt19937_64 random(seed);
      pair_of_units units;
      std::size_t sent = 0, settled = 0;
      while (settled < tables.size()) {
        if (sent < tables.size() && sent < settled + 3 && random() % 2 == 0) {
          const flow::step_table& next = tables[sent++];
          for (const flow::step_image& image : images_of(next)) units.images.emplace_back(image);
          units.tables.emplace_back(next);
          units.other_tables.emplace_back(next);
        } else if (!units.deliver(random) && settled < units.embedded.size()) {
          units.verdicts.emplace_back(verdict_of(tables[settled++]));
        }
      }
      while (units.deliver(random)) continue;
      BOOST_REQUIRE_EQUAL(units.embedded.size(), tables.size());
      for (std::size_t i = 0; i < tables.size(); ++i) {
        BOOST_TEST((units.embedded[i].step == tables[i].step));
        BOOST_TEST((bytes_of(units.embedded[i]) == wanted[i]), "chunk " << chunk);
      }
      std::ranges::sort(units.done);
      BOOST_REQUIRE_EQUAL(units.done.size(), tables.size());
      for (std::size_t i = 0; i < tables.size(); ++i) BOOST_TEST((units.done[i] == tables[i].step));
    }
  }
}

BOOST_AUTO_TEST_CASE(take_a_verdict_before_its_table_if_the_step_has_no_image) {
  const auto unit = vision_unit();
  const flow::step_table text = table_of(1, {{one, prompt_rows(), 2}});
  BOOST_TEST(give(*unit, verdict_of(text)).work.empty());
  const auto out = give(*unit, text);
  BOOST_TEST(out.messages.empty());
  BOOST_REQUIRE_EQUAL(out.work.size(), 1U);
  BOOST_TEST(out.work[0].done);
}

BOOST_AUTO_TEST_CASE(compute_an_image_anew_for_a_request_that_begins_again) {
  const auto unit = vision_unit();
  const flow::step_table whole = table_of(1, {{one, 0, prompt_rows()}});
  for (const flow::step_image& image : images_of(whole)) give(*unit, image);
  const auto first = give(*unit, whole);
  give(*unit, verdict_of(whole, true));
  const flow::step_table again = table_of(2, whole.spans);
  BOOST_TEST(give(*unit, again).messages.empty());  // it waits
  std::vector<flow::message> second;
  for (const flow::step_image& image : images_of(again))
    for (flow::message& made : give(*unit, image).messages) second.push_back(std::move(made));
  BOOST_REQUIRE_EQUAL(second.size(), 1U);
  BOOST_TEST((bytes_of(std::get<flow::row_block>(second[0])) ==
              bytes_of(std::get<flow::row_block>(first.messages.at(0)))));
}

BOOST_AUTO_TEST_CASE(forget_everything_with_a_new_epoch) {
  const auto unit = vision_unit(1);
  const flow::step_table whole = table_of(1, {{one, 0, prompt_rows()}});
  const auto images = images_of(whole);
  give(*unit, images[0]);
  give(*unit, whole);  // waits for the second
  unit->begin_epoch();
  give(*unit, images[0]);
  give(*unit, images[1]);
  BOOST_TEST(give(*unit, whole).messages.size() == 1U);

  const auto embedding = embedding_unit(1);
  give(*embedding, whole);
  embedding->begin_epoch();
  BOOST_TEST(give(*embedding, table_of(1, {{two, prompt_rows(), 1}})).messages.size() == 1U);
}

BOOST_AUTO_TEST_CASE(of_vision_refuse_what_is_lost_doubled_or_wrong) {
  const flow::step_table whole = table_of(5, {{one, 0, prompt_rows()}});
  const auto images = images_of(whole);
  {
    const auto unit = vision_unit();
    give(*unit, images[0]);
    check_refusal(*unit, images[0], "there is one already");
  }
  {
    const auto unit = vision_unit();
    give(*unit, whole);
    give(*unit, images[1]);
    flow::step_image later = images[0];
    later.step = step_id{6};
    later.image.request = two;
    check_refusal(*unit, later, "step 5: an image is missing, and one of step 6 has come");
  }
  {
    const auto unit = vision_unit();
    give(*unit, images[0]);
    give(*unit, images[1]);
    give(*unit, whole);
    flow::step_image late = images[0];
    late.image.request = two;
    check_refusal(*unit, late, "step 5: an image after its step was run");
  }
  {
    const auto unit = vision_unit();
    flow::step_image stray = images[0];
    stray.image.request = two;
    give(*unit, stray);
    check_refusal(*unit, table_of(5, {{one, prompt_rows(), 1}}),
                  "an image came that does not begin");
  }
  const auto spoilt = [&](auto spoil) {
    flow::step_image image = images[0];
    spoil(image.image.image);
    return image;
  };
  const auto unit = vision_unit();
  for (const flow::step_image& wrong : {
           spoilt([](flow::prompt_image& image) { ++image.rows_count; }),
           spoilt([](flow::prompt_image& image) { image.patch_rows = 0xffffffff; }),
           spoilt([](flow::prompt_image& image) { image.patch_columns *= 1000; }),
           spoilt([](flow::prompt_image& image) { image.pixels = nullptr; }),
           spoilt(
               [](flow::prompt_image& image) { image.pixels = flow::freeze(kernels::buffer(6)); }),
       })
    BOOST_TEST((refusal(*unit, wrong).code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(of_vision_refuse_what_is_out_of_order_or_not_theirs) {
  const auto unit = vision_unit(1);
  for (const flow::message& foreign :
       {flow::message(flow::proposal{}), flow::message(flow::row_block{})})
    BOOST_TEST((refusal(*unit, foreign).code == errc::malformed));
  const flow::step_table whole = table_of(5, {{one, 0, prompt_rows()}});
  give(*unit, whole);
  check_refusal(*unit, whole, "its table came after that of step 5");
  check_refusal(*unit, table_of(6, {{two, 0, 1}}), "1 wait");
  give(*unit, flow::verdict{step_id{9}, {}, {}});
  check_refusal(*unit, flow::verdict{step_id{9}, {}, {}}, "after that of step 9");
  check_refusal(*unit, flow::verdict{step_id{10}, {}, {}}, "1 wait for tables");
}

BOOST_AUTO_TEST_CASE(of_the_embedding_refuse_other_rows) {
  const flow::step_table whole = table_of(5, {{one, 0, prompt_rows()}});
  const flow::step_table text = table_of(4, {{one, prompt_rows(), 2}});
  const auto vision = source().make_vision(backend()).value();
  for (const flow::step_image& image : images_of(whole)) BOOST_REQUIRE(vision->add(image.image));
  const flow::row_block rows = vision->run_block(whole).value().value();
  {
    const auto unit = embedding_unit();
    flow::row_block early = rows;
    early.step = text.step;
    give(*unit, early);
    BOOST_TEST((refusal(*unit, text).code == errc::malformed));
  }
  {
    const auto unit = embedding_unit();
    give(*unit, text);
    flow::row_block late = rows;
    late.step = text.step;
    check_refusal(*unit, late, "step 4, which has been embedded");
    BOOST_TEST((refusal(*unit, flow::row_block{}).code == errc::malformed));
    BOOST_TEST((refusal(*unit, flow::verdict{}).code == errc::malformed));
    give(*unit, rows);
    BOOST_TEST((refusal(*unit, rows).code == errc::malformed));
  }
  const auto spoilt = [&](auto spoil) {
    flow::row_block block = rows;
    spoil(block);
    return block;
  };
  for (const flow::row_block& wrong : {
           spoilt([](flow::row_block& block) { --block.rows_count; }),
           spoilt([](flow::row_block& block) { ++block.rows_count; }),
           spoilt([](flow::row_block& block) { block.row_bytes *= 2; }),
           spoilt([](flow::row_block& block) { block.payload = nullptr; }),
           spoilt([](flow::row_block& block) { block.spans[0].request = two; }),
       }) {
    const auto unit = embedding_unit();
    give(*unit, wrong);
    const errc code = refusal(*unit, whole).code;
    BOOST_TEST((code == errc::malformed || code == errc::mismatch));
  }
}

BOOST_AUTO_TEST_SUITE_END()
