// Probes of a step whose tensors become messages.
#pragma once

#include <functional>
#include <optional>

#include "runtime/flow/messages.hpp"
#include "runtime/model/taps.hpp"

namespace cedar::stage {

/// `receive` gets a copy of every tensor that the step names. The step table and the function must
/// outlive the probes.
model::taps probes_of(const flow::step_table& table, const std::function<void(flow::tap)>& receive);

/// What a unit sends after its last tap of the step, if the step asks for taps.
std::optional<flow::tap> end_of_taps(const flow::step_table& table);

}  // namespace cedar::stage
