// The spelling of tensor names: files may use aliases, cedar knows the released names only.
//
// Source: the converter of the released reference code, which accepts Hugging Face style names.
#pragma once

#include <string>
#include <string_view>

namespace cedar::store {

/// The released spelling of `name`: without a leading "model.", "self_attn" as "attn", "mlp" as
/// "ffn" (outside of "vision.", whose released names say "mlp"), "weight_scale_inv" as "scale",
/// "e_score_correction_bias" as "bias". Whole components only; other names come back unchanged.
std::string normalized_name(std::string_view name);

}  // namespace cedar::store
