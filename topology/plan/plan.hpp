// A validated topology: what runs where, what every edge carries, and the bounds that follow.
//
// 1. Only make_plan() creates a plan: whoever holds one need not check it.
// 2. Ids are indices into nodes(), devices(), units(), edges(); two processes that plan the same
//    file for the same model get the same ids.
// 3. Units are ordered as a row walks them: scheduler, vision, embedding, engram or its shards,
//    slices of experts, indexers, stages by layer, head, drafter.
// 4. Every window holds the largest messages of `steps_in_flight` steps (of requests and their
//    replies: of one step, or of one layer; of images: some), and the graph of edges without the
//    scheduler's and without requests has no cycle; internal/credit_proof.hpp says why nothing can
//    then wait for ever.
// A plan names units, not tensors: tensor_placement.hpp knows which tensors a unit needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/link_shape.hpp"
#include "runtime/flow/edge.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/engram_shard.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/sharing.hpp"
#include "runtime/session/request.hpp"
#include "topology/document/diagnostic.hpp"
#include "topology/document/document.hpp"
#include "topology/plan/message_size.hpp"

namespace cedar::topology {

/// Index of a device in the plan.
using device_id = id<struct device_tag, std::uint32_t>;
/// Index of a unit in the plan.
using unit_id = id<struct unit_tag, std::uint32_t>;

enum class device_kind : std::uint8_t {
  cpu,  ///< the canonical order of operations, vectorised
  cuda,  ///< an NVIDIA device
  reference,  ///< scalar, double accumulation: the judge
};
std::string_view to_string(device_kind kind) noexcept;

enum class transport_kind : std::uint8_t {
  ucx,  ///< active messages between processes
  loopback,  ///< memory: all nodes live in one process
};
std::string_view to_string(transport_kind kind) noexcept;

enum class node_start : std::uint8_t {
  spawn,  ///< by the client, on its host
  join,  ///< by a person, on whatever host: the client waits for it
};

/// A process.
struct node_plan {
  node_id id;
  std::string name;
  std::string address;  ///< host name or IP address, no port
  std::filesystem::path model_path;  ///< folder of the checkpoint
  std::vector<unit_id> units;  ///< what it runs, and so what it loads
  node_start start = node_start::spawn;
};

struct device_plan {
  device_id id;
  std::string name;
  node_id node;
  device_kind kind = device_kind::cpu;
  std::uint32_t threads = 1;  ///< that a call of its backend is divided among
  std::vector<std::uint32_t> cores{};  ///< processors that they run on, ascending; empty: any
  std::optional<std::uint32_t> numa{};  ///< where their memory comes from; without cores, its cores
  std::uint32_t nice = 0;  ///< of the threads
  std::optional<std::uint64_t> memory{};  ///< bytes that its units may need, if the file says so
  std::uint32_t index = 0;  ///< of a CUDA device, as CUDA numbers those of the node's process
};

struct scheduler_role {};
struct vision_role {};
struct embedding_role {};
struct engram_role {
  /// The tables of all modules; or one of `units.engram`, whose unit has its name.
  std::vector<model::engram_shard> shards;
  bool in_parts = false;
};
struct stage_role {
  layer_range layers;
  std::vector<std::uint32_t> engram_layers;  ///< of its layers, those that Engram rows arrive for
  bool first = false;  ///< takes embedding rows
  bool last = false;  ///< feeds the head
  std::vector<std::uint32_t> tapped_layers;  ///< of its layers, those whose taps the drafter takes
  model::shared_state imports;  ///< what its layers need of earlier stages
  model::shared_state exports;  ///< what its layers make for later stages
  std::vector<model::expert_slice> experts_elsewhere;  ///< slices with experts of its layers
  /// Shards of the index keys that its layers make or choose by.
  std::vector<model::index_shard> indexers;
  std::vector<model::engram_shard> engram_shards;  ///< of its layers' tables that are in parts
};
struct experts_role {
  model::expert_slice slice;
};
struct indexer_role {
  model::index_shard shard;
};
struct head_role {};
struct drafter_role {
  std::vector<std::uint32_t> target_layers;  ///< whose taps it takes
};
using unit_role = std::variant<scheduler_role, embedding_role, engram_role, stage_role, head_role,
                               drafter_role, vision_role, experts_role, indexer_role>;

/// A part of the model, or the scheduler, at its place.
struct unit_plan {
  unit_id id;
  std::string name;  ///< unique: a stage's, a slice's, a shard's or an indexer's name, or
                     ///< "scheduler", "vision",
                     ///< "embedding", "engram", "head", "drafter"
  node_id node;
  std::optional<device_id> device;  ///< the scheduler has none
  unit_role role;
};

enum class edge_kind : std::uint8_t {
  step_table,  ///< scheduler -> every other unit
  embedded,  ///< embedding -> first stage
  engram_rows,  ///< engram, or a shard with a whole table -> stage, one edge for each module
  activation,  ///< stage -> next stage
  shared_kv,  ///< owner's stage -> each later stage that reads it (`mirror`)
  index_keys,  ///< owner's stage -> each later stage that selects by its keys, or each indexer that
               ///< holds some of them
  selection,  ///< index source's stage -> each later stage that uses its selection
  candidates,  ///< candidate source's stage -> each later stage that is restricted to them
  gather_request,  ///< stage that reads an owner -> the owner's stage (`gather`)
  gathered,  ///< owner's stage -> the stage that asked
  head_input,  ///< last stage -> head
  proposal,  ///< head -> scheduler
  verdict,  ///< scheduler -> every stage, indexer, the head, the drafter, vision: they hold state
  tap,  ///< stage, head -> scheduler: diagnostics
  draft_taps,  ///< stage with a target layer -> drafter, one edge for each such layer
  draft_orders,  ///< scheduler -> drafter
  draft_answers,  ///< drafter -> scheduler
  image,  ///< scheduler -> vision, as many as begin in a step
  image_rows,  ///< vision -> embedding, of steps that have rows of images
  expert_rows,  ///< stage -> slice of experts of its layers
  expert_outputs,  ///< slice of experts -> the stage that asked
  index_query,  ///< stage with index sources -> indexer of their owner
  pool_query,  ///< the same of sources that are restricted to candidates
  index_choice,  ///< indexer -> the stage that asked
  pool_choice,  ///< the same for the candidate source
  engram_slots,  ///< shard of a module's table -> stage
};
std::string_view to_string(edge_kind kind) noexcept;
/// Asked while a step runs, or the answer to it.
bool is_request(edge_kind kind) noexcept;
bool is_reply(edge_kind kind) noexcept;

struct edge_plan {
  edge_id id;
  edge_kind kind = edge_kind::step_table;
  unit_id producer;
  unit_id consumer;
  node_id from;  ///< the producer's node
  node_id to;  ///< the consumer's node
  /// engram_rows, engram_slots: the layer whose module this is. shared_kv, index_keys,
  /// gather_request, gathered: the owner. selection, candidates: the layer that chose. draft_taps:
  /// the target layer. Else 0.
  std::uint32_t layer = 0;
  std::uint32_t reader = 0;  ///< requests and replies: first layer of the stage that asks
  /// Number of the slice or the indexer that is asked, or that index keys are for. engram_slots: of
  /// the shard.
  std::uint32_t slice = 0;
  /// gather_request, gathered: the index sources by which the stage asks, one message of a step for
  /// each. expert_rows, expert_outputs: the layers, one message for each of which some row chose an
  /// expert of the slice. Queries and choices: the index sources, one message for each of which
  /// some row sees an entry of the shard. Else empty: at most one message a step.
  std::vector<std::uint32_t> groups;
  double table_rows_a_row = 0;  ///< engram_slots: of the shard, that a row needs on average
  std::string name;  ///< "encoder -> decoder activation"
  message_size size;  ///< of an ordinary message; all zero for taps
  std::uint64_t step_bytes_max = 0;  ///< of all messages of the largest step; taps: 0
  std::uint64_t message_bytes_max = 0;  ///< largest legal message, diagnostics included
  std::uint32_t window_messages = 0;  ///< credit that the consumer grants
  std::uint64_t window_bytes = 0;  ///< the same in bytes, at least message_bytes_max
  std::uint32_t queue_messages_max = 0;  ///< messages that may wait at the producer for credit

