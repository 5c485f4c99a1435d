#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/internal/entry_rules.hpp"
#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

constexpr double lowest_maximum = -1e30;  // where the running maximum of the released code starts

using entry_values = std::vector<std::vector<double>>;

void append_entries(entry_values& out, std::span<const std::byte* const> entries,
                    entry_format format, std::size_t width) {
  for (const std::byte* entry : entries) out.push_back(decode_entry(format, entry, width));
}

/// One head of one row: q and o have the width of an entry.
void attend(std::span<const bf16> q, const entry_values& entries, double scale, double sink,
            std::span<bf16> o) {
  std::vector<double> scores(entries.size());
  double largest = lowest_maximum;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    double product = 0;
    for (std::size_t i = 0; i < q.size(); ++i) product += widen(q[i]) * entries[e][i];
    scores[e] = product * scale;
    largest = std::max(largest, scores[e]);
  }
  double denominator = std::exp(sink - largest);
  std::vector<double> sum(o.size());
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const double probability = std::exp(scores[e] - largest);
    denominator += probability;
    const double rounded = widen(round_bf16(probability));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rounded * entries[e][i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    o[i] = round_bf16(entries.empty() ? 0 : sum[i] / denominator);
}

}  // namespace

void reference_backend::do_compressor_pool(const compressor_pool_arguments& arguments) const {
  const std::size_t ratio = arguments.ratio;
  for (std::size_t group = 0; group < arguments.z.rows; ++group) {
    for (std::size_t i = 0; i < arguments.z.cols; ++i) {
      const auto gate = [&](std::size_t a) -> double {
        return arguments.gates.row(group * ratio + a)[i];
      };
      double largest = gate(0);
      for (std::size_t a = 1; a < ratio; ++a) largest = std::max(largest, gate(a));
      double total = 0;
      for (std::size_t a = 0; a < ratio; ++a) total += std::exp(gate(a) - largest);
      float sum = 0;
      for (std::size_t a = 0; a < ratio; ++a) {
        const auto weight = static_cast<float>(std::exp(gate(a) - largest) / total);
        sum += weight * arguments.values.row(group * ratio + a)[i];
      }
      arguments.z.row(group)[i] = round_bf16(sum);
    }
  }
}

void reference_backend::do_index_scores(const index_scores_arguments& arguments) const {
  const std::size_t width = arguments.head_dim;
  entry_values heads;
  for (std::size_t h = 0; h < arguments.weights.size(); ++h)
    heads.push_back(decode_entry(entry_format::fp4_e8m0_32, arguments.query.row_data(h), width));
  for (std::size_t j = 0; j < arguments.scores.size(); ++j) {
    const std::byte* run = arguments.keys[j / arguments.keys_run];
    const std::size_t offset =
        j % arguments.keys_run * entry_bytes(entry_format::fp4_e8m0_32, width);
    const std::vector<double> key = decode_entry(entry_format::fp4_e8m0_32, run + offset, width);
    double score = 0;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      double product = 0;
      for (std::size_t i = 0; i < width; ++i) product += heads[h][i] * key[i];
      product = widen(round_bf16(product));
      if (product < 0) product = 0;  // written so that a NaN passes on
      score += widen(round_bf16(product * widen(arguments.weights[h])));
    }
    arguments.scores[j] = round_bf16(score);
  }
}

void reference_backend::do_attention(const attention_arguments& arguments) const {
  const std::size_t width = arguments.head_dim;
  for (std::size_t row = 0; row < arguments.q.rows; ++row) {
    entry_values entries;
    append_entries(entries, arguments.entries[row].window, arguments.window_format, width);
    append_entries(entries, arguments.entries[row].selected, arguments.selected_format, width);
    for (std::size_t head = 0; head < arguments.sinks.size(); ++head)
      attend(arguments.q.row(row).subspan(head * width, width), entries, arguments.scale,
             arguments.sinks[head], arguments.o.row(row).subspan(head * width, width));
  }
}

}  // namespace cedar::kernels::reference
