#include "kernels/cuda/device/engram.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

void cuda_backend::do_engram_gate(const engram_gate_arguments& arguments) const {
  const engram_problem problem{rows_of(arguments.out),
                               rows_of(arguments.streams),
                               rows_of(arguments.key_values),
                               rows_of(arguments.q_weight),
                               rows_of(arguments.k_weight),
                               {arguments.image_rows.data(), arguments.image_rows.size()},
                               arguments.epsilon,
                               rows_of(arguments.gates)};
  const auto rows = static_cast<unsigned>(arguments.gates.rows);
  const auto streams = static_cast<unsigned>(arguments.gates.cols);
  launch({"gate_rows", {rows, streams}, sum_threads, 3 * sum_shared_bytes}, stream_, gate_rows,
         problem);
}

}  // namespace cedar::kernels::cuda
