// Intermediates on request: the model offers them by name, whoever asked receives them.
//
// Names are those of the golden traces: "L3.attn.out", "final.normed". Offering costs a set lookup
// when nothing is wanted; a tap never changes a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"

namespace cedar::model {

/// One offered tensor. `bytes` is valid during the callback only.
struct tapped_tensor {
  std::string name;
  kernels::dtype type = kernels::dtype::f32;
  std::vector<std::uint32_t> shape;
  std::span<const std::byte> bytes;
};

class taps {
 public:
  using receiver = std::function<void(const tapped_tensor&)>;

  /// Nothing is wanted.
  taps() = default;

  /// `names` are exact names, or a suffix after "L*." that stands for every layer ("L*.attn.out").
  taps(std::span<const std::string> names, receiver to);

  bool any() const noexcept { return !names_.empty(); }
  bool wants(std::uint32_t layer, const char* name) const;
  bool wants(const char* name) const;

  /// Offers rows that lie one after another; does nothing unless the name is wanted.
  void offer(std::uint32_t layer, const char* name, kernels::matrix_view<const kernels::bf16> rows,
             std::initializer_list<std::uint32_t> shape = {}) const;
  void offer(std::uint32_t layer, const char* name, kernels::matrix_view<const float> rows,
             std::initializer_list<std::uint32_t> shape = {}) const;
  void offer(std::uint32_t layer, const char* name, kernels::matrix_view<const std::int32_t> rows,
             std::initializer_list<std::uint32_t> shape = {}) const;
  void offer(const char* name, kernels::matrix_view<const kernels::bf16> rows,
             std::initializer_list<std::uint32_t> shape = {}) const;

 private:
  template <class T>
  void deliver(std::string name, kernels::dtype type, kernels::matrix_view<const T> rows,
               std::vector<std::uint32_t> shape) const;

  std::set<std::string, std::less<>> names_;
  receiver to_;
};

}  // namespace cedar::model
