#include "runtime/stage/tap_messages.hpp"

#include <cstring>

namespace cedar::stage {

model::taps probes_of(const flow::step_table& table,
                      const std::function<void(flow::tap)>& receive) {
  if (table.taps.empty() || !receive) return {};
  return {table.taps, [&table, &receive](const model::tapped_tensor& tensor) {
            kernels::buffer copy(tensor.bytes.size());
            if (!tensor.bytes.empty())
              std::memcpy(copy.data(), tensor.bytes.data(), tensor.bytes.size());
            receive({table.step, table.epoch, false, tensor.name, tensor.type, tensor.shape,
                     flow::freeze(std::move(copy))});
          }};
}

std::optional<flow::tap> end_of_taps(const flow::step_table& table) {
  if (table.taps.empty()) return std::nullopt;
  return flow::tap{table.step, table.epoch, true, {}, kernels::dtype::f32, {0}, nullptr};
}

}  // namespace cedar::stage
