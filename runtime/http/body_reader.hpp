// The JSON body of a request, and its members read into values with all mistakes noted.
//
// Bounds that the size of a body does not give: nesting and members of one object, because the
// order-keeping JSON object compares every new key with all earlier ones.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/http/api_error.hpp"

namespace cedar::http {

inline constexpr std::size_t body_depth_max = 64;
inline constexpr std::size_t object_members_max = 4096;

/// Parses a body, which must be an object. Errors: 400.
api_result<nlohmann::ordered_json> parse_body(std::string_view text);

/// Reads members of an object. A member that is null counts as missing; a wrong one leaves the
/// value as it was and is noted.
class body_reader {
 public:
  /// `body` outlives the reader.
  explicit body_reader(const nlohmann::ordered_json& body) : body_(&body) {}

  /// The member, now known; nullptr if missing or null.
  const nlohmann::ordered_json* find(const std::string& key);

  void flag(const std::string& key, bool& to);
  void text(const std::string& key, std::string& to);
  template <class Float>
  bool number(const std::string& key, double low, double high, Float& to) {
    const auto value = read_number(key, low, high);
    if (value) to = static_cast<Float>(*value);
    return value.has_value();
  }

  template <class Integer>
  bool whole(const std::string& key, std::uint64_t low, std::uint64_t high, Integer& to) {
    const auto value = read_whole(key, low, high);
    if (value) to = static_cast<Integer>(*value);
    return value.has_value();
  }

  /// Members that are taken from many clients and change nothing here.
  void ignore(std::initializer_list<const char*> keys);
  void mistake(const std::string& param, const std::string& text);

  /// All mistakes, unknown members among them, in one error; nothing if there are none. The error's
  /// param is that of the first.
  std::optional<api_error> finish();

 private:
  std::optional<double> read_number(const std::string& key, double low, double high);
  std::optional<std::uint64_t> read_whole(const std::string& key, std::uint64_t low,
                                          std::uint64_t high);

  const nlohmann::ordered_json* body_;
  std::set<std::string> known_;
  std::vector<std::pair<std::string, std::string>> mistakes_;
};

}  // namespace cedar::http