  bool crosses() const noexcept { return from != to; }
  /// A step's table tells how many messages of how many bytes the edge carries for it.
  bool follows_tables() const noexcept {
    return kind != edge_kind::tap && kind != edge_kind::image;
  }
  /// What its messages have depends on what routers choose, too.
  bool follows_routes() const noexcept {
    return kind == edge_kind::expert_rows || kind == edge_kind::expert_outputs;
  }
  /// Its messages are queries of an indexer, or the answers.
  bool of_queries() const noexcept {
    return kind == edge_kind::index_query || kind == edge_kind::pool_query ||
           kind == edge_kind::index_choice || kind == edge_kind::pool_choice;
  }
  /// At most.
  std::uint32_t messages_per_step() const noexcept {
    return groups.empty() ? 1 : static_cast<std::uint32_t>(groups.size());
  }
};

struct limits_plan {
  std::uint32_t rows_per_step = 0;
  std::uint32_t requests = 0;
  std::uint32_t context = 0;  ///< positions a request may have, prompt and answer
  std::uint32_t steps_in_flight = 0;  ///< steps whose verdict is not out
  std::uint32_t prefill_rows = 0;  ///< prompt rows of a step while answers are generated
  std::uint32_t kv_granule = 0;  ///< positions that KV is given out in: whole pages at every owner
  std::uint64_t kv_granules = 0;  ///< of requests and prefixes together, at least one context
  std::uint64_t prefix_granules = 0;  ///< that prefixes may hold of them after their requests
  std::uint32_t draft_tokens = 0;  ///< that a draft has at most; 0: nobody drafts
  bool draft_policy = false;  ///< of them, as many are verified as pay (session::draft_policy)

