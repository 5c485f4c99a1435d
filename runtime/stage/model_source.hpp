// An opened model: configuration, schedule and checkpoint that fit each other.
//
// Opening reads configuration and headers and checks the manifest tensor by tensor; no weight is
// mapped. The factories below then map exactly what their unit reads.
// A model_source stays at one address: everything made from it refers to it, so it outlives all
// units.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/stage/drafter_stage.hpp"
#include "runtime/stage/embedding_stage.hpp"
#include "runtime/stage/engram_stage.hpp"
#include "runtime/stage/expert_stage.hpp"
#include "runtime/stage/head_stage.hpp"
#include "runtime/stage/indexer_stage.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "runtime/stage/vision_stage.hpp"
#include "runtime/store/checkpoint.hpp"

namespace cedar::stage {

class model_source {
 public:
  /// Errors: not_found, io, malformed, mismatch, each naming file, key or tensor; all problems of
  /// one kind at once, a line each.
  static result<std::unique_ptr<model_source>> open(const std::filesystem::path& folder);

  model_source(const model_source&) = delete;
  model_source& operator=(const model_source&) = delete;

  const std::filesystem::path& folder() const noexcept { return checkpoint_.folder(); }
  const model::model_config& config() const noexcept { return config_; }
  const model::schedule& schedule() const noexcept { return schedule_; }
  const store::checkpoint& checkpoint() const noexcept { return checkpoint_; }
  /// What a person should know and nothing depends on: unknown keys, tensors that nobody reads.
  const std::vector<std::string>& notes() const noexcept { return notes_; }

  /// Identity of configuration, tensors and tokenizer.json, shortened to 64 bits. Errors: io.
  result<std::uint64_t> fingerprint() const;

  result<embedding_stage> make_embedding() const;
  /// Reads tokenizer.json of the folder for the compressed vocabulary. Errors: those of the
  /// tokenizer, mismatch if its classes are not as many as the configuration says.
  result<engram_stage> make_engram() const;
  /// The same with these parts of the tables only; the rows of others are not mapped.
  result<engram_stage> make_engram(std::span<const model::engram_shard> shards) const;
  result<std::unique_ptr<layer_stage>> make_layers(const kernels::backend& backend,
                                                   const layer_stage_options& options) const;
  result<std::unique_ptr<expert_stage>> make_experts(const kernels::backend& backend,
                                                     const model::expert_slice& slice) const;
  /// Reads no weights.
  std::unique_ptr<indexer_stage> make_indexer(const kernels::backend& backend,
                                              const indexer_options& options) const;
  result<std::unique_ptr<head_stage>> make_head(const kernels::backend& backend) const;
  /// Error not_found: the model has no draft blocks.
  result<std::unique_ptr<drafter_stage>> make_drafter(const kernels::backend& backend,
                                                      std::uint32_t requests_max) const;
  /// Error invalid_argument: the model has no vision tower.
  result<std::unique_ptr<vision_stage>> make_vision(const kernels::backend& backend) const;

 private:
  model_source(model::model_config config, store::checkpoint checkpoint,
               std::vector<std::string> notes);

  model::model_config config_;
  model::schedule schedule_;
  store::checkpoint checkpoint_;
  std::vector<std::string> notes_;
};

}  // namespace cedar::stage
