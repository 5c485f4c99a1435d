// Goal: on every instruction set, fused kernels give the bits of the plain operations that they
// replace. Method: as in bits_test.cpp, with groups that hold an infinity, a NaN, zeros or numbers
// near the smallest scale among them.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

struct quantized {
  tensor<std::uint8_t> codes, scales;

  quantized(std::size_t rows, std::size_t cols) : codes(rows, cols), scales(rows, cols / 32) {}
  bool operator==(const quantized&) const = default;
};

/// Makes the first groups of the last row special.
void plant_edges(tensor<bf16>& x) {
  const matrix_view<bf16> view = x.view();
  bf16* row = view.row_data(view.rows - 1);
  if (view.cols < 128) return;
  row[5] = to_bf16(std::numeric_limits<float>::infinity());
  for (std::size_t i = 32; i < 64; ++i) row[i] = to_bf16(i % 2 == 0 ? 0.0F : -0.0F);
  for (std::size_t i = 64; i < 96; ++i) row[i] = to_bf16(1e-7F * static_cast<float>(i));
  row[100] = to_bf16(std::numeric_limits<float>::quiet_NaN());
}

struct transition {
  std::size_t rows, streams, width, iterations;
  random_tensors source{11};
  tensor<bf16> old = source.bf16_matrix(rows, streams* width, 1);
  tensor<bf16> y = source.bf16_matrix(rows, width, 1);
  tensor<float> post = source.f32_matrix(rows, streams, 1);
  tensor<float> combine = source.f32_matrix(rows, streams* streams, 1);
  tensor<float> pre = source.f32_matrix(rows, streams, 1);
  std::vector<bf16> norm = source.bf16_vector(width, 1);
  tensor<float> fn = source.f32_matrix((2 + streams) * streams, streams* width, 0.1F);
  std::vector<float> base = source.f32_vector((2 + streams) * streams, 1);
  std::vector<float> scale = source.f32_vector(3, 1);

  struct results {
    tensor<bf16> streams, x;
    quantized q;
    tensor<float> pre, post, combine;
    bool operator==(const results&) const = default;
  };

