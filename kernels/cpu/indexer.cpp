// What makes and scores index keys: the pooling of a compressor and the index scores.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/indexer.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/internal/math-inl.hpp"
#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Softmax of the gates over a group's tokens, channel by channel; sums by ascending token.
void compressor_pool_rows(const compressor_pool_arguments& a, workers threads) {
  const std::size_t size = a.z.cols;
  threads.split(a.z.rows, 1, 16 * a.ratio * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    scratch memory;
    float* weights = memory.take<float>(a.ratio * width);
    for (std::size_t group = begin; group < end; ++group) {
      const std::size_t first = group * a.ratio;
      for (std::size_t i = 0; i < size; i += width) {
        auto largest = load_first(a.gates.row_data(first) + i, size - i);
        for (std::size_t t = 1; t < a.ratio; ++t)
          largest = hn::Max(largest, load_first(a.gates.row_data(first + t) + i, size - i));
        auto total = zero();
        for (std::size_t t = 0; t < a.ratio; ++t) {
          const auto gate = load_first(a.gates.row_data(first + t) + i, size - i);
          const auto weight = exp(hn::Sub(gate, largest));
          total = hn::Add(total, weight);
          store(weight, weights + t * width);
        }
        auto sum = zero();
        for (std::size_t t = 0; t < a.ratio; ++t)
          sum = hn::Add(sum, hn::Mul(load_first(a.values.row_data(first + t) + i, size - i),
                                     hn::Div(load(weights + t * width), total)));
        store_first(sum, a.z.row_data(group) + i, size - i);
      }
    }
  });
}

/// Keys whose products with all heads are held at once.
inline constexpr std::size_t key_block = 256;

/// scores of `count` keys from products [heads, key_block], heads ascending.
HWY_INLINE void combine_heads(const float* products, std::span<const bf16> weights,
                              std::size_t count, bf16* scores) {
  for (std::size_t j = 0; j < count; j += width) {
    auto sum = zero();
    for (std::size_t head = 0; head < weights.size(); ++head) {
      const auto product = round_bf16(load(products + head * key_block + j));
      // Zero comes first: a NaN in the second operand passes.
      const auto positive = hn::Max(zero(), product);
      sum = hn::Add(sum, round_bf16(hn::Mul(positive, set(to_float(weights[head])))));
    }
    store_first(sum, scores + j, count - j);
  }
}

void index_scores_rows(const index_scores_arguments& a, workers threads) {
  const std::size_t heads = a.weights.size();
  const std::size_t bytes = code_bytes(entry_format::fp4_e8m0_32, a.head_dim);
  scratch memory;
  const auto** queries = memory.take<const std::byte*>(heads);
  for (std::size_t head = 0; head < heads; ++head) queries[head] = a.query.row_data(head);
  const entry_rows<e2m1_e8m0_format> query({queries, heads}, bytes);
  threads.split(a.keys.size(), strip_rows, output_cost(heads, a.head_dim),
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  scratch inner;
                  float* products = inner.take<float>(heads * key_block);
                  for (std::size_t first = begin; first < end; first += key_block) {
                    const std::size_t count = std::min(key_block, end - first);
                    const entry_rows<e2m1_e8m0_format> keys(a.keys.subspan(first, count), bytes);
                    multiply(
                        workers{}, query, heads, a.head_dim, keys, count, 1,
                        matrix_sink<float>{matrix_view<float>(products, heads, count, key_block)});
                    combine_heads(products, a.weights, count, a.scores.data() + first);
                  }
                });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(compressor_pool_rows);
HWY_EXPORT(index_scores_rows);

void compressor_pool(const compressor_pool_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(compressor_pool_rows)(arguments, threads);
}

void index_scores(const index_scores_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(index_scores_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
