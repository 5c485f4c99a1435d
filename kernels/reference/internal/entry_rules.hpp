// Packed cache entries in double: the dequantised values of an entry, and the packing of a vector.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "kernels/ops/entry_format.hpp"

namespace cedar::kernels::reference {

/// Values of the entry of `width` elements at `entry`.
std::vector<double> decode_entry(entry_format format, const std::byte* entry, std::size_t width);

/// Packs x into entry_bytes(format, x.size()) bytes at `entry`.
void encode_entry(entry_format format, std::span<const bf16> x, std::byte* entry);

}  // namespace cedar::kernels::reference
