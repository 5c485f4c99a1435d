#include "topology/document/internal/second_document.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <vector>

namespace cedar::topology::internal {

namespace {

/// Listens to a parser and remembers where documents start.
class starts_listener : public YAML::EventHandler {
 public:
  const std::vector<YAML::Mark>& starts() const noexcept { return starts_; }

  void OnDocumentStart(const YAML::Mark& mark) final { starts_.push_back(mark); }
  void OnDocumentEnd() final {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) final {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) final {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) final {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) final {}
  void OnSequenceEnd() final {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) final {}
  void OnMapEnd() final {}

 private:
  std::vector<YAML::Mark> starts_;
};

}  // namespace

std::optional<document_start> find_second_document(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  starts_listener listener;
  if (!parser.HandleNextDocument(listener) || !parser.HandleNextDocument(listener)) {
    return std::nullopt;
  }
  const YAML::Mark first = listener.starts().front();
  const YAML::Mark second = listener.starts().back();
  return document_start{
      {static_cast<std::uint32_t>(second.line) + 1, static_cast<std::uint32_t>(second.column) + 1},
      first.pos == second.pos};
}

}  // namespace cedar::topology::internal
