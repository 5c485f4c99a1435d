#include "tests/golden/runtime/stage/deviation.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

namespace cedar::test {

using kernels::bf16;
using kernels::matrix_view;

namespace {

template <class T>
std::span<const T> elements_of(const model::tapped_tensor& tensor) {
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

template <class T>
model::tapped_tensor tapped_of(kernels::dtype type, matrix_view<const T> rows) {
  if (!rows.contiguous()) throw std::runtime_error("rows with gaps");
  return {{},
          type,
          {static_cast<std::uint32_t>(rows.rows), static_cast<std::uint32_t>(rows.cols)},
          std::as_bytes(std::span(rows.data, rows.rows * rows.cols))};
}

void keep_largest(std::map<std::string, double>& all, const std::string& name, double value) {
  auto [found, fresh] = all.try_emplace(name, value);
  if (!fresh) found->second = std::max(found->second, value);
}

/// Rows of `all`, `rows` of them, without padding, each in ascending order.
std::vector<std::vector<std::int64_t>> sets_of(std::span<const std::int64_t> all,
                                               std::size_t rows) {
  std::vector<std::vector<std::int64_t>> out(rows);
  const std::size_t width = all.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto values = all.subspan(row * width, width);
    std::ranges::copy_if(values, std::back_inserter(out[row]), [](auto v) { return v != -1; });
    std::ranges::sort(out[row]);
  }
  return out;
}

std::size_t different_rows(const model::tapped_tensor& actual,
                           const std::vector<std::int64_t>& expected) {
  const auto values = elements_of<std::int32_t>(actual);
  const std::vector<std::int64_t> mine(values.begin(), values.end());
  const std::size_t rows = actual.shape.front();
  const auto a = sets_of(mine, rows);
  const auto b = sets_of(expected, rows);
  std::size_t different = 0;
  for (std::size_t row = 0; row < rows; ++row) different += a[row] != b[row] ? 1 : 0;
  return different;
}

}  // namespace

void keep_deviation(const golden_file& file, const std::string& recorded, const std::string& name,
                    bool exact_input, const model::tapped_tensor& actual, layer_deviation& out) {
  if (!file.has(recorded)) return;
  out.compared.insert(recorded);
  if (actual.type == kernels::dtype::i32) {
    out.wrong_choices += different_rows(actual, file.integers(recorded));
    return;
  }
  const bool narrow = actual.type == kernels::dtype::bf16;
  const auto values = elements_of<float>(actual);
  const auto mine = narrow ? widened(elements_of<bf16>(actual))
                           : std::vector<float>(values.begin(), values.end());
  const auto expected = file.floats(recorded);
  if (mine.size() != expected.size()) {
    ++out.wrong_choices;
    return;
  }
  double largest = 0;
  double worst = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (std::isfinite(expected[i]))
      largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    if (mine[i] == expected[i]) continue;  // also -inf against -inf
    worst =
        std::max(worst, std::abs(static_cast<double>(mine[i]) - static_cast<double>(expected[i])));
  }
  if (exact_input && !narrow) {
    keep_largest(out.absolute, name, worst);
    return;
  }
  // Scores have entries of -infinity, which have no mean.
  if (name != "index.score") keep_largest(out.relative_rms, name, relative_rms(mine, expected));
  if (narrow) keep_largest(out.largest_ulps, name, worst / bf16_ulp(largest));
}

void check_deviation(const layer_deviation& deviation, const std::string& where) {
  for (const auto& [name, value] : deviation.relative_rms)
    BOOST_TEST(value <= relative_rms_bound,
               where << " " << name << ": relative RMS " << value << " > " << relative_rms_bound);
  for (const auto& [name, value] : deviation.largest_ulps)
    BOOST_TEST(value <= ulps_bound, where << " " << name << ": " << value
                                          << " bf16 steps of the largest > " << ulps_bound);
  for (const auto& [name, value] : deviation.absolute)
    BOOST_TEST(value <= absolute_bound,
               where << " " << name << ": " << value << " > " << absolute_bound);
  BOOST_TEST(deviation.wrong_choices == 0U,
             where << ": " << deviation.wrong_choices << " rows choose differently");
}

model::tapped_tensor as_tapped(matrix_view<const bf16> rows) {
  return tapped_of(kernels::dtype::bf16, rows);
}

model::tapped_tensor as_tapped(matrix_view<const float> rows) {
  return tapped_of(kernels::dtype::f32, rows);
}

}  // namespace cedar::test
