// Goal: everything that a tokenizer.json can say and cedar does not do is refused by name. Method:
// a valid document, changed at one place each.
#include "runtime/text/internal/tokenizer_document.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using nlohmann::json;

/// Loading the changed document fails with `code`, and the message names `name`.
void expect_refusal(const std::function<void(json&)>& change, errc code, const std::string& name) {
  json document = minimal_document();
  change(document);
  const result<tokenizer> made = tokenizer::parse(document.dump());
  BOOST_REQUIRE_MESSAGE(!made, name + " was accepted");
  BOOST_TEST((made.error().code == code), made.error().message);
  BOOST_TEST(made.error().message.find(name) != std::string::npos, made.error().message);
}

void expect_unsupported(const char* pointer, const json& value, const std::string& name) {
  expect_refusal([&](json& document) { document[json::json_pointer(pointer)] = value; },
                 errc::invalid_argument, name);
}

void expect_malformed(const char* pointer, const json& value, const std::string& name) {
  expect_refusal([&](json& document) { document[json::json_pointer(pointer)] = value; },
                 errc::malformed, name);
}

BOOST_AUTO_TEST_SUITE(tokenizer_documents)

BOOST_AUTO_TEST_CASE(a_document_is_read_completely) {
  json source = minimal_document();
  source["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "x"}}}, {"behavior", "Isolated"}},
        {{"type", "Split"}, {"pattern", {{"Regex", "y"}}}, {"invert", false}},
        {{"type", "ByteLevel"}, {"use_regex", false}}}}};
  source["model"]["merges"][1] = {"aa", "a"};  // the newer form
  const result<tokenizer_document> document = parse_tokenizer_document(source.dump());
  BOOST_REQUIRE(document.has_value());
  BOOST_TEST(document->strings.size() == 262U);
  BOOST_TEST(document->strings[257] == "aaa");
  BOOST_TEST(document->split_patterns == (std::vector<std::string>{"x", "y"}),
             boost::test_tools::per_element());
  BOOST_REQUIRE_EQUAL(document->merges.size(), 3U);
  BOOST_TEST(document->merges[1].left == 256);
  BOOST_TEST(document->merges[1].right == 'a');
  BOOST_TEST(document->merges[1].result == 257);
  BOOST_REQUIRE_EQUAL(document->added.size(), 3U);
  BOOST_TEST(document->added[0].special);
  BOOST_TEST(!document->added[1].special);
  BOOST_TEST(document->added[2].content == "<s><t>");
  BOOST_TEST(document->added[2].token == 261);
}

BOOST_AUTO_TEST_CASE(unsupported_settings_are_refused_by_name) {
  expect_unsupported("/normalizer", {{"type", "NFC"}}, "normalizer");
  expect_unsupported("/truncation", {{"max_length", 5}}, "truncation");
  expect_unsupported("/padding", {{"length", 5}}, "padding");
  expect_unsupported("/version", "2.0", "version");
  expect_unsupported("/post_processor", {{"type", "TemplateProcessing"}}, "post_processor");
  expect_unsupported("/decoder", {{"type", "Metaspace"}}, "decoder");
  expect_unsupported("/model/type", "Unigram", "model.type");
  expect_unsupported("/model/dropout", 0.1, "model.dropout");
  expect_unsupported("/model/unk_token", "<unk>", "model.unk_token");
  expect_unsupported("/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix");
  expect_unsupported("/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix");
  expect_unsupported("/model/fuse_unk", true, "model.fuse_unk");
  expect_unsupported("/model/byte_fallback", true, "model.byte_fallback");
  expect_unsupported("/model/ignore_merges", true, "model.ignore_merges");
  expect_unsupported("/model/something_new", 1, "model.something_new");
  expect_unsupported("/pre_tokenizer/add_prefix_space", true, "pre_tokenizer.add_prefix_space");
  expect_unsupported("/pre_tokenizer/use_regex", true, "pre_tokenizer.use_regex");
  expect_unsupported("/pre_tokenizer/type", "Metaspace", "pre_tokenizer.type");
  expect_unsupported("/added_tokens/1/lstrip", true, "added_tokens[1].lstrip");
  expect_unsupported("/added_tokens/1/rstrip", true, "added_tokens[1].rstrip");
  expect_unsupported("/added_tokens/0/single_word", true, "added_tokens[0].single_word");
}

