#include "kernels/cuda/device/full_attention.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

void cuda_backend::do_full_attention(const full_attention_arguments& arguments) const {
  const std::size_t heads = arguments.q.cols / arguments.head_dim;
  const plan::attention_plan cut =
      plan::plan_attention({heads, arguments.q.rows, arguments.head_dim, true}, limits_);
  const full_problem problem{rows_of(arguments.o),
                             rows_of(arguments.q),
                             rows_of(arguments.k),
                             rows_of(arguments.v),
                             static_cast<unsigned>(arguments.head_dim),
                             arguments.scale,
                             cut.tiles,
                             cut.tile_keys};
  launch({"attend_all", {cut.blocks, static_cast<unsigned>(heads)}, cut.threads, cut.shared_bytes},
         stream_, attend_all, problem);
}

}  // namespace cedar::kernels::cuda
