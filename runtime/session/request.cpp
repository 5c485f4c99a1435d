#include "runtime/session/request.hpp"

namespace cedar::session {

std::string_view to_string(finish_reason reason) noexcept {
  switch (reason) {
    case finish_reason::none:
      return "none";
    case finish_reason::stop:
      return "stop";
    case finish_reason::length:
      return "length";
  }
  return "?";
}

std::string_view to_string(prefill_mode mode) noexcept {
  switch (mode) {
    case prefill_mode::exact:
      return "exact";
    case prefill_mode::bounded:
      return "bounded";
    case prefill_mode::halo:
      return "halo";
  }
  return "?";
}

std::optional<prefill_mode> prefill_mode_of(std::string_view name) noexcept {
  for (const prefill_mode mode : {prefill_mode::exact, prefill_mode::bounded, prefill_mode::halo})
    if (to_string(mode) == name) return mode;
  return std::nullopt;
}

}  // namespace cedar::session
