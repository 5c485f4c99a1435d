// A number that two nodes compare before they join: the same model, or not.
//
// XXH3-128 over a canonical text of the configuration and, ascending by name, each tensor's name,
// dtype and shape; with content, also each tensor's content hash (XXH3-128 of its bytes).
// Content hashes are computed once per file and kept beside it in `<file>.hashes.json`, valid while
// the file's size and modification time are unchanged (formats.md); a file that was modified within
// the last two seconds is hashed without keeping the result. It is an identity check against
// mistakes, not against an attacker.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/store/checkpoint.hpp"

namespace cedar::store {

struct fingerprint {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const fingerprint&, const fingerprint&) = default;
};

/// 32 hexadecimal digits.
std::string to_string(const fingerprint& print);

/// Of the configuration and the headers alone; reads no tensor. `config_text` is
/// model::canonical_text() of the checkpoint's configuration.
fingerprint shape_fingerprint(const checkpoint& tensors, std::string_view config_text);

/// As above with every tensor's content. Reads each file once unless its hashes are stored; stores
/// them if the folder can be written. Maps nothing. Errors: io; not_found if a shard is not here.
result<fingerprint> content_fingerprint(const checkpoint& tensors, std::string_view config_text);

}  // namespace cedar::store
