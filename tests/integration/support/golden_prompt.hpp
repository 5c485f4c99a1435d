// The golden prompts, and runs of `cedar logits` over them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace cedar::test {

/// A prompt of tests/data/golden, and the ids to feed after it.
struct golden_prompt {
  std::string name;  ///< "tiny-12/prompt-0017"
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> forced;

  friend std::ostream& operator<<(std::ostream& out, const golden_prompt& prompt) {
    return out << prompt.name;
  }
};

/// All prompts of the checkpoint `model` ("tiny-12", "tiny-40", "cedar-tiny"), ascending by name.
std::vector<golden_prompt> golden_prompts(const std::string& model);
golden_prompt golden_prompt_of(const std::string& model, const std::string& prompt);

/// The folder of the checkpoint.
std::filesystem::path checkpoint_of(const std::string& model);

/// Ids separated by blanks.
std::string ids_text(const std::vector<std::int64_t>& ids);

/// Arguments of `cedar logits` for the prompt, without the topology; writes `out`.
std::vector<std::string> logits_arguments(const temporary_folder& folder,
                                          const golden_prompt& prompt,
                                          const std::filesystem::path& model,
                                          const std::filesystem::path& out);

/// Every tensor of both files has the same name, dtype, shape and bytes. Fails the test case, names
/// the tensor. Returns the number of tensors.
std::size_t check_same_tensors(const std::filesystem::path& actual,
                               const std::filesystem::path& expected);

}  // namespace cedar::test
