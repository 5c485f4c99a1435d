// A checkpoint of seeded random weights for any configuration, in the released format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "runtime/base/result.hpp"

namespace cedar::synthetic {

struct checkpoint_contents {
  std::string config;  ///< text of config.json
  std::string tokenizer;  ///< text of tokenizer.json; empty: none is written
  std::uint64_t seed = 0;
  /// Weights of one file at most, and about the memory that writing takes; a larger tensor has a
  /// file of its own.
  std::uint64_t file_bytes_max = std::uint64_t{1} << 30;
};

struct written_checkpoint {
  std::size_t tensors = 0;
  std::size_t files = 0;  ///< with weights
  std::uint64_t bytes = 0;  ///< of all files
};

/// Writes config.json, tokenizer.json, and model.safetensors or shards with their index to
/// `folder`, which is made if it does not exist. The same contents give the same bytes. `stop` is
/// looked at before every tensor. After an error nothing of it is left. Errors: those of
/// read_config_text() for the configuration; refused if `folder` holds anything; capacity if the
/// file system has too little room; io; cancelled (`stop`).
result<written_checkpoint> write_random_checkpoint(const std::filesystem::path& folder,
                                                   const checkpoint_contents& contents,
                                                   const std::stop_token& stop = {});

}  // namespace cedar::synthetic