  /// The largest step: every row of it wanted and on its way through the decoder, as many requests
  /// as there may be. Entries and selections depend on the edge: edge_plan::message_bytes_max has
  /// them.
  step_shape largest_step(const model::model_config& config) const noexcept;
};

struct transport_plan {
  transport_kind kind = transport_kind::ucx;
  std::vector<std::string> tls;  ///< UCX transports
  std::vector<std::string> devices;  ///< network interfaces
};

struct deadlines_plan {
  std::chrono::milliseconds start{0};  ///< from launch to ready
  std::chrono::milliseconds step{0};  ///< from a step's table to its proposal
  std::chrono::milliseconds heartbeat_interval{0};  ///< between two signs of life
  std::chrono::milliseconds heartbeat_lost{0};  ///< silence after which a node is lost
  std::chrono::milliseconds drain{0};  ///< from a stop signal to the end
};

/// One direction of a link that the file declares.
struct link_plan {
  node_id from;
  node_id to;
  link_shape shape;
};

/// Where nodes join the client.
struct control_plan {
  std::string host;  ///< host name or IP address
  std::uint16_t port = 0;  ///< 0: any free one
};

struct security_plan {
  std::optional<std::filesystem::path> secret_file;  ///< none: a fresh secret for every run
  bool allow_remote = false;
};

/// What can be on its way from one node to another at most.
struct traffic_bound {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  ///< credit_bytes of them
  std::uint64_t message_bytes = 0;  ///< of the largest one
};

namespace internal {
class planner;
}

class plan {
 public:
  /// Name of the topology file, for texts.
  const std::string& file() const noexcept { return file_; }
  const std::vector<node_plan>& nodes() const noexcept { return nodes_; }
  const std::vector<device_plan>& devices() const noexcept { return devices_; }
  const std::vector<unit_plan>& units() const noexcept { return units_; }
  const std::vector<edge_plan>& edges() const noexcept { return edges_; }
  /// How prompts are run whose request does not say it.
  session::prefill_mode mode() const noexcept { return mode_; }
  const limits_plan& limits() const noexcept { return limits_; }
  const transport_plan& transport() const noexcept { return transport_; }
  const deadlines_plan& deadlines() const noexcept { return deadlines_; }
  /// In file order, a link in both directions as two. Whether anything crosses them is another
  /// matter, and so is whether they are emulated.
  const std::vector<link_plan>& links() const noexcept { return links_; }
  /// Whether a link that is slower than declared ends the start.
  bool strict_links() const noexcept { return strict_links_; }
  const control_plan& control() const noexcept { return control_; }
  const security_plan& security() const noexcept { return security_; }

