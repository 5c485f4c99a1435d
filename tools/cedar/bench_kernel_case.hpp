// The rows of `cedar bench kernels`: an operation at a shape, with what it must move and compute.
//
// A new operation is a case more in the list of its family (bench_cases_*.cpp).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/model/config.hpp"
#include "tools/cedar/bench_memory.hpp"

namespace cedar::tools {

/// y [n, o] = x [n, k] * W^T: what another library can be asked for, too.
struct product_shape {
  std::size_t n = 0;
  std::size_t o = 0;
  std::size_t k = 0;
};

/// An operation that can be called now.
struct kernel_call {
  double bytes = 0;  ///< read and written by a call, everything once
  double operations = 0;  ///< floating-point additions and multiplications; 0: not counted
  /// Most of the bytes come from memory and not from a cache: every call takes others.
  bool streams = false;
  std::function<void(const kernels::backend&)> call;
};

struct kernel_case {
  std::string operation;  ///< of kernels::backend, or of kernels/ops/selection.hpp
  std::string shape;
  /// Memory is the call's until the next one is prepared.
  std::function<kernel_call(bench_memory& memory, const kernels::backend& backend)> prepare;
  std::optional<product_shape> product{};  ///< to be compared with another library's

  std::string name() const { return operation + " " + shape; }
};

struct case_sizes {
  std::vector<std::size_t> rows{1, 64, 512};
  std::vector<std::size_t> entries{4096, 65536, 262144, 1048576};  ///< in the global cache
};

inline double as_bytes(std::size_t bytes) {
  return static_cast<double>(bytes);
}
/// "1 row", "64 rows".
std::string rows_text(std::size_t n);

void add_linear_cases(std::vector<kernel_case>& to, const model::model_config& config,
                      const case_sizes& sizes);
void add_attention_cases(std::vector<kernel_case>& to, const model::model_config& config,
                         const case_sizes& sizes);
void add_row_cases(std::vector<kernel_case>& to, const model::model_config& config,
                   const case_sizes& sizes);
/// Only if the model has a vision tower.
void add_vision_cases(std::vector<kernel_case>& to, const model::model_config& config,
                      const case_sizes& sizes);

/// Every operation at the shapes of `config`.
std::vector<kernel_case> kernel_cases(const model::model_config& config, const case_sizes& sizes);

}  // namespace cedar::tools
