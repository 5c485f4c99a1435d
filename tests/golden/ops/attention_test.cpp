// Goal: attention, compressor and index scores against golden vectors.
#include <algorithm>
#include <cmath>

#include "kernels/base/buffer.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

/// The valid slots of one query, in order; the first `window` of them stand for the window.
struct slots {
  std::vector<const std::byte*> entries;

  attention_entries split(std::size_t window) const {
    const std::span<const std::byte* const> all(entries);
    const std::size_t cut = std::min(window, all.size());
    return {all.first(cut), all.subspan(cut)};
  }
};

std::vector<slots> slots_of(matrix_view<const std::int32_t> index, matrix_view<const bf16> kv) {
  std::vector<slots> rows(index.rows);
  for (std::size_t row = 0; row < index.rows; ++row)
    for (const std::int32_t slot : index.row(row))
      if (slot >= 0)
        rows[row].entries.push_back(
            reinterpret_cast<const std::byte*>(kv.row_data(static_cast<std::size_t>(slot))));
  return rows;
}

/// Golden attention rounds probabilities relative to a running maximum, cedar relative to the
/// maximum of all entries: hence 2 steps at the largest value of a head's output.
void check_attention(const backend& backend, const golden_file& golden, const std::string& set) {
  const auto q = golden.matrix<bf16>(set + ".q");
  const std::size_t head_dim = golden.shape(set + ".q").back();
  const std::vector<slots> rows =
      slots_of(golden.matrix<std::int32_t>(set + ".idx"), golden.matrix<bf16>(set + ".kv"));
  std::vector<attention_entries> entries;
  for (std::size_t row = 0; row < rows.size(); ++row) entries.push_back(rows[row].split(row * 9));
  matrix_buffer<bf16> o(q.rows, q.cols);
  backend.attention({o.view(), q, entries, golden.vector<float>(set + ".sink"), head_dim,
                     static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim))),
                     entry_format::bf16, entry_format::bf16});
  const std::vector<float> out = widened(o.span());
  const std::vector<float> expected = golden.floats(set + ".out");
  for (std::size_t first = 0; first < out.size(); first += head_dim) {
    const auto head = [&](const std::vector<float>& values) {
      return std::span(values).subspan(first, head_dim);
    };
    check_ulps_of_largest(set + ".out from " + std::to_string(first), head(out), head(expected), 2);
  }
  check_relative_rms(set + ".out_exact", out, golden.vector<float>(set + ".out_exact"), 0.04);
}

/// The compressor of ratio 2 from its projections on.
struct pair_compressor {
  const backend& kernels;
  const golden_file& golden;

  matrix_buffer<float> project(std::size_t rows, const char* weight) const {
    const auto w = golden.matrix<bf16>(weight);
    matrix_buffer<float> out(rows, w.rows);
    kernels.linear_f32({out.view(), golden.matrix<bf16>("x").rows_from(0, rows), w});
    return out;
  }

