#include "tools/cedar/prompts_file.hpp"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/flow/sampling_rules.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;

constexpr std::uint64_t max_tokens_max = 1'000'000'000;
/// Which tokens there are is the model's to say, when it is there.
constexpr auto any_vocabulary = std::numeric_limits<std::uint32_t>::max();

tl::unexpected<error> wrong(std::string what) {
  return fail(errc::malformed, std::move(what));
}

result<void> read_images(const json& value, prompt_line& to) {
  to.images.clear();
  for (const json& file : value) {
    if (!file.is_string()) return wrong("images must be a list of file names");
    to.images.emplace_back(file.get<std::string>());
  }
  return {};
}

result<void> read_member(const std::string& key, const json& value, prompt_line& to) {
  if (key == "prompt" && value.is_string()) {
    to.text = value.get<std::string>();
  } else if (key == "max_tokens") {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_tokens_max)
      return wrong("max_tokens must be a whole number, not negative");
    to.new_tokens_max = value.get<std::uint32_t>();
  } else if (key == "chat" && value.is_boolean()) {
    to.chat = value.get<bool>();
  } else if (key == "images" && value.is_array()) {
    return read_images(value, to);
  } else if (key == "mode" && value.is_string()) {
    to.mode = session::prefill_mode_of(value.get<std::string>());
    if (!to.mode)
      return wrong("mode must be \"exact\", \"bounded\" or \"halo\", not " + value.dump());
  } else {
    const result<bool> sampling = read_sampling(key, value, to.sampling);
    if (!sampling) return fail(sampling.error());
    if (!*sampling)
      return wrong("unknown key or wrong type: '" + key +
                   "'; known are prompt (text), max_tokens, chat (true, false), mode (text), "
                   "images (list), " +
                   sampling_keys);
  }
  return {};
}

result<void> read_line(const std::string& line, prompt_line& to) {
  const json value = json::parse(line, nullptr, false);
  if (!value.is_object()) return wrong("not a JSON object");
  for (const auto& [key, member] : value.items())
    if (const auto read = read_member(key, member, to); !read) return read;
  if (!value.contains("prompt")) return wrong("no 'prompt'");
  if (to.text.empty()) return wrong("the prompt is empty");
  return flow::check(to.sampling.options, any_vocabulary);
}

}  // namespace

void line_mistakes::add(const std::string& where, const error& what) {
  const error placed = where.empty() ? what : what.with(where);
  if (all_)
    all_->message += "\n" + placed.message;
  else
    all_ = placed;
}

result<void> line_mistakes::outcome() const {
  if (all_) return fail(*all_);
  return {};
}

result<std::vector<prompt_line>> read_prompts_file(const std::filesystem::path& path,
                                                   const prompt_line& defaults) {
  std::ifstream file(path);
  if (!file) return fail(errc::not_found, "cannot read " + path.string());
  std::vector<prompt_line> out;
  line_mistakes mistakes;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    prompt_line& made = out.emplace_back(defaults);
    made.where = path.string() + ":" + std::to_string(number);
    if (const auto read = read_line(line, made); !read) mistakes.add(made.where, read.error());
  }
  if (const auto all_right = mistakes.outcome(); !all_right) return fail(all_right.error());
  if (out.empty()) return fail(errc::invalid_argument, path.string() + " has no prompt");
  return out;
}

}  // namespace cedar::tools
