// What each layer is, who creates the global KV that it reads, and whose selection it uses.
//
// Source: DeepSeek-V4.1-Flash's kv_source_layer_ids, index_source_layer_ids, compress_ratios and
// candidate_source_layer_id. Nothing here assumes periods, ratios <= 2, or that the candidate
// source is the first decoder layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/model/config.hpp"

namespace cedar::model {

enum class layer_mode : std::uint8_t {
  window_only,  ///< ratio 0: sliding window alone
  full,  ///< creates global KV and index keys, selects by its own indexer
  reindex,  ///< reads its owner's KV, selects by its own indexer
  reuse,  ///< reads its owner's KV with the selection of the latest index source
};

std::string_view to_string(layer_mode mode) noexcept;

struct layer_schedule {
  layer_mode mode = layer_mode::window_only;
  std::uint32_t ratio = 0;
  std::optional<std::uint32_t> owner;  ///< layer whose global KV this layer reads (itself if full)
  std::optional<std::uint32_t>
      index_source;  ///< layer whose selection this layer uses (itself if it selects)
  bool makes_candidates = false;  ///< builds the candidate pool
  bool uses_candidates = false;  ///< its selection is restricted to the pool
  std::optional<std::uint32_t>
      engram;  ///< module index, if an Engram module sits before this layer
};

class schedule {
 public:
  explicit schedule(const model_config& config);

  std::uint32_t layers() const noexcept { return static_cast<std::uint32_t>(layers_.size()); }
  const layer_schedule& operator[](std::uint32_t layer) const { return layers_.at(layer); }

  /// Layers that read owner's global KV, ascending, the owner included.
  std::vector<std::uint32_t> readers(std::uint32_t owner) const;
  /// The last KV source: the first decoder layer (the encoder/decoder boundary lies before it). The
  /// number of layers if there is no KV source.
  std::uint32_t decoder_begin() const noexcept { return decoder_begin_; }
  /// Layers from decoder_begin() on.
  std::uint32_t decoder_layers() const noexcept { return layers() - decoder_begin_; }
  /// True if a cut after `layer` separates no reader from its owner, no layer from its index
  /// source, and no candidate user from the candidate source.
  bool cut_is_free(std::uint32_t layer) const;

 private:
  std::vector<layer_schedule> layers_;
  std::uint32_t decoder_begin_ = 0;
};

}  // namespace cedar::model
