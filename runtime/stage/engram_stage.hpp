// Engram as a unit: token ids in, table rows out. Addresses depend on ids alone, so the rows of a
// step leave before its first layer has started.
//
// It holds whole tables, or parts of them: then it sends of a step the rows that it holds.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/engram_hash.hpp"
#include "runtime/model/engram_shard.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::stage {

/// A part of a module's table, with its rows.
struct engram_part {
  model::engram_shard shard;
  model::engram_table_weights rows;  ///< [shard.rows_count()]
};

class engram_stage {
 public:
  /// `parts`: of tables of the modules of `hash`; `token_map` [vocabulary]: compressed ids. config
  /// and the weights' checkpoint must outlive the stage.
  engram_stage(const model::model_config& config, model::engram_hash_tables hash,
               std::vector<engram_part> parts, std::vector<std::int32_t> token_map);

  /// A block for each part, in order: engram_rows of a whole table, else engram_slots. Error
  /// invalid_argument: a token outside the vocabulary, or look-back ids that do not fit the spans.
  result<std::vector<flow::row_block>> run(const flow::step_table& table) const;

  /// In a block that run() made.
  std::uint64_t table_rows_in(const flow::row_block& block) const noexcept;

  /// [rows, columns]: the table rows of a module that the rows of a step need. Errors as run().
  result<std::vector<std::uint64_t>> addresses(const flow::step_table& table,
                                               std::uint32_t layer) const;

 private:
  /// Compressed ids of every row and those before it: [rows, max_ngram], newest first.
  result<std::vector<std::int32_t>> windows_of(const flow::step_table& table) const;
  const model::engram_module_tables& module_before(std::uint32_t layer) const;
  std::vector<std::uint64_t> addresses_of(const model::engram_module_tables& module,
                                          std::span<const std::int32_t> windows) const;
  flow::row_block fetch(const flow::step_table& table, const engram_part& part,
                        std::span<const std::int32_t> windows) const;

  const model::model_config& config_;
  model::engram_hash_tables hash_;
  std::vector<engram_part> parts_;
  std::vector<std::int32_t> token_map_;
};

}  // namespace cedar::stage
