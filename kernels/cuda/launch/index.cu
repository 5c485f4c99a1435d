#include "kernels/cuda/device/index.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

void cuda_backend::do_index_scores(const index_scores_arguments& arguments) const {
  const std::size_t keys = arguments.scores.size(), heads = arguments.weights.size();
  const plan::index_plan cut = plan::plan_index_scores({keys, heads, arguments.head_dim}, limits_);
  const index_problem problem{{arguments.scores.data(), 1, keys, keys},
                              bytes_of(arguments.query),
                              {arguments.weights.data(), heads},
                              {arguments.keys.data(), arguments.keys.size()},
                              packed_format_of(entry_format::fp4_e8m0_32, arguments.head_dim),
                              arguments.keys_run,
                              entry_bytes(entry_format::fp4_e8m0_32, arguments.head_dim),
                              cut.heads_padded};
  launch({"score_index", {cut.blocks}, cut.threads, cut.shared_bytes}, stream_, score_index,
         problem);
}

}  // namespace cedar::kernels::cuda
