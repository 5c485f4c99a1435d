#include "runtime/model/taps.hpp"

#include "kernels/base/check.hpp"

namespace cedar::model {

namespace {
std::string layer_name(std::uint32_t layer, const char* name) {
  return "L" + std::to_string(layer) + "." + name;
}
}  // namespace

taps::taps(std::span<const std::string> names, receiver to)
    : names_(names.begin(), names.end()), to_(std::move(to)) {}

bool taps::wants(const char* name) const {
  return any() && names_.contains(name);
}

bool taps::wants(std::uint32_t layer, const char* name) const {
  return any() &&
         (names_.contains(layer_name(layer, name)) || names_.contains(std::string("L*.") + name));
}

template <class T>
void taps::deliver(std::string name, kernels::dtype type, kernels::matrix_view<const T> rows,
                   std::vector<std::uint32_t> shape) const {
  CEDAR_REQUIRE(rows.contiguous(), "tap " + name + " offers rows with gaps");
  if (shape.empty())
    shape = {static_cast<std::uint32_t>(rows.rows), static_cast<std::uint32_t>(rows.cols)};
  to_({std::move(name), type, std::move(shape),
       std::as_bytes(std::span<const T>(rows.data, rows.rows * rows.cols))});
}

void taps::offer(std::uint32_t layer, const char* name,
                 kernels::matrix_view<const kernels::bf16> rows,
                 std::initializer_list<std::uint32_t> shape) const {
  if (wants(layer, name)) deliver(layer_name(layer, name), kernels::dtype::bf16, rows, shape);
}

void taps::offer(std::uint32_t layer, const char* name, kernels::matrix_view<const float> rows,
                 std::initializer_list<std::uint32_t> shape) const {
  if (wants(layer, name)) deliver(layer_name(layer, name), kernels::dtype::f32, rows, shape);
}

void taps::offer(std::uint32_t layer, const char* name,
                 kernels::matrix_view<const std::int32_t> rows,
                 std::initializer_list<std::uint32_t> shape) const {
  if (wants(layer, name)) deliver(layer_name(layer, name), kernels::dtype::i32, rows, shape);
}

void taps::offer(const char* name, kernels::matrix_view<const kernels::bf16> rows,
                 std::initializer_list<std::uint32_t> shape) const {
  if (wants(name)) deliver(name, kernels::dtype::bf16, rows, shape);
}

}  // namespace cedar::model
