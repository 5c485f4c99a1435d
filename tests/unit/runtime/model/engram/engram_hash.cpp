// Goal: Engram addresses are those of the release, bit by bit. Method: tables and rows computed
// with the official rule for the released configuration and for two small ones (tests/data), and
// properties that hold for any: chunks do not matter, nothing is seen across a block.
#include "runtime/model/engram_hash.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "kernels/base/check.hpp"
#include "runtime/store/safetensors_reader.hpp"
#include "runtime/text/engram_token_map.hpp"

namespace cedar::model {
namespace {

using nlohmann::json;
using ids = std::vector<std::int32_t>;
using flags = std::vector<std::uint8_t>;
using rows = std::vector<std::uint64_t>;

json read_json(const std::string& path) {
  std::ifstream stream(path);
  BOOST_REQUIRE_MESSAGE(stream, path);
  return json::parse(stream);
}

template <class T>
T value_of(result<T> made) {
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

model_config config_with(engram_config engram) {
  model_config config;
  config.engram = std::move(engram);
  return config;
}

model_config released_config() {
  return config_with({{1, 14}, {384006168, 384016682}, 4, 8, 256, 16000000, 2, 99092});
}

/// Engram settings of a golden checkpoint.
model_config small_config(const std::string& name) {
  const json text = read_json(CEDAR_TEST_DATA "/golden/" + name + "/config.json").at("text_config");
  return config_with({text.at("engram_layer_ids"), text.at("engram_num_embeddings"),
                      text.at("engram_max_ngram_size"), text.at("engram_n_heads"),
                      text.at("engram_head_dim"), text.at("engram_vocab_size"),
                      text.at("engram_pad_token_id"), text.at("engram_compressed_vocab_size")});
}

ids released_token_map() {
  const text::tokenizer vocabulary =
      value_of(text::tokenizer::load(CEDAR_RELEASED_DATA "/tokenizer.json"));
  return value_of(text::engram_token_map(vocabulary, {129280, 99092, 2}));
}

/// Rows of all tokens of a sequence in one module, computed in chunks of `chunk` rows.
rows addresses(const engram_hash_tables& tables, std::size_t module, const ids& token_map,
               const ids& tokens, const flags& image, std::size_t chunk) {
  const engram_module_tables& of_module = tables.modules.at(module);
  const std::size_t columns = of_module.primes.size();
  rows all;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - begin);
    const std::size_t before = std::min<std::size_t>(begin, tables.max_ngram - 1);
    const std::span<const std::int32_t> every(tokens);
    const std::span<const std::uint8_t> marks(image);
    engram_tokens of_chunk{every.subspan(begin - before, before), every.subspan(begin, count)};
    if (!image.empty()) {
      of_chunk.lookback_image = marks.subspan(begin - before, before);
      of_chunk.rows_image = marks.subspan(begin, count);
    }
    ids windows(count * tables.max_ngram);
    engram_windows(tables, token_map, of_chunk, windows);
    for (std::size_t row = 0; row < count; ++row) {
      rows of_row(columns);
      engram_addresses(
          of_module, std::span(windows).subspan(row * tables.max_ngram, tables.max_ngram), of_row);
      all.insert(all.end(), of_row.begin(), of_row.end());
    }
  }
  return all;
}

template <class T>
std::vector<std::uint64_t> golden(const store::safetensors_reader& file, const std::string& name) {
  const std::span<const T> values = value_of(file.tensor(name)).template as<T>();
  return {values.begin(), values.end()};
}

void check_small(const std::string& name, const model_config& config) {
  const auto file = value_of(
      store::safetensors_reader::open(CEDAR_TEST_DATA "/golden/ops/engram_hash.safetensors"));
  const engram_hash_tables tables = value_of(make_engram_tables(config));
  rows primes, offsets, multipliers;
  for (const engram_module_tables& module : tables.modules) {
    primes.insert(primes.end(), module.primes.begin(), module.primes.end());
    offsets.insert(offsets.end(), module.offsets.begin(), module.offsets.end());
    multipliers.insert(multipliers.end(), module.multipliers.begin(), module.multipliers.end());
  }
  const auto equal = boost::test_tools::per_element();
  BOOST_TEST(primes == golden<std::int64_t>(file, name + ".primes"), equal);
  BOOST_TEST(offsets == golden<std::int64_t>(file, name + ".offsets"), equal);
  BOOST_TEST(multipliers == golden<std::int64_t>(file, name + ".multipliers"), equal);

  const auto map64 = golden<std::int32_t>(file, "token_map");
  const ids token_map(map64.begin(), map64.end());
  const auto tokens64 = golden<std::int32_t>(file, name + ".ids");
  const ids tokens(tokens64.begin(), tokens64.end());
  flags image;
  for (const std::uint64_t is_text : golden<std::uint8_t>(file, name + ".text_mask"))
    image.push_back(is_text == 0);
  BOOST_TEST(token_map[2] == golden<std::int32_t>(file, name + ".pad_id_compressed")[0]);
  for (const bool masked : {false, true}) {
    const auto expected =
        golden<std::int32_t>(file, name + (masked ? ".rows.masked" : ".rows.text_only"));
    const std::size_t columns = config.engram_columns();
    for (std::size_t module = 0; module < 2; ++module) {
      const rows made =
          addresses(tables, module, token_map, tokens, masked ? image : flags{}, tokens.size());
      for (std::size_t i = 0; i < made.size(); ++i) {
        const std::size_t row = i / columns;
        BOOST_REQUIRE_EQUAL(made[i], expected[(row * 2 + module) * columns + i % columns]);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE(engram_hash)

BOOST_AUTO_TEST_CASE(the_released_tables_are_reproduced) {
  const json expected = read_json(CEDAR_TEST_DATA "/released/engram_hash_tables.json");
  const engram_hash_tables tables = value_of(make_engram_tables(released_config()));
  BOOST_TEST(engram_row_counts(2, 24, 16000000) == released_config().engram.rows,
             boost::test_tools::per_element());
  BOOST_REQUIRE_EQUAL(tables.modules.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const engram_module_tables& module = tables.modules[i];
    rows primes;
    for (const json& order : expected.at("primes").at(i))
      for (const json& prime : order) primes.push_back(prime.get<std::uint64_t>());
    const auto equal = boost::test_tools::per_element();
    BOOST_TEST(module.primes == primes, equal);
    BOOST_TEST(module.offsets == expected.at("column_offsets").at(i).get<rows>(), equal);
    BOOST_TEST(module.multipliers == expected.at("multipliers").at(i).get<rows>(), equal);
    BOOST_TEST(module.rows == expected.at("table_rows").at(i).get<std::uint64_t>());
    BOOST_TEST(module.layer == expected.at("layer_ids").at(i).get<std::uint32_t>());
  }
}

BOOST_AUTO_TEST_CASE(released_addresses_are_reproduced_in_any_chunks) {
  const json vectors = read_json(CEDAR_TEST_DATA "/released/engram_hash_vectors.json");
  const engram_hash_tables tables = value_of(make_engram_tables(released_config()));
  const ids token_map = released_token_map();
  BOOST_REQUIRE_EQUAL(vectors.at("cases").size(), 5U);
  for (const json& one : vectors.at("cases")) {
    const ids tokens = one.at("input_ids");
    flags image;
    if (!one.at("token_mask").is_null())
      for (const json& is_text : one.at("token_mask")) image.push_back(!is_text.get<bool>());
    for (std::size_t module = 0; module < 2; ++module) {
      rows expected;
      for (const json& position : one.at("rows"))
        for (const json& row : position.at(module)) expected.push_back(row.get<std::uint64_t>());
      for (const std::size_t chunk :
           {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}, tokens.size()})
        BOOST_TEST(addresses(tables, module, token_map, tokens, image, chunk) == expected,
                   boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(small_configurations_agree_with_the_golden_vectors) {
  for (const std::string name : {"tiny-12", "tiny-40"}) check_small(name, small_config(name));
}

BOOST_AUTO_TEST_CASE(rows_of_a_golden_prompt_follow_from_its_tokenizer) {
  for (const std::string name : {"tiny-12", "tiny-40"}) {
    const std::string folder = CEDAR_TEST_DATA "/golden/" + name;
    const model_config config = small_config(name);
    const auto vocabulary = value_of(text::tokenizer::load(folder + "/tokenizer.json"));
    const ids token_map = value_of(text::engram_token_map(vocabulary, {512, 347, 2}));
    const auto prompt =
        value_of(store::safetensors_reader::open(folder + "/golden/prompt-0100.safetensors"));
    const auto trace =
        value_of(store::safetensors_reader::open(folder + "/golden/trace-0100.safetensors"));
    const rows tokens = golden<std::int32_t>(prompt, "tokens");
    const engram_hash_tables tables = value_of(make_engram_tables(config));
    for (std::size_t module = 0; module < 2; ++module) {
      const std::string layer = std::to_string(config.engram.layers[module]);
      BOOST_TEST(addresses(tables, module, token_map, {tokens.begin(), tokens.end()}, {}, 7) ==
                     golden<std::int32_t>(trace, "prefill.L" + layer + ".engram.hash_ids"),
                 boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(multipliers_are_numpys_for_any_layer_and_vocabulary) {
  const auto file = value_of(
      store::safetensors_reader::open(CEDAR_TEST_DATA "/golden/ops/engram_hash.safetensors"));
  const rows cases = golden<std::int32_t>(file, "generator.cases");
  const rows expected = golden<std::int64_t>(file, "generator.multipliers");
  BOOST_REQUIRE_EQUAL(cases.size(), 54U);
  for (std::size_t i = 0; i < cases.size() / 3; ++i) {
    rows made = engram_multipliers(static_cast<std::uint32_t>(cases[3 * i]),
                                   static_cast<std::uint32_t>(cases[3 * i + 1]),
                                   static_cast<std::uint32_t>(cases[3 * i + 2]));
    made.resize(4);  // the golden rows are filled up with zeros
    BOOST_TEST(made == rows(expected.begin() + static_cast<std::ptrdiff_t>(4 * i),
                            expected.begin() + static_cast<std::ptrdiff_t>(4 * i + 4)),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(rows_of_columns_are_the_primes_in_order) {
  constexpr std::uint64_t end = 4000;
  rows primes;
  std::vector<bool> composite(end);
  for (std::uint64_t number = 2; number < end; ++number) {
    if (composite[number]) continue;
    primes.push_back(number);
    for (std::uint64_t multiple = 2 * number; multiple < end; multiple += number)
      composite[multiple] = true;
  }
  const std::uint32_t count = static_cast<std::uint32_t>(primes.size());
  const std::uint64_t sum = std::accumulate(primes.begin(), primes.end(), std::uint64_t{0});
  const engram_hash_tables tables =
      value_of(make_engram_tables(config_with({{3}, {sum}, 2, count, 32, 0, 2, 347})));
  BOOST_TEST(tables.modules[0].primes == primes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_seen_across_an_image_span_or_before_the_start) {
  const engram_hash_tables tables = value_of(make_engram_tables(small_config("tiny-12")));
  ids token_map(10);
  for (std::int32_t i = 0; i < 10; ++i) token_map[static_cast<std::size_t>(i)] = 100 + i;
  constexpr std::int32_t pad = 102;
  const auto windows = [&](const engram_tokens& tokens) {
    ids made(tokens.rows.size() * 4);
    engram_windows(tables, token_map, tokens, made);
    return made;
  };
  const auto equal = boost::test_tools::per_element();
  const ids tokens = {3, 4, 5, 6, 7};
  BOOST_TEST(windows({{}, tokens}) == (ids{103, pad, pad, pad, 104, 103, pad, pad,  //
                                           105, 104, 103, pad, 106, 105, 104, 103,  //
                                           107, 106, 105, 104}),
             equal);
  const flags second = {0, 1, 0, 0, 0};
  BOOST_TEST(windows({{}, tokens, {}, second}) == (ids{103, pad, pad, pad, pad, pad, pad, pad,  //
                                                       105, pad, pad, pad, 106, 105, pad, pad,  //
                                                       107, 106, 105, pad}),
             equal);
  const ids row = {8};
  const ids lookback = {6, 7};
  const flags blocks = {1, 0};
  BOOST_TEST(windows({lookback, row}) == (ids{108, 107, 106, pad}), equal);
  BOOST_TEST(windows({lookback, row, blocks}) == (ids{108, 107, pad, pad}), equal);
}

BOOST_AUTO_TEST_CASE(chunks_do_not_matter_for_random_sequences) {
  std::mt19937_64 random(5);
  const engram_hash_tables tables = value_of(make_engram_tables(small_config("tiny-12")));
  ids token_map(500);
  for (std::int32_t& id : token_map) id = static_cast<std::int32_t>(random() % 347);
  for (int round = 0; round < 100; ++round) {
    ids tokens(1 + random() % 30);
    flags image(tokens.size());
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % 500);
    for (std::uint8_t& flag : image) flag = random() % 4 == 0;
    const rows whole = addresses(tables, 1, token_map, tokens, image, tokens.size());
    const rows cut = addresses(tables, 1, token_map, tokens, image, 1 + random() % 5);
    BOOST_REQUIRE(whole == cut);
    for (const std::uint64_t row : whole) BOOST_REQUIRE_LT(row, 864U);
  }
}

BOOST_AUTO_TEST_CASE(a_configuration_that_the_rule_contradicts_is_an_error) {
  model_config config = released_config();
  config.engram.rows[1] += 1;
  const auto made = make_engram_tables(config);
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::mismatch));
  BOOST_TEST(made.error().message.find("384016682") != std::string::npos);
  BOOST_TEST(made.error().message.find("384016683") != std::string::npos);
  const auto refusal = [](auto change) {
    model_config wrong = released_config();
    change(wrong.engram);
    return make_engram_tables(wrong).error().code;
  };
  BOOST_TEST((refusal([](engram_config& e) { e.rows.pop_back(); }) == errc::mismatch));
  BOOST_TEST((refusal([](engram_config& e) { e.max_ngram = 1; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](engram_config& e) { e.heads = 0; }) == errc::invalid_argument));
  BOOST_TEST(
      (refusal([](engram_config& e) { e.compressed_vocabulary = 0; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](engram_config& e) { e.compressed_vocabulary = 1U << 30; }) ==
              errc::invalid_argument));
  BOOST_TEST((refusal([](engram_config& e) { e.bucket_start = ~std::uint64_t{0}; }) ==
              errc::invalid_argument));
  BOOST_TEST(value_of(make_engram_tables(model_config{})).modules.empty());
}

BOOST_AUTO_TEST_CASE(sizes_and_ids_that_do_not_fit_are_defects) {
  const engram_hash_tables tables = value_of(make_engram_tables(small_config("tiny-12")));
  const ids token_map = {0, 1, 2};
  const ids four = {0, 1, 2, 0};
  const ids unknown = {3};
  const flags two_flags = {0, 0};
  ids windows(4);
  const std::span<const std::int32_t> row = std::span(four).first(1);
  BOOST_CHECK_NO_THROW(engram_windows(tables, token_map, {{}, row}, windows));
  BOOST_CHECK_THROW(engram_windows(tables, token_map, {four, row}, windows), defect);
  BOOST_CHECK_THROW(engram_windows(tables, token_map, {{}, four}, windows), defect);
  BOOST_CHECK_THROW(engram_windows(tables, token_map, {{}, unknown}, windows), defect);
  BOOST_CHECK_THROW(engram_windows(tables, token_map, {row, row, {}, two_flags}, windows), defect);
  BOOST_CHECK_THROW(engram_windows(tables, std::span(token_map).first(2), {{}, row}, windows),
                    defect);
  rows out(5);
  BOOST_CHECK_THROW(engram_addresses(tables.modules[0], windows, out), defect);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::model
