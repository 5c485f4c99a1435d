// Goal: attention, compressor and index scores of every backend against the judge, with derived
// bounds.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

double squared_norm(std::span<const bf16> x) {
  double sum = 0;
  for (const bf16 value : x)
    sum += static_cast<double>(to_float(value)) * static_cast<double>(to_float(value));
  return sum;
}

/// Largest norm and largest element of any entry.
struct entry_sizes {
  double norm = 0;
  double element = 0;

  void add(entry_format format, const matrix_buffer<std::byte>& entries, std::size_t width) {
    matrix_buffer<bf16> values(entries.rows(), width);
    make_reference_backend()->unpack_entries({entries.view(), values.view(), format});
    for (std::size_t e = 0; e < values.rows(); ++e) {
      norm = std::max(norm, std::sqrt(squared_norm(values.view().row(e))));
      for (const bf16 value : values.view().row(e))
        element = std::max(element, std::fabs(static_cast<double>(to_float(value))));
    }
  }
};

/// A row for every pair (window, selected) of counts, all from the same two caches.
struct attention_case {
  std::size_t heads;
  std::size_t width;
  entry_format window_format = entry_format::fp8_e8m0_32;
  entry_format selected_format = entry_format::fp4_e4m3_16;
  std::vector<std::pair<std::size_t, std::size_t>> counts = {{0, 0},   {1, 0},  {0, 1},    {5, 3},
                                                             {17, 31}, {64, 1}, {128, 512}};
  matrix_buffer<bf16> q{};
  matrix_buffer<float> sinks{};
  matrix_buffer<std::byte> window{}, selected{};
  std::vector<const std::byte*> window_pointers{}, selected_pointers{};

  void fill() {
    random_tensors random(width + heads);
    q = random.half(counts.size(), heads * width);
    sinks = random.full(1, heads);
    window = random.entries(window_format, 128, width);
    selected = random.entries(selected_format, 512, width);
    window_pointers = row_pointers(window.view());
    selected_pointers = row_pointers(selected.view());
  }

  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }

  matrix_buffer<bf16> run(const backend& backend) const {
    std::vector<attention_entries> entries;
    for (const auto& [from_window, from_selected] : counts)
      entries.push_back({std::span(window_pointers).first(from_window),
                         std::span(selected_pointers).first(from_selected)});
    matrix_buffer<bf16> o(q.rows(), q.cols());
    backend.attention({o.view(), q.view(), entries, sinks.span(), width,
                       static_cast<float>(scale()), window_format, selected_format});
    return o;
  }

  /// A probability is off by the error of its score (a sum of `width` products, twice because of
  /// the maximum), of the exponential, and by one bf16 step where that crosses a rounding boundary;
  /// the output is a mean, with such weights, of values of at most the largest element.
  std::vector<double> errors() const {
    entry_sizes sizes;
    sizes.add(window_format, window, width);
    sizes.add(selected_format, selected, width);
    std::vector<double> out;
    for (std::size_t first = 0; first < q.span().size(); first += width) {
      const double score =
          std::sqrt(squared_norm(q.span().subspan(first, width))) * sizes.norm * scale();
      const double probability = 2 * score * (sum_error(width) + 2 * unit) + function_error;
      out.insert(out.end(), width, sizes.element * (0x1p-7 + 2 * probability + sum_error(640)));
    }
    return out;
  }

  /// A probability crosses a rounding boundary with the chance of its error over half a step, and
  /// then moves the output by a fraction of a step: measured, 0.1 % of the elements differ.
  /// Probabilities that are not rounded at all change more than a third of them.
  void check(const backend& backend) const {
    check_half("attention " + std::to_string(heads) + "x" + std::to_string(width),
               run(backend).span(), run(*make_reference_backend()).span(), errors());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_attention)

BOOST_DATA_TEST_CASE(attention_is_a_mean_with_rounded_probabilities, backends(), name) {
  const auto backend = backend_of(name);
  const std::vector<std::pair<std::size_t, std::size_t>> shapes = {
      {1, 32}, {3, 64}, {2, 512}, {64, 96}};
  for (const auto& [heads, width] : shapes) {
    attention_case test{.heads = heads, .width = width};
    test.fill();
    test.check(*backend);
  }
}

