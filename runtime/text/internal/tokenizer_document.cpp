#include "runtime/text/internal/tokenizer_document.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace cedar::text {
namespace {

using nlohmann::json;
using ids_by_string = std::unordered_map<std::string_view, token_id>;

/// A key and the only values that it may have; absent is as good as any of them.
struct setting {
  const char* key;
  std::vector<json> values;
};

tl::unexpected<error> malformed(std::string text) {
  return fail(errc::malformed, std::move(text));
}

/// The value of `key`, or null.
const json& member(const json& object, const char* key) {
  static const json absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

bool has_type(const json& object, std::string_view type) {
  return object.is_object() && member(object, "type") == type;
}

/// Checks that `object` asks for nothing but `settings`; `used` are keys that the caller reads.
/// Unknown keys may be null or false: then they ask for nothing.
result<void> check_settings(const json& object, const std::string& path,
                            const std::vector<setting>& settings,
                            std::initializer_list<std::string_view> used) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(used.begin(), used.end(), key) != used.end()) continue;
    const auto known = std::ranges::find(settings, key, &setting::key);
    const bool supported =
        known == settings.end()
            ? value.is_null() || value == false
            : std::find(known->values.begin(), known->values.end(), value) != known->values.end();
    if (!supported) {
      constexpr auto replace = json::error_handler_t::replace;
      return fail(errc::invalid_argument, path + key + " = " +
                                              value.dump(-1, ' ', false, replace).substr(0, 80) +
                                              " is not supported");
    }
  }
  return {};
}

result<void> check_top(const json& root) {
  const json no_steps = {{"type", "Sequence"}, {"normalizers", json::array()}};
  if (auto checked =
          check_settings(root, "",
                         {{"version", {"1.0", nullptr}},
                          {"truncation", {nullptr}},
                          {"padding", {nullptr}},
                          {"normalizer", {nullptr, no_steps}}},
                         {"added_tokens", "pre_tokenizer", "post_processor", "decoder", "model"});
      !checked)
    return checked;
  // The byte-level post-processor moves offsets only; the byte-level decoder has no options.
  const json& post = member(root, "post_processor");
  if (!post.is_null() && !has_type(post, "ByteLevel"))
    return fail(errc::invalid_argument, "post_processor other than ByteLevel is not supported");
  if (!has_type(member(root, "decoder"), "ByteLevel"))
    return fail(errc::invalid_argument, "decoder other than ByteLevel is not supported");
  return {};
}

result<void> read_split(const json& step, const std::string& path, tokenizer_document& document) {
  if (auto checked = check_settings(step, path, {{"behavior", {"Isolated"}}, {"invert", {false}}},
                                    {"type", "pattern"});
      !checked)
    return checked;
  const json& pattern = member(step, "pattern");
  const json& expression = pattern.is_object() ? member(pattern, "Regex") : pattern;
  if (!pattern.is_object() || !expression.is_string())
    return fail(errc::invalid_argument, path + "pattern other than Regex is not supported");
  document.split_patterns.push_back(expression.get<std::string>());
  return {};
}

/// A sequence of Split steps, then ByteLevel; or ByteLevel alone.
result<void> read_pre_tokenizer(const json& root, tokenizer_document& document) {
  const json& top = member(root, "pre_tokenizer");
  const bool sequence = has_type(top, "Sequence");
  const json steps = sequence ? member(top, "pretokenizers") : json::array({top});
  if (!steps.is_array()) return malformed("pre_tokenizer.pretokenizers is not a list");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const json& step = steps[i];
    const std::string path =
        sequence ? "pre_tokenizer.pretokenizers[" + std::to_string(i) + "]." : "pre_tokenizer.";
    const bool last = i + 1 == steps.size();
    if (last && has_type(step, "ByteLevel")) {
      return check_settings(
          step, path,
          {{"add_prefix_space", {false}}, {"use_regex", {false}}, {"trim_offsets", {true, false}}},
          {"type"});
    }
    if (last || !has_type(step, "Split"))
      return fail(errc::invalid_argument,
                  path + "type: only Split steps and ByteLevel at the end are supported");
    if (result<void> split = read_split(step, path, document); !split) return split;
  }
  return malformed("pre_tokenizer has no steps");
}

/// Puts `text` at its id. The format may say the same thing twice, but not two things.
result<void> place(const std::string& path, std::string text, const json& id,
                   std::vector<std::string>& strings) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= strings.size())
    return malformed(path + " \"" + text + "\" has an id outside 0.." +
                     std::to_string(strings.size() - 1) + " (ids must have no gaps)");
  std::string& held = strings[id.get<std::size_t>()];
  if (!held.empty() && held != text)
    return malformed(path + " gives id " + id.dump() + " to \"" + text + "\" and to \"" + held +
                     "\"");
  held = std::move(text);
  return {};
}

