// Goal: the JSON Schema that editors complete by says what the parser reads: the same keys, the
// same ranges. Method: every object of the schema is visited. A file with all its keys must hold no
// unknown one, and the parser's list of known keys, which it gives when asked for a key that does
// not exist, must be the schema's. Shipped files must satisfy the schema, spoilt ones must not.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "topology/document/document.hpp"

using namespace cedar::topology;
using nlohmann::json;

namespace {

const std::string folder = CEDAR_SOURCE_DIR "/configs/topologies";
const std::string unknown_key = "qqqqqqqqqqqqqqqqqqqqqqqq";

const json& schema() {
  static const json read =
      json::parse(std::ifstream(CEDAR_SOURCE_DIR "/topology/document/cedar-topology.schema.json"));
  return read;
}

/// `node` with what its "$ref" names.
json resolved(const json& node) {
  if (!node.contains("$ref")) return node;
  const std::string reference = node["$ref"];
  json merged = schema().at(json::json_pointer(reference.substr(1)));
  merged.update(node);
  return merged;
}

/// A YAML file (JSON is YAML) that holds `value` at the place that `path` names.
std::string file_with(const std::vector<std::string>& path, json value) {
  for (auto part = path.rbegin(); part != path.rend(); ++part)
    value = *part == "[]" ? json::array({value}) : json{{*part, value}};
  return value.dump();
}

std::vector<std::string> mistakes_of(const std::string& text) {
  const auto parsed = parse_document(text, "x.yaml");
  std::vector<std::string> out;
  if (parsed) return out;
  for (const diagnostic& what : parsed.error()) out.push_back(what.message + " | " + what.hint);
  return out;
}

/// The keys that the parser knows in the object at `path`.
std::set<std::string> parser_keys(const std::vector<std::string>& path) {
  const std::regex listed("unknown key '" + unknown_key + "'.* \\| known are: (.*)");
  for (const std::string& text : mistakes_of(file_with(path, {{unknown_key, 1}}))) {
    std::smatch found;
    if (!std::regex_match(text, found, listed)) continue;
    std::set<std::string> keys;
    const std::string list = found[1];
    const std::regex word("[^, ]+");
    for (std::sregex_iterator at(list.begin(), list.end(), word), end; at != end; ++at)
      keys.insert(at->str());
    return keys;
  }
  return {};
}

/// Calls `visit` for every object of the schema whose keys are fixed.
void visit_objects(const json& node, const std::vector<std::string>& path,
                   const std::function<void(const json&, const std::vector<std::string>&)>& visit) {
  const json here = resolved(node);
  const auto below = [&](const std::string& part, const json& child) {
    std::vector<std::string> longer = path;
    longer.push_back(part);
    visit_objects(child, longer, visit);
  };
  if (here.contains("properties")) {
    visit(here, path);
    for (const auto& [key, child] : here["properties"].items()) below(key, child);
  } else if (here.contains("additionalProperties")) {
    below("somebody", here["additionalProperties"]);
  }
  if (here.contains("items")) below("[]", here["items"]);
}

/// YAML as the schema sees it: plain scalars have types.
json as_json(const YAML::Node& node) {
  if (node.IsMap()) {
    json out = json::object();
    for (const auto& pair : node) out[pair.first.Scalar()] = as_json(pair.second);
    return out;
  }
  if (node.IsSequence()) {
    json out = json::array();
    for (const YAML::Node& item : node) out.push_back(as_json(item));
    return out;
  }
  if (node.IsNull()) return nullptr;
  const std::string text = node.Scalar();
  if (node.Tag() == "?" && (text == "true" || text == "false")) return text == "true";
  if (node.Tag() == "?" && text.find_first_not_of("0123456789") == std::string::npos)
    return std::stoull(text);
  if (node.Tag() == "?" && std::regex_match(text, std::regex("-?[0-9]+([.][0-9]+)?")))
    return std::stod(text);
  return text;
}

bool has_type(const json& value, const std::string& type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "null" && value.is_null()) ||
         (type == "boolean" && value.is_boolean()) ||
         (type == "integer" && value.is_number_integer()) ||
         (type == "number" && value.is_number());
}

