#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/cedar/inspect.hpp"

namespace cedar::tools {
namespace {

using nlohmann::ordered_json;

/// 510286023000 as "510,286,023,000".
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string or_dash(const std::optional<std::uint32_t>& number) {
  return number ? std::to_string(*number) : "-";
}

/// {3, 4, 5, 9} as "3-5, 9".
std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text.empty() ? "-" : text;
}

/// The parts that the published parameter counts of the release are given for.
std::string_view published_part(model::component part) {
  switch (part) {
    case model::component::engram_table:
      return "engram tables";
    case model::component::dspark:
      return "dspark";
    case model::component::vision:
      return "vision";
    default:
      return "backbone";
  }
}

struct part_total {
  std::string name;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;

  void add(const model::component_total& total) {
    tensors += total.tensors;
    parameters += total.parameters;
    bytes += total.bytes;
  }
};

/// Everything that is printed and derived from the configuration.
struct summary {
  explicit summary(const inspection& what)
      : plan(what.config), totals(model::totals(what.tensors)) {
    all.name = "total";
    for (const model::component_total& total : totals) {
      const std::string_view name = published_part(total.part);
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const part_total& known) { return known.name == name; });
      if (part == parts.end()) part = parts.insert(parts.end(), {std::string(name)});
      part->add(total);
      all.add(total);
    }
    const model::model_config& c = what.config;
    // A packed entry: FP4 with an E4M3 scale per 16; an index key: FP4 with an E8M0 scale per 32.
    const double entry = c.head_dim / 2.0 + c.head_dim / 16.0;
    const double key = c.index_head_dim / 2.0 + c.index_head_dim / 32.0;
    for (const std::uint32_t source : c.kv_sources)
      global_bytes_per_token += (entry + key) / plan[source].ratio;
    // A window row: FP8 with an E8M0 scale per 32.
    window_bytes =
        std::uint64_t{c.layers} * c.window * (std::uint64_t{c.head_dim} + c.head_dim / 32);
    for (std::uint32_t layer = 0; layer + 1 < c.layers; ++layer)
      if (plan.cut_is_free(layer)) free_cuts.push_back(layer);
  }

  model::schedule plan;
  std::vector<model::component_total> totals;
  std::vector<part_total> parts;
  part_total all;
  double global_bytes_per_token = 0;
  std::uint64_t window_bytes = 0;
  std::vector<std::uint32_t> free_cuts;
};

void print_architecture(const model::model_config& c, const summary& s, std::ostream& out) {
  const auto line = [&out](std::string_view name, const std::string& value) {
    out << fmt::format("  {:<18}{}\n", name, value);
  };
  out << "architecture\n";
  line("model",
       fmt::format("vocabulary {}, width {}, {} residual streams, {} positions",
                   grouped(c.vocabulary), grouped(c.width), c.streams, grouped(c.max_positions)));
  line("layers", fmt::format("{} encoder, {} decoder", s.plan.decoder_begin(),
                             c.layers - s.plan.decoder_begin()));
  line("attention",
       fmt::format("{} heads of {} ({} rotated), query rank {}, {} output groups of "
                   "rank {}, window {}",
                   c.heads, c.head_dim, c.rope_dim, c.q_rank, c.o_groups, c.o_rank, c.window));
  line("indexer",
       fmt::format("{} heads of {}, top {}", c.index_heads, c.index_head_dim, c.index_topk));
  if (c.candidate_source)
    line("candidates", fmt::format("layer {}, {} blocks of {}", *c.candidate_source,
                                   c.candidate_blocks, c.candidate_block_size));
  line("experts", fmt::format("{}, {} per token, and a shared one, width {}", c.routed_experts,
                              c.experts_per_token, grouped(c.expert_inner)));
  if (!c.engram.layers.empty())
    line("engram",
         fmt::format("before layers {}, orders 2 to {}, {} heads of {}", ranges(c.engram.layers),
                     c.engram.max_ngram, c.engram.heads, c.engram.head_dim));
  if (c.dspark.blocks > 0)
    line("dspark", fmt::format("{} blocks, {} drafts, taps at layers {}, {} experts, {} per token",
                               c.dspark.blocks, c.dspark.block_size, ranges(c.dspark.target_layers),
                               c.dspark.routed_experts, c.dspark.experts_per_token));
  if (c.vision.layers > 0)
    line("vision", fmt::format("{} layers of width {}, patches of {}", c.vision.layers,
                               grouped(c.vision.width), c.vision.patch));
  line("global KV", fmt::format("{} bytes a token", s.global_bytes_per_token));
  line("window KV", fmt::format("{} bytes a sequence", grouped(s.window_bytes)));
  line("free cuts", "after layers " + ranges(s.free_cuts));
}

