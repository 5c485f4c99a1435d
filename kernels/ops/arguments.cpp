#include "kernels/ops/arguments.hpp"

namespace cedar::kernels {

hc_collapse_arguments hc_transition_arguments::collapse_part() const {
  return {x, expand.out, pre};
}

rms_norm_quantize_arguments hc_transition_arguments::norm_part() const {
  return {{x, x, norm, rms_epsilon}, codes, scales};
}

hc_coefficients_arguments hc_transition_arguments::coefficients_part() const {
  return {expand.out, fn,          base,     scale,     iterations,
          epsilon,    rms_epsilon, next_pre, next_post, next_combine};
}

rope_arguments rms_norm_entries_arguments::rope_part() const {
  return {norm.y, norm.y.cols, positions, frequencies, false};
}

pack_entries_arguments rms_norm_entries_arguments::pack_part() const {
  return {norm.y, entries, format};
}

}  // namespace cedar::kernels
