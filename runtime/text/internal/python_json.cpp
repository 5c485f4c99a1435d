#include "runtime/text/internal/python_json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernels/base/check.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

/// repr(): the shortest digits that read back as `value`; exponents below -4 and from 16 on are
/// written, with two digits at least.
std::string python_float(double value) {
  std::array<char, 32> buffer{};
  const auto [end, code] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                         std::chars_format::scientific);
  CEDAR_ASSERT(code == std::errc{}, "a double has at most 24 characters");
  std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  std::string out;
  if (written.front() == '-') {
    out = "-";
    written.remove_prefix(1);
  }
  const std::size_t at = written.find('e');
  const int exponent = std::atoi(std::string(written.substr(at + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return out + std::string(written);
  std::string digits;
  for (const char c : written.substr(0, at))
    if (c != '.') digits += c;
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void write(const ordered_json& value, std::string& out);

void write_object(const ordered_json& value, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!std::exchange(first, false)) out += ", ";
    out += python_json_string(key) + ": ";
    write(member, out);
  }
  out += '}';
}

void write_array(const ordered_json& value, std::string& out) {
  out += '[';
  bool first = true;
  for (const ordered_json& element : value) {
    if (!std::exchange(first, false)) out += ", ";
    write(element, out);
  }
  out += ']';
}

void write(const ordered_json& value, std::string& out) {
  if (value.is_object()) return write_object(value, out);
  if (value.is_array()) return write_array(value, out);
  if (value.is_string()) {
    out += python_json_string(value.get_ref<const std::string&>());
  } else if (value.is_number_float() && std::isfinite(value.get<double>())) {
    out += python_float(value.get<double>());
  } else {
    out += value.dump();  // true, false, null and integers are the same in both
  }
}

}  // namespace

bool json_levels_within_bounds(const ordered_json& value) {
  std::vector<std::pair<const ordered_json*, std::size_t>> open{{&value, 1}};
  while (!open.empty()) {
    const auto [one, level] = open.back();
    open.pop_back();
    if (!one->is_structured()) continue;
    if (level > json_levels_max) return false;
    for (const ordered_json& inner : *one) open.emplace_back(&inner, level + 1);
  }
  return true;
}

std::string python_json(const ordered_json& value) {
  CEDAR_REQUIRE(json_levels_within_bounds(value), "too deep");
  std::string out;
  write(value, out);
  return out;
}

bool is_json(std::string_view text) {
  return text.find('\0') == std::string_view::npos && ordered_json::accept(text);
}

std::string python_json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(text, out);
  return out + '"';
}

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte >= 0x20) {
          out += c;
        } else {
          out += "\\u00";
          out += hex[byte >> 4];
          out += hex[byte & 15];
        }
    }
  }
}

}  // namespace cedar::text
