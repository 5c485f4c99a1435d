// Goal: on every instruction set, every kernel gives the bits of plain scalar code in the canonical
// order. Method: random tensors of awkward shapes (no multiples of the vector or tile sizes,
// strided rows) through the backend and through plain_model.cpp.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

struct product_shape {
  std::size_t rows, inputs, outputs, segments;
};

// One row is a path of its own; 2, 3 and 7 rows meet every register tile; 200 rows need several
// tiles of x; 1056 columns several chunks; 2048 columns in four segments whole ones.
const std::vector<product_shape> block_shapes = {
    {1, 32, 1, 1},   {1, 96, 7, 1},   {1, 1056, 33, 1}, {1, 256, 45, 4},  {2, 64, 5, 1},
    {3, 1056, 9, 1}, {7, 640, 35, 4}, {13, 96, 66, 1},  {200, 32, 12, 1}, {5, 2048, 11, 4},
};

const std::vector<product_shape> plain_shapes = {
    {1, 1, 1, 1},   {1, 47, 6, 1},   {1, 531, 9, 1},  {1, 75, 70, 1},   {2, 16, 3, 1},
    {3, 545, 9, 1}, {7, 1024, 5, 1}, {13, 65, 34, 1}, {200, 31, 12, 1},
};

template <class Arguments, class Run, class Plain>
void same_output(Arguments arguments, std::size_t rows, std::size_t outputs, const Run& run,
                 const Plain& plain) {
  using element = std::remove_pointer_t<decltype(arguments.y.data)>;
  tensor<element> expected(rows, outputs);
  arguments.y = expected.view();
  plain(arguments);
  on_every_target([&](const backend& cpu) {
    tensor<element> actual(rows, outputs);
    arguments.y = actual.view();
    run(cpu, arguments);
    BOOST_TEST((actual == expected));
  });
}

#define CEDAR_SAME_OUTPUT(operation, arguments, rows, outputs)                                   \
  same_output(                                                                                   \
      arguments, rows, outputs, [](const backend& cpu, const auto& all) { cpu.operation(all); }, \
      [](const auto& all) { plain::operation(all); })

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits)

BOOST_AUTO_TEST_CASE(fp8_products_follow_the_canonical_order) {
  for (const auto& [rows, inputs, outputs, segments] : block_shapes)
    BOOST_TEST_CONTEXT(rows << " x " << inputs << " x " << outputs) {
      random_tensors source(1);
      const auto x = source.e4m3_codes(rows, inputs);
      const auto x_scales = source.bytes(rows, inputs / 32, 110, 130);
      const auto w = source.e4m3_codes(outputs, inputs);
      const auto w_scales = source.bytes((outputs + 31) / 32, inputs / 32, 110, 130);
      linear_fp8_arguments arguments;
      arguments.x = {x.view(), x_scales.view()};
      arguments.weight = {w.view(), w_scales.view()};
      arguments.segments = segments;
      CEDAR_SAME_OUTPUT(linear_fp8, arguments, rows, outputs);
    }
}

BOOST_AUTO_TEST_CASE(fp4_products_follow_the_canonical_order) {
  for (const auto& [rows, inputs, outputs, segments] : block_shapes)
    BOOST_TEST_CONTEXT(rows << " x " << inputs << " x " << outputs) {
      random_tensors source(2);
      const auto x = source.e4m3_codes(rows, inputs);
      const auto x_scales = source.bytes(rows, inputs / 32, 110, 130);
      const auto w = source.bytes(outputs, inputs / 2, 0, 255);
      const auto w_scales = source.bytes(outputs, inputs / 32, 110, 130);
      linear_fp4_arguments arguments;
      arguments.x = {x.view(), x_scales.view()};
      arguments.weight = {w.view(), w_scales.view()};
      arguments.segments = segments;
      CEDAR_SAME_OUTPUT(linear_fp4, arguments, rows, outputs);
    }
}

