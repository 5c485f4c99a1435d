#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tools/cedar/inspect_placement.hpp"
#include "tools/cedar/inspect_summary.hpp"

namespace cedar::tools {
namespace {

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

void print_row(std::string_view name, const tensor_sums& sums, const std::string& remark,
               std::ostream& out) {
  out << fmt::format("  {:<18}{:>9}{:>19}{:>19}{}{}\n", name, grouped(sums.tensors),
                     grouped(sums.parameters), grouped(sums.bytes), remark.empty() ? "" : "  ",
                     remark);
}

/// "published: 552 B; 0.02 % less here".
std::string published_text(const part_total& part) {
  if (part.published == 0) return "";
  const double share =
      static_cast<double>(part.sums.parameters) / static_cast<double>(part.published) - 1;
  return fmt::format("published: {} B; {:.2f} % {} here", part.published / 1'000'000'000,
                     std::abs(share) * 100, share < 0 ? "less" : "more");
}

void print_sizes(const summary& s, std::ostream& out) {
  const auto heading = [&out](std::string_view name) {
    out << fmt::format("\n{:<20}{:>9}{:>19}{:>19}\n", name, "tensors", "parameters", "bytes");
  };
  heading("components");
  for (const model::component_total& total : s.totals)
    print_row(to_string(total.part), sums_of(total), "", out);
  heading("parts");
  for (const part_total& part : s.parts) print_row(part.name, part.sums, published_text(part), out);
  print_row("total", s.all, "", out);
}

std::string places_of(const placement_inspection& placed,
                      const std::vector<topology::unit_id>& units) {
  std::string text;
  for (const topology::unit_id unit : units)
    text += (text.empty() ? "" : ", ") + placed.place_of(unit);
  return text;
}

void print_placement(const placement_inspection& placed, std::ostream& out) {
  out << fmt::format("\nplacement by {}\n  {:<18}{:>9}{:>19}{:>19}\n", placed.plan.file(), "unit",
                     "tensors", "parameters", "bytes");
  for (const topology::unit_plan& unit : placed.plan.units())
    if (unit.device)
      print_row(
          unit.name, placed.by_unit[unit.id.value],
          fmt::format("{} of {}", placed.plan[*unit.device].name, placed.plan[unit.node].name),
          out);
  print_row("on one unit", placed.once, "", out);
  for (const replicated_tensors& group : placed.replicas)
    print_row(fmt::format("on {} units", group.readers.size()), group.sums,
              fmt::format("{}: {}", fmt::join(group.names, ", "), places_of(placed, group.readers)),
              out);
  for (const model::component_total& total : placed.not_placed)
    print_row("not placed", sums_of(total),
              fmt::format("{}: no unit of the file reads it", to_string(total.part)), out);
}

/// "[5120, 1280]".
std::string shape_text(const model::expected_tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

void print_tensors(const inspection& what, const placement_inspection* placed, std::ostream& out) {
  std::size_t longest = 0;
  for (const model::expected_tensor& tensor : what.tensors)
    longest = std::max(longest, tensor.name.size());
  out << "\ntensors: name, dtype, shape, bytes, component" << (placed ? ", units\n" : "\n");
  for (std::size_t i = 0; i < what.tensors.size(); ++i) {
    const model::expected_tensor& tensor = what.tensors[i];
    out << fmt::format("  {:<{}}  {:<8}{:>20}{:>14}  {}", tensor.name, longest,
                       to_string(tensor.dtype), shape_text(tensor), tensor.bytes(),
                       to_string(tensor.part));
    if (placed)
      out << ": "
          << (placed->readers[i].empty() ? "nowhere" : places_of(*placed, placed->readers[i]));
    out << '\n';
  }
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
  line("taps", size.tap_bytes, "of the drafter's target layers, with it and where they are made");
}

}  // namespace

void print_text(const inspection& what, std::ostream& out) {
  const summary s(what);
  out << what.path.string() << "\n\n";
  print_architecture(what.config, s, out);
  print_schedule(what.config, s, out);
  print_sizes(s, out);
  if (what.cache_positions > 0) print_cache(what, out);
  if (what.placed) print_placement(*what.placed, out);
  if (what.list_tensors) print_tensors(what, what.placed.get(), out);
  out << '\n';
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

}  // namespace cedar::tools