  /// With the new streams in the old ones' memory (whose padding stays), or apart.
  template <class Run>
  results run(bool in_place, const Run& run) const {
    results out{in_place ? old : tensor<bf16>(rows, streams * width),
                {rows, width},
                {rows, width},
                {rows, streams},
                {rows, streams},
                {rows, streams * streams}};
    const matrix_view<const bf16> from =
        in_place ? matrix_view<const bf16>(out.streams.view()) : old.view();
    run(hc_transition_arguments{{out.streams.view(), from, y.view(), post.view(), combine.view()},
                                pre.view(),
                                norm,
                                1e-20F,
                                out.x.view(),
                                out.q.codes.view(),
                                out.q.scales.view(),
                                fn.view(),
                                base,
                                scale,
                                iterations,
                                1e-6F,
                                out.pre.view(),
                                out.post.view(),
                                out.combine.view()});
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits_of_fused_kernels)

// 4 streams have code of their own; 1 to 3 rows, and rows that a register tile leaves over; 17 rows
// of 16,384 elements are more than a tile; 544 columns more than a chunk.
BOOST_AUTO_TEST_CASE(a_transition_is_its_parts) {
  struct shape {
    std::size_t rows, streams, width, iterations;
  };
  for (const auto& [rows, streams, width, iterations] :
       {shape{1, 4, 160, 20}, shape{2, 4, 32, 3}, shape{3, 4, 544, 1}, shape{7, 4, 96, 2},
        shape{17, 4, 4096, 2}, shape{4, 1, 64, 2}, shape{5, 3, 160, 2}}) {
    const transition random{rows, streams, width, iterations};
    for (const bool in_place : {false, true}) {
      const auto expected = random.run(in_place, plain::hc_transition);
      BOOST_TEST_CONTEXT(rows << " rows of " << streams << " x " << width)
      on_every_target([&](const backend& cpu) {
        const auto actual =
            random.run(in_place, [&](const auto& arguments) { cpu.hc_transition(arguments); });
        BOOST_TEST((actual == expected));
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_norm_that_quantises_is_both) {
  for (const auto& [rows, width] : {std::pair(1U, 32U), {3U, 544U}, {5U, 160U}}) {
    random_tensors source(12);
    tensor<bf16> x = source.bf16_matrix(rows, width, 2);
    if (rows == 3) plant_edges(x);
    const auto weight = source.bf16_vector(width, 1);
    tensor<bf16> expected(rows, width);
    quantized expected_codes(rows, width);
    plain::rms_norm_quantize({{expected.view(), x.view(), weight, 1e-20F},
                              expected_codes.codes.view(),
                              expected_codes.scales.view()});
    on_every_target([&](const backend& cpu) {
      tensor<bf16> actual = x;  // in place
      quantized codes(rows, width);
      cpu.rms_norm_quantize({{actual.view(), actual.view(), weight, 1e-20F},
                             codes.codes.view(),
                             codes.scales.view()});
      BOOST_TEST((codes == expected_codes));
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < width; ++i)
          BOOST_REQUIRE(actual.view().row(row)[i].bits == expected.view().row(row)[i].bits);
    });
  }
}

BOOST_AUTO_TEST_CASE(quantising_matches) {
  random_tensors source(13);
  for (const float size : {1e-6F, 1.0F, 1e4F}) {
    tensor<bf16> x = source.bf16_matrix(3, 160, size);
    plant_edges(x);
    quantized expected(3, 160);
    plain::quantize_fp8({x.view(), expected.codes.view(), expected.scales.view()});
    on_every_target([&](const backend& cpu) {
      quantized actual(3, 160);
      cpu.quantize_fp8({x.view(), actual.codes.view(), actual.scales.view()});
      BOOST_TEST((actual == expected));
    });
  }
}

// Scales up to 2^40, and so small that quantising anew loses bits of the values.
BOOST_AUTO_TEST_CASE(requantised_entries_are_unpacked_and_quantised) {
  random_tensors source(15);
  for (const std::size_t width : {32U, 256U}) {
    const std::size_t bytes = entry_bytes(entry_format::fp8_e8m0_32, width);
    const auto codes = source.e4m3_codes(4, width);
    const auto scales = source.bytes(4, width / 32, 90, 167);
    tensor<std::byte> entries(4, bytes);
    for (std::size_t row = 0; row < 4; ++row) {
      std::memcpy(entries.view().row_data(row), codes.view().row_data(row), width);
      std::memcpy(entries.view().row_data(row) + width, scales.view().row_data(row), width / 32);
    }
    quantized expected(4, width);
    plain::requantize_entries({entries.view(), expected.codes.view(), expected.scales.view()});
    on_every_target([&](const backend& cpu) {
      quantized actual(4, width);
      cpu.requantize_entries({entries.view(), actual.codes.view(), actual.scales.view()});
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(an_activation_that_quantises_is_both) {
  random_tensors source(14);
  for (const std::size_t width : {32U, 160U})
    for (const float limit : {0.0F, 2.5F})
      for (const bool weighted : {false, true}) {
        tensor<bf16> gate = source.bf16_matrix(4, width, 4);
        plant_edges(gate);
        const auto up = source.bf16_matrix(4, width, 4);
        const auto weights = source.f32_vector(4, 1);
        swiglu_quantize_arguments arguments;
        arguments.gate = gate.view();
        arguments.up = up.view();
        arguments.limit = limit;
        if (weighted) arguments.route_weights = weights;
        quantized expected(4, width);
        arguments.codes = expected.codes.view();
        arguments.scales = expected.scales.view();
        plain::swiglu_quantize(arguments);
        on_every_target([&](const backend& cpu) {
          quantized actual(4, width);
          arguments.codes = actual.codes.view();
          arguments.scales = actual.scales.view();
          cpu.swiglu_quantize(arguments);
          BOOST_TEST((actual == expected));
        });
      }
}

BOOST_AUTO_TEST_SUITE_END()