result<void> read_added(const json& root, const ids_by_string& vocabulary,
                        tokenizer_document& document) {
  const json& list = member(root, "added_tokens");
  std::unordered_set<std::string_view> contents;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    const std::string path = "added_tokens[" + std::to_string(i) + "]";
    const json& content = entry.is_object() ? member(entry, "content") : entry;
    if (!entry.is_object() || !content.is_string() || content.get_ref<const std::string&>().empty())
      return malformed(path + ".content is missing or empty");
    // `normalized` chooses between the text before and after the normalizer, which changes nothing.
    if (auto checked = check_settings(entry, path + ".",
                                      {{"single_word", {false}},
                                       {"lstrip", {false}},
                                       {"rstrip", {false}},
                                       {"normalized", {true, false}},
                                       {"special", {true, false}}},
                                      {"id", "content"});
        !checked)
      return checked;
    added_token token{0, content.get<std::string>(), member(entry, "special") == true};
    const json& id = member(entry, "id");
    if (auto placed = place(path, token.content, id, document.strings); !placed) return placed;
    token.token = id.get<token_id>();
    if (!contents.insert(content.get_ref<const std::string&>()).second)
      return malformed(path + ".content \"" + token.content + "\" is a repetition");
    const auto known = vocabulary.find(token.content);
    if (known != vocabulary.end() && known->second != token.token)
      return malformed(path + ".id differs from model.vocab's");
    document.added.push_back(std::move(token));
  }
  return {};
}

/// How many ids there must be: strings of the vocabulary, and added tokens that it does not hold.
result<std::size_t> count_strings(const json& vocabulary, const json& added) {
  if (!vocabulary.is_object()) return malformed("model.vocab is not an object");
  if (!added.is_array() && !added.is_null()) return malformed("added_tokens is not a list");
  std::size_t count = vocabulary.size();
  for (const json& entry : added) {
    const json& content = entry.is_object() ? member(entry, "content") : entry;
    if (content.is_string() && !vocabulary.contains(content.get_ref<const std::string&>())) ++count;
  }
  if (count > tokenizer_strings_max)
    return malformed(std::to_string(count) + " tokens, at most " +
                     std::to_string(tokenizer_strings_max) + " are supported");
  return count;
}

/// "left right" (older files) or ["left", "right"].
std::pair<std::string_view, std::string_view> merge_sides(const json& entry) {
  if (entry.is_string()) {
    const std::string_view text = entry.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos) return {text.substr(0, space), text.substr(space + 1)};
  } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
             entry[1].is_string()) {
    return {entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
  }
  return {};
}

result<void> read_merges(const json& model, const ids_by_string& vocabulary,
                         tokenizer_document& document) {
  const json& list = member(model, "merges");
  if (!list.is_array()) return malformed("model.merges is not a list");
  document.merges.reserve(list.size());
  std::string joined;
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto [left, right] = merge_sides(list[rank]);
    joined.assign(left).append(right);
    const auto left_at = vocabulary.find(left);
    const auto right_at = vocabulary.find(right);
    const auto joined_at = vocabulary.find(joined);
    if (left_at == vocabulary.end() || right_at == vocabulary.end() ||
        joined_at == vocabulary.end())
      return malformed("model.merges[" + std::to_string(rank) +
                       "] is not a pair of tokens whose union is a token");
    document.merges.push_back({left_at->second, right_at->second, joined_at->second});
  }
  return {};
}

result<void> read_model(const json& root, tokenizer_document& document) {
  const json& model = member(root, "model");
  if (!has_type(model, "BPE")) return fail(errc::invalid_argument, "model.type is not BPE");
  if (auto checked = check_settings(model, "model.",
                                    {{"dropout", {nullptr}},
                                     {"unk_token", {nullptr}},
                                     {"continuing_subword_prefix", {nullptr, ""}},
                                     {"end_of_word_suffix", {nullptr, ""}},
                                     {"fuse_unk", {false}},
                                     {"byte_fallback", {false}},
                                     {"ignore_merges", {false}}},
                                    {"type", "vocab", "merges"});
      !checked)
    return checked;
  const json& vocabulary = member(model, "vocab");
  const result<std::size_t> count = count_strings(vocabulary, member(root, "added_tokens"));
  if (!count) return fail(count.error());
  document.strings.resize(*count);
  ids_by_string ids;
  ids.reserve(*count);
  for (const auto& [text, id] : vocabulary.items()) {
    if (text.empty()) return malformed("model.vocab has an empty token");
    if (auto placed = place("model.vocab", text, id, document.strings); !placed) return placed;
    ids.emplace(text, id.get<token_id>());
  }
  if (auto read = read_merges(model, ids, document); !read) return read;
  return read_added(root, ids, document);
}

result<json> parse_json(std::string_view text) {
  try {
    return json::parse(text);
  } catch (const json::exception& problem) {
    return malformed(problem.what());
  }
}

}  // namespace

result<tokenizer_document> parse_tokenizer_document(std::string_view json_text) {
  const result<json> root = parse_json(json_text);
  if (!root) return fail(root.error());
  if (!root->is_object()) return malformed("not a JSON object");
  tokenizer_document document;
  if (auto checked = check_top(*root); !checked) return fail(checked.error());
  if (auto read = read_pre_tokenizer(*root, document); !read) return fail(read.error());
  if (auto read = read_model(*root, document); !read) return fail(read.error());
  return document;
}

}  // namespace cedar::text