void print_schedule(const model::model_config& c, const summary& s, std::ostream& out) {
  out << "\nlayers\n"
      << fmt::format("  {:<7}{:<9}{:<7}{:<7}{:<11}{:<12}{:<8}{}\n", "layer", "mode", "ratio",
                     "owner", "selection", "candidates", "engram", "readers");
  for (std::uint32_t layer = 0; layer < c.layers; ++layer) {
    const model::layer_schedule& l = s.plan[layer];
    const std::string_view candidates = l.makes_candidates  ? "makes"
                                        : l.uses_candidates ? "uses"
                                                            : "-";
    out << fmt::format("  {:<7}{:<9}{:<7}{:<7}{:<11}{:<12}{:<8}{}\n", layer, to_string(l.mode),
                       l.ratio, or_dash(l.owner), or_dash(l.index_source), candidates,
                       or_dash(l.engram), ranges(s.plan.readers(layer)));
  }
}

void print_sizes(const summary& s, std::ostream& out) {
  const auto row = [&out](std::string_view name, std::uint64_t tensors, std::uint64_t parameters,
                          std::uint64_t bytes) {
    out << fmt::format("  {:<18}{:>9}{:>19}{:>19}\n", name, grouped(tensors), grouped(parameters),
                       grouped(bytes));
  };
  out << fmt::format("\n{:<20}{:>9}{:>19}{:>19}\n", "components", "tensors", "parameters", "bytes");
  for (const model::component_total& total : s.totals)
    row(to_string(total.part), total.tensors, total.parameters, total.bytes);
  out << fmt::format("\n{:<20}{:>9}{:>19}{:>19}\n", "parts", "tensors", "parameters", "bytes");
  for (const part_total& part : s.parts) row(part.name, part.tensors, part.parameters, part.bytes);
  row(s.all.name, s.all.tensors, s.all.parameters, s.all.bytes);
}

void print_cache(const inspection& what, std::ostream& out) {
  const stage::cache_size& size = what.cache;
  const auto line = [&out](std::string_view name, std::uint64_t bytes, const std::string& how) {
    out << fmt::format("  {:<18}{:>17}  {}\n", name, grouped(bytes), how);
  };
  out << fmt::format("\ncaches of a sequence of {} positions, bytes\n",
                     grouped(what.cache_positions));
  line("global KV", size.global_bytes(),
       fmt::format("{} pages of {}, {:.2f} a position", grouped(size.pages),
                   grouped(size.page_bytes),
                   static_cast<double>(size.global_bytes()) / what.cache_positions));
  line("windows", size.window_bytes, "rings of every layer");
  line("pending", size.pending_bytes, "tokens that wait for their compressor group");
  line("drafts", size.draft_bytes, "rings of every draft block");
}

ordered_json cache_json(const inspection& what) {
  const stage::cache_size& size = what.cache;
  return {{"positions", what.cache_positions}, {"pages", size.pages},
          {"page_bytes", size.page_bytes},     {"global_bytes", size.global_bytes()},
          {"window_bytes", size.window_bytes}, {"pending_bytes", size.pending_bytes},
          {"draft_bytes", size.draft_bytes}};
}

/// What this version reads from no checkpoint.
std::vector<model::component_total> not_placed(const summary& s) {
  std::vector<model::component_total> parts;
  for (const model::component_total& total : s.totals)
    if (total.part == model::component::vision) parts.push_back(total);
  return parts;
}

ordered_json size_json(std::uint64_t tensors, std::uint64_t parameters, std::uint64_t bytes) {
  return {{"tensors", tensors}, {"parameters", parameters}, {"bytes", bytes}};
}

ordered_json number_or_null(const std::optional<std::uint32_t>& number) {
  return number ? ordered_json(*number) : ordered_json(nullptr);
}

