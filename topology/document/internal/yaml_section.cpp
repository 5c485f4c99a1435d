#include "topology/document/internal/yaml_section.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <set>
#include <string_view>

#include "topology/document/nearest.hpp"

namespace cedar::topology::internal {

namespace {

constexpr std::size_t name_bytes_max = 63;
// Far beyond any model; keeps arithmetic on layer numbers free of overflow.
constexpr std::uint32_t layer_max = 99999;
// Likewise of a table's rows.
constexpr std::uint64_t row_max = (std::uint64_t{1} << 40U) - 1;
// Units of sizes, and their binary exponents.
constexpr std::array<std::pair<std::string_view, unsigned>, 4> byte_units = {
    {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};

/// yaml-cpp tags unquoted scalars with "?" and quoted ones with "!".
bool is_plain(const YAML::Node& node) {
  return node.IsScalar() && node.Tag() == "?";
}

/// Reads all of `text` as a decimal number; false if it is anything else or does not fit.
bool parse_decimal(std::string_view text, std::uint64_t& out) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  return !text.empty() && parsed.ec == std::errc{} && parsed.ptr == end;
}

/// Reads all of `text` as a number in digits; too large or too small a one is the nearest that is.
bool parse_number(const std::string& text, double& out) {
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  const auto parsed = std::from_chars(begin, end, out);
  if (begin == end || parsed.ptr != end) return false;
  if (parsed.ec == std::errc::result_out_of_range) out = std::strtod(begin, nullptr);
  return parsed.ec != std::errc::invalid_argument;
}

/// As few digits as tell it from any other, no exponent.
std::string shortest(double number) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return {text.data(), end.ptr};
}

bool looks_like_number(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

position position_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return {};
  return {static_cast<std::uint32_t>(mark.line) + 1, static_cast<std::uint32_t>(mark.column) + 1};
}

void mistakes::report(position where, std::string message, std::string hint) {
  all_.push_back({file_, where.line, where.column, std::move(message), std::move(hint)});
}

std::vector<diagnostic> mistakes::take() {
  sort_by_position(all_);
  return std::move(all_);
}

std::string describe(const YAML::Node& node) {
  if (node.IsNull()) return "nothing";
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return in_quotes(node.Scalar()) + (is_plain(node) ? "" : " (in quotes)");
}

void check_name(located<std::string>& name, const std::string& what, mistakes& out) {
  const bool valid = !name.value.empty() && name.value.size() <= name_bytes_max &&
                     std::all_of(name.value.begin(), name.value.end(), is_name_letter);
  if (valid) return;
  out.report(name.where, in_quotes(name.value) + " is no name for a " + what,
             "use letters, digits, '-', '_' and '.', at most 63 of them");
  name.value = printable(std::string_view(name.value).substr(0, name_bytes_max));
}

section::section(YAML::Node map, std::string path, mistakes& out)
    : path_(std::move(path)), mistakes_(out), where_(position_of(map)) {
  read_entries(map);
}

section::section(std::optional<YAML::Node> map, position where, std::string path, mistakes& out)
    : path_(std::move(path)), mistakes_(out), where_(where) {
  if (!map) return;
  where_ = position_of(*map);
  read_entries(*map);
}

void section::read_entries(const YAML::Node& map) {
  if (map.IsNull()) return;
  if (!map.IsMap()) {
    usable_ = false;
    mistakes_.report(where_, (path_.empty() ? "the file" : "'" + path_ + "'") +
                                 " must be a mapping (key: value), not " + describe(map));
    return;
  }
  for (const auto& pair : map) {
    if (!pair.first.IsScalar()) {
      mistakes_.report(position_of(pair.first),
                       "a key must be a word, not " + describe(pair.first));
      continue;
    }
    const located<std::string> key{pair.first.Scalar(), position_of(pair.first), true};
    const auto earlier = std::find_if(entries_.begin(), entries_.end(), [&](const entry& other) {
      return other.key.value == key.value;
    });
    if (earlier == entries_.end()) {
      entries_.push_back({key, pair.second});
    } else {
      mistakes_.report(key.where, in_quotes(key.value) + " stands twice; the first is in line " +
                                      std::to_string(earlier->key.where.line));
    }
  }
}

std::string section::full(const std::string& key) const {
  return "'" + (path_.empty() ? key : path_ + "." + key) + "'";
}

void section::remember(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

std::optional<YAML::Node> section::find(const std::string& key) {
  remember(key);
  for (const entry& candidate : entries_) {
    if (candidate.key.value == key) return candidate.value;
  }
  return std::nullopt;
}

std::optional<YAML::Node> section::require(const std::string& key, const std::string& example) {
  auto value = find(key);
  if (!value && usable_) mistakes_.report(where_, full(key) + " is missing", "write " + example);
  return value;
}

void section::wrong_type(const std::string& key, const YAML::Node& value, const std::string& wanted,
                         std::string hint) {
  mistakes_.report(position_of(value),
                   full(key) + " must be " + wanted + ", not " + describe(value), std::move(hint));
}

bool section::text(const std::string& key, located<std::string>& out) {
  const auto value = find(key);
  if (!value) return false;
  if (!value->IsScalar() || value->Scalar().empty()) {
    wrong_type(key, *value, "a text");
    out.wrong = true;
    return false;
  }
  out = {value->Scalar(), position_of(*value), true};
  return true;
}

bool section::number(const std::string& key, std::uint32_t least, std::uint32_t most,
                     located<std::uint32_t>& out) {
  const auto value = find(key);
  if (!value) return false;
  std::uint64_t read = 0;
  out.wrong = true;
  const bool digits = is_plain(*value) && looks_like_number(value->Scalar());
  if (!digits) {
    wrong_type(key, *value, "a whole number");
    return false;
  }
  if (!parse_decimal(value->Scalar(), read) || read < least || read > most) {
    mistakes_.report(position_of(*value), full(key) + " is " + in_quotes(value->Scalar()) +
                                              "; it may be " + std::to_string(least) + " to " +
                                              std::to_string(most));
    return false;
  }
  out = {static_cast<std::uint32_t>(read), position_of(*value), true};
  return true;
}

bool section::decimal(const std::string& key, double least, double most, located<double>& out) {
  const auto value = find(key);
  if (!value) return false;
  out.wrong = true;
  const std::string text = is_plain(*value) ? value->Scalar() : std::string();
  double read = 0;
  if (!parse_number(text, read)) {
    wrong_type(key, *value, "a number");
    return false;
  }
  if (read < least || read > most) {
    mistakes_.report(position_of(*value), full(key) + " is " + in_quotes(text) + "; it may be " +
                                              shortest(least) + " to " + shortest(most));
    return false;
  }
  out = {read, position_of(*value), true};
  return true;
}

bool section::bytes(const std::string& key, located<std::uint64_t>& out) {
  const auto value = find(key);
  if (!value) return false;
  out.wrong = true;
  const std::string text = value->IsScalar() ? value->Scalar() : std::string();
  const std::size_t unit = text.find_first_not_of("0123456789");
  std::uint64_t count = 0;
  const auto known =
      std::ranges::find(byte_units, unit == std::string::npos ? "" : text.substr(unit),
                        &std::pair<std::string_view, unsigned>::first);
  if (known == byte_units.end() || !parse_decimal(text.substr(0, unit), count) || count == 0 ||
      count > std::numeric_limits<std::uint64_t>::max() >> known->second) {
    wrong_type(key, *value, "a number of bytes",
               "write " + key + ": 16GiB; units are KiB, MiB, GiB and TiB");
    return false;
  }
  out = {count << known->second, position_of(*value), true};
  return true;
}

bool section::flag(const std::string& key, located<bool>& out) {
  const auto value = find(key);
  if (!value) return false;
  out.wrong = true;
  if (!is_plain(*value) || (value->Scalar() != "true" && value->Scalar() != "false")) {
    wrong_type(key, *value, "true or false");
    return false;
  }
  out = {value->Scalar() == "true", position_of(*value), true};
  return true;
}

bool section::numbers(const std::string& key, std::uint32_t most,
                      located<std::vector<std::uint32_t>>& out) {
  const auto value = find(key);
  if (!value) return false;
  out.wrong = true;
  std::set<std::uint32_t> found;
  std::string_view rest = value->IsScalar() ? std::string_view(value->Scalar()) : "";
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view range = rest.substr(0, comma);
    const std::size_t dash = range.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (!parse_decimal(range.substr(0, dash), first) ||
        !parse_decimal(dash == std::string_view::npos ? range : range.substr(dash + 1), last) ||
        first > last || last > most) {
      wrong_type(
          key, *value, "a list of numbers up to " + std::to_string(most),
          "write " + key + ": FIRST-LAST, or a list of such, for example " + key + ": 0-3,8");
      return false;
    }
    for (std::uint64_t each = first; each <= last; ++each)
      found.insert(static_cast<std::uint32_t>(each));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  out = {{found.begin(), found.end()}, position_of(*value), true};
  return true;
}

bool section::layers(const std::string& key, located<layer_range>& out) {
  out.wrong = true;
  const auto value = require(key, "layers: FIRST-LAST, for example layers: 0-5");
  if (!value) return false;
  const std::string text = value->IsScalar() ? value->Scalar() : std::string();
  const std::size_t dash = text.find('-');
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const bool readable =
      parse_decimal(text.substr(0, dash), first) &&
      parse_decimal(dash == std::string::npos ? text : text.substr(dash + 1), last) &&
      first <= layer_max && last <= layer_max;
  if (!readable) {
    wrong_type(key, *value, "a range of layers",
               "write layers: FIRST-LAST, for example layers: 0-5");
    return false;
  }
  if (first > last) {
    mistakes_.report(position_of(*value), full(key) + " runs backwards: " + in_quotes(text),
                     "write layers: " + std::to_string(last) + "-" + std::to_string(first));
    return false;
  }
  out = {{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)},
         position_of(*value),
         true};
  return true;
}

bool section::rows(const std::string& key, located<row_range>& out) {
  const auto value = find(key);
  if (!value) return false;
  out.wrong = true;
  const std::string text = value->IsScalar() ? value->Scalar() : std::string();
  const std::size_t dash = text.find('-');
  const bool to_end = dash != std::string::npos && dash + 1 == text.size();
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const bool readable =
      parse_decimal(text.substr(0, dash), first) &&
      (to_end || parse_decimal(dash == std::string::npos ? text : text.substr(dash + 1), last)) &&
      first <= row_max && last <= row_max;
  if (!readable) {
    wrong_type(key, *value, "a range of rows",
               "write " + key + ": FIRST-LAST, or " + key + ": FIRST- up to the last");
    return false;
  }
  if (!to_end && first > last) {
    mistakes_.report(position_of(*value), full(key) + " runs backwards: " + in_quotes(text),
                     "write " + key + ": " + std::to_string(last) + "-" + std::to_string(first));
    return false;
  }
  out = {{first, to_end ? std::nullopt : std::optional(last)}, position_of(*value), true};
  return true;
}

void section::texts(const std::string& key, std::vector<located<std::string>>& out) {
  const auto value = find(key);
  if (!value) return;
  if (!value->IsSequence() || value->size() == 0) {
    wrong_type(key, *value, "a list of words", "write " + key + ": [first, second]");
    return;
  }
  for (const YAML::Node& item : *value) {
    if (!item.IsScalar() || item.Scalar().empty()) {
      wrong_type(key, item, "a list of words");
      continue;
    }
    const bool twice = std::any_of(out.begin(), out.end(), [&](const located<std::string>& other) {
      return other.value == item.Scalar();
    });
    if (twice) {
      mistakes_.report(position_of(item),
                       full(key) + " names " + in_quotes(item.Scalar()) + " twice");
    } else {
      out.push_back({item.Scalar(), position_of(item), true});
    }
  }
}

std::vector<std::pair<located<std::string>, YAML::Node>> section::named_entries(
    const std::string& what) {
  std::vector<std::pair<located<std::string>, YAML::Node>> out;
  for (const entry& each : entries_) {
    remember(each.key.value);
    located<std::string> name = each.key;
    check_name(name, what, mistakes_);
    out.emplace_back(std::move(name), each.value);
  }
  return out;
}

void section::finish() {
  for (const entry& each : entries_) {
    if (std::find(known_.begin(), known_.end(), each.key.value) != known_.end()) continue;
    mistakes_.report(each.key.where,
                     "unknown key " + in_quotes(each.key.value) +
                         (path_.empty() ? std::string() : " in '" + path_ + "'"),
                     spelling_hint(each.key.value, known_));
  }
}

}  // namespace cedar::topology::internal
