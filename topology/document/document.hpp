// A topology file as written: plain structs, every value with the place it stands at.
//
// 1. A document is well-formed: known keys, right types, values in range, nothing twice. Whether it
// makes
//    sense (names that exist, layers that fit the model) is topology/plan's business.
// 2. A key that the file omits has its default and `given == false`; `where` is then the place of
// the
//    section that would hold it, so that a diagnostic about it still points somewhere useful.
// 3. Names and words (device kinds, transports) are kept as written.
// 4. Of a file with mistakes, what is in order is there; the rest has its default and is `wrong`.
// The format is described in configs/topologies/README.md, key by key in README.md beside this
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "topology/document/diagnostic.hpp"

namespace cedar::topology {

/// A value and its place in the file.
template <class T>
struct located {
  T value{};
  position where;
  bool given = false;  ///< false: the default of an omitted key
  bool wrong = false;  ///< the file holds something unreadable, which has been reported
};

/// Layers first..last, both included.
struct layer_range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  std::uint32_t layers_count() const noexcept { return last - first + 1; }
  friend bool operator==(const layer_range&, const layer_range&) = default;
};

/// A process.
struct node_entry {
  located<std::string> name;
  located<std::string> address{
      "127.0.0.1", {}, false};  ///< where the other nodes reach it, no port
  located<std::string> model_path;  ///< this node's checkpoint, if given
  located<std::string> start{"spawn", {}, false};  ///< who starts the process
};

struct device_entry {
  located<std::string> name;
  located<std::string> node;
  located<std::string> kind{"cpu", {}, false};
  located<std::uint32_t> threads{1, {}, false};  ///< omitted: one for each of `cores`, else 1
  located<std::vector<std::uint32_t>> cores;  ///< processors of the host, ascending, if given
  located<std::uint32_t> numa;  ///< node of the host's memory, if given
  located<std::uint32_t> nice{0, {}, false};
  located<std::uint64_t> memory;  ///< bytes that its units may need, if given
  located<std::uint32_t> index{0, {}, false};  ///< of a CUDA device, as CUDA numbers them
};

/// A unit that computes on one device.
struct device_unit_entry {
  position where;
  located<std::string> device;
};

struct stage_entry {
  located<std::string> name;
  located<layer_range> layers;
  located<std::string> device;
};

/// Rows first..last of a table, both included; without `last` all from the first on.
struct row_range {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> last;

  friend bool operator==(const row_range&, const row_range&) = default;
};

/// A part of the table of the Engram module before a layer.
struct engram_entry {
  located<std::string> name;
  located<std::uint32_t> layer;
  located<row_range> rows;  ///< omitted: all
  located<std::string> device;
};

/// Routed experts that are apart from the stages of their layers.
struct experts_entry {
  located<std::string> name;
  located<layer_range> layers;
  located<std::vector<std::uint32_t>> experts;  ///< ids, ascending, if given: else all
  located<std::string> device;
};

/// A shard of the index keys of an owner of global KV, apart from the owner's stage. All that the
/// file lists for an owner share its keys equally.
struct indexer_entry {
  located<std::string> name;
  located<std::uint32_t> owner;  ///< layer
  located<std::string> device;
};

struct units_entry {
  position where;
  located<std::string> scheduler_node;
  std::optional<device_unit_entry> vision;
  device_unit_entry embedding;
  std::optional<device_unit_entry> engram;  ///< all tables in one place
  located<std::vector<engram_entry>> engram_shards;  ///< or in parts, in file order
  std::vector<stage_entry> stages;  ///< in file order
  std::vector<experts_entry> experts;  ///< in file order
  std::vector<indexer_entry> indexers;  ///< in file order
  device_unit_entry head;
  std::optional<device_unit_entry> drafter;
};

/// How stages that a cut separates from the owner of global KV get at it.
struct split_entry {
  located<std::uint32_t> owner;  ///< layer
  located<std::string> mode;
};

/// What the network does between two nodes, in one direction or in both.
struct link_entry {
  position where;
  located<std::string> from;  ///< or the first of `between`
  located<std::string> to;
  bool both_ways = false;
  located<double> latency_ms;  ///< one way
  located<double> jitter_ms;
  located<double> bandwidth_mbps;  ///< 10^6 bits a second, if given: else without limit
  located<double> loss;  ///< probability of a packet
};

