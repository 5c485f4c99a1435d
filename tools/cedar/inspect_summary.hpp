// What an inspection prints and derives from the configuration; the same for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cedar/inspect.hpp"

namespace cedar::tools {

/// Sums over tensors; scales are tensors and bytes, but no parameters.
struct tensor_sums {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;

  void add(const model::expected_tensor& tensor) noexcept {
    add(tensor_sums{1, tensor.parameters(), tensor.bytes()});
  }
  void add(const tensor_sums& other) noexcept {
    tensors += other.tensors;
    parameters += other.parameters;
    bytes += other.bytes;
  }
};

/// Components that the release publishes one count of parameters for.
struct part_total {
  std::string name;
  tensor_sums sums;
  std::uint64_t published = 0;  ///< parameters, as the release rounds them; 0: not published
};

struct summary {
  explicit summary(const inspection& what);

  model::schedule plan;
  std::vector<model::component_total> totals;
  std::vector<part_total> parts;
  tensor_sums all;
  double global_bytes_per_token = 0;
  std::uint64_t window_bytes = 0;
  std::vector<std::uint32_t> free_cuts;
};

tensor_sums sums_of(const model::component_total& total) noexcept;

/// 510286023000 as "510,286,023,000".
std::string grouped(std::uint64_t number);

}  // namespace cedar::tools
