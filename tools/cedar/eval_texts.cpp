#include "tools/cedar/eval_texts.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/text/prompt_encoding.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;

tl::unexpected<error> wrong(std::string what) {
  return fail(errc::malformed, std::move(what));
}

result<eval_text> text_of(const std::string& line, const text::tokenizer& tokenizer,
                          std::uint32_t following) {
  const json value = json::parse(line, nullptr, false);
  if (!value.is_object()) return wrong("not a JSON object");
  for (const auto& [key, member] : value.items())
    if ((key != "text" && key != "answer") || !member.is_string())
      return wrong("'" + key + "': known are text (text) and answer (text)");
  if (!value.contains("text")) return wrong("no 'text'");
  eval_text out;
  auto prompt =
      text::tokenize(tokenizer, text::continuation_prompt(value["text"].get<std::string>()));
  if (!prompt) return fail(prompt.error());
  out.prompt = std::move(*prompt);
  out.is_answer = value.contains("answer");
  if (out.is_answer) {
    auto answer =
        tokenizer.encode(value["answer"].get<std::string>(), text::control_strings::plain_text);
    if (!answer) return fail(answer.error());
    if (answer->empty()) return wrong("the answer is empty");
    out.following = std::move(*answer);
    return out;
  }
  if (out.prompt.size() <= following)
    return wrong("the text has " + std::to_string(out.prompt.size()) + " tokens, of which " +
                 std::to_string(following) + " are to follow a prompt");
  out.following.assign(out.prompt.end() - following, out.prompt.end());
  out.prompt.resize(out.prompt.size() - following);
  return out;
}

}  // namespace

result<std::vector<eval_text>> read_eval_texts(const std::filesystem::path& path,
                                               const text::tokenizer& tokenizer,
                                               std::uint32_t following) {
  std::ifstream file(path);
  if (!file) return fail(errc::not_found, "cannot read " + path.string());
  std::vector<eval_text> out;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto one = text_of(line, tokenizer, following);
    if (!one) return fail(one.error().with(path.string() + ":" + std::to_string(number)));
    out.push_back(std::move(*one));
  }
  if (out.empty()) return fail(errc::invalid_argument, path.string() + " has no text");
  return out;
}

}  // namespace cedar::tools
