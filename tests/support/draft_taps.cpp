#include "tests/support/draft_taps.hpp"

#include <algorithm>

#include "runtime/model/drafter.hpp"
#include "runtime/stage/drafter_stage.hpp"

namespace cedar::test {

using kernels::bf16;
using kernels::matrix_buffer;

draft_taps::draft_taps(const kernels::backend& backend, const model::model_config& config)
    : backend_(backend), config_(config) {
  for (const std::uint32_t layer : config.dspark.target_layers)
    names_.push_back("L" + std::to_string(layer) + ".in.stream");
}

std::function<void(flow::tap)> draft_taps::receiver() {
  return [this](flow::tap tensor) { received_[tensor.name] = std::move(tensor); };
}

matrix_buffer<bf16> draft_taps::take(std::span<const flow::row_span> spans) {
  std::vector<std::size_t> wanted;  // rows of the offered ones
  std::size_t end = 0;
  for (const flow::row_span& span : spans) {
    end += span.decoder_count();
    for (std::size_t i = stage::tapped_rows(span, config_); i > 0; --i) wanted.push_back(end - i);
  }
  const std::size_t width = config_.width;
  matrix_buffer<bf16> out(wanted.size(), names_.size() * width);
  const model::rotary_frequencies no_rotary;
  const model::taps no_probes;
  kernels::arena scratch;
  const model::context c{backend_, config_, no_rotary, scratch, no_probes, {}, {}};
  for (std::size_t i = 0; i < names_.size() && end > 0; ++i) {
    const flow::tap& tensor = received_.at(names_[i]);
    const auto tap = model::make_tap(
        c, {reinterpret_cast<const bf16*>(tensor.payload->data()), end, config_.streams * width});
    for (std::size_t row = 0; row < wanted.size(); ++row)
      std::ranges::copy(tap.row(wanted[row]), out.view().row_data(row) + i * width);
  }
  received_.clear();
  return out;
}

}  // namespace cedar::test
