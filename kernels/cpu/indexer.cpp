// What makes and scores index keys: the pooling of a compressor and the index scores.
//
// Scores of a group of keys come from integers where those are exact (internal/index-inl.hpp says
// when); others from the product of linear layers. The bits are the same.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/indexer.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/internal/index-inl.hpp"
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

/// The keys of a call, in order: walks runs of consecutive ones.
class key_walk {
 public:
  HWY_INLINE key_walk(const index_scores_arguments& a, std::size_t bytes, std::size_t key)
      : next_(a.keys.data() + key / a.keys_run), bytes_(bytes), run_(a.keys_run) {
    at_ = *next_++ + key % run_ * bytes;
    left_ = run_ - key % run_;
  }
  /// The key that it stands at; goes on to the next one if there is one.
  HWY_INLINE const std::byte* take(bool last) {
    const std::byte* key = at_;
    at_ += bytes_;
    if (--left_ == 0 && !last) {
      at_ = *next_++;
      left_ = run_;
    }
    return key;
  }

 private:
  const std::byte* const* next_;
  const std::byte* at_ = nullptr;
  std::size_t bytes_;
  std::size_t run_;
  std::size_t left_ = 0;
};

/// What the scores of a row's keys are computed from.
struct scoring {
  const index_scores_arguments& a;
  entry_rows<e2m1_e8m0_format> query;
  index_query integers;
};

/// Keys whose products with all heads are held at once where integers do not do.
inline constexpr std::size_t float_block = 256;

/// scores of `count` keys from products [heads, float_block], heads ascending.
HWY_INLINE void combine_heads(const float* products, std::span<const bf16> weights,
                              std::size_t count, bf16* scores) {
  for (std::size_t j = 0; j < count; j += width) {
    auto sum = zero();
    for (std::size_t head = 0; head < weights.size(); ++head) {
      const auto product = round_bf16(load(products + head * float_block + j));
      // Zero comes first: a NaN in the second operand passes.
      const auto positive = hn::Max(zero(), product);
      sum = hn::Add(sum, round_bf16(hn::Mul(positive, set(to_float(weights[head])))));
    }
    store_first(sum, scores + j, count - j);
  }
}

/// Scores [begin, end) by the product of every other kernel: keys that integers do not do for.
HWY_NOINLINE void score_by_floats(const scoring& s, std::size_t begin, std::size_t end) {
  const std::size_t heads = s.a.weights.size();
  scratch memory;
  float* products = memory.take<float>(heads * float_block);
  const auto** keys = memory.take<const std::byte*>(float_block);
  key_walk walk(s.a, entry_bytes(entry_format::fp4_e8m0_32, s.a.head_dim), begin);
  for (std::size_t first = begin; first < end; first += float_block) {
    const std::size_t count = std::min(float_block, end - first);
    for (std::size_t j = 0; j < count; ++j) keys[j] = walk.take(first + j + 1 == end);
    const entry_rows<e2m1_e8m0_format> rows({keys, count}, s.query.codes_bytes);
    multiply(workers{}, s.query, heads, s.a.head_dim, rows, count, 1,
             matrix_sink<float>{matrix_view<float>(products, heads, count, float_block)});
    combine_heads(products, s.a.weights, count, s.a.scores.data() + first);
  }
}

HWY_NOINLINE void score_keys(const scoring& s, std::size_t begin, std::size_t end) {
  scratch memory;
  const key_group group(memory, s.integers);
  const std::size_t bytes = entry_bytes(entry_format::fp4_e8m0_32, s.a.head_dim);
  key_walk walk(s.a, bytes, begin);
  key_walk ahead(s.a, bytes, std::min(begin + group_keys, end - 1));
  std::size_t waiting = begin;  // scores [waiting, first) are those of floats
  for (std::size_t first = begin; first < end; first += group_keys) {
    const std::size_t count = std::min(group_keys, end - first);
    const std::byte* key = nullptr;
    for (std::size_t lane = 0; lane < group_keys; ++lane) {
      if (lane < count) key = walk.take(first + lane + 1 == end);
      if (first + lane + group_keys < end) {
        const std::byte* later = ahead.take(first + lane + group_keys + 1 == end);
        __builtin_prefetch(later);
        __builtin_prefetch(later + bytes - 1);
      }
      place_key(s.integers, group, lane, key);
    }
    if (!exact(s.integers, group)) continue;
    if (waiting < first) score_by_floats(s, waiting, first);
    waiting = first + count;
    multiply_group(s.integers, group);
    combine_group(s.integers, group, count, s.a.scores.data() + first);
  }
  if (waiting < end) score_by_floats(s, waiting, end);
}

void index_scores_rows(const index_scores_arguments& a, workers threads) {
  const std::size_t heads = a.weights.size();
  scratch memory;
  const auto** queries = memory.take<const std::byte*>(heads);
  for (std::size_t head = 0; head < heads; ++head) queries[head] = a.query.row_data(head);
  const scoring all{a,
                    {{queries, heads}, code_bytes(entry_format::fp4_e8m0_32, a.head_dim)},
                    prepare_index_query(memory, a.query, a.weights, a.head_dim / index_block)};
  threads.split(a.scores.size(), group_keys, output_cost(heads, a.head_dim) / 4,
                [&](std::size_t begin, std::size_t end) HWY_ATTR { score_keys(all, begin, end); });
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
