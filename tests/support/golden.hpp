// Golden tensors and the comparisons of tests/data/golden/README.md.
//
// 1. golden_file reads one safetensors file below tests/data; a missing tensor fails the test case.
// 2. Every check_* fails the running case with the worst index, both values and the bound, and
//    returns whether it held. NaN equals NaN and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "runtime/store/safetensors_reader.hpp"

namespace cedar::test {

class golden_file {
 public:
  /// `path` is relative to tests/data/golden, e.g. "ops/gate.safetensors". Throws if it cannot be
  /// read.
  explicit golden_file(const std::string& path);

  bool has(std::string_view name) const { return reader_.find(name) != nullptr; }
  std::vector<std::size_t> shape(std::string_view name) const;
  /// Of all tensors.
  std::vector<std::string> names() const;
  /// A tensor as it is stored.
  std::span<const std::byte> bytes(std::string_view name) const { return view(name).bytes; }

  /// Elements of a tensor stored as T. Views live as long as the file object.
  template <class T>
  std::span<const T> vector(std::string_view name) const {
    return view(name).template as<T>();
  }

  /// A tensor stored as T: the first dimension gives the rows, the others together the columns.
  template <class T>
  kernels::matrix_view<const T> matrix(std::string_view name) const {
    const std::span<const T> values = vector<T>(name);
    const std::vector<std::size_t> dimensions = shape(name);
    const std::size_t rows = dimensions.empty() ? 1 : dimensions.front();
    return {values.data(), rows, rows == 0 ? 0 : values.size() / rows};
  }

  /// Elements of an F32 or BF16 tensor, widened.
  std::vector<float> floats(std::string_view name) const;
  /// Elements of a tensor of any integer dtype, widened.
  std::vector<std::int64_t> integers(std::string_view name) const;

 private:
  store::tensor_view view(std::string_view name) const;

  store::safetensors_reader reader_;
};

std::vector<float> widened(std::span<const kernels::bf16> values);

/// Steps of bf16 between two values; both zeros are the same step. NaN against a number is the
/// largest distance.
std::uint32_t ulp_distance(kernels::bf16 a, kernels::bf16 b) noexcept;

/// One bf16 step at the magnitude of `value`.
double bf16_ulp(double value) noexcept;

/// sqrt(mean((actual - expected)^2) / mean(expected^2)); 0 if both are all zero.
double relative_rms(std::span<const float> actual, std::span<const float> expected);

/// The same elements (for bf16 and float: the same bits).
bool check_equal(std::string_view what, std::span<const kernels::bf16> actual,
                 std::span<const kernels::bf16> expected);
bool check_equal(std::string_view what, std::span<const float> actual,
                 std::span<const float> expected);
bool check_equal(std::string_view what, std::span<const std::uint8_t> actual,
                 std::span<const std::uint8_t> expected);
bool check_equal(std::string_view what, std::span<const std::int64_t> actual,
                 std::span<const std::int64_t> expected);

/// Every element within `ulps` bf16 steps.
bool check_ulps(std::string_view what, std::span<const kernels::bf16> actual,
                std::span<const kernels::bf16> expected, std::uint32_t ulps);

/// Every element within `bound`.
bool check_absolute(std::string_view what, std::span<const float> actual,
                    std::span<const float> expected, double bound);

/// relative_rms within `bound`.
bool check_relative_rms(std::string_view what, std::span<const float> actual,
                        std::span<const float> expected, double bound);

/// Every element within `ulps` bf16 steps at the largest magnitude of `expected`.
bool check_ulps_of_largest(std::string_view what, std::span<const float> actual,
                           std::span<const float> expected, double ulps);

}  // namespace cedar::test
