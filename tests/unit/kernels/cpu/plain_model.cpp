#include "tests/unit/kernels/cpu/plain_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/canonical_sum.hpp"

namespace cedar::kernels::plain {

namespace {

using floats = std::vector<float>;

float mean_square_root_inverse(std::span<const bf16> x, float epsilon) {
  canonical::lane_sum squares;
  for (const bf16 value : x) squares.add_product(to_float(value), to_float(value));
  return 1.0F / std::sqrt(squares.total() / static_cast<float>(x.size()) + epsilon);
}

floats widen(std::span<const bf16> x) {
  floats out(x.size());
  std::transform(x.begin(), x.end(), out.begin(), [](bf16 value) { return to_float(value); });
  return out;
}

floats fp8_row(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales) {
  floats out(codes.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = decode_e4m3(codes[i]) * decode_e8m0(scales[i / 32]);
  return out;
}

floats fp4_row(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales) {
  floats out(codes.size() * 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = decode_e2m1(static_cast<std::uint8_t>(codes[i / 2] >> (i % 2 * 4) & 15)) *
             decode_e8m0(scales[i / 32]);
  return out;
}

void put(float value, float& out) {
  out = value;
}
void put(float value, bf16& out) {
  out = to_bf16(value);
}

template <class T, class XRow, class WeightRow>
void linear(const matrix_view<T>& y, std::size_t segments, const XRow& x, const WeightRow& weight) {
  for (std::size_t o = 0; o < y.cols; ++o) {
    const floats w = weight(o);
    for (std::size_t row = 0; row < y.rows; ++row)
      put(canonical::dot(x(row), w, segments), y.row(row)[o]);
  }
}

}  // namespace

float decode_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code >= 128 ? -magnitude : magnitude;
}

float decode_e2m1(std::uint8_t code) {
  constexpr std::array<float, 8> magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code >= 8 ? -magnitudes[code & 7U] : magnitudes[code];
}

float decode_e8m0(std::uint8_t code) {
  return std::ldexp(1.0F, code - 127);
}

std::vector<float> decode_entry(entry_format format, const std::byte* entry, std::size_t width) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(entry);
  const std::span<const std::uint8_t> codes(bytes, code_bytes(format, width));
  const std::uint8_t* scales = bytes + codes.size();
  switch (format) {
    case entry_format::bf16: {
      std::vector<bf16> values(width);  // an entry may lie at an odd address
      std::memcpy(values.data(), bytes, 2 * width);
      return widen(values);
    }
    case entry_format::fp8_e8m0_32:
      return fp8_row(codes, {scales, width / 32});
    case entry_format::fp4_e8m0_32:
      return fp4_row(codes, {scales, width / 32});
    case entry_format::fp4_e4m3_16:
      break;
  }
  floats out(width);
  for (std::size_t i = 0; i < width; ++i)
    out[i] = decode_e2m1(static_cast<std::uint8_t>(codes[i / 2] >> (i % 2 * 4) & 15)) *
             decode_e4m3(scales[i / 16]);
  return out;
}

void rms_norm(const rms_norm_arguments& a) {
  for (std::size_t row = 0; row < a.x.rows; ++row) {
    const float factor = mean_square_root_inverse(a.x.row(row), a.epsilon);
    for (std::size_t i = 0; i < a.x.cols; ++i)
      a.y.row(row)[i] = to_bf16(to_float(a.weight[i]) * (to_float(a.x.row(row)[i]) * factor));
  }
}

void linear_fp8(const linear_fp8_arguments& a) {
  linear(
      a.y, a.segments,
      [&](std::size_t row) { return fp8_row(a.x.codes.row(row), a.x.scales.row(row)); },
      [&](std::size_t o) { return fp8_row(a.weight.codes.row(o), a.weight.scales.row(o / 32)); });
}

void linear_fp4(const linear_fp4_arguments& a) {
  linear(
      a.y, a.segments,
      [&](std::size_t row) { return fp8_row(a.x.codes.row(row), a.x.scales.row(row)); },
      [&](std::size_t o) { return fp4_row(a.weight.codes.row(o), a.weight.scales.row(o)); });
}

void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& a) {
  linear(
      a.y, 1, [&](std::size_t row) { return widen(a.x.row(row)); },
      [&](std::size_t o) { return fp8_row(a.weight.codes.row(o), a.weight.scales.row(o / 32)); });
}

void linear_bf16(const linear_bf16_arguments& a) {
  for (std::size_t o = 0; o < a.y.cols; ++o) {
    const floats w = widen(a.weight.row(o));
    for (std::size_t row = 0; row < a.y.rows; ++row) {
      const float sum = canonical::dot(widen(a.x.row(row)), w, 1);
      a.y.row(row)[o] = to_bf16(a.bias.empty() ? sum : sum + to_float(a.bias[o]));
    }
  }
}

void linear_f32(const linear_f32_arguments& a) {
  linear(
      a.y, 1, [&](std::size_t row) { return widen(a.x.row(row)); },
      [&](std::size_t o) { return widen(a.weight.row(o)); });
}

