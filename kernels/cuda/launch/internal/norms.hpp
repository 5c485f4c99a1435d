// Norms as kernels take them.
#pragma once

#include "kernels/cuda/device/norm_row.cuh"
#include "kernels/ops/arguments.hpp"

namespace cedar::kernels::cuda {

/// `to` without rows: not quantised.
inline norm_problem norm_problem_of(const rms_norm_arguments& norm, const quantised_rows& to) {
  const matrix_view<const bf16> weight(norm.weight.data(), 1, norm.weight.size());
  return {rows_of(norm.y), rows_of(norm.x), rows_of(weight), norm.epsilon, to};
}

inline norm_problem norm_problem_of(const rms_norm_quantize_arguments& of) {
  return norm_problem_of(of.norm, {rows_of(of.codes), rows_of(of.scales)});
}

}  // namespace cedar::kernels::cuda
