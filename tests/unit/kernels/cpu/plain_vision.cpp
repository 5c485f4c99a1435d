#include <algorithm>
#include <cmath>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/canonical_sum.hpp"
#include "tests/unit/kernels/cpu/plain_model.hpp"

namespace cedar::kernels::plain {

namespace {

std::vector<float> head_of(const matrix_view<const bf16>& x, std::size_t row, std::size_t head,
                           std::size_t head_dim) {
  std::vector<float> out;
  for (const bf16 value : x.row(row).subspan(head * head_dim, head_dim))
    out.push_back(to_float(value));
  return out;
}

}  // namespace

void rope_2d(const rope_2d_arguments& a) {
  const std::size_t quarter = a.head_dim / 4;
  for (std::size_t row = 0; row < a.x.rows; ++row)
    for (std::size_t i = 0; i < 2 * quarter; ++i) {
      const float angle = i < quarter
                              ? static_cast<float>(a.rows[row]) * a.frequencies[i]
                              : static_cast<float>(a.columns[row]) * a.frequencies[i - quarter];
      const canonical::rotation turn = canonical::rotate_by(angle);
      for (std::size_t first = 0; first < a.x.cols; first += a.head_dim) {
        bf16& left = a.x.row(row)[first + i];
        bf16& right = a.x.row(row)[first + i + 2 * quarter];
        const float x = to_float(left);
        const float y = to_float(right);
        left = to_bf16(x * turn.cosine - y * turn.sine);
        right = to_bf16(y * turn.cosine + x * turn.sine);
      }
    }
}

void full_attention(const full_attention_arguments& a) {
  const std::size_t width = a.head_dim;
  for (std::size_t row = 0; row < a.q.rows; ++row)
    for (std::size_t h = 0; h < a.q.cols / width; ++h) {
      const std::vector<float> q = head_of(a.q, row, h, width);
      std::vector<float> scores;
      for (std::size_t e = 0; e < a.k.rows; ++e)
        scores.push_back(canonical::dot(q, head_of(a.k, e, h, width)) * a.scale);
      const float largest = *std::max_element(scores.begin(), scores.end());
      canonical::lane_sum denominator;
      for (float& score : scores) {
        score = canonical::exp(score - largest);
        denominator.add(score);
      }
      const float total = denominator.total();
      for (std::size_t c = 0; c < width; ++c) {
        float sum = 0;
        for (std::size_t e = 0; e < scores.size(); ++e)
          sum = std::fma(to_float(to_bf16(scores[e])), to_float(a.v.row(e)[h * width + c]), sum);
        a.o.row(row)[h * width + c] = to_bf16(sum / total);
      }
    }
}

void gelu(const gelu_arguments& a) {
  for (std::size_t row = 0; row < a.y.rows; ++row)
    for (std::size_t i = 0; i < a.y.cols; ++i)
      a.y.row(row)[i] = to_bf16(canonical::gelu(to_float(a.x.row(row)[i])));
}

void add(const add_arguments& a) {
  for (std::size_t row = 0; row < a.y.rows; ++row)
    for (std::size_t i = 0; i < a.y.cols; ++i)
      a.y.row(row)[i] = to_bf16(to_float(a.a.row(row)[i]) + to_float(a.b.row(row)[i]));
}

}  // namespace cedar::kernels::plain
