#include "kernels/cuda/device/attention.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

void cuda_backend::do_attention(const attention_arguments& arguments) const {
  const std::size_t head_dim = arguments.head_dim;
  const plan::attention_plan cut =
      plan::plan_attention({arguments.q.rows, arguments.sinks.size(), head_dim, false}, limits_);
  const sparse_problem problem{rows_of(arguments.o),
                               rows_of(arguments.q),
                               {arguments.entries.data(), arguments.entries.size()},
                               {arguments.sinks.data(), arguments.sinks.size()},
                               static_cast<unsigned>(head_dim),
                               arguments.scale,
                               packed_format_of(arguments.window_format, head_dim),
                               packed_format_of(arguments.selected_format, head_dim),
                               cut.tiles,
                               cut.tile_keys};
  const auto rows = static_cast<unsigned>(arguments.q.rows);
  launch({"attend_entries", {rows, cut.blocks}, cut.threads, cut.shared_bytes}, stream_,
         attend_entries, problem);
}

}  // namespace cedar::kernels::cuda
