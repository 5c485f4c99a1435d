#include "tools/cedar/sampling_arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tools/cedar/number_check.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;

/// The whole text as a number.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T out{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return out;
}

tl::unexpected<error> not_a(const char* what, const std::string& key) {
  return fail(errc::malformed, key + " must be " + what);
}

result<bool> read_biases(const json& value, std::vector<flow::token_bias>& out) {
  const auto wrong = not_a("an object of token ids and numbers, e.g. {\"17\": -2.5}", "logit_bias");
  if (!value.is_object()) return wrong;
  out.clear();
  for (const auto& [token, bias] : value.items()) {
    const auto id = number_of<token_id>(token);
    if (!id || !bias.is_number()) return wrong;
    out.push_back({*id, bias.get<float>()});
  }
  return true;
}

/// Drawn seeds have 53 bits, so that whoever reads JSON numbers as doubles gets them back whole.
std::uint64_t drawn_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 11;
}

}  // namespace

const char* const sampling_keys =
    "temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, "
    "min_tokens, seed, logit_bias";

void add_sampling_options(CLI::App& command, sampling_arguments& arguments) {
  flow::sampling_options& options = arguments.options;
  command.add_option("--temperature", options.temperature, "0: the most probable token (default)");
  command.add_option("--top-k", options.top_k, "Keep the K most probable tokens; 0: all")
      ->check(whole_number());
  command.add_option("--top-p", options.top_p,
                     "Keep the smallest set of at least this probability");
  command.add_option("--min-p", options.min_p,
                     "Keep tokens of at least this share of the best one's probability");
  command.add_option("--repetition-penalty", options.repetition_penalty,
                     "Divides positive logits of tokens in prompt and answer; 1: none");
  command.add_option("--presence-penalty", options.presence_penalty,
                     "Taken from logits of tokens in the answer");
  command.add_option("--frequency-penalty", options.frequency_penalty,
                     "The same for each time that the token stands there");
  command
      .add_option("--min-tokens", options.tokens_min,
                  "Tokens of an answer before it may end by itself; 0: none")
      ->check(whole_number());
  command
      .add_option("--seed", arguments.seed,
                  "The same seed gives the same answer; drawn and printed if not given")
      ->check(whole_number());
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.bias.push_back(*parse_bias(text));
          },
          "TOKEN=BIAS, added to the token's logit; may be given many times")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return parse_bias(text) ? "" : text + " is not TOKEN=BIAS, e.g. 17=-2.5";
      });
}

std::optional<flow::token_bias> parse_bias(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto token = number_of<token_id>(text.substr(0, equals));
  const auto bias = number_of<float>(text.substr(equals + 1));
  if (!token || !bias) return std::nullopt;
  return flow::token_bias{*token, *bias};
}

result<bool> read_sampling(const std::string& key, const json& value,
                           sampling_arguments& arguments) {
  flow::sampling_options& options = arguments.options;
  const std::pair<const char*, float*> numbers[] = {
      {"temperature", &options.temperature},
      {"top_p", &options.top_p},
      {"min_p", &options.min_p},
      {"repetition_penalty", &options.repetition_penalty},
      {"presence_penalty", &options.presence_penalty},
      {"frequency_penalty", &options.frequency_penalty},
  };
  for (const auto& [name, to] : numbers) {
    if (key != name) continue;
    if (!value.is_number()) return not_a("a number", key);
    *to = value.get<float>();
    return true;
  }
  if (key == "top_k" || key == "min_tokens") {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
      return not_a("a whole number, not negative", key);
    (key == "top_k" ? options.top_k : options.tokens_min) = value.get<std::uint32_t>();
    return true;
  }
  if (key == "seed") {
    if (!value.is_number_unsigned()) return not_a("a whole number, not negative", key);
    arguments.seed = value.get<std::uint64_t>();
    return true;
  }
  if (key == "logit_bias") return read_biases(value, options.bias);
  return false;
}

flow::sampling_options with_seed(const sampling_arguments& arguments) {
  flow::sampling_options out = arguments.options;
  if (out.temperature > 0) out.seed = arguments.seed ? *arguments.seed : drawn_seed();
  return out;
}

}  // namespace cedar::tools
