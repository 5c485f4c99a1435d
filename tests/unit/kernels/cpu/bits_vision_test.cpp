// Goal: the vision tower's operations give the bits of plain scalar code on every instruction set
// and with any number of threads. Method: as bits_test.cpp.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <tuple>

#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits)

BOOST_AUTO_TEST_CASE(biases_are_added_to_the_finished_sum) {
  for (const auto& [rows, inputs, outputs] :
       {std::tuple{1U, 47U, 6U}, {3U, 545U, 9U}, {13U, 65U, 34U}, {200U, 31U, 12U}}) {
    random_tensors source(31);
    const auto x = source.bf16_matrix(rows, inputs, 1);
    const auto w = source.bf16_matrix(outputs, inputs, 1);
    const auto bias = source.bf16_vector(outputs, 3);
    tensor<bf16> expected(rows, outputs);
    plain::linear_bf16({expected.view(), x.view(), w.view(), bias});
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual(rows, outputs);
      cpu.linear_bf16({actual.view(), x.view(), w.view(), bias});
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(rounded_silus_match) {
  random_tensors source(32);
  const auto gate = source.bf16_matrix(3, 45, 3);
  const auto up = source.bf16_matrix(3, 45, 3);
  tensor<bf16> expected(3, 45);
  plain::swiglu({expected.view(), gate.view(), up.view(), {}, 0, true});
  on_every_target([&](const backend& cpu) {
    tensor<bf16> actual(3, 45);
    cpu.swiglu({actual.view(), gate.view(), up.view(), {}, 0, true});
    BOOST_TEST((actual == expected));
    cpu.swiglu({actual.view(), gate.view(), up.view(), {}, 0, false});
    BOOST_TEST((actual != expected));
  });
}

BOOST_AUTO_TEST_CASE(rotations_in_two_dimensions_match) {
  for (const std::size_t head_dim : {4U, 16U, 40U, 64U}) {
    random_tensors source(33);
    const auto x = source.bf16_matrix(5, 3 * head_dim, 1);
    const std::vector<std::int32_t> rows{0, 1, 30, 92, 7};
    const std::vector<std::int32_t> columns{0, 92, 3, 1, 500};
    const auto frequencies = source.f32_vector(head_dim / 4, 1);
    tensor<bf16> expected = x;
    plain::rope_2d({expected.view(), head_dim, rows, columns, frequencies});
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual = x;
      cpu.rope_2d({actual.view(), head_dim, rows, columns, frequencies});
      BOOST_TEST((actual == expected));
    });
  }
}

// More queries than a tile, fewer, one; heads that are no multiple of a vector.
BOOST_AUTO_TEST_CASE(full_attention_matches) {
  for (const auto& [rows, keys, heads, head_dim] : {std::tuple{1U, 1U, 1U, 16U},
                                                    {56U, 56U, 4U, 16U},
                                                    {97U, 33U, 2U, 64U},
                                                    {5U, 70U, 3U, 20U},
                                                    {49U, 129U, 1U, 64U}}) {
    random_tensors source(34);
    const auto q = source.bf16_matrix(rows, heads * head_dim, 2);
    const auto k = source.bf16_matrix(keys, heads * head_dim, 1);
    const auto v = source.bf16_matrix(keys, heads * head_dim, 1);
    tensor<bf16> expected(rows, heads * head_dim);
    plain::full_attention({expected.view(), q.view(), k.view(), v.view(), head_dim, 0.3F});
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual(rows, heads * head_dim);
      cpu.full_attention({actual.view(), q.view(), k.view(), v.view(), head_dim, 0.3F});
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(sums_and_gelus_match) {
  random_tensors source(35);
  const auto a = source.bf16_matrix(7, 77, 3);
  const auto b = source.bf16_matrix(7, 77, 0.01F);
  tensor<bf16> sum(7, 77);
  tensor<bf16> smooth(7, 77);
  plain::add({sum.view(), a.view(), b.view()});
  plain::gelu({smooth.view(), a.view()});
  on_every_target([&](const backend& cpu) {
    tensor<bf16> actual = a;  // in place
    cpu.add({actual.view(), actual.view(), b.view()});
    for (std::size_t row = 0; row < 7; ++row)
      BOOST_TEST((std::ranges::equal(actual.view().row(row), sum.view().row(row))));
    tensor<bf16> out(7, 77);
    cpu.gelu({out.view(), a.view()});
    BOOST_TEST((out == smooth));
  });
}

BOOST_AUTO_TEST_SUITE_END()
