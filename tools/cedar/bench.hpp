// `cedar bench`: what is measured, one file each, and what they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

namespace CLI {
class App;
}

namespace cedar::tools {

void add_bench_compare(CLI::App& bench, int& exit_code);
void add_bench_context(CLI::App& bench, int& exit_code);
void add_bench_decode(CLI::App& bench, int& exit_code);
void add_bench_kernels(CLI::App& bench, int& exit_code);
void add_bench_layer(CLI::App& bench, int& exit_code);
void add_bench_pipeline(CLI::App& bench, int& exit_code);
void add_bench_prefill(CLI::App& bench, int& exit_code);
void add_bench_serve(CLI::App& bench, int& exit_code);
void add_bench_spec(CLI::App& bench, int& exit_code);
void add_bench_transport(CLI::App& bench, int& exit_code);

/// The middle of `values`, the upper of two; 0 if there are none.
template <class Number>
Number median(std::vector<Number> values) {
  if (values.empty()) return Number{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// `count` token ids below `vocabulary`, the same for the same `number`; no special tokens among
/// the first 16 ids.
std::vector<token_id> synthetic_prompt(std::uint32_t count, std::uint32_t vocabulary,
                                       std::uint64_t number);

}  // namespace cedar::tools
