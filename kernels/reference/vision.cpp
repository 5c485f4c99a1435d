#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

/// Head h of a row.
template <class T>
std::span<T> head_of(const matrix_view<T>& x, std::size_t row, std::size_t head,
                     std::size_t head_dim) {
  return x.row(row).subspan(head * head_dim, head_dim);
}

void attend(const full_attention_arguments& a, std::size_t row, std::size_t head) {
  const std::span<const bf16> q = head_of(a.q, row, head, a.head_dim);
  std::vector<double> scores(a.k.rows);
  for (std::size_t e = 0; e < scores.size(); ++e) {
    const std::span<const bf16> k = head_of(a.k, e, head, a.head_dim);
    for (std::size_t i = 0; i < k.size(); ++i) scores[e] += widen(q[i]) * widen(k[i]);
    scores[e] *= static_cast<double>(a.scale);
  }
  const double largest = *std::ranges::max_element(scores);
  double denominator = 0;
  std::vector<double> sums(a.head_dim);
  for (std::size_t e = 0; e < scores.size(); ++e) {
    const double probability = std::exp(scores[e] - largest);
    denominator += probability;
    const double rounded = widen(round_bf16(probability));
    const std::span<const bf16> v = head_of(a.v, e, head, a.head_dim);
    for (std::size_t i = 0; i < v.size(); ++i) sums[i] += rounded * widen(v[i]);
  }
  const std::span<bf16> o = head_of(a.o, row, head, a.head_dim);
  for (std::size_t i = 0; i < o.size(); ++i) o[i] = round_bf16(sums[i] / denominator);
}

}  // namespace

void reference_backend::do_rope_2d(const rope_2d_arguments& arguments) const {
  const std::size_t half = arguments.head_dim / 2;
  for (std::size_t row = 0; row < arguments.x.rows; ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      const bool by_row = i < half / 2;
      const std::int32_t position = by_row ? arguments.rows[row] : arguments.columns[row];
      // The angle is a float by definition, as that of do_rope.
      const float angle =
          static_cast<float>(position) * arguments.frequencies[by_row ? i : i - half / 2];
      const auto cosine = static_cast<float>(std::cos(static_cast<double>(angle)));
      const auto sine = static_cast<float>(std::sin(static_cast<double>(angle)));
      for (std::size_t first = 0; first < arguments.x.cols; first += arguments.head_dim) {
        bf16* x = arguments.x.row_data(row) + first + i;
        const float a = to_float(x[0]);
        const float b = to_float(x[half]);
        x[0] = round_bf16(a * cosine - b * sine);
        x[half] = round_bf16(b * cosine + a * sine);
      }
    }
  }
}

void reference_backend::do_full_attention(const full_attention_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.q.rows; ++row)
    for (std::size_t head = 0; head < arguments.q.cols / arguments.head_dim; ++head)
      attend(arguments, row, head);
}

void reference_backend::do_gelu(const gelu_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t i = 0; i < arguments.y.cols; ++i) {
      const double x = widen(arguments.x.row(row)[i]);
      arguments.y.row(row)[i] = round_bf16(x * 0.5 * std::erfc(-x / std::numbers::sqrt2));
    }
}

void reference_backend::do_add(const add_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t i = 0; i < arguments.y.cols; ++i)
      arguments.y.row(row)[i] =
          round_bf16(widen(arguments.a.row(row)[i]) + widen(arguments.b.row(row)[i]));
}

}  // namespace cedar::kernels::reference