BOOST_DATA_TEST_CASE(attention_reads_every_entry_format, backends(), name) {
  const auto backend = backend_of(name);
  const std::vector<std::pair<entry_format, entry_format>> formats = {
      {entry_format::bf16, entry_format::bf16},
      {entry_format::fp4_e8m0_32, entry_format::fp8_e8m0_32},
      {entry_format::fp4_e4m3_16, entry_format::fp4_e8m0_32}};
  for (const auto& [window, selected] : formats) {
    attention_case test{
        .heads = 2, .width = 64, .window_format = window, .selected_format = selected};
    test.fill();
    test.check(*backend);
  }
}

/// The weights are positive and sum to one: a relative error of each is an error relative to the
/// largest value. exp of a difference d is off by |d| e^d <= 0.37 roundings of d, and by its own.
BOOST_DATA_TEST_CASE(compressor_is_a_weighted_mean, backends(), name) {
  const auto backend = backend_of(name);
  constexpr std::size_t groups = 3;
  // Gates of the wide spread have exponentials only relative to their maximum.
  for (const float spread : {3.0F, 100.0F}) {
    for (const auto& [ratio, width] : {std::pair(2U, 512U), {2U, 33U}, {3U, 5U}, {4U, 64U}}) {
      random_tensors random(width);
      const matrix_buffer<float> values = random.full(groups * ratio, width);
      const matrix_buffer<float> gates = random.full(groups * ratio, width, spread);
      matrix_buffer<bf16> actual(groups, width), expected(groups, width);
      backend->compressor_pool({actual.view(), values.view(), gates.view(), ratio});
      make_reference_backend()->compressor_pool(
          {expected.view(), values.view(), gates.view(), ratio});
      std::vector<double> errors;
      for (std::size_t i = 0; i < groups * width; ++i) {
        double largest = 0;
        for (std::size_t a = 0; a < ratio; ++a) {
          const float value = values.view().row(i / width * ratio + a)[i % width];
          largest = std::max(largest, std::fabs(static_cast<double>(value)));
        }
        errors.push_back(largest * (2 * function_error + (2 * ratio + 3) * unit));
      }
      check_half("compressor_pool", actual.span(), expected.span(), errors);
    }
  }
}

/// A product of FP4 vectors is exact in binary32 here: a group's sum is at most 4608 quarter units
/// (13 bits) and the scales of a pair of vectors lie within 2^8. So every head's rounded term is
/// the same, and only the sum over heads rounds.
BOOST_DATA_TEST_CASE(index_scores_are_a_sum_over_heads, backends(), name) {
  const auto backend = backend_of(name);
  const auto judge = make_reference_backend();
  const std::vector<std::pair<std::size_t, std::size_t>> shapes = {
      {1, 32}, {3, 64}, {32, 128}, {5, 96}};
  constexpr std::size_t count = 531;
  for (const auto& [heads, width] : shapes) {
    random_tensors random(width);
    const matrix_buffer<std::byte> query = random.entries(entry_format::fp4_e8m0_32, heads, width);
    const matrix_buffer<std::byte> keys = random.entries(entry_format::fp4_e8m0_32, count, width);
    const std::vector<const std::byte*> pointers = row_pointers(keys.view());
    const matrix_buffer<bf16> weights = random.half(1, heads, 0.02F);
    const matrix_buffer<bf16> sizes = absolute(weights.view());
    matrix_buffer<bf16> actual(1, count), expected(1, count), magnitudes(1, count);
    backend->index_scores({actual.span(), query.view(), weights.span(), pointers, width});
    judge->index_scores({expected.span(), query.view(), weights.span(), pointers, width});
    judge->index_scores({magnitudes.span(), query.view(), sizes.span(), pointers, width});
    check_half("index_scores", actual.span(), expected.span(),
               scaled(static_cast<double>(heads) * unit * 1.01, magnitudes.span()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
