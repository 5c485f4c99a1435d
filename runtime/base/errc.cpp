#include "runtime/base/errc.hpp"

namespace cedar {

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument: return "invalid argument";
    case errc::not_found: return "not found";
    case errc::malformed: return "malformed";
    case errc::mismatch: return "mismatch";
    case errc::capacity: return "capacity";
    case errc::timeout: return "timeout";
    case errc::peer_lost: return "peer lost";
    case errc::refused: return "refused";
    case errc::cancelled: return "cancelled";
    case errc::io: return "i/o";
    case errc::defect: return "defect";
  }
  return "?";
}

}  // namespace cedar
