// Goal: residual streams and the Engram gate against golden vectors.
#include <algorithm>
#include <cmath>

#include "kernels/base/buffer.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr std::size_t streams = 4;
constexpr std::size_t outputs = (2 + streams) * streams;
constexpr double coefficient_bound = 5e-7;  // tests/data/golden/README.md, section 6

struct coefficients {
  matrix_buffer<float> pre;
  matrix_buffer<float> post;
  matrix_buffer<float> combine;

  explicit coefficients(std::size_t rows)
      : pre(rows, streams), post(rows, streams), combine(rows, streams * streams) {}
};

coefficients compute(const backend& backend, const golden_file& golden, matrix_view<const bf16> x,
                     matrix_view<const float> fn, std::size_t iterations, float rms_epsilon) {
  coefficients out(x.rows);
  backend.hc_coefficients({x, fn, golden.vector<float>("base"), golden.vector<float>("scale"),
                           iterations, 1e-6F, rms_epsilon, out.pre.view(), out.post.view(),
                           out.combine.view()});
  return out;
}

/// The golden logits m * scale + base are rounded to fp32 twice, 2^-24 of the logit each, which no
/// other arithmetic reproduces; a softmax or a doubled sigmoid passes on at most half of a change.
double split_bound(const golden_file& golden, std::span<const float> mixes) {
  double largest = 0;
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::size_t part = std::min<std::size_t>(o / streams, 2);
    const double scale = golden.vector<float>("scale")[part];
    const double base = golden.vector<float>("base")[o];
    largest = std::max(largest, std::fabs(static_cast<double>(mixes[o]) * scale + base));
  }
  return coefficient_bound + std::ldexp(largest, -24);
}

/// The split of given mixes: a row of ones has the statistic 1, so a matrix that holds the mixes in
/// its first column yields them exactly.
void check_split(const backend& backend, const golden_file& golden, std::size_t iterations) {
  const auto mixes = golden.matrix<float>("mixes");
  const std::string prefix = "iters" + std::to_string(iterations) + ".";
  matrix_buffer<bf16> ones(1, streams * 32);
  for (bf16& value : ones.view().row(0)) value = to_bf16(1);
  for (std::size_t row = 0; row < mixes.rows; ++row) {
    matrix_buffer<float> fn(outputs, ones.cols());
    for (std::size_t o = 0; o < outputs; ++o) fn.view().row(o)[0] = mixes.row(row)[o];
    const coefficients found = compute(backend, golden, ones.view(), fn.view(), iterations, 1e-20F);
    const auto check = [&](const std::string& part, std::span<const float> actual) {
      check_absolute(prefix + part + " row " + std::to_string(row), actual,
                     golden.matrix<float>(prefix + part).row(row),
                     split_bound(golden, mixes.row(row)));
    };
    check("pre", found.pre.span());
    check("post", found.post.span());
    check("comb", found.combine.span());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_streams)

BOOST_DATA_TEST_CASE(splits_mixes_into_coefficients, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/hyper_connection.safetensors");
  for (const std::size_t iterations : {20U, 1U, 2U}) check_split(*backend, golden, iterations);
}

BOOST_DATA_TEST_CASE(computes_coefficients_from_streams, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/hyper_connection.safetensors");
  const coefficients found =
      compute(*backend, golden, golden.matrix<bf16>("stream"), golden.matrix<float>("fn"), 20,
              golden.vector<float>("norm_eps")[0]);
  check_absolute("stream.pre", found.pre.span(), golden.vector<float>("stream.pre"),
                 coefficient_bound);
  check_absolute("stream.post", found.post.span(), golden.vector<float>("stream.post"),
                 coefficient_bound);
  check_absolute("stream.comb", found.combine.span(), golden.vector<float>("stream.comb"),
                 coefficient_bound);
}

BOOST_DATA_TEST_CASE(collapses_streams, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/hyper_connection.safetensors");
  const auto x = golden.matrix<bf16>("stream");
  matrix_buffer<bf16> y(x.rows, x.cols / streams);
  backend->hc_collapse({y.view(), x, golden.matrix<float>("incoming_pre_mix")});
  check_ulps("collapsed", y.span(), golden.vector<bf16>("collapsed"), 1);
}

BOOST_DATA_TEST_CASE(expands_streams_also_in_place, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/hyper_connection.safetensors");
  const auto x = golden.matrix<bf16>("stream");
  matrix_buffer<bf16> out(x.rows, x.cols);
  const auto expand = [&](matrix_view<const bf16> from) {
    backend->hc_expand({out.view(), from, golden.matrix<bf16>("sublayer_out"),
                        golden.matrix<float>("stream.post"), golden.matrix<float>("stream.comb")});
    check_ulps("stream_after", out.span(), golden.vector<bf16>("stream_after"), 1);
  };
  expand(x);
  std::copy(x.data, x.data + x.rows * x.cols, out.data());
  expand(out.view());
}

BOOST_DATA_TEST_CASE(gates_engram_values, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/engram_gate.safetensors");
  const auto x = golden.matrix<bf16>("stream");
  std::vector<std::uint8_t> image_rows;
  for (const std::uint8_t text : golden.vector<std::uint8_t>("text_mask"))
    image_rows.push_back(text == 0 ? 1 : 0);
  matrix_buffer<bf16> out(x.rows, x.cols);
  matrix_buffer<float> gates(x.rows, streams);
  const auto gate = [&](matrix_view<const bf16> from) {
    backend->engram_gate({out.view(), from, golden.matrix<bf16>("kv"),
                          golden.matrix<bf16>("q_weight"), golden.matrix<bf16>("k_weight"),
                          image_rows, 1e-20F, gates.view()});
    check_absolute("gate", gates.span(), golden.vector<float>("gate"), 1e-5);
    check_ulps("out", out.span(), golden.vector<bf16>("out"), 1);
  };
  gate(x);
  std::copy(x.data, x.data + x.rows * x.cols, out.data());
  gate(out.view());
}

BOOST_AUTO_TEST_SUITE_END()
