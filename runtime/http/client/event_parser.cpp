#include "runtime/http/client/event_parser.hpp"

#include <utility>

namespace cedar::http {

void event_parser::end_line(std::vector<std::string>& to) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (has_data_) to.push_back(std::exchange(data_, {}));
    has_data_ = false;
    return;
  }
  constexpr std::string_view name = "data";
  if (!line.starts_with(name)) return;
  std::string_view value = std::string_view(line).substr(name.size());
  if (!value.empty()) {
    if (!value.starts_with(':')) return;  // another field
    value.remove_prefix(1);
    if (value.starts_with(' ')) value.remove_prefix(1);
  }
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

result<std::vector<std::string>> event_parser::push(std::string_view bytes) {
  std::vector<std::string> out;
  for (const char byte : bytes) {
    if (std::exchange(after_return_, byte == '\r') && byte == '\n') continue;
    if (byte == '\n' || byte == '\r')
      end_line(out);
    else
      line_ += byte;
    if (line_.size() + data_.size() > event_bytes_max)
      return fail(errc::malformed,
                  "an event of more than " + std::to_string(event_bytes_max) + " bytes");
  }
  return out;
}

}  // namespace cedar::http
