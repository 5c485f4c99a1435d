// Embeddings of the images of requests that run: from a request's images to the rows that a step
// needs of them, however chunks cut the spans.
//
// 1. An image is computed once, when it is added. Its rows are known by request and position, like
//    everything else of a step.
// 2. They are kept until the rows of its span are committed, or the request is over. A request that
//    begins anew after that brings its images again.
// Not thread-safe: one owner calls it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/flow/prompt_image.hpp"
#include "runtime/model/config.hpp"
#include "runtime/vision/tower.hpp"

namespace cedar::stage {

class vision_stage {
 public:
  /// `config` must outlive the stage.
  vision_stage(const model::model_config& config, vision::tower tower)
      : config_(config), tower_(std::move(tower)) {}

  /// Computes an image. Errors: invalid_argument: grid, positions and pixels do not fit each other
  /// or the configuration, or the request has an image there already; those of tower::embed.
  result<void> add(const flow::request_image& added);

  /// Whether every image that the step has rows of was added.
  bool covers(const flow::step_table& table) const;

  /// Embeddings [k, d] of the step's k rows of images, in the order of its rows. Error: mismatch: a
  /// row of an image that was not added.
  result<kernels::matrix_buffer<kernels::bf16>> run(const flow::step_table& table) const;

  /// The same as a block of `image_rows`; nothing if the step has no rows of images.
  result<std::optional<flow::row_block>> run_block(const flow::step_table& table) const;

  void apply(const flow::verdict& verdict);
  /// Forgets every image (a new epoch begins).
  void clear() { images_.clear(); }

  /// Of all images that are kept.
  std::size_t rows_held() const noexcept;

 private:
  /// By the first position of their spans.
  using images_of_request = std::map<std::uint32_t, kernels::matrix_buffer<kernels::bf16>>;

  /// Calls visit(request, position, row) for each row of an image, until it returns false; `row` is
  /// its embedding [d], empty if its image was not added.
  template <class Visit>
  void each_row(const flow::step_table& table, const Visit& visit) const;

  const model::model_config& config_;
  vision::tower tower_;
  std::map<request_id, images_of_request> images_;
};

}  // namespace cedar::stage
