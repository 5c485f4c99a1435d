// Reads the keys of one JSON object into typed fields and remembers everything that is wrong.
//
// A key that cannot be read leaves its field alone and is remembered as failed, so that rules about
// it are not checked on a value that nobody wrote. Only config*.cpp include this header.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/errc.hpp"

namespace cedar::model {

struct config_problems {
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::set<std::string, std::less<>> failed_keys;
  errc code = errc::malformed;  // of the first error

  void add(errc kind, std::string message) {
    if (errors.empty()) code = kind;
    errors.push_back(std::move(message));
  }
};

/// The value as JSON, cut to what a message can hold.
std::string shown(const nlohmann::json& value);

class config_reader {
 public:
  /// `place` goes in front of keys in messages ("config.json: text_config.").
  config_reader(const nlohmann::json& object, std::string place, config_problems& problems)
      : object_(object), place_(std::move(place)), problems_(problems) {}

  /// Integers and reals outside of [min, max] are errors, and so is a missing key.
  void number(const std::string& key, std::uint32_t& field, std::uint32_t min, std::uint32_t max);
  void number(const std::string& key, std::uint64_t& field, std::uint64_t min, std::uint64_t max);
  void real(const std::string& key, float& field, float min, float max);
  void boolean(const std::string& key, bool& field);
  /// A token id; [0, 2^31) here, the vocabulary is a rule.
  void token(const std::string& key, std::int32_t& field);
  /// One token or a list of some.
  void tokens(const std::string& key, std::vector<std::int32_t>& field);
  /// Lists of at most 4096 numbers up to `max`.
  void list(const std::string& key, std::vector<std::uint32_t>& field, std::uint32_t max);
  void list(const std::string& key, std::vector<std::uint64_t>& field, std::uint64_t max);
  /// The one value that cedar can run. A missing key is an error unless `optional`.
  void expect(const std::string& key, const nlohmann::json& value, bool optional = false);
  /// A key without influence on the result.
  void ignore(const std::string& key) { known_.insert(key); }
  /// True if the key is there and not null; marks it as known.
  bool has(const std::string& key);
  /// The object under `key`; null after an error.
  const nlohmann::json* object(const std::string& key);
  /// Warns about keys that nothing above has asked for.
  void report_unknown();

  /// "config.json: text_config.hidden_size".
  std::string place(const std::string& key) const { return place_ + key; }

 private:
  const nlohmann::json* find(const std::string& key);
  void wrong(const std::string& key, const std::string& what);

  const nlohmann::json& object_;
  std::string place_;
  config_problems& problems_;
  std::set<std::string> known_;
};

}  // namespace cedar::model
