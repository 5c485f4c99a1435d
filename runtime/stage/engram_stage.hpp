// Engram as a unit: token ids in, table rows out. Addresses depend on ids alone, so the rows of a
// step leave before its first layer has started.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/engram_hash.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::stage {

class engram_stage {
 public:
  /// `tables` [modules], in the order of config.engram.layers; `token_map` [vocabulary]: compressed
  /// ids. config and the weights' checkpoint must outlive the stage.
  engram_stage(const model::model_config& config, model::engram_hash_tables hash,
               std::vector<model::engram_table_weights> tables,
               std::vector<std::int32_t> token_map);

  /// One engram_rows block for each module, in order; none without modules. Error invalid_argument:
  /// a token outside the vocabulary, or look-back ids that do not fit the spans.
  result<std::vector<flow::row_block>> run(const flow::step_table& table) const;

 private:
  /// Compressed ids of every row and those before it: [rows, max_ngram], newest first.
  result<std::vector<std::int32_t>> windows_of(const flow::step_table& table) const;
  flow::row_block fetch(const flow::step_table& table, std::size_t module,
                        std::span<const std::int32_t> windows) const;

  const model::model_config& config_;
  model::engram_hash_tables hash_;
  std::vector<model::engram_table_weights> tables_;
  std::vector<std::int32_t> token_map_;
};

}  // namespace cedar::stage
