// Measures one case beside the machine's ceilings, and says which of them binds.
#pragma once

#include "tools/cedar/bench_ceilings.hpp"
#include "tools/cedar/bench_kernel_case.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/product_library.hpp"

namespace cedar::tools {

struct kernel_bench {
  bench_memory& memory;
  ceilings& limits;
  const kernels::backend& backend;
  const product_library* other = nullptr;  ///< null: nothing beside our products
  std::uint32_t threads = 1;
  double seconds = 0.5;  ///< about, of a case, after what prepares it
  std::uint32_t rounds_min = 5;
};

/// Rounds of: a sample of each ceiling that concerns the case, calls of about a millisecond, and
/// one of the other library's product. Every round's rate is divided by the mean of the samples
/// before and after it; `share` is the median.
///
/// numbers: bytes, operations, GBps, GFLOPs; share (where a ceiling binds) with read_GBps and
/// fma_GFLOPs, the samples' medians; other_us and other_ratio (theirs / ours). words: bound,
/// "memory" or "multiply-add", or "cache" where neither does; other.
bench_row measure(const kernel_case& what, const kernel_bench& with);

/// What binds a call at these rates (bytes and operations a second): the ceiling, and the least
/// seconds that a call takes there. "cache" and 0: its bytes do not come from memory, and it has
/// nothing to multiply.
struct binding {
  const char* name = "cache";
  double seconds = 0;
};
binding binding_of(const kernel_call& call, double read_rate, double fma_rate);

}  // namespace cedar::tools