void hc_coefficients(const hc_coefficients_arguments& a) {
  const std::size_t s = a.pre.cols;
  for (std::size_t row = 0; row < a.streams.rows; ++row) {
    const floats x = widen(a.streams.row(row));
    const float factor = mean_square_root_inverse(a.streams.row(row), a.rms_epsilon);
    const auto logit = [&](std::size_t index, std::size_t group) {
      const float m = canonical::dot(x, a.fn.row(index)) * factor;
      return m * a.scale[group] + a.base[index];
    };
    for (std::size_t i = 0; i < s; ++i) {
      a.pre.row(row)[i] = canonical::sigmoid(logit(i, 0)) + a.epsilon;
      a.post.row(row)[i] = 2.0F * canonical::sigmoid(logit(s + i, 1));
    }
    const std::span<float> c = a.combine.row(row);
    for (std::size_t i = 0; i < s; ++i) {
      float largest = -INFINITY;
      float sum = 0;
      for (std::size_t k = 0; k < s; ++k) {
        c[i * s + k] = logit(2 * s + i * s + k, 2);
        largest = std::max(largest, c[i * s + k]);
      }
      for (std::size_t k = 0; k < s; ++k)
        sum += c[i * s + k] = canonical::exp(c[i * s + k] - largest);
      for (std::size_t k = 0; k < s; ++k) c[i * s + k] = c[i * s + k] / sum + a.epsilon;
    }
    for (std::size_t half_round = 1; half_round < 2 * a.iterations; ++half_round) {
      const bool columns = half_round % 2 == 1;
      for (std::size_t line = 0; line < s; ++line) {
        const auto at = [&](std::size_t i) -> float& {
          return columns ? c[i * s + line] : c[line * s + i];
        };
        float sum = 0;
        for (std::size_t i = 0; i < s; ++i) sum += at(i);
        for (std::size_t i = 0; i < s; ++i) at(i) /= sum + a.epsilon;
      }
    }
  }
}

void hc_collapse(const hc_collapse_arguments& a) {
  for (std::size_t row = 0; row < a.y.rows; ++row)
    for (std::size_t i = 0; i < a.y.cols; ++i) {
      float sum = 0;
      for (std::size_t s = 0; s < a.pre.cols; ++s)
        sum += a.pre.row(row)[s] * to_float(a.streams.row(row)[s * a.y.cols + i]);
      a.y.row(row)[i] = to_bf16(sum);
    }
}

void hc_expand(const hc_expand_arguments& a) {
  const std::size_t streams = a.post.cols;
  for (std::size_t row = 0; row < a.y.rows; ++row) {
    const floats old = widen(a.streams.row(row));
    for (std::size_t k = 0; k < streams; ++k)
      for (std::size_t i = 0; i < a.y.cols; ++i) {
        float mixed = 0;
        for (std::size_t s = 0; s < streams; ++s)
          mixed += a.combine.row(row)[s * streams + k] * old[s * a.y.cols + i];
        a.out.row(row)[k * a.y.cols + i] =
            to_bf16(a.post.row(row)[k] * to_float(a.y.row(row)[i]) + mixed);
      }
  }
}

void rope(const rope_arguments& a) {
  const std::size_t pairs = a.frequencies.size();
  for (std::size_t row = 0; row < a.x.rows; ++row)
    for (std::size_t end = a.head_dim; end <= a.x.cols; end += a.head_dim)
      for (std::size_t i = 0; i < pairs; ++i) {
        const canonical::rotation turn =
            canonical::rotate_by(static_cast<float>(a.positions[row]) * a.frequencies[i]);
        const float sine = a.inverse ? -turn.sine : turn.sine;
        bf16* pair = a.x.row_data(row) + end - 2 * pairs + 2 * i;
        const float x = to_float(pair[0]);
        const float y = to_float(pair[1]);
        pair[0] = to_bf16(x * turn.cosine - y * sine);
        pair[1] = to_bf16(y * turn.cosine + x * sine);
      }
}

void compressor_pool(const compressor_pool_arguments& a) {
  for (std::size_t group = 0; group < a.z.rows; ++group)
    for (std::size_t i = 0; i < a.z.cols; ++i) {
      const auto gate = [&](std::size_t t) { return a.gates.row(group * a.ratio + t)[i]; };
      float largest = gate(0);
      for (std::size_t t = 1; t < a.ratio; ++t) largest = std::max(largest, gate(t));
      float total = 0;
      for (std::size_t t = 0; t < a.ratio; ++t) total += canonical::exp(gate(t) - largest);
      float sum = 0;
      for (std::size_t t = 0; t < a.ratio; ++t)
        sum += a.values.row(group * a.ratio + t)[i] * (canonical::exp(gate(t) - largest) / total);
      a.z.row(group)[i] = to_bf16(sum);
    }
}