BOOST_AUTO_TEST_CASE(unsupported_splits_are_refused_by_name) {
  const auto expect = [](const json& step, const std::string& name) {
    expect_unsupported("/pre_tokenizer",
                       {{"type", "Sequence"},
                        {"pretokenizers", {step, {{"type", "ByteLevel"}, {"use_regex", false}}}}},
                       "pre_tokenizer.pretokenizers[0]." + name);
  };
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "x"}}}, {"behavior", "Isolated"}};
  json changed = split;
  changed["behavior"] = "Removed";
  expect(changed, "behavior");
  changed = split;
  changed["invert"] = true;
  expect(changed, "invert");
  changed = split;
  changed["pattern"] = {{"String", "x"}};
  expect(changed, "pattern");
  expect({{"type", "Digits"}}, "type");
  expect_unsupported("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split}}}, "type");
  expect_malformed("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array()}},
                   "pre_tokenizer");
}

BOOST_AUTO_TEST_CASE(settings_that_ask_for_nothing_are_accepted) {
  json document = minimal_document();
  document["truncation"] = nullptr;
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  document["post_processor"] = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  document["model"]["end_of_word_suffix"] = "";
  document["model"]["ignore_merges"] = false;
  document["model"]["something_new"] = nullptr;
  BOOST_TEST(make_tokenizer(document).vocabulary_size() == 262U);
}

BOOST_AUTO_TEST_CASE(contradictions_are_refused) {
  expect_malformed("/model/vocab/bc", 300, "\"bc\"");  // a gap
  expect_malformed("/model/vocab/bc", 256, "256");  // one id for two tokens
  expect_malformed("/model/vocab/bc", -1, "\"bc\"");
  expect_malformed("/model/vocab/bc", "258", "\"bc\"");
  expect_malformed("/model/vocab", 1, "model.vocab");
  expect_malformed("/model/vocab/ж", 262, "ж");  // not in the byte alphabet
  expect_malformed("/model/merges/2", "b", "model.merges[2]");
  expect_malformed("/model/merges/2", "b d", "model.merges[2]");
  expect_malformed("/model/merges/2", "a a", "model.merges[2]");  // twice
  expect_malformed("/model/merges", "b c", "model.merges");
  expect_malformed("/added_tokens", "x", "added_tokens");
  expect_malformed("/added_tokens/0", "x", "added_tokens[0]");
  expect_malformed("/added_tokens/0/content", "", "added_tokens[0]");
  expect_malformed("/added_tokens/0/content", "<t>", "is a repetition");
  expect_malformed("/added_tokens/0/content", "aa",
                   "added_tokens[0]");  // another id in the vocabulary
  expect_refusal(
      [](json& document) { document["added_tokens"].push_back(document["added_tokens"][0]); },
      errc::malformed, "added_tokens[3]");
  expect_refusal(
      [](json& document) {
        document["added_tokens"].push_back({{"id", 258}, {"content", "bc"}});
      },
      errc::malformed, "model.merges[2]");
  expect_refusal([](json& document) { document["model"]["vocab"].erase("!"); }, errc::malformed,
                 "id");
  expect_refusal(
      [](json& document) {
        document["model"]["vocab"].erase("!");
        document["model"]["vocab"]["!!"] = '!';
      },
      errc::malformed, "byte 33");
}

BOOST_AUTO_TEST_CASE(what_is_not_json_is_refused_with_its_place) {
  const result<tokenizer> made = tokenizer::parse("{\"model\": ");
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::malformed));
  BOOST_TEST(made.error().message.find("column 11") != std::string::npos, made.error().message);
  BOOST_TEST((tokenizer::parse("[]").error().code == errc::malformed));
  BOOST_TEST((tokenizer::parse(std::string(1 << 20, '[')).error().code == errc::malformed));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
