#include "tests/unit/topology/plan/support.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>

namespace cedar::topology::test {

const std::string two_nodes = R"(cedar: 1
model: {path: model}
nodes:
  front: {address: 127.0.0.1}
  back: {address: 127.0.0.1}
client: front
devices:
  front-cpu: {node: front}
  back-cpu: {node: back}
units:
  scheduler: {node: front}
  embedding: {device: front-cpu}
  engram: {device: front-cpu}
  stages:
    - {name: encoder, layers: 0-5, device: front-cpu}
    - {name: decoder, layers: 6-11, device: back-cpu}
  head: {device: back-cpu}
limits: {rows_per_step: 100, requests: 4, context: 1000, steps_in_flight: 3}
)";

const model::model_config& configuration(const std::string& name) {
  static std::map<std::string, model::model_config> read;
  if (read.count(name) == 0) {
    auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/" + name);
    BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
    read.emplace(name, *config);
  }
  return read.at(name);
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "the file lacks " << from);
  return text.replace(at, from.size(), to);
}

plan planned(const std::string& text, const std::string& model) {
  const auto parsed = parse_document(text, "dir/test.yaml");
  BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : to_string(parsed.error())));
  auto made = make_plan(*parsed, configuration(model));
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : to_string(made.error())));
  return std::move(*made);
}

std::vector<std::string> mistakes(const std::string& text, const std::string& model) {
  const auto made = make_plan(read_text(text, "dir/test.yaml"), configuration(model));
  BOOST_REQUIRE_MESSAGE(!made, "the plan has no mistake");
  std::vector<std::string> out;
  for (const diagnostic& what : made.error()) {
    BOOST_TEST(what.file == "dir/test.yaml");
    out.push_back(std::to_string(what.line) + ":" + std::to_string(what.column) + " " +
                  what.message + (what.hint.empty() ? "" : " | " + what.hint));
  }
  return out;
}

unit_id unit_called(const plan& planned, const std::string& name) {
  const auto found = std::find_if(planned.units().begin(), planned.units().end(),
                                  [&](const unit_plan& unit) { return unit.name == name; });
  BOOST_REQUIRE_MESSAGE(found != planned.units().end(), "the plan lacks unit " << name);
  return found->id;
}

}  // namespace cedar::topology::test
