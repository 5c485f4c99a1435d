// Goal: attention, pooling and cache entries give the bits of plain scalar code on
// every instruction set. Method: as bits_test.cpp, with entries packed by the backend itself.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

constexpr entry_format formats[] = {entry_format::bf16, entry_format::fp8_e8m0_32,
                                    entry_format::fp4_e4m3_16, entry_format::fp4_e8m0_32};

tensor<std::byte> pack(const backend& cpu, const tensor<bf16>& x, entry_format format) {
  const auto view = x.view();
  tensor<std::byte> entries(view.rows, entry_bytes(format, view.cols));
  cpu.pack_entries({view, entries.view(), format});
  return entries;
}

std::vector<const std::byte*> pointers(const tensor<std::byte>& entries, std::size_t first,
                                       std::size_t count) {
  std::vector<const std::byte*> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(entries.view().row_data(first + i));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits)

BOOST_AUTO_TEST_CASE(unpacked_entries_are_the_dequantised_values) {
  random_tensors source(11);
  const auto x = source.bf16_matrix(5, 96, 3);
  for (const entry_format format : formats)
    on_every_target([&](const backend& cpu) {
      const auto entries = pack(cpu, x, format);
      tensor<bf16> actual(5, 96);
      cpu.unpack_entries({entries.view(), actual.view(), format});
      for (std::size_t row = 0; row < 5; ++row) {
        const auto expected = plain::decode_entry(format, entries.view().row_data(row), 96);
        for (std::size_t i = 0; i < 96; ++i)
          BOOST_TEST(to_float(actual.view().row(row)[i]) == expected[i]);
      }
    });
}

BOOST_AUTO_TEST_CASE(packed_bytes_are_the_same_on_every_instruction_set) {
  random_tensors source(12);
  for (const float scale : {1e-30F, 1e-3F, 1.0F, 1e30F}) {
    const auto x = source.bf16_matrix(9, 64, scale);
    for (const entry_format format : formats) {
      std::vector<tensor<std::byte>> all;
      on_every_target([&](const backend& cpu) { all.push_back(pack(cpu, x, format)); });
      for (const auto& bytes : all) BOOST_TEST((bytes == all.front()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_group_with_nan_or_infinity_becomes_nan) {
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
    for (const entry_format format : formats) {
      if (format == entry_format::bf16) continue;
      on_every_target([&](const backend& cpu) {
        random_tensors source(13);
        auto x = source.bf16_matrix(1, 64, 1);
        x.view().row(0)[5] = to_bf16(poison);
        const auto entries = pack(cpu, x, format);
        tensor<bf16> values(1, 64);
        cpu.unpack_entries({entries.view(), values.view(), format});
        for (std::size_t i = 0; i < 64; ++i)
          BOOST_TEST(std::isnan(to_float(values.view().row(0)[i])) == (i < group_size(format)));
      });
    }
}

BOOST_AUTO_TEST_CASE(pools_match) {
  for (const std::size_t ratio : {2U, 4U})
    for (const std::size_t width : {7U, 64U}) {
      random_tensors source(14);
      const auto values = source.f32_matrix(3 * ratio, width, 1);
      const auto gates = source.f32_matrix(3 * ratio, width, 3);
      tensor<bf16> expected(3, width);
      plain::compressor_pool({expected.view(), values.view(), gates.view(), ratio});
      on_every_target([&](const backend& cpu) {
        tensor<bf16> actual(3, width);
        cpu.compressor_pool({actual.view(), values.view(), gates.view(), ratio});
        BOOST_TEST((actual == expected));
      });
    }
}

BOOST_AUTO_TEST_CASE(attention_matches) {
  struct shape {
    std::size_t heads, head_dim;
    entry_format window, selected;
  };
  const std::size_t window[] = {0, 1, 128, 3, 37};
  const std::size_t selected[] = {0, 0, 300, 64, 5};
  for (const auto& [heads, head_dim, window_format, selected_format] :
       {shape{4, 64, entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16},
        shape{9, 48, entry_format::bf16, entry_format::fp4_e4m3_16},
        shape{1, 512, entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16},
        shape{19, 32, entry_format::fp4_e8m0_32, entry_format::bf16}}) {
    random_tensors source(16);
    const auto q = source.bf16_matrix(5, heads * head_dim, 2);
    const auto near = source.bf16_matrix(128, head_dim, 1);
    const auto far = source.bf16_matrix(300, head_dim, 1);
    const auto sinks = source.f32_vector(heads, 1);
    on_every_target([&](const backend& cpu) {
      const auto near_entries = pack(cpu, near, window_format);
      const auto far_entries = pack(cpu, far, selected_format);
      std::vector<std::vector<const std::byte*>> lists;
      std::vector<attention_entries> entries;
      lists.reserve(10);
      for (std::size_t row = 0; row < 5; ++row) {
        lists.push_back(pointers(near_entries, 128 - window[row], window[row]));
        lists.push_back(pointers(far_entries, 300 - selected[row], selected[row]));
        entries.push_back({lists[2 * row], lists[2 * row + 1]});
      }
      const auto arguments = [&](tensor<bf16>& o) {
        return attention_arguments{o.view(), q.view(), entries,       sinks,
                                   head_dim, 0.1F,     window_format, selected_format};
      };
      tensor<bf16> expected(5, heads * head_dim);
      plain::attention(arguments(expected));
      tensor<bf16> actual(5, heads * head_dim);
      cpu.attention(arguments(actual));
      BOOST_TEST((actual == expected));
    });
  }
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_in_any_batch) {
  random_tensors source(17);
  const auto x = source.bf16_matrix(50, 672, 1);
  const auto w = source.bf16_matrix(21, 672, 1);
  on_every_target([&](const backend& cpu) {
    tensor<float> together(50, 21);
    cpu.linear_f32({together.view(), x.view(), w.view()});
    for (std::size_t row = 0; row < 50; ++row) {
      tensor<float> alone(1, 21);
      cpu.linear_f32({alone.view(), x.view().rows_from(row, 1), w.view()});
      for (std::size_t o = 0; o < 21; ++o)
        BOOST_TEST(alone.view().row(0)[o] == together.view().row(row)[o]);
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
