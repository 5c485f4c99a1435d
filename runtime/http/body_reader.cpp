#include "runtime/http/body_reader.hpp"

#include <fmt/format.h>

namespace cedar::http {

namespace {

using json = nlohmann::ordered_json;

/// Looks at a text's structure before it is built.
class bounds_check final : public nlohmann::json_sax<json> {
 public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t&) override {
    if (++members_.back() <= object_members_max) return true;
    problem = fmt::format("an object has more than {} members", object_members_max);
    return false;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem = fmt::format("not JSON, at byte {}", at);
    return false;
  }

 private:
  bool enter() {
    members_.push_back(0);
    if (members_.size() <= body_depth_max) return true;
    problem = fmt::format("nested more than {} deep", body_depth_max);
    return false;
  }
  bool leave() {
    members_.pop_back();
    return true;
  }

  std::vector<std::size_t> members_;  ///< of every open object (or array)
};

std::string quoted(const std::string& key) {
  return "'" + key + "'";
}

}  // namespace

api_result<json> parse_body(std::string_view text) {
  // The library reads a text up to its first zero byte, whatever follows.
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    return tl::unexpected(
        bad_request(fmt::format("the body is not a request: not JSON, at byte {}", zero + 1)));
  bounds_check check;
  if (!json::sax_parse(text, &check))
    return tl::unexpected(bad_request("the body is not a request: " + check.problem));
  json out = json::parse(text, nullptr, false);
  if (!out.is_object()) return tl::unexpected(bad_request("the body must be a JSON object"));
  return out;
}

const json* body_reader::find(const std::string& key) {
  known_.insert(key);
  const auto found = body_->find(key);
  return found == body_->end() || found->is_null() ? nullptr : &*found;
}

void body_reader::mistake(const std::string& param, const std::string& text) {
  mistakes_.emplace_back(param, text);
}

void body_reader::flag(const std::string& key, bool& to) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return mistake(key, quoted(key) + " must be true or false");
  to = value->get<bool>();
}

void body_reader::text(const std::string& key, std::string& to) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return mistake(key, quoted(key) + " must be a text");
  to = value->get<std::string>();
}

std::optional<double> body_reader::read_number(const std::string& key, double low, double high) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (number >= low && number <= high) return number;
  mistake(key, fmt::format("'{}' must be a number from {} to {}", key, low, high));
  return std::nullopt;
}

std::optional<std::uint64_t> body_reader::read_whole(const std::string& key, std::uint64_t low,
                                                     std::uint64_t high) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number >= low && number <= high) return number;
  }
  mistake(key, fmt::format("'{}' must be a whole number from {} to {}", key, low, high));
  return std::nullopt;
}

void body_reader::ignore(std::initializer_list<const char*> keys) {
  known_.insert(keys.begin(), keys.end());
}

std::optional<api_error> body_reader::finish() {
  for (const auto& [key, value] : body_->items())
    if (!known_.contains(key)) mistake(key, quoted(key) + " is not known here");
  if (mistakes_.empty()) return std::nullopt;
  std::string all;
  for (const auto& [param, text] : mistakes_) all += (all.empty() ? "" : "; ") + text;
  return bad_request(all, mistakes_.front().first);
}

}  // namespace cedar::http
