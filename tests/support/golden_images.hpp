// Images of recorded prompts (tests/data/golden/README.md, section 4), as requests declare them.
#pragma once

#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/flow/prompt_image.hpp"
#include "runtime/model/config.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

struct image_prompt {
  std::vector<token_id> ids;
  std::vector<flow::prompt_image> images;  ///< none if the file has none
};

/// The file's prompt. Pixels are the recorded ones.
image_prompt image_prompt_of(const golden_file& file, const model::model_config& config);

}  // namespace cedar::test