ordered_json schedule_json(const model::model_config& c, const summary& s) {
  ordered_json layers = ordered_json::array();
  for (std::uint32_t layer = 0; layer < c.layers; ++layer) {
    const model::layer_schedule& l = s.plan[layer];
    layers.push_back({{"layer", layer},
                      {"mode", to_string(l.mode)},
                      {"ratio", l.ratio},
                      {"owner", number_or_null(l.owner)},
                      {"index_source", number_or_null(l.index_source)},
                      {"makes_candidates", l.makes_candidates},
                      {"uses_candidates", l.uses_candidates},
                      {"engram", number_or_null(l.engram)},
                      {"readers", s.plan.readers(layer)}});
  }
  return layers;
}

ordered_json architecture_json(const model::model_config& c, const summary& s) {
  return {{"vocabulary", c.vocabulary},
          {"width", c.width},
          {"streams", c.streams},
          {"positions", c.max_positions},
          {"layers", c.layers},
          {"decoder_begin", s.plan.decoder_begin()},
          {"heads", c.heads},
          {"head_dim", c.head_dim},
          {"rope_dim", c.rope_dim},
          {"window", c.window},
          {"index_heads", c.index_heads},
          {"index_head_dim", c.index_head_dim},
          {"index_topk", c.index_topk},
          {"experts", c.routed_experts},
          {"experts_per_token", c.experts_per_token},
          {"expert_inner", c.expert_inner},
          {"engram_layers", c.engram.layers},
          {"dspark_blocks", c.dspark.blocks},
          {"vision_layers", c.vision.layers},
          {"global_kv_bytes_per_token", s.global_bytes_per_token},
          {"window_kv_bytes_per_sequence", s.window_bytes},
          {"free_cuts_after", s.free_cuts}};
}

ordered_json weights_json(const weights_inspection& weights) {
  const model::manifest_check& d = weights.differences;
  return {{"files", weights.files}, {"files_absent", weights.files_absent},
          {"matches", d.ok()},      {"missing", d.missing},
          {"extra", d.extra},       {"misshaped", d.misshaped},
          {"mistyped", d.mistyped}, {"fingerprint", weights.fingerprint}};
}

}  // namespace

void print_text(const inspection& what, std::ostream& out) {
  const summary s(what);
  out << what.path.string() << "\n\n";
  print_architecture(what.config, s, out);
  print_schedule(what.config, s, out);
  print_sizes(s, out);
  if (what.cache_positions > 0) print_cache(what, out);
  out << '\n';
  for (const model::component_total& total : not_placed(s))
    out << fmt::format("not placed: {} ({} tensors, {} bytes)\n", to_string(total.part),
                       grouped(total.tensors), grouped(total.bytes));
  if (!what.weights) {
    out << "weights: none here\n";
  } else {
    out << fmt::format(
        "weights: {} file{}{}, {}\n", what.weights->files, what.weights->files == 1 ? "" : "s",
        what.weights->files_absent == 0
            ? ""
            : fmt::format(" ({} more are not on this host)", what.weights->files_absent),
        what.weights->differences.ok() ? "every tensor as the configuration implies"
                                       : "tensors differ from the configuration");
    out << "fingerprint of configuration and shapes: " << what.weights->fingerprint << '\n';
  }
  for (const std::string& warning : what.warnings) out << "warning: " << warning << '\n';
}

void print_json(const inspection& what, std::ostream& out) {
  const summary s(what);
  ordered_json root = {{"path", what.path.string()},
                       {"architecture", architecture_json(what.config, s)},
                       {"schedule", schedule_json(what.config, s)}};
  for (const model::component_total& total : s.totals)
    root["components"][std::string(to_string(total.part))] =
        size_json(total.tensors, total.parameters, total.bytes);
  for (const part_total& part : s.parts)
    root["parts"][part.name] = size_json(part.tensors, part.parameters, part.bytes);
  root["total"] = size_json(s.all.tensors, s.all.parameters, s.all.bytes);
  root["not_placed"] = ordered_json::array();
  for (const model::component_total& total : not_placed(s))
    root["not_placed"].push_back(to_string(total.part));
  if (what.cache_positions > 0) root["cache"] = cache_json(what);
  root["weights"] = what.weights ? weights_json(*what.weights) : ordered_json(nullptr);
  root["warnings"] = what.warnings;
  out << root.dump(2) << '\n';
}

}  // namespace cedar::tools