/// Why `value` does not satisfy `node`; empty if it does. Knows the words that the schema uses.
std::string violation(const json& value, const json& node, const std::string& place) {
  const json rule = resolved(node);
  const auto wrong = [&](const std::string& word) { return place + ": " + word; };
  if (rule.contains("const") && value != rule["const"]) return wrong("const");
  if (rule.contains("enum") && std::ranges::find(rule["enum"], value) == rule["enum"].end())
    return wrong("enum");
  if (rule.contains("type")) {
    const json types = rule["type"].is_array() ? rule["type"] : json::array({rule["type"]});
    if (std::ranges::none_of(types, [&](const json& type) { return has_type(value, type); }))
      return wrong("type");
  }
  if (value.is_string()) {
    const std::string text = value;
    if (text.size() < rule.value("minLength", 0U)) return wrong("minLength");
    if (rule.contains("pattern") && !std::regex_search(text, std::regex(rule["pattern"])))
      return wrong("pattern");
  }
  if (value.is_number() &&
      (value < rule.value("minimum", json(0)) || value > rule.value("maximum", json(1U << 31U))))
    return wrong("range");
  if (value.is_array()) {
    if (value.size() < rule.value("minItems", 0U)) return wrong("minItems");
    if (value.size() > rule.value("maxItems", value.size())) return wrong("maxItems");
    for (std::size_t i = 0; i < value.size(); ++i)
      if (const auto inside =
              violation(value[i], rule["items"], place + "[" + std::to_string(i) + "]");
          !inside.empty())
        return inside;
  }
  if (!value.is_object()) return {};
  if (value.size() < rule.value("minProperties", 0U)) return wrong("minProperties");
  for (const json& key : rule.value("required", json::array()))
    if (!value.contains(key)) return wrong("required " + key.get<std::string>());
  if (rule.contains("oneOf") && std::ranges::count_if(rule["oneOf"], [&](const json& way) {
                                  return std::ranges::all_of(way["required"], [&](const json& key) {
                                    return value.contains(key);
                                  });
                                }) != 1)
    return wrong("oneOf");
  for (const auto& [key, child] : value.items()) {
    const bool known = rule.contains("properties") && rule["properties"].contains(key);
    const json& others = rule.at("additionalProperties");
    if (!known && others.is_boolean()) return wrong("unknown key " + key);
    if (!known && rule.contains("propertyNames"))
      if (const auto bad = violation(key, rule["propertyNames"], place + "." + key); !bad.empty())
        return bad;
    const auto inside =
        violation(child, known ? rule["properties"][key] : others, place + "." + key);
    if (!inside.empty()) return inside;
  }
  return {};
}

