// Sampling options as a person gives them: on the command line, or as keys of a prompts file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/sampling.hpp"

namespace CLI {
class App;
}

namespace cedar::tools {

struct sampling_arguments {
  flow::sampling_options options;  ///< without the seed; values are checked with the request
  std::optional<std::uint64_t> seed;
};

/// Adds --temperature, --top-k and so on to a subcommand.
void add_sampling_options(CLI::App& command, sampling_arguments& arguments);

/// The keys that read_sampling() knows, for texts.
extern const char* const sampling_keys;
/// Takes one key of a prompts file; false: it is none of sampling_keys. Errors: malformed (a wrong
/// type), without saying where.
result<bool> read_sampling(const std::string& key, const nlohmann::json& value,
                           sampling_arguments& arguments);

/// "TOKEN=BIAS", e.g. "17=-2.5"; nothing if it is not that.
std::optional<flow::token_bias> parse_bias(std::string_view text);

/// The options of a request. A seed is drawn from the operating system if noise needs one and none
/// was given.
flow::sampling_options with_seed(const sampling_arguments& arguments);

}  // namespace cedar::tools
