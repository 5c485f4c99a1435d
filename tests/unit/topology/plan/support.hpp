// Files and configurations that the tests of the planner share.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/config.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology::test {

/// The configuration in configs/models/<name>.
const model::model_config& configuration(const std::string& name);

/// A topology of two nodes for cedar-tiny, cut after layer 5.
extern const std::string two_nodes;

/// `text` with the first `from` replaced by `to`; the test fails if there is none.
std::string with(std::string text, const std::string& from, const std::string& to);

/// The plan of `text`, which must be free of mistakes.
plan planned(const std::string& text, const std::string& model = "cedar-tiny");

/// The planner's mistakes in `text`, "line:column message | hint" each. The text must parse.
std::vector<std::string> mistakes(const std::string& text, const std::string& model = "cedar-tiny");

/// The id of the unit called `name`.
unit_id unit_called(const plan& planned, const std::string& name);

}  // namespace cedar::topology::test
