// How far tensors are from the recorded ones, in the terms of tests/data/golden/README.md, section
// 3 B.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/result.hpp"
#include "runtime/model/taps.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

/// Bounds of that section.
inline constexpr double relative_rms_bound = 2e-3;
inline constexpr double ulps_bound = 2;
inline constexpr double absolute_bound = 1e-5;

/// The largest of each tensor, over all that was compared.
struct layer_deviation {
  std::map<std::string, double> relative_rms;  ///< bf16 tensors, and fp32 ones of rounded input
  std::map<std::string, double> largest_ulps;  ///< bf16 tensors: in steps of the largest magnitude
  std::map<std::string, double> absolute;  ///< fp32 tensors of recorded input
  std::size_t wrong_choices =
      0;  ///< rows whose experts or positions differ, tensors of other sizes
  std::set<std::string> compared;  ///< names in the file
};

/// Compares `actual` with the tensor `recorded` of `file` and keeps the result as that of `name`.
/// Integers are compared row by row as sets, padding of -1 left out. `exact_input`: the computation
/// began with recorded values, so that fp32 results are held to the absolute bound. Does nothing if
/// the file has no such tensor.
void keep_deviation(const golden_file& file, const std::string& recorded, const std::string& name,
                    bool exact_input, const model::tapped_tensor& actual, layer_deviation& out);

/// Fails the running case where a bound is exceeded; `where` begins its messages.
void check_deviation(const layer_deviation& deviation, const std::string& where);

/// What a tap would offer of these rows: valid as long as they are.
model::tapped_tensor as_tapped(kernels::matrix_view<const kernels::bf16> rows);
model::tapped_tensor as_tapped(kernels::matrix_view<const float> rows);

/// Throws what went wrong.
template <class T>
T unwrap(result<T> value) {
  if (!value) throw std::runtime_error(value.error().message);
  return std::move(*value);
}

}  // namespace cedar::test
