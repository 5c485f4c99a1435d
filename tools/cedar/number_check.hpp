// Checks of numbers on the command line, for what CLI11's own let pass.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace cedar::tools {

/// The whole text is a finite number from `low` to `high`. (CLI::Range takes what is not smaller
/// and not larger: NaN, too.)
inline CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](const std::string& text) {
        double number = 0;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        if (read.ec == std::errc{} && read.ptr == end && number >= low && number <= high)
          return std::string();
        return fmt::format("{} is not a number from {} to {}", text, low, high);
      },
      fmt::format("in [{} - {}]", low, high));
}

/// The whole text is decimal digits, of a number that 64 bits hold. (CLI11 reads -1 as the largest
/// one.)
inline CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& text) {
        std::uint64_t number = 0;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        if (read.ec == std::errc{} && read.ptr == end) return std::string();
        return fmt::format("{} is not a whole number, 0 or more", text);
      },
      "");
}

}  // namespace cedar::tools