std::string violation_of(const std::string& text) {
  return violation(as_json(YAML::Load(text)), schema(), "file");
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// `text` with the first `from` replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "the file lacks " << from);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(topology_schema)

BOOST_AUTO_TEST_CASE(knows_the_keys_that_the_parser_knows) {
  std::size_t objects = 0;
  visit_objects(schema(), {}, [&](const json& object, const std::vector<std::string>& path) {
    ++objects;
    std::string place = "file";
    for (const std::string& part : path) place += "." + part;
    std::set<std::string> keys;
    for (const auto& [key, child] : object["properties"].items()) keys.insert(key);
    BOOST_TEST(parser_keys(path) == keys, boost::test_tools::per_element());
    BOOST_TEST((parser_keys(path) == keys), "the keys of " << place << " differ");
    BOOST_TEST((object.at("additionalProperties") == false), place);
    for (const json& key : object.value("required", json::array()))
      BOOST_TEST(keys.contains(key.get<std::string>()), place);
  });
  BOOST_TEST(objects == 22U);
}

BOOST_AUTO_TEST_CASE(requires_what_the_parser_requires) {
  visit_objects(schema(), {}, [&](const json& object, const std::vector<std::string>& path) {
    // An empty object: the parser names what is missing in it.
    std::set<std::string> missing;
    const std::regex one("'([^']*)' is missing \\| .*");
    for (const std::string& text : mistakes_of(file_with(path, json::object()))) {
      std::smatch found;
      if (!std::regex_match(text, found, one)) continue;
      std::string prefix;
      for (const std::string& part : path)
        prefix = part == "[]" ? prefix.substr(0, prefix.size() - 1) + "[0]." : prefix + part + ".";
      const std::string key = found[1];
      if (key.find(prefix) == 0 && key.find('.', prefix.size()) == std::string::npos)
        missing.insert(key.substr(prefix.size()));
    }
    const std::set<std::string> required = object.value("required", std::set<std::string>{});
    BOOST_TEST((missing == required), (path.empty() ? "file" : path.back()));
  });
}

BOOST_AUTO_TEST_CASE(agrees_on_values) {
  const std::string good = text_of(folder + "/two-process.yaml") +
                           "splits: [{owner: 6, mode: gather}]\nlimits: {requests: 3}\n"
                           "deadlines_ms: {step: 5}\nsecurity: {allow_remote: false}\n"
                           "links: [{between: [front, back], latency_ms: 0.5, loss: 1}]\n";
  BOOST_TEST(violation_of(good) == "");
  BOOST_TEST(parse_document(good, "x.yaml").has_value());
  // What both refuse.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"cedar: 1", "cedar: 2"},
           {"requests: 3", "requests: 0"},
           {"requests: 3", "requests: 65537"},
           {"requests: 3", "context: 16777217"},
           {"requests: 3", "steps_in_flight: 65"},
           {"requests: 3", "rows_per_step: '3'"},
           {"step: 5", "step: 86400001"},
           {"allow_remote: false", "allow_remote: no"},
           {"owner: 6", "owner: six"},
           {"layers: 0-5", "layers: 0..5"},
           {"name: encoder, ", ""},
           {"node: front, kind: cpu", "node: front, memory: 16GB"},
           {"node: front, kind: cpu", "node: front, memory: 0GiB"},
           {"node: front, kind: cpu", "node: front, kind: cuda, index: 256"},
           {"node: front, kind: cpu", "node: front, kind: cuda, index: first"},
           {"front-cpu: {node", "'front cpu': {node"},
           {"latency_ms: 0.5", "latency_ms: -0.5"},
           {"latency_ms: 0.5", "latency_ms: 10000.5"},
           {"latency_ms: 0.5", "latency_ms: far"},
           {"latency_ms: 0.5", "bandwidth_mbps: 0"},
           {"loss: 1", "loss: 2"},
           {"between: [front, back]", "between: [front]"},
           {"between: [front, back]", "between: [front, back, front]"},
           {"between: [front, back]", "from: front"},
           {"between: [front, back]", "between: [front, back], from: front, to: back"},
           {"splits: [{owner: 6, mode: gather}]", "splits: {owner: 6}"}}) {
    BOOST_TEST(violation_of(with(good, from, to)) != "", to);
    BOOST_TEST(!parse_document(with(good, from, to), "x.yaml"), to);
  }
  // What both take.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"requests: 3", "requests: 65536"},
           {"requests: 3", "context: 16777216"},
           {"requests: 3", "steps_in_flight: 64"},
           {"step: 5", "step: 86400000"},
           {"layers: 0-5", "layers: 4"},
           {"latency_ms: 0.5", "latency_ms: 10000"},
           {"latency_ms: 0.5", "bandwidth_mbps: 0.001"},
           {"between: [front, back]", "from: front, to: back"},
           {"node: front, kind: cpu", "node: front, memory: 16GiB"},
           {"node: front, kind: cpu", "node: front, kind: cuda, index: 255"},
           {"{address: 127.0.0.1}", ""}}) {
    BOOST_TEST(violation_of(with(good, from, to)) == "");
    BOOST_TEST(parse_document(with(good, from, to), "x.yaml").has_value(), to);
  }
}

BOOST_AUTO_TEST_CASE(shipped_files_satisfy_it_and_name_it) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    const std::string text = text_of(entry.path());
    BOOST_TEST(violation_of(text) == "", entry.path());
    const auto schema =
        std::filesystem::relative(CEDAR_SOURCE_DIR "/topology/document/cedar-topology.schema.json",
                                  entry.path().parent_path());
    BOOST_TEST(text.starts_with("# yaml-language-server: $schema=" + schema.string() + "\n"),
               entry.path());
  }
  BOOST_TEST(count >= 3U);
}

BOOST_AUTO_TEST_SUITE_END()