BOOST_AUTO_TEST_CASE(weight_only_products_follow_the_canonical_order) {
  for (const auto& [rows, inputs, outputs, segments] : block_shapes)
    BOOST_TEST_CONTEXT(rows << " x " << inputs << " x " << outputs) {
      random_tensors source(3);
      const auto x = source.bf16_matrix(rows, inputs, 1);
      const auto w = source.e4m3_codes(outputs, inputs);
      const auto w_scales = source.bytes((outputs + 31) / 32, inputs / 32, 110, 130);
      linear_fp8_weight_only_arguments arguments;
      arguments.x = x.view();
      arguments.weight = {w.view(), w_scales.view()};
      CEDAR_SAME_OUTPUT(linear_fp8_weight_only, arguments, rows, outputs);
    }
}

BOOST_AUTO_TEST_CASE(products_of_plain_numbers_follow_the_canonical_order) {
  for (const auto& [rows, inputs, outputs, segments] : plain_shapes)
    BOOST_TEST_CONTEXT(rows << " x " << inputs << " x " << outputs) {
      random_tensors source(4);
      const auto x = source.bf16_matrix(rows, inputs, 1);
      const auto w = source.bf16_matrix(outputs, inputs, 1);
      linear_bf16_arguments narrow;
      narrow.x = x.view();
      narrow.weight = w.view();
      CEDAR_SAME_OUTPUT(linear_bf16, narrow, rows, outputs);
      linear_f32_arguments wide;
      wide.x = x.view();
      wide.weight = w.view();
      CEDAR_SAME_OUTPUT(linear_f32, wide, rows, outputs);
    }
}

BOOST_AUTO_TEST_CASE(norms_match) {
  for (const std::size_t size : {1U, 15U, 16U, 40U, 517U}) {
    random_tensors source(5);
    const auto x = source.bf16_matrix(3, size, 2);
    const auto weight = source.bf16_vector(size, 1);
    rms_norm_arguments arguments;
    arguments.x = x.view();
    arguments.weight = weight;
    arguments.epsilon = 1e-20F;
    CEDAR_SAME_OUTPUT(rms_norm, arguments, 3, size);
  }
}