  matrix_buffer<bf16> latents(matrix_view<const float> values,
                              matrix_view<const float> gates) const {
    matrix_buffer<bf16> out(values.rows / 2, values.cols);
    kernels.compressor_pool({out.view(), values, gates, 2});
    kernels.rms_norm({out.view(), out.view(), golden.vector<bf16>("ratio2.norm"), 1e-20F});
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_attention)

BOOST_DATA_TEST_CASE(attends_over_several_blocks, backends(), name) {
  check_attention(*backend_of(name), golden_file("ops/sparse_attention.safetensors"), "a");
}

BOOST_DATA_TEST_CASE(attends_with_the_released_head_width, backends(), name) {
  check_attention(*backend_of(name), golden_file("ops/sparse_attention.safetensors"), "b");
}

BOOST_DATA_TEST_CASE(attends_with_few_entries, backends(), name) {
  check_attention(*backend_of(name), golden_file("ops/sparse_attention.safetensors"), "c");
}

BOOST_DATA_TEST_CASE(compresses_single_tokens, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/compressor.safetensors");
  const auto x = golden.matrix<bf16>("x");
  const auto weight = golden.matrix<bf16>("ratio1.wkv");
  const auto check = [&](const std::string& tensor, matrix_view<const bf16> tokens) {
    matrix_buffer<bf16> latent(tokens.rows, weight.rows);
    backend->linear_bf16({latent.view(), tokens, weight});
    backend->rms_norm({latent.view(), latent.view(), golden.vector<bf16>("ratio1.norm"), 1e-20F});
    check_ulps(tensor, latent.span(), golden.vector<bf16>(tensor), 1);
  };
  for (const std::size_t rows : {1U, 2U, 7U, 8U})
    check("ratio1.prefill" + std::to_string(rows) + ".latent", x.rows_from(0, rows));
  check("ratio1.decode7.latent", x.rows_from(7, 1));
  check("ratio1.decode8.latent", x.rows_from(8, 1));
}

BOOST_DATA_TEST_CASE(compresses_pairs_of_tokens, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/compressor.safetensors");
  const pair_compressor compressor{*backend, golden};
  for (const std::size_t rows : {1U, 2U, 7U, 8U}) {
    const std::string prefix = "ratio2.prefill" + std::to_string(rows) + ".";
    const auto values = compressor.project(rows, "ratio2.wkv");
    const auto gates = compressor.project(rows, "ratio2.wgate");
    const std::size_t whole = rows / 2 * 2;
    if (whole != 0)
      check_ulps(
          prefix + "latent",
          compressor.latents(values.view().rows_from(0, whole), gates.view().rows_from(0, whole))
              .span(),
          golden.vector<bf16>(prefix + "latent"), 1);
  }
  const auto values = compressor.project(8, "ratio2.wkv");
  const auto gates = compressor.project(8, "ratio2.wgate");
  check_ulps("ratio2.decode7.latent",
             compressor.latents(values.view().rows_from(6, 2), gates.view().rows_from(6, 2)).span(),
             golden.vector<bf16>("ratio2.decode7.latent"), 1);
}

/// The golden pending states were taken from a buffer that later steps wrote to: every one of them
/// holds token 8, the last token that waited for its partner.
BOOST_DATA_TEST_CASE(keeps_the_pending_token_in_full_precision, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/compressor.safetensors");
  const pair_compressor compressor{*backend, golden};
  const auto values = compressor.project(9, "ratio2.wkv");
  const auto gates = compressor.project(9, "ratio2.wgate");
  for (const std::string prefix : {"ratio2.prefill1.", "ratio2.prefill7."}) {
    check_absolute(prefix + "pending_kv", values.view().row(8),
                   golden.vector<float>(prefix + "pending_kv"), 1e-5);
    check_absolute(prefix + "pending_score", gates.view().row(8),
                   golden.vector<float>(prefix + "pending_score"), 1e-5);
  }
}

BOOST_DATA_TEST_CASE(scores_index_keys, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/indexer.safetensors");
  const std::vector<std::size_t> shape = golden.shape("score.q");
  const std::size_t heads = shape[1];
  const std::size_t width = shape[2];
  const auto pack = [&](matrix_view<const bf16> x) {
    matrix_buffer<std::byte> entries(x.rows, entry_bytes(entry_format::fp4_e8m0_32, width));
    backend->pack_entries({x, entries.view(), entry_format::fp4_e8m0_32});
    matrix_buffer<bf16> back(x.rows, width);
    backend->unpack_entries({entries.view(), back.view(), entry_format::fp4_e8m0_32});
    check_equal("round trip", back.span(), std::span(x.data, x.rows * width));
    return entries;
  };
  const auto keys = pack(golden.matrix<bf16>("score.k"));
  std::vector<const std::byte*> pointers;
  for (std::size_t j = 0; j < keys.rows(); ++j) pointers.push_back(keys.view().row_data(j));
  const float constant = 1 / std::sqrt(static_cast<float>(width * heads));
  for (std::size_t row = 0; row < shape[0]; ++row) {
    const std::span<const bf16> q = golden.matrix<bf16>("score.q").row(row);
    const auto query = pack({q.data(), heads, width});
    std::vector<bf16> weights;
    for (const bf16 weight : golden.matrix<bf16>("score.weights_proj_out").row(row))
      weights.push_back(to_bf16(to_float(weight) * constant));
    std::vector<bf16> scores(pointers.size());
    backend->index_scores({scores, query.view(), weights, pointers, width});
    const std::span<const bf16> expected = golden.matrix<bf16>("score.bf16").row(row);
    check_ulps("score.bf16 row " + std::to_string(row), scores, expected, 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
