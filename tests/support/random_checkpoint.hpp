// A checkpoint of random weights for any configuration (runtime/synthetic), for what no recorded
// checkpoint covers: odd ratios, schedules, widths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

namespace cedar::test {

/// Writes config.json, model.safetensors and tokenizer.json to `folder`. The configuration is
/// tiny-12's after `change`, whose Engram rows are set to what its primes add up to. Throws if it
/// is refused.
void write_random_checkpoint(const std::filesystem::path& folder, std::uint64_t seed,
                             const std::function<void(nlohmann::json& text_config)>& change);

}  // namespace cedar::test
