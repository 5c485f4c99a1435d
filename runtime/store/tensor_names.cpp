#include "runtime/store/tensor_names.hpp"

namespace cedar::store {

std::string normalized_name(std::string_view name) {
  constexpr std::string_view prefix = "model.";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const bool vision = name.starts_with("vision.");
  std::string text;
  while (true) {
    const std::size_t dot = name.find('.');
    std::string_view part = name.substr(0, dot);
    if (part == "self_attn") part = "attn";
    if (part == "mlp" && !vision) part = "ffn";
    if (part == "weight_scale_inv") part = "scale";
    if (part == "e_score_correction_bias") part = "bias";
    text += part;
    if (dot == std::string_view::npos) return text;
    text += '.';
    name.remove_prefix(dot + 1);
  }
}

}  // namespace cedar::store
