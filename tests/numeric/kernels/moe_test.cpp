// Goal: the elementwise operations of the experts against the judge, with derived bounds.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

struct gated {
  matrix_buffer<bf16> gate, up;
  matrix_buffer<float> weights;

  matrix_buffer<bf16> run(const backend& backend, float limit, bool weighted) const {
    matrix_buffer<bf16> y(gate.rows(), gate.cols());
    backend.swiglu({y.view(), gate.view(), up.view(),
                    weighted ? weights.span() : std::span<const float>(), limit});
    return y;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_moe)

/// The root halves softplus's relative error and rounds once.
BOOST_DATA_TEST_CASE(gate_scores_are_a_root_of_softplus, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t experts : {1U, 7U, 128U, 384U, 1001U}) {
    random_tensors random(experts);
    matrix_buffer<float> actual = random.full(3, experts, 12);
    actual.data()[0] = 20.0F;  // where the formula changes
    actual.data()[experts] = std::nextafter(20.0F, 21.0F);
    matrix_buffer<float> expected(3, experts);
    std::copy(actual.span().begin(), actual.span().end(), expected.data());
    backend->gate_scores({actual.view()});
    make_reference_backend()->gate_scores({expected.view()});
    check_float("gate_scores", actual.span(), expected.span(),
                scaled(function_error / 2 + unit, expected.span()));
  }
}

/// A sigmoid (which loses bits below the smallest normal number; up and weight magnify that by less
/// than 1000 here) and three products.
BOOST_DATA_TEST_CASE(swiglu_is_a_sigmoid_and_three_products, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t width : {1U, 33U, 128U, 2304U}) {
    random_tensors random(width);
    for (const float size : {1.0F, 12.0F, 60.0F}) {
      const gated inputs{random.half(3, width, size), random.half(3, width, size),
                         random.full(1, 3)};
      for (const float limit : {0.0F, 2.5F, 10.0F}) {
        for (const bool weighted : {false, true}) {
          const matrix_buffer<bf16> expected =
              inputs.run(*make_reference_backend(), limit, weighted);
          check_half("swiglu " + std::to_string(width),
                     inputs.run(*backend, limit, weighted).span(), expected.span(),
                     scaled(function_error + 3 * unit, expected.span(), 1000 * tiny));
        }
      }
    }
  }
}

BOOST_DATA_TEST_CASE(moe_combine_is_a_sum_in_the_order_given, backends(), name) {
  const auto backend = backend_of(name);
  const auto judge = make_reference_backend();
  for (const std::size_t parts : {1U, 2U, 7U}) {
    for (const std::size_t width : {1U, 33U, 5120U}) {
      random_tensors random(width + parts);
      const matrix_buffer<bf16> outputs = random.half(3 * parts, width);
      const matrix_buffer<bf16> sizes = absolute(outputs.view());
      std::vector<const bf16*> pointers, size_pointers;
      for (std::size_t part = 0; part < 3 * parts; ++part) {
        pointers.push_back(outputs.view().row_data(part));
        size_pointers.push_back(sizes.view().row_data(part));
      }
      matrix_buffer<bf16> actual(3, width), expected(3, width), magnitudes(3, width);
      backend->moe_combine({actual.view(), pointers, parts});
      judge->moe_combine({expected.view(), pointers, parts});
      judge->moe_combine({magnitudes.view(), size_pointers, parts});
      check_half("moe_combine", actual.span(), expected.span(),
                 scaled(static_cast<double>(parts) * unit * 1.01, magnitudes.span()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
