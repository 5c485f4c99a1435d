#include "actors/error_bridge.hpp"

namespace cedar::actors {

namespace {
/// The category of our codes inside caf::error.
constexpr caf::atom_value category = caf::atom("cedar");
}  // namespace

caf::error to_caf(const error& what) {
  // CAF reads code 0 as "no error": ours are shifted by one.
  return {static_cast<std::uint8_t>(static_cast<std::uint8_t>(what.code) + 1), category,
          caf::make_message(what.message)};
}

error from_caf(const caf::actor_system& system, const caf::error& what) {
  if (what.category() == category) {
    const caf::message& context = what.context();
    return {static_cast<errc>(what.code() - 1),
            context.match_elements<std::string>() ? context.get_as<std::string>(0) : std::string{}};
  }
  if (what == caf::sec::request_timeout) return {errc::timeout, "no answer in time"};
  if (what == caf::sec::request_receiver_down) return {errc::peer_lost, "the receiver is gone"};
  if (what == caf::sec::cannot_connect_to_node)
    return {errc::peer_lost, "nobody listens there: " + system.render(what)};
  return {errc::io, system.render(what)};
}

error defect_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& what) {
    return {errc::defect, what.what()};
  } catch (...) {
    return {errc::defect, "something that is no std::exception was thrown"};
  }
}

}  // namespace cedar::actors
