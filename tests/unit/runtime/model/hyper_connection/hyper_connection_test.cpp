// Goal: a sublayer's mixing coefficients, and where they send which stream, are the release's.
// Method: published projections with their coefficients (tests/data/released, fp32, 20 Sinkhorn
// rounds). The projections are given to the model exactly: streams of ones have a root mean square
// of 1, and weights that are zero beyond their first column make each product one of the published
// numbers.
#include "runtime/model/hyper_connection.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/base/buffer.hpp"
#include "tests/support/backends.hpp"

using namespace cedar;
using kernels::bf16;
using kernels::matrix_view;
using nlohmann::json;

namespace {

constexpr std::uint32_t streams_count = 4, stream_width = 32;
constexpr std::size_t row_width = streams_count * stream_width;
/// Of values up to 2, computed in fp32 with 20 rounds of two divisions each by another exp.
constexpr double tolerance = 5e-7;

json released_cases() {
  std::ifstream stream(CEDAR_TEST_DATA "/released/mhc_split_vectors.json");
  BOOST_REQUIRE(stream);
  return json::parse(stream).at("cases");
}

model::model_config config_of_cases() {
  model::model_config config;
  config.streams = streams_count;
  config.width = stream_width;
  config.sinkhorn_iterations = 20;
  config.hc_epsilon = 1e-6F;
  config.rms_epsilon = 0;
  return config;
}

/// One sublayer over one row of streams, with a case's projections as weights.
struct one_row {
  explicit one_row(const kernels::backend& backend, const json& of)
      : config(config_of_cases()),
        position(1),
        c{backend, config, no_rotary, scratch, probes, position, {}},
        fn(of.at("mixes").size(), row_width),
        base(of.at("base").get<std::vector<float>>()),
        scale(of.at("scale").get<std::vector<float>>()),
        norm(stream_width, kernels::to_bf16(1)),
        streams(1, row_width),
        pre(1, streams_count) {
    for (std::size_t i = 0; i < fn.rows(); ++i)
      fn.view().row(i)[0] = of.at("mixes").at(i).get<float>();
    std::ranges::fill(streams.span(), kernels::to_bf16(1));
    pre.span()[0] = 1;
  }

  model::hyper_connection_weights weights() const { return {fn.view(), base, scale}; }

  model::sublayer_frame begin() {
    const model::sublayer_frame frame = model::take_frame(scratch, config, 1);
    const model::hyper_connection_weights hc = weights();
    model::begin_sublayer(c, {hc, norm, frame},
                          {std::as_const(streams).view(), std::as_const(pre).view()});
    return frame;
  }