void index_scores(const index_scores_arguments& a) {
  for (std::size_t j = 0; j < a.scores.size(); ++j) {
    const std::byte* entry = a.keys[j / a.keys_run] +
                             j % a.keys_run * entry_bytes(entry_format::fp4_e8m0_32, a.head_dim);
    const floats key = decode_entry(entry_format::fp4_e8m0_32, entry, a.head_dim);
    float score = 0;
    for (std::size_t h = 0; h < a.weights.size(); ++h) {
      const floats query = decode_entry(entry_format::fp4_e8m0_32, a.query.row_data(h), a.head_dim);
      const float product = to_float(to_bf16(canonical::dot(query, key)));
      const float positive = product < 0 ? 0 : product;  // a NaN passes
      score += to_float(to_bf16(positive * to_float(a.weights[h])));
    }
    a.scores[j] = to_bf16(score);
  }
}

void attention(const attention_arguments& a) {
  const std::size_t width = a.head_dim;
  for (std::size_t row = 0; row < a.q.rows; ++row) {
    std::vector<floats> entries;
    for (const std::byte* entry : a.entries[row].window)
      entries.push_back(decode_entry(a.window_format, entry, width));
    for (const std::byte* entry : a.entries[row].selected)
      entries.push_back(decode_entry(a.selected_format, entry, width));
    for (std::size_t h = 0; h < a.sinks.size(); ++h) {
      const std::span<bf16> o = a.o.row(row).subspan(h * width, width);
      const floats q = widen(a.q.row(row).subspan(h * width, width));
      floats scores;
      float largest = -1e30F;
      for (const floats& entry : entries) {
        scores.push_back(canonical::dot(q, entry) * a.scale);
        largest = std::max(largest, scores.back());
      }
      canonical::lane_sum denominators;
      for (float& score : scores) {
        score = canonical::exp(score - largest);
        denominators.add(score);
      }
      const float denominator = denominators.total() + canonical::exp(a.sinks[h] - largest);
      for (std::size_t c = 0; c < width; ++c) {
        float sum = 0;
        for (std::size_t e = 0; e < entries.size(); ++e)
          sum = std::fma(to_float(to_bf16(scores[e])), entries[e][c], sum);
        o[c] = to_bf16(entries.empty() ? 0.0F : sum / denominator);
      }
    }
  }
}

void gate_scores(const gate_scores_arguments& a) {
  for (std::size_t row = 0; row < a.scores.rows; ++row)
    for (float& score : a.scores.row(row)) score = std::sqrt(canonical::softplus(score));
}

void swiglu(const swiglu_arguments& a) {
  for (std::size_t row = 0; row < a.y.rows; ++row)
    for (std::size_t i = 0; i < a.y.cols; ++i) {
      float gate = to_float(a.gate.row(row)[i]);
      float up = to_float(a.up.row(row)[i]);
      if (a.limit > 0) {
        gate = std::min(gate, a.limit);
        up = std::clamp(up, -a.limit, a.limit);
      }
      const float weight = a.route_weights.empty() ? 1.0F : a.route_weights[row];
      float silu = gate * canonical::sigmoid(gate);
      if (a.round_silu) silu = to_float(to_bf16(silu));
      a.y.row(row)[i] = to_bf16(silu * up * weight);
    }
}

void moe_combine(const moe_combine_arguments& a) {
  for (std::size_t row = 0; row < a.y.rows; ++row)
    for (std::size_t i = 0; i < a.y.cols; ++i) {
      float sum = to_float(a.parts[row * a.parts_per_row][i]);
      for (std::size_t p = 1; p < a.parts_per_row; ++p)
        sum += to_float(a.parts[row * a.parts_per_row + p][i]);
      a.y.row(row)[i] = to_bf16(sum);
    }
}

void engram_gate(const engram_gate_arguments& a) {
  const std::size_t d = a.q_weight.cols;
  for (std::size_t row = 0; row < a.gates.rows; ++row)
    for (std::size_t k = 0; k < a.gates.cols; ++k) {
      const std::span<const bf16> x = a.streams.row(row).subspan(k * d, d);
      const std::span<const bf16> key = a.key_values.row(row).subspan(k * d, d);
      canonical::lane_sum products;
      for (std::size_t i = 0; i < d; ++i)
        products.add_product(to_float(x[i]) * to_float(key[i]),
                             to_float(a.q_weight.row(k)[i]) * to_float(a.k_weight.row(k)[i]));
      const float rho = products.total() * mean_square_root_inverse(x, a.epsilon) *
                        mean_square_root_inverse(key, a.epsilon) *
                        (1.0F / std::sqrt(static_cast<float>(d)));
      const float root = std::sqrt(std::max(std::fabs(rho), 1e-6F));
      const float gate =
          a.image_rows[row] != 0 ? 0.0F : canonical::sigmoid(std::copysign(root, rho));
      a.gates.row(row)[k] = gate;
      for (std::size_t i = 0; i < d; ++i)
        a.out.row(row)[k * d + i] =
            to_bf16(to_float(x[i]) + gate * to_float(a.key_values.row(row)[a.gates.cols * d + i]));
    }
}

}  // namespace cedar::kernels::plain
