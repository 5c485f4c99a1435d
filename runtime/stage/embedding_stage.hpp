// The token table: token ids in, hidden rows out.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"

namespace cedar::stage {

class embedding_stage {
 public:
  /// `table` [vocabulary, d]; both must outlive the stage.
  embedding_stage(const model::model_config& config,
                  kernels::matrix_view<const kernels::bf16> table)
      : config_(config), table_(table) {}

  /// One `embedded` block for all rows. `images` [k, d] are the embeddings of the step's k rows of
  /// image spans (vision::tower), in the order of its rows. Errors: invalid_argument: a token
  /// outside the vocabulary; mismatch: other than one embedding for each of those rows.
  result<flow::row_block> run(const flow::step_table& table,
                              kernels::matrix_view<const kernels::bf16> images = {}) const;
  /// The same with those embeddings as a block of `image_rows` of the step. Also malformed: its
  /// kind, spans or row bytes are others.
  result<flow::row_block> run(const flow::step_table& table, const flow::row_block& images) const;

  /// Whether the step has rows of images.
  bool has_images(const flow::step_table& table) const;

 private:
  const model::model_config& config_;
  kernels::matrix_view<const kernels::bf16> table_;
};

}  // namespace cedar::stage
