#include "tests/support/golden.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace cedar::test {

namespace {

store::safetensors_reader open(const std::string& path) {
  auto reader = store::safetensors_reader::open(CEDAR_TEST_DATA "/golden/" + path);
  if (!reader) throw std::runtime_error(reader.error().message);
  return std::move(*reader);
}

template <class T>
std::vector<std::int64_t> widened_integers(std::span<const T> values) {
  return {values.begin(), values.end()};
}

/// Numbers the bf16 values in order, both zeros as 0.
std::int32_t rank(kernels::bf16 value) {
  const auto magnitude = static_cast<std::int32_t>(value.bits & 0x7fffU);
  return (value.bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

double distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::fabs(static_cast<double>(a) - static_cast<double>(b));
}

std::string text(std::int64_t value) {
  return std::to_string(value);
}
std::string text(std::uint8_t value) {
  return std::to_string(value);
}
std::string text(float value) {
  std::ostringstream out;
  out.precision(9);
  out << value;
  return out.str();
}
std::string text(kernels::bf16 value) {
  std::ostringstream out;
  out << text(to_float(value)) << " (0x" << std::hex << value.bits << ")";
  return out.str();
}

/// Checks `error_of(actual[i], expected[i]) <= bound` for all i.
template <class T, class ErrorOf>
bool check_elements(std::string_view what, std::span<const T> actual, std::span<const T> expected,
                    double bound, const char* unit, const ErrorOf& error_of) {
  BOOST_TEST(actual.size() == expected.size(),
             what << ": " << actual.size() << " elements, expected " << expected.size());
  if (actual.size() != expected.size()) return false;
  std::size_t worst = 0;
  std::size_t beyond = 0;
  double largest = -1;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = error_of(actual[i], expected[i]);
    if (error > bound) ++beyond;
    if (error > largest) {
      largest = error;
      worst = i;
    }
  }
  BOOST_TEST(beyond == 0U,
             what << ": " << beyond << " of " << actual.size() << " elements beyond the bound of "
                  << bound << unit << "; worst is [" << worst << "]: " << text(actual[worst])
                  << ", expected " << text(expected[worst]) << ", off by " << largest << unit);
  return beyond == 0;
}

template <class T>
bool check_same(std::string_view what, std::span<const T> actual, std::span<const T> expected) {
  return check_elements(what, actual, expected, 0, " differences",
                        [](const T& a, const T& b) { return a == b ? 0.0 : 1.0; });
}

}  // namespace

golden_file::golden_file(const std::string& path) : reader_(open(path)) {}

store::tensor_view golden_file::view(std::string_view name) const {
  auto tensor = reader_.tensor(name);
  if (!tensor) throw std::runtime_error(tensor.error().message);
  return *tensor;
}

std::vector<std::size_t> golden_file::shape(std::string_view name) const {
  const auto& dimensions = view(name).info->shape;
  return {dimensions.begin(), dimensions.end()};
}

std::vector<std::string> golden_file::names() const {
  std::vector<std::string> out;
  for (const store::tensor_info& tensor : reader_.tensors()) out.push_back(tensor.name);
  return out;
}

std::vector<float> golden_file::floats(std::string_view name) const {
  const store::tensor_view tensor = view(name);
  if (tensor.info->dtype == kernels::dtype::bf16) return widened(tensor.as<kernels::bf16>());
  const std::span<const float> values = tensor.as<float>();
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> golden_file::integers(std::string_view name) const {
  const store::tensor_view tensor = view(name);
  switch (tensor.info->dtype) {
    case kernels::dtype::i64:
      return widened_integers(tensor.as<std::int64_t>());
    case kernels::dtype::i32:
      return widened_integers(tensor.as<std::int32_t>());
    case kernels::dtype::i16:
      return widened_integers(tensor.as<std::int16_t>());
    case kernels::dtype::i8:
      return widened_integers(tensor.as<std::int8_t>());
    default:
      return widened_integers(tensor.as<std::uint8_t>());
  }
}

std::vector<float> widened(std::span<const kernels::bf16> values) {
  std::vector<float> out;
  out.reserve(values.size());
  for (const kernels::bf16 value : values) out.push_back(to_float(value));
  return out;
}

std::uint32_t ulp_distance(kernels::bf16 a, kernels::bf16 b) noexcept {
  const bool a_nan = std::isnan(to_float(a));
  const bool b_nan = std::isnan(to_float(b));
  if (a_nan || b_nan) return a_nan && b_nan ? 0 : std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::abs(rank(a) - rank(b)));
}

double bf16_ulp(double value) noexcept {
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m * 2^exponent, 0.5 <= |m| < 1
  return std::ldexp(1.0, value == 0 ? -133 : std::max(exponent - 8, -133));
}

double relative_rms(std::span<const float> actual, std::span<const float> expected) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double difference = distance(actual[i], expected[i]);
    error += difference * difference;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error == 0 ? 0 : std::sqrt(error / size);
}

bool check_equal(std::string_view what, std::span<const kernels::bf16> actual,
                 std::span<const kernels::bf16> expected) {
  return check_elements(what, actual, expected, 0, " bits apart",
                        [](kernels::bf16 a, kernels::bf16 b) {
                          const bool both_nan = std::isnan(to_float(a)) && std::isnan(to_float(b));
                          return a == b || both_nan ? 0 : std::max(ulp_distance(a, b), 1U);
                        });
}

bool check_equal(std::string_view what, std::span<const float> actual,
                 std::span<const float> expected) {
  return check_elements(what, actual, expected, 0, " apart", [](float a, float b) {
    const bool same = a == b && std::signbit(a) == std::signbit(b);
    return same ? 0 : std::isnan(a) && std::isnan(b) ? 0 : std::max(distance(a, b), 1e-300);
  });
}

bool check_equal(std::string_view what, std::span<const std::uint8_t> actual,
                 std::span<const std::uint8_t> expected) {
  return check_same(what, actual, expected);
}

bool check_equal(std::string_view what, std::span<const std::int64_t> actual,
                 std::span<const std::int64_t> expected) {
  return check_same(what, actual, expected);
}

bool check_ulps(std::string_view what, std::span<const kernels::bf16> actual,
                std::span<const kernels::bf16> expected, std::uint32_t ulps) {
  return check_elements(what, actual, expected, ulps, " bf16 ulp", ulp_distance);
}

bool check_absolute(std::string_view what, std::span<const float> actual,
                    std::span<const float> expected, double bound) {
  return check_elements(what, actual, expected, bound, "", distance);
}

bool check_relative_rms(std::string_view what, std::span<const float> actual,
                        std::span<const float> expected, double bound) {
  BOOST_TEST(actual.size() == expected.size(),
             what << ": " << actual.size() << " elements, expected " << expected.size());
  if (actual.size() != expected.size()) return false;
  const double found = relative_rms(actual, expected);
  if (found <= bound) return true;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (!(distance(actual[i], expected[i]) <= distance(actual[worst], expected[worst]))) worst = i;
  BOOST_TEST(false, what << ": relative RMS " << found << ", bound " << bound << "; worst is ["
                         << worst << "]: " << text(actual[worst]) << ", expected "
                         << text(expected[worst]));
  return false;
}

bool check_ulps_of_largest(std::string_view what, std::span<const float> actual,
                           std::span<const float> expected, double ulps) {
  double largest = 0;
  for (const float value : expected)
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  return check_absolute(what, actual, expected, ulps * bf16_ulp(largest));
}

}  // namespace cedar::test