BOOST_AUTO_TEST_CASE(coefficients_of_streams_match) {
  struct shape {
    std::size_t rows, streams, width, iterations;
  };
  // Few iterations, too: after twenty one more changes nothing.
  for (const auto& [rows, streams, width, iterations] :
       {shape{1, 4, 40, 20}, shape{5, 4, 128, 2}, shape{2, 3, 7, 1}}) {
    random_tensors source(6);
    const std::size_t outputs = (2 + streams) * streams;
    const auto x = source.bf16_matrix(rows, streams * width, 1);
    const auto fn = source.f32_matrix(outputs, streams * width, 0.1F);
    const auto base = source.f32_vector(outputs, 1);
    const auto scale = source.f32_vector(3, 1);
    struct coefficients {
      tensor<float> pre, post, combine;
      bool operator==(const coefficients&) const = default;
    };
    const auto fresh = [&] {
      return coefficients{{rows, streams}, {rows, streams}, {rows, streams * streams}};
    };
    const auto arguments = [&](coefficients& out) {
      return hc_coefficients_arguments{
          x.view(), fn.view(), base,           scale,           iterations,
          1e-6F,    1e-20F,    out.pre.view(), out.post.view(), out.combine.view()};
    };
    coefficients expected = fresh();
    plain::hc_coefficients(arguments(expected));
    on_every_target([&](const backend& cpu) {
      coefficients actual = fresh();
      cpu.hc_coefficients(arguments(actual));
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(collapse_and_expand_match) {
  for (const std::size_t width : {5U, 32U, 83U}) {
    random_tensors source(7);
    const std::size_t streams = 4;
    const auto x = source.bf16_matrix(3, streams * width, 1);
    const auto y = source.bf16_matrix(3, width, 1);
    const auto post = source.f32_matrix(3, streams, 1);
    const auto combine = source.f32_matrix(3, streams * streams, 1);
    hc_collapse_arguments collapse;
    collapse.streams = x.view();
    collapse.pre = post.view();
    CEDAR_SAME_OUTPUT(hc_collapse, collapse, 3, width);

    tensor<bf16> expected = x;  // in place
    plain::hc_expand({expected.view(), x.view(), y.view(), post.view(), combine.view()});
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual = x;
      cpu.hc_expand({actual.view(), actual.view(), y.view(), post.view(), combine.view()});
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(rotations_match) {
  random_tensors source(8);
  const std::vector<std::int32_t> positions = {0, 1, 77, 65537, 1048575};
  for (const std::size_t pairs : {1U, 4U, 5U, 32U})
    for (const bool inverse : {false, true}) {
      const std::size_t head_dim = 2 * pairs + 6;
      const auto x = source.bf16_matrix(positions.size(), 3 * head_dim, 1);
      std::vector<float> frequencies;
      for (std::size_t i = 0; i < pairs; ++i)
        frequencies.push_back(
            std::pow(10000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
      tensor<bf16> expected = x;
      plain::rope({expected.view(), head_dim, positions, frequencies, inverse});
      on_every_target([&](const backend& cpu) {
        tensor<bf16> actual = x;
        cpu.rope({actual.view(), head_dim, positions, frequencies, inverse});
        BOOST_TEST((actual == expected));
      });
    }
}

BOOST_AUTO_TEST_CASE(expert_kernels_match) {
  random_tensors source(9);
  for (const std::size_t width : {3U, 16U, 71U}) {
    const auto scores = source.f32_matrix(4, width, 12);
    tensor<float> expected = scores;
    plain::gate_scores({expected.view()});
    on_every_target([&](const backend& cpu) {
      tensor<float> actual = scores;
      cpu.gate_scores({actual.view()});
      for (std::size_t row = 0; row < 4; ++row)
        for (std::size_t i = 0; i < width; ++i)
          BOOST_TEST(actual.view().row(row)[i] == expected.view().row(row)[i]);
    });

    const auto gate = source.bf16_matrix(4, width, 8);
    const auto up = source.bf16_matrix(4, width, 8);
    const auto weights = source.f32_vector(4, 1);
    for (const float limit : {0.0F, 2.5F, 10.0F}) {
      swiglu_arguments arguments;
      arguments.gate = gate.view();
      arguments.up = up.view();
      arguments.limit = limit;
      CEDAR_SAME_OUTPUT(swiglu, arguments, 4, width);
      arguments.route_weights = weights;
      CEDAR_SAME_OUTPUT(swiglu, arguments, 4, width);
    }

    std::vector<const bf16*> parts;
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t p = 0; p < 3; ++p)
        parts.push_back((p % 2 == 0 ? gate : up).view().row_data((row + p) % 4));
    moe_combine_arguments combine;
    combine.parts = parts;
    combine.parts_per_row = 3;
    CEDAR_SAME_OUTPUT(moe_combine, combine, 4, width);
  }
}

BOOST_AUTO_TEST_CASE(engram_gates_match) {
  for (const std::size_t width : {6U, 64U, 77U}) {
    random_tensors source(10);
    const std::size_t streams = 4;
    const auto x = source.bf16_matrix(3, streams * width, 1);
    const auto key_values = source.bf16_matrix(3, (streams + 1) * width, 1);
    const auto q_weight = source.bf16_matrix(streams, width, 1);
    const auto k_weight = source.bf16_matrix(streams, width, 1);
    const std::vector<std::uint8_t> image_rows = {0, 1, 0};
    const auto arguments = [&](tensor<bf16>& out, tensor<float>& gates) {
      return engram_gate_arguments{out.view(),      x.view(),        key_values.view(),
                                   q_weight.view(), k_weight.view(), image_rows,
                                   1e-20F,          gates.view()};
    };
    tensor<bf16> expected(3, streams * width);
    tensor<float> expected_gates(3, streams);
    plain::engram_gate(arguments(expected, expected_gates));
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual(3, streams * width);
      tensor<float> gates(3, streams);
      cpu.engram_gate(arguments(actual, gates));
      BOOST_TEST((actual == expected));
      BOOST_TEST((gates == expected_gates));
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
