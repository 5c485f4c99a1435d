// The input is a topology file. Whatever it holds: either a sound plan, or diagnostics that are
// printable, in order, and inside the file. Nothing else, and in little time.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/base/check.hpp"
#include "runtime/model/config.hpp"
#include "tests/support/fuzz_driver.hpp"
#include "topology/document/document.hpp"
#include "topology/plan/plan.hpp"
#include "topology/plan/render.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  fuzz_material material;
  for (const auto& entry :
       std::filesystem::directory_iterator(CEDAR_SOURCE_DIR "/configs/topologies")) {
    if (entry.path().extension() != ".yaml") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    material.seeds.push_back(text.str());
  }
  std::sort(material.seeds.begin(), material.seeds.end());
  material.words = {"limits: {context: ",
                    "layers: 0-",
                    "stages:\n    - ",
                    "deadlines_ms: {",
                    "security: {allow_remote: true, secret_file: s}",
                    "splits: [{owner: 6, mode: gather}]",
                    "links: [{between: [front, back], latency_ms: 2.5, loss: 1e-3}]",
                    "mode: mirror",
                    "memory: 16GiB",
                    "kind: loopback",
                    "address: ",
                    "&a ",
                    "*a",
                    "!!str ",
                    "? ",
                    ": ",
                    "- ",
                    "[",
                    "]",
                    "{",
                    "}",
                    "\"",
                    "'",
                    "#",
                    "|\n",
                    ">\n",
                    "---\n",
                    "...\n",
                    "<<: ",
                    "%YAML 1.2\n",
                    "\t",
                    "\xef\xbb\xbf",
                    "\xff\xfe",
                    "18446744073709551616",
                    "~",
                    "\\u0000",
                    "\r\n",
                    "::1",
                    "0.0.0.0"};
  return material;
}

}  // namespace cedar::test

namespace {

using namespace cedar;
using namespace cedar::topology;

bool printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void check_diagnostics(const std::vector<diagnostic>& all, std::string_view text) {
  CEDAR_ASSERT(!all.empty(), "refused without a reason");
  // yaml-cpp guesses UTF-16 from zero bytes and counts the UTF-8 that comes of it: at most twice as
  // many.
  const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n') +
                                                std::count(text.begin(), text.end(), '\r') + 2);
  position last{1, 1};
  for (const diagnostic& what : all) {
    CEDAR_ASSERT(printable(what.message) && printable(what.hint), "bytes that no terminal wants");
    CEDAR_ASSERT(!what.message.empty(), "no message");
    const position where{what.line, what.column};
    CEDAR_ASSERT(where >= last, "out of order: " + to_string(what));
    CEDAR_ASSERT(where.line <= lines && where.column >= 1 && where.column <= 2 * text.size() + 2,
                 "outside the file: " + to_string(what));
    last = where;
  }
}

/// A schedule with owners, index sources and candidates, as cedar-tiny's.
const model::model_config& config() {
  static const model::model_config read = [] {
    auto parsed = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
    CEDAR_REQUIRE(parsed.has_value(), parsed.error().message);
    return *parsed;
  }();
  return read;
}

void check_plan(const plan& planned) {
  std::uint32_t layers = 0;
  for (const unit_plan& unit : planned.units()) {
    CEDAR_ASSERT(planned[unit.node].id == unit.node, "node");
    if (const auto* stage = std::get_if<stage_role>(&unit.role)) {
      CEDAR_ASSERT(stage->layers.first == layers, "layers in order");
      layers = stage->layers.last + 1;
    }
  }
  CEDAR_ASSERT(layers == config().layers, "all layers");
  for (const edge_plan& edge : planned.edges()) {
    CEDAR_ASSERT(edge.window_bytes >= edge.message_bytes_max, edge.name);
    CEDAR_ASSERT(edge.window_messages >= planned.limits().steps_in_flight ||
                     edge.kind == edge_kind::tap || edge.follows_routes() || edge.of_queries() ||
                     edge.window_messages == edge.groups.size(),
                 edge.name);
  }
  const cost_basis basis = largest_basis(planned);
  CEDAR_ASSERT(!render_plan(planned, basis).empty(), "text");
  CEDAR_ASSERT(!render_json(planned, basis).empty(), "JSON");
  CEDAR_ASSERT(!render_svg(planned, basis).empty(), "SVG");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const reading file = read_text(text, "dir/file.yaml");
  const auto planned = make_plan(file, config());
  CEDAR_ASSERT(file.mistakes.empty() || !planned, "a file with mistakes has no plan");
  if (!planned) {
    check_diagnostics(planned.error(), text);
  } else {
    check_plan(*planned);
  }
  return 0;
}
