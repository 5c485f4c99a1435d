// The header of a safetensors file, checked completely before any tensor is touched.
//
// Format (formats.md): 8 bytes little-endian header length, JSON header, payload; offsets count
// from the start of the payload. Pure functions of bytes; opening and mapping is
// safetensors_reader's job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/store/tensor_info.hpp"

namespace cedar::store {

/// Bytes of the length field in front of the header.
inline constexpr std::uint64_t header_length_bytes = 8;
/// Largest accepted header; the limit of the safetensors library.
inline constexpr std::uint64_t header_bytes_max = 100'000'000;

struct safetensors_header {
  std::vector<tensor_info> tensors;  ///< ascending by offset; offsets count from the file's start
  std::map<std::string, std::string> metadata;
};

/// Checks the length field against the file's size. Returns the header's length in bytes.
/// Errors: malformed, with `file` in front.
result<std::uint64_t> check_header_length(std::uint64_t length, std::uint64_t file_bytes,
                                          const std::string& file);

/// Parses the JSON header `text` (without the length field) of a file of `file_bytes` bytes.
///
/// Accepted only if the tensors fill the payload without gap or overlap, in any order, and each has
/// a known dtype, a shape whose product fits 64 bits, and exactly that product's bytes. Errors:
/// malformed; the message names `file` and the tensor.
result<safetensors_header> parse_safetensors_header(std::string_view text, std::uint64_t file_bytes,
                                                    const std::string& file);

}  // namespace cedar::store
