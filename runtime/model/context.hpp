// What every part of the model's computation needs besides its weights and rows.
//
// A context is made once per step by the stage that runs it; references are valid for the step.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/arena.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/taps.hpp"

namespace cedar::model {

struct context {
  const kernels::backend& kernels;
  const model_config& config;
  const rotary_frequencies& rotary;
  kernels::arena& scratch;
  const taps& probes;
  std::span<const std::int32_t> positions;  ///< [n]
  std::span<const std::uint8_t> image_rows;  ///< [n], non-zero for rows of an image span

  std::size_t rows() const noexcept { return positions.size(); }
};

/// Activations quantised for FP8 and FP4 weights; views into the context's scratch.
struct quantized_rows {
  kernels::matrix_view<std::uint8_t> codes;
  kernels::matrix_view<std::uint8_t> scales;

  operator kernels::fp8_rows_view() const { return {codes, scales}; }
};

/// Memory for n rows of k elements.
quantized_rows take_quantized(kernels::arena& scratch, std::size_t n, std::size_t k);

/// Quantises x [n, k] in groups of 32.
quantized_rows quantize(const context& c, kernels::matrix_view<const kernels::bf16> x);

/// Offers packed entries of `width` elements dequantised to bf16, if the name is wanted.
void offer_entries(const context& c, std::uint32_t layer, const char* name,
                   kernels::matrix_view<const std::byte> entries, kernels::entry_format format,
                   std::size_t width);

}  // namespace cedar::model