struct limits_entry {
  located<std::uint32_t> rows_per_step{128, {}, false};
  located<std::uint32_t> requests{16, {}, false};
  located<std::uint32_t> context{2048, {}, false};  ///< positions a request may have
  located<std::uint32_t> steps_in_flight{2, {}, false};
  located<std::uint32_t> prefill_rows{128, {}, false};  ///< omitted: as rows_per_step
  located<std::uint32_t> kv_positions{0, {}, false};  ///< omitted: enough for all requests
  located<std::uint32_t> prefix_positions{0, {}, false};  ///< 0: no prefix is kept
};

struct transport_entry {
  located<std::string> kind{"ucx", {}, false};
  std::vector<located<std::string>> tls;  ///< empty: not given
  std::vector<located<std::string>> devices;  ///< empty: not given
};

/// Milliseconds.
struct deadlines_entry {
  located<std::uint32_t> start{20000, {}, false};
  located<std::uint32_t> step{30000, {}, false};
  located<std::uint32_t> heartbeat_interval{200, {}, false};
  located<std::uint32_t> heartbeat_lost{1000, {}, false};
  located<std::uint32_t> drain{5000, {}, false};
};

struct control_entry {
  located<std::string> listen;  ///< HOST:PORT where nodes join the client, if given
};

struct security_entry {
  located<std::string> secret_file;  ///< relative to the topology file, if given
  located<bool> allow_remote{false, {}, false};
};

struct document {
  std::string file;  ///< as it is named in diagnostics
  std::filesystem::path directory;  ///< relative paths of the file start here
  located<std::string> model_path;  ///< checkpoint of every node that names none, if given
  std::vector<node_entry> nodes;  ///< in file order
  located<std::string> client;  ///< node that the command itself becomes; default: the scheduler's
  std::vector<device_entry> devices;
  units_entry units;
  std::vector<split_entry> splits;  ///< in file order
  std::vector<link_entry> links;  ///< in file order
  located<bool> strict_links{false, {}, false};  ///< a slower link than `links` says is an error
  located<std::string> mode{"exact", {}, false};  ///< how prompts are run
  located<std::string> draft;  ///< off, auto, or fixed:K, if given
  limits_entry limits;
  transport_entry transport;
  deadlines_entry deadlines;
  control_entry control;
  security_entry security;

  /// `path` of this file's world: absolute as it is, relative beside the file.
  std::filesystem::path resolve(const std::string& path) const;
  /// The checkpoint that `node` uses: its own if it names one, else the file's. Empty if neither
  /// does.
  std::filesystem::path model_of(std::string_view node) const;
  /// A mistake at `where` of this file.
  diagnostic mistake(position where, std::string message, std::string hint = {}) const;
};

/// A file as far as it can be read.
struct reading {
  document value;
  std::vector<diagnostic> mistakes;  ///< of form, ordered by place

  /// Adds the mistake that the checkpoint of `node`, which must be this host's, is no folder.
  void check_model(std::string_view node);
};

/// Reads a topology from `text`. `file` names it in diagnostics, and its folder is the document's
/// directory. make_plan() adds the mistakes of meaning.
reading read_text(std::string_view text, const std::string& file);

/// The same for a file on disk. A file that cannot be read, or is larger than 1 MiB, is a mistake
/// too.
reading read_file(const std::filesystem::path& file);

/// As read_text(). Errors: every mistake of form, at least one.
tl::expected<document, std::vector<diagnostic>> parse_document(std::string_view text,
                                                               const std::string& file);

/// As read_file(). Errors: every mistake of form, at least one.
tl::expected<document, std::vector<diagnostic>> read_document(const std::filesystem::path& file);

/// Uses the checkpoint at `path` (relative to the working directory) on every node, whatever the
/// file says; but a node that joins keeps a path of its own: it may be on another host.
void override_model(document& topology, const std::filesystem::path& path);

/// Drafts as `setting` says (a value of the key `draft`), whatever the file says.
void override_draft(document& topology, const std::string& setting);

}  // namespace cedar::topology