  model::model_config config;
  model::rotary_frequencies no_rotary;
  kernels::arena scratch;
  model::taps probes;
  std::vector<std::int32_t> position;
  model::context c;
  kernels::matrix_buffer<float> fn;
  std::vector<float> base, scale;
  std::vector<bf16> norm;
  kernels::matrix_buffer<bf16> streams;
  kernels::matrix_buffer<float> pre;
};

void check_close(const char* what, std::span<const float> made,
                 const std::vector<float>& expected) {
  BOOST_REQUIRE_EQUAL(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    BOOST_TEST(std::abs(double{made[i]} - double{expected[i]}) <= tolerance,
               what << '[' << i << "]: " << made[i] << " instead of " << expected[i]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hyper_connection)

BOOST_DATA_TEST_CASE(coefficients_are_the_published_ones, test::backends(), name) {
  const auto backend = test::backend_of(name);
  for (const json& of : released_cases()) {
    one_row row(*backend, of);
    const model::sublayer_frame frame = row.begin();
    check_close("pre", frame.next_pre.row(0), of.at("pre"));
    check_close("post", frame.post.row(0), of.at("post"));
    std::vector<float> combine;
    for (const json& line : of.at("comb"))
      for (const json& value : line) combine.push_back(value);
    check_close("comb", frame.combine.row(0), combine);
  }
}

BOOST_DATA_TEST_CASE(old_streams_go_where_the_published_matrix_sends_them, test::backends(), name) {
  const auto backend = test::backend_of(name);
  const json of = released_cases().at(0);
  one_row row(*backend, of);
  const model::sublayer_frame frame = row.begin();
  kernels::matrix_buffer<bf16> y(1, stream_width), old(1, row_width), out(1, row_width);
  kernels::matrix_buffer<float> next_pre(1, streams_count);
  for (std::size_t i = 0; i < row_width; ++i)
    old.span()[i] = kernels::to_bf16(static_cast<float>(i % 13) - 5);
  for (std::size_t i = 0; i < stream_width; ++i)
    y.span()[i] = kernels::to_bf16(static_cast<float>(i % 7) - 3);
  model::end_sublayer(row.c, frame, {std::as_const(old).view(), std::as_const(row.pre).view()},
                      std::as_const(y).view(), {out.view(), next_pre.view()});
  for (std::size_t k = 0; k < streams_count; ++k) {
    BOOST_TEST(next_pre.span()[k] == frame.next_pre.row(0)[k]);
    for (std::size_t j = 0; j < stream_width; ++j) {
      double exact = of.at("post").at(k).get<double>() * double{kernels::to_float(y.span()[j])};
      for (std::size_t i = 0; i < streams_count; ++i)
        exact += of.at("comb").at(i).at(k).get<double>() *
                 double{kernels::to_float(old.span()[i * stream_width + j])};
      const double made = double{kernels::to_float(out.span()[k * stream_width + j])};
      // Half a step of bf16, and what the coefficients' tolerance adds.
      BOOST_TEST(std::abs(made - exact) <= std::abs(exact) / 256 + 2e-5);
    }
  }
}

BOOST_DATA_TEST_CASE(a_sublayer_reads_its_streams_by_the_coefficients_handed_to_it,
                     test::backends(), name) {
  const auto backend = test::backend_of(name);
  one_row row(*backend, released_cases().at(0));
  // The stream that is read differs from the three that are not.
  for (std::size_t i = 0; i < row_width; ++i)
    row.streams.span()[i] = kernels::to_bf16(i / stream_width != 2 || i % 2 == 0 ? 3.0F : 0.0F);
  row.pre.span()[0] = 0;
  row.pre.span()[2] = 1;
  const model::sublayer_frame frame = row.begin();
  // Half of the elements are 3: the root mean square is 3 / sqrt(2).
  for (std::size_t i = 0; i < stream_width; ++i)
    BOOST_TEST(kernels::to_float(frame.x.row(0)[i]) ==
               (i % 2 == 0 ? kernels::to_float(kernels::to_bf16(std::sqrt(2.0F))) : 0.0F));
}

BOOST_DATA_TEST_CASE(a_sublayer_may_begin_where_another_ends, test::backends(), name) {
  const auto backend = test::backend_of(name);
  const json of = released_cases().at(0);
  one_row row(*backend, of), apart(*backend, of);
  kernels::matrix_buffer<bf16> y(1, stream_width);
  for (std::size_t i = 0; i < stream_width; ++i)
    y.span()[i] = kernels::to_bf16(static_cast<float>(i % 7) - 3);
  const auto end = [&](one_row& of_row, const model::following_sublayer* next) {
    const model::sublayer_frame frame = of_row.begin();
    model::end_sublayer(of_row.c, frame,
                        {std::as_const(of_row.streams).view(), std::as_const(of_row.pre).view()},
                        std::as_const(y).view(), {of_row.streams.view(), of_row.pre.view()}, next);
  };
  const model::hyper_connection_weights hc = row.weights();
  const model::following_sublayer next{hc, row.norm, model::take_frame(row.scratch, row.config, 1)};
  end(row, &next);
  end(apart, nullptr);
  const model::sublayer_frame begun = apart.begin();
  const auto same = [](const auto& made, const auto& expected) {
    return std::ranges::equal(std::as_bytes(made.row(0)), std::as_bytes(expected.row(0)));
  };
  BOOST_TEST(same(row.streams.view(), apart.streams.view()));
  BOOST_TEST(same(row.pre.view(), apart.pre.view()));
  BOOST_TEST(same(next.frame.x, begun.x));
  BOOST_TEST(same(next.frame.quantized.codes, begun.quantized.codes));
  BOOST_TEST(same(next.frame.quantized.scales, begun.quantized.scales));
  BOOST_TEST(same(next.frame.next_pre, begun.next_pre));
  BOOST_TEST(same(next.frame.post, begun.post));
  BOOST_TEST(same(next.frame.combine, begun.combine));
}

BOOST_AUTO_TEST_SUITE_END()