  /// The model that it was made for.
  const model::model_config& model() const noexcept { return model_; }

  /// By id; a foreign id is a defect.
  const node_plan& operator[](node_id id) const;
  const device_plan& operator[](device_id id) const;
  const unit_plan& operator[](unit_id id) const;
  const edge_plan& operator[](edge_id id) const;

  /// The node that the command itself becomes. The scheduler runs there.
  const node_plan& client() const { return (*this)[client_]; }
  /// Whether vision is placed.
  bool reads_images() const noexcept;
  /// The node called `name`, if there is one.
  const node_plan* find_node(std::string_view name) const noexcept;

  /// The link that the file declares from one node to another, if it does.
  const link_shape* link(node_id from, node_id to) const noexcept;

  /// The shard whose keys, queries or choices an edge carries; null for all other edges.
  const model::index_shard* shard_of(const edge_plan& edge) const;

  std::vector<edge_id> edges_into(unit_id consumer) const;
  std::vector<edge_id> edges_out_of(unit_id producer) const;

  /// What both ends of an edge agree on, for the model with this fingerprint.
  flow::edge_contract contract(edge_id edge, std::uint64_t fingerprint) const;
  /// Bytes (flow::credit_bytes) that the messages of `table`'s step have on an edge, all of them
  /// together. Exact, but for verdicts, which may settle cancelled requests beside those of the
  /// step. `drafts`, `routes` and `addresses`: of the step; no table tells them. Requires:
  /// edge_plan::follows_tables().
  std::uint64_t expected_bytes(edge_id edge, const flow::step_table& table,
                               const draft_counts& drafts = {}, const step_routes& routes = {},
                               const step_addresses& addresses = {}) const;
  /// Over all edges from one node to another. Zero if none.
  traffic_bound traffic(node_id from, node_id to) const;

 private:
  std::uint64_t routed_bytes(const edge_plan& edge, step_shape shape, std::uint64_t replay,
                             const step_routes& routes) const;
  std::uint64_t queried_bytes(const edge_plan& edge, step_shape shape, std::uint64_t replay,
                              const flow::step_table& table) const;

  friend class internal::planner;
  explicit plan(const model::model_config& model) : model_(model) {}

  std::string file_;
  model::model_config model_;
  std::vector<node_plan> nodes_;
  std::vector<device_plan> devices_;
  std::vector<unit_plan> units_;
  std::vector<edge_plan> edges_;
  node_id client_;
  session::prefill_mode mode_ = session::prefill_mode::exact;
  limits_plan limits_;
  transport_plan transport_;
  deadlines_plan deadlines_;
  std::vector<link_plan> links_;
  bool strict_links_ = false;
  control_plan control_;
  security_plan security_;
};

/// Plans `topology` for the model. Errors: every mistake at once, ordered by place, at least one.
tl::expected<plan, std::vector<diagnostic>> make_plan(const document& topology,
                                                      const model::model_config& config);
/// The same for a file that may have mistakes of form: those, and the mistakes of meaning that do
/// not follow from them.
tl::expected<plan, std::vector<diagnostic>> make_plan(const reading& file,
                                                      const model::model_config& config);

}  // namespace cedar::topology
