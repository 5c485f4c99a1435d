// The bytes of one tensor that nobody trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/model/manifest.hpp"

namespace cedar::synthetic {

/// Fills `bytes`, exactly the tensor's, from `seed` and the tensor's name and shape. Norms lie
/// around 1; a product with any other tensor has about the size of its input, one that writes to
/// the streams an eighth of that and less. Values are finite, and codes are valid. Thread-safe.
void fill_random(const model::expected_tensor& tensor, std::uint64_t seed,
                 std::span<std::byte> bytes);

}  // namespace cedar::synthetic
