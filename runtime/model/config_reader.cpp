#include "runtime/model/config_reader.hpp"

#include <fmt/format.h>

#include <cmath>

namespace cedar::model {
namespace {

constexpr std::size_t list_entries_max = 4096;
constexpr std::size_t shown_bytes_max = 200;

template <class Integer>
bool read_integer(const nlohmann::json& value, Integer max, Integer& number) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max) return false;
  number = value.get<Integer>();
  return true;
}

template <class Integer>
std::vector<Integer> read_list(const nlohmann::json& value, Integer max, bool& ok) {
  std::vector<Integer> numbers;
  ok = value.is_array() && value.size() <= list_entries_max;
  for (std::size_t i = 0; ok && i < value.size(); ++i) {
    Integer number = 0;
    ok = read_integer(value[i], max, number);
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump();
  if (text.size() <= shown_bytes_max) return text;
  std::size_t cut = shown_bytes_max;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // never inside a UTF-8 character
  text.resize(cut);
  return text + "...";
}

const nlohmann::json* config_reader::find(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  wrong(key, "is missing");
  return nullptr;
}

void config_reader::wrong(const std::string& key, const std::string& what) {
  problems_.failed_keys.insert(key);
  problems_.add(errc::malformed, place(key) + " " + what);
}

void config_reader::number(const std::string& key, std::uint64_t& field, std::uint64_t min,
                           std::uint64_t max) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  std::uint64_t number = 0;
  if (!read_integer(*value, max, number) || number < min)
    return wrong(key,
                 fmt::format("is {}, must be an integer from {} to {}", shown(*value), min, max));
  field = number;
}

void config_reader::number(const std::string& key, std::uint32_t& field, std::uint32_t min,
                           std::uint32_t max) {
  std::uint64_t wide = field;
  number(key, wide, std::uint64_t{min}, std::uint64_t{max});
  field = static_cast<std::uint32_t>(wide);
}

void config_reader::real(const std::string& key, float& field, float min, float max) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= min && number <= max))
    return wrong(key,
                 fmt::format("is {}, must be a number from {} to {}", shown(*value), min, max));
  field = static_cast<float>(number);
}

void config_reader::boolean(const std::string& key, bool& field) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return wrong(key, "is " + shown(*value) + ", must be true or false");
  field = value->get<bool>();
}

void config_reader::token(const std::string& key, std::int32_t& field) {
  std::uint32_t id = 0;
  number(key, id, 0, std::numeric_limits<std::int32_t>::max());
  if (!problems_.failed_keys.contains(key)) field = static_cast<std::int32_t>(id);
}

void config_reader::tokens(const std::string& key, std::vector<std::int32_t>& field) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
  bool ok = false;
  const auto ids =
      read_list(value->is_array() ? *value : nlohmann::json::array({*value}), most, ok);
  if (!ok || ids.empty())
    return wrong(key, fmt::format("is {}, must be an integer from 0 to {} or a list of some",
                                  shown(*value), most));
  field.assign(ids.begin(), ids.end());
}

void config_reader::list(const std::string& key, std::vector<std::uint32_t>& field,
                         std::uint32_t max) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  bool ok = false;
  auto numbers = read_list(*value, max, ok);
  if (!ok) return wrong(key, fmt::format("must be a list of integers from 0 to {}", max));
  field = std::move(numbers);
}

void config_reader::list(const std::string& key, std::vector<std::uint64_t>& field,
                         std::uint64_t max) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  bool ok = false;
  auto numbers = read_list(*value, max, ok);
  if (!ok) return wrong(key, fmt::format("must be a list of integers from 0 to {}", max));
  field = std::move(numbers);
}

void config_reader::expect(const std::string& key, const nlohmann::json& value, bool optional) {
  if (optional && !has(key)) return;
  const nlohmann::json* found = find(key);
  if (found == nullptr || *found == value) return;
  problems_.failed_keys.insert(key);
  problems_.add(errc::mismatch, fmt::format("{} is {}, cedar runs {} only", place(key),
                                            shown(*found), shown(value)));
}

bool config_reader::has(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const nlohmann::json* config_reader::object(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr || value->is_object()) return value;
  wrong(key, "must be an object");
  return nullptr;
}

void config_reader::report_unknown() {
  for (const auto& [key, value] : object_.items())
    if (!known_.contains(key)) problems_.warnings.push_back(place(key) + " is not known to cedar");
}

}  // namespace cedar::model
