// One mapping of a YAML file: asked for its keys by name, it reports whatever else it holds.
//
// 1. Every getter records the key as known; finish() reports the keys that nobody asked for.
// 2. A value of the wrong type or range is reported once; the output keeps its default and is
// `wrong`.
// 3. Nothing here throws on account of the file: yaml-cpp's exceptions are dealt with by the
// parser.
#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/document/document.hpp"

namespace cedar::topology::internal {

position position_of(const YAML::Node& node);

/// Collects the mistakes of one file.
class mistakes {
 public:
  explicit mistakes(std::string file) : file_(std::move(file)) {}

  void report(position where, std::string message, std::string hint = {});
  std::vector<diagnostic> take();

 private:
  std::string file_;
  std::vector<diagnostic> all_;
};

/// "a whole number", "a list": what the file holds, for messages.
std::string describe(const YAML::Node& node);

/// A name of a node, device or stage: letters, digits, '-', '_', '.', at most 63. Reports others,
/// and makes them fit for diagnostics.
void check_name(located<std::string>& name, const std::string& what, mistakes& out);

class section {
 public:
  /// `path` names the mapping in messages ("limits", "units.stages[1]"; "" is the file itself). A
  /// null node is an empty section; anything but a mapping is reported and treated as empty.
  section(YAML::Node map, std::string path, mistakes& out);
  /// As above for a node that may be absent: then the section is empty, and stands at `where`.
  section(std::optional<YAML::Node> map, position where, std::string path, mistakes& out);

  position where() const { return where_; }
  bool empty() const { return entries_.empty(); }
  /// False if the file holds something else in its place (already reported).
  bool usable() const { return usable_; }

  /// The value under `key`, if any.
  std::optional<YAML::Node> find(const std::string& key);
  /// As find(); reports a missing key, with `example` as the hint.
  std::optional<YAML::Node> require(const std::string& key, const std::string& example);

  /// Reads into `out`; returns false if the key is absent or wrong. A missing 'layers' is wrong
  /// too.
  bool text(const std::string& key, located<std::string>& out);
  bool number(const std::string& key, std::uint32_t least, std::uint32_t most,
              located<std::uint32_t>& out);
  /// "20", "0.001", "1e-3": digits, not words like .inf.
  bool decimal(const std::string& key, double least, double most, located<double>& out);
  /// "16GiB", "512MiB": a whole number and its unit.
  bool bytes(const std::string& key, located<std::uint64_t>& out);
  bool flag(const std::string& key, located<bool>& out);
  bool layers(const std::string& key, located<layer_range>& out);
  /// "0-3,8": numbers and ranges, which become ascending numbers, each once.
  bool numbers(const std::string& key, std::uint32_t most,
               located<std::vector<std::uint32_t>>& out);
  /// "1000-1999", "1000-" (to the end), "1000": rows of a table.
  bool rows(const std::string& key, located<row_range>& out);
  void texts(const std::string& key, std::vector<located<std::string>>& out);

  /// The entries of an open mapping, whose keys are names that the person chooses.
  std::vector<std::pair<located<std::string>, YAML::Node>> named_entries(const std::string& what);
  /// Reports unknown keys.
  void finish();

 private:
  struct entry {
    located<std::string> key;
    YAML::Node value;
  };

  void read_entries(const YAML::Node& map);
  void remember(const std::string& key);
  std::string full(const std::string& key) const;
  void wrong_type(const std::string& key, const YAML::Node& value, const std::string& wanted,
                  std::string hint = {});

  std::string path_;
  mistakes& mistakes_;
  position where_;
  bool usable_ = true;
  std::vector<entry> entries_;
  std::vector<std::string> known_;
};

}  // namespace cedar::topology::internal
