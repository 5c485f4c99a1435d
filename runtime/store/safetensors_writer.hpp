// Writes a safetensors file that appears whole or not at all.
//
// The file is written beside its target under a temporary name and renamed when it is complete, so
// a reader (or a mapping) of an older file of that name is never disturbed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/base/result.hpp"

namespace cedar::store {

/// A tensor to write; `bytes` is borrowed for the duration of the call.
struct tensor_source {
  std::string name;
  kernels::dtype dtype = kernels::dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  ///< row-major, exactly the shape's bytes
};

/// Writes `tensors` to `path`. In the file they are ordered by element size, largest first, and the
/// header is padded to a multiple of 8, so that every tensor is aligned for its dtype.
/// A shape that contradicts its bytes, or two tensors of one name, is a defect. Errors: those of
/// replace_file().
result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const tensor_source> tensors,
                               const std::map<std::string, std::string>& metadata = {},
                               const std::stop_token& stop = {});

/// Replaces the file at `path` by the concatenation of `parts`, atomically. `stop` is looked at
/// before every part and at the end. After an error `path` is what it was, and nothing is left
/// beside it. Errors: io; cancelled (`stop`).
result<void> replace_file(const std::filesystem::path& path,
                          std::span<const std::span<const std::byte>> parts,
                          const std::stop_token& stop = {});

}  // namespace cedar::store
